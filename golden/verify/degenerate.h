#pragma once

#include <string>
#include <vector>

#include "oracle/model/oracle.h"
#include "weights/storage/weights.h"

namespace shardproof {

/// Notes on data with which faults hide, though every value is compared: weights and values that
/// are zero throughout, so that what is multiplied by them does not show; weights that are equal
/// along one of their dims, so that a wrong order of it does not show; and rows of the
/// batch that are equal throughout a phase, so that they may change places. Empty if there are
/// none, as for generated weights. `weights` as stored for the run, with the oracle's answer; those
/// that were `noted` before are left out. regime=field has no such data: its numbers are drawn.
std::vector<std::string> notes_of_data(const Weights& weights, const oracle::Answer& answer,
                                       const std::vector<std::string>& noted = {});

}  // namespace shardproof
