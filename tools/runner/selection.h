#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "engine/run/plan_types.h"
#include "tools/runner/batch.h"
#include "weights/base/error.h"

namespace shardproof::tools {

/// The cases of a run, and of those that are not legal, why.
struct Selection {
  std::vector<Case> cases = {};
  Plans plans = {};  ///< of these cases, where they are made already; else empty
  std::vector<std::string> skipped = {};
};

/// What a given model is verified on: every strategy on the standard tori that it divides.
/// parse(line) makes the case of a line; the model is its own. Their types are checked `until` the
/// first finding or for all. Throws Error("verify_c1", ...) if none is legal, and what `parse`
/// throws.
Selection every_strategy(const std::function<Case(const std::string& line)>& parse,
                         Findings::Until until = Findings::Until::first);

/// Random case number `index` of the stream `seed`, with the plan that drawing it has made, typed
/// `until` the first finding or for all.
ToRun random_case(std::uint64_t seed, std::uint64_t index,
                  Findings::Until until = Findings::Until::first);

}  // namespace shardproof::tools
