#pragma once

#include <string>
#include <vector>

#include "oracle/model/oracle.h"
#include "weights/storage/weights.h"

namespace shardproof {

/// Returns notes on data that hide faults although every value is compared: weights and values that
/// are zero throughout, which hide whatever is multiplied by them; weights that are equal along one
/// of their dims, which hide a wrong order of that dim; and rows of the batch that are equal
/// throughout a phase, which may be swapped unnoticed. Empty if there are none, as for generated
/// weights. `weights` as stored for the run, with the oracle's answer; weights in `noted` are left
/// out. regime=field has no such data: its numbers are drawn.
std::vector<std::string> notes_of_data(const Weights& weights, const oracle::Answer& answer,
                                       const std::vector<std::string>& noted = {});

}  // namespace shardproof
