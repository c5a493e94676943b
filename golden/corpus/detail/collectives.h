#pragma once

#include <string_view>

#include "engine/layout/torus.h"
#include "golden/trace/read/dump.h"
#include "weights/base/error.h"

namespace shardproof::corpus {

/// The suffix that the name of a result's operand has.
inline constexpr std::string_view kOperandSuffix = ".operand";

/// The golden of the collectives on a torus (level 1): all_gather, reduce_scatter, all_reduce,
/// all_to_all, slice and permute_axes over every ordered list of axes that each may have, on
/// operands whose other dims and partial sums use all the others. Complete operands hold pairwise
/// different numbers; partial sums are whole numbers of which 4096 add up exactly in f32, in any
/// order.
dump::Dump collectives_golden(const Torus& torus);

/// Recomputes a golden of this kind from its operands: a result is the tensor that the operand
/// represents, cut by the judge's map. Throws NotEqual, naming value and chip, if the engine's
/// collective gives other shards. Throws Error: "golden_torus", "golden_operand" (a result without
/// operand, layout or op; an operand that is not stacked shards of f32, or whose partial sums do
/// not add up exactly in f32 in every order), and what layouts and ops throw.
dump::Dump expected_collectives(const dump::Dump& golden);

}  // namespace shardproof::corpus
