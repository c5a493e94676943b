#pragma once

#include <optional>

#include "engine/program/program.h"
#include "weights/base/error.h"

namespace shardproof {

/// Returns an axis of the ring that is in no subscript of the result, along which replicas would
/// add in different orders and differ; nullopt if every axis is in a subscript.
std::optional<Axis> axis_of_replicas(const Axes& ring, const Layout& result);

/// The rules of looped collective einsums, which hold between the steps of a program
/// (docs/typing.md). Throws Error: "all_gather_c4" (a loop that no einsum takes),
/// "reduce_scatter_c3" (its operand is not an einsum's result, is an output, or has another
/// reader), "einsum_c8" (the operand is not the result of an all_gather with a loop), "einsum_c9"
/// (a term loops over both operands), "einsum_c10" (replicas along the ring would differ). `result`
/// is the layout of op's result.
void require_loops(const Program& program, const Op& op, const Layout& result);

}  // namespace shardproof
