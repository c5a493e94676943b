#pragma once

#include <string_view>

#include "engine/layout/torus.h"
#include "golden/trace/read/dump.h"
#include "weights/base/error.h"

namespace shardproof::corpus {

/// What the name of a result's operand ends with.
inline constexpr std::string_view kOperandSuffix = ".operand";

/// The golden of the collectives on a torus (level 1): all_gather, reduce_scatter, all_reduce,
/// all_to_all, slice and permute_axes over every ordered list of axes that each may have, on
/// operands whose other dims and partial sums use every other. Complete operands hold different
/// numbers throughout; summands are whole numbers of which 4096 add up exactly in f32, in any
/// order.
dump::Dump collectives_golden(const Torus& torus);

/// What a golden of this kind should hold, by its operands: a result is the tensor that the operand
/// stands for, cut anew by the judge's map. Where the engine's collective gives other shards it
/// throws NotEqual, naming value and chip. Throws Error: "golden_torus", "golden_operand" (a result
/// without operand, layout or op; an operand that is not stacked shards of f32, or whose summands
/// do not add up exactly in f32 in every order), and what layouts and ops throw.
dump::Dump expected_collectives(const dump::Dump& golden);

}  // namespace shardproof::corpus
