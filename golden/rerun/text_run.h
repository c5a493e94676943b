#pragma once

#include <cstdint>
#include <vector>

#include "golden/rerun/distances.h"
#include "golden/rerun/run.h"

namespace shardproof::rerun {

/// Runs the unsharded model of a text over the passes once, in f32 or (Real = double) f64, with
/// drawn orders and forms (FloatMath), and shows each wanted line's value. `question.weights` are
/// of a text's model, `passes` those that it can run (runnable()). Throws what the walk throws
/// (oracle/walk/walk.h): "oracle_graph" where a position is beyond a table.
template <class Real>
void run_text(const Question& question, const std::vector<PassPlan>& passes, std::uint64_t seed,
              std::uint64_t number, Watch& watch);

}  // namespace shardproof::rerun
