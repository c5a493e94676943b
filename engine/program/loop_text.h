#pragma once

#include <string>

#include "engine/program/program.h"

namespace shardproof {

/// Describes the order in which the loop of an all_gather or reduce_scatter adds; j and c are
/// numbers of chips and chunks of the ring, modulo its size:
///   "ring of 3 over x, one-way: chip j takes chunks j, j-1, j+1"
///   "ring of 3 over x, both-full: chunk c = (p[c-1] + p[c]) + (p[c+1])"
/// The middle of long rings is left out.
std::string loop_text(const Op& op, const Torus& torus);

}  // namespace shardproof
