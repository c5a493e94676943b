#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "engine/run/plan_types.h"
#include "tools/runner/batch.h"
#include "weights/base/error.h"

namespace shardproof::tools {

/// The cases of a run, and the reasons why others are illegal.
struct Selection {
  std::vector<Case> cases = {};
  Plans plans = {};  ///< plans of the cases if already made; otherwise empty
  std::vector<std::string> skipped = {};
};

/// Returns the cases that verify a given model: every strategy on the standard tori that it
/// divides. parse(line) makes the case of a line, with its own model. Types are checked until the
/// first finding or all of them (`until`). Throws Error("verify_c1", ...) if no case is legal, and
/// what `parse` throws.
Selection every_strategy(const std::function<Case(const std::string& line)>& parse,
                         Findings::Until until = Findings::Until::first);

/// Returns random case number `index` of the stream `seed`, with the plan that drawing it made,
/// type-checked until the first finding or all of them (`until`).
ToRun random_case(std::uint64_t seed, std::uint64_t index,
                  Findings::Until until = Findings::Until::first);

}  // namespace shardproof::tools
