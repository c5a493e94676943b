#pragma once

#include <optional>

#include "engine/program/program.h"
#include "weights/base/error.h"

namespace shardproof {

/// An axis of a ring that is in no subscript of the result: replicas along it would add in other
/// orders, and differ. None if all are.
std::optional<Axis> axis_of_replicas(const Axes& ring, const Layout& result);

/// The rules of looped collective einsums, which hold between the steps of a program
/// (docs/typing.md). Throws Error: "all_gather_c4" (a loop that no einsum takes),
/// "reduce_scatter_c3" (its operand is not an einsum's result, or something else takes it, too),
/// "einsum_c8" (the operand is not the result of an all_gather with a loop), "einsum_c9" (a term
/// loops over both operands), "einsum_c10" (replicas along the ring would differ). `result` is the
/// layout of op's result.
void require_loops(const Program& program, const Op& op, const Layout& result);

}  // namespace shardproof
