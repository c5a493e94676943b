#pragma once

#include <string_view>

#include "engine/numeric/threads.h"
#include "engine/shards/sharded.h"
#include "weights/base/error.h"
#include "weights/model/numerics.h"

namespace shardproof {

// The collectives of the paper (§3.1, Fig A.1) on a tensor sharded over a torus, and the local ops
// that take any operand. `all_gather(t, 'E', axes)` is the all_gather(t, E, zy) of a program:
// layout and shape of the result follow from the operand's (docs/typing.md). t may be f32, int32
// (not in reductions) or partial sums. A dim is a letter of t's layout; axes are given major to
// minor.
//
// All throw Error with the label of the broken typing rule, the op's name and a number, e.g.
// "all_gather_c3", and "local_c1" (the new axes do not divide the dim's extent). t is unchanged.

/// Concatenates the blocks of `dim` along `axes`, the minor-most of the dim: E_xzy becomes E_x.
Sharded all_gather(const Sharded& t, char dim, const Axes& axes,
                   Threads& threads = calling_thread());
/// Sums partial sums over `axes`; each chip keeps its block of `dim`, to which the axes are
/// appended as the minor-most. Exact sums are rounded once, when no partial axis is left; f32
/// partial sums are added in the order of `schedule`.
Sharded reduce_scatter(const Sharded& t, char dim, const Axes& axes,
                       Schedule schedule = Schedule::group, Threads& threads = calling_thread());
/// Sums partial sums over `axes`, rounded and ordered as in reduce_scatter, on every chip.
Sharded all_reduce(const Sharded& t, const Axes& axes, Schedule schedule = Schedule::group,
                   Threads& threads = calling_thread());
/// Moves `axes`, the minor-most of dim `from`, to the minor end of dim `to`, in the order `as`.
Sharded all_to_all(const Sharded& t, char from, char to, const Axes& axes, const Axes& as,
                   Threads& threads = calling_thread());
/// all_to_all that keeps the order of `axes`.
Sharded all_to_all(const Sharded& t, char from, char to, const Axes& axes,
                   Threads& threads = calling_thread());
/// Changes the subscript of `dim` from `from` to `to`, another order of the same axes.
Sharded permute_axes(const Sharded& t, char dim, const Axes& from, const Axes& to,
                     Threads& threads = calling_thread());

/// No traffic: each chip keeps its block of `dim` along `axes`, which t does not use.
Sharded slice(const Sharded& t, char dim, const Axes& axes, Threads& threads = calling_thread());
/// No traffic: keeps the last position of L and drops the dim.
Sharded last(const Sharded& t, Threads& threads = calling_thread());
/// A view: H_zyx becomes `parts`, S_zR_yx; the extent of the first is its number of blocks,
/// or `first`.
Sharded split_dim(const Sharded& t, char dim, const Layout& parts, const Shape& extents = {});
/// A view, inverse of split_dim: the neighbours S_zR_yx, given as `parts` "SR", become H_zyx.
Sharded merge_dim(const Sharded& t, std::string_view parts, char dim);

}  // namespace shardproof
