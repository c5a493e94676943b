#pragma once

#include <string_view>

#include "engine/layout/type.h"
#include "weights/base/error.h"

namespace shardproof {

// Result types of the collectives, and of the local ops on any operand, by the typing rules of
// docs/typing.md: used by the type check of programs and by engine/collectives/collectives.h. Each
// throws Error with the label of the broken rule, its op's name and a number, e.g. "all_gather_c3".
// Divisibility of a dim's extent by the new axes is checked by local_shape(), not here.

Type all_gather_type(const Type& t, char dim, const Axes& axes);
Type reduce_scatter_type(const Type& t, char dim, const Axes& axes);
/// By sums of a partialsum, or `by_max` of a partialmax.
Type all_reduce_type(const Type& t, const Axes& axes, bool by_max = false);
/// Removes `axes` from dim `from` and appends them, in the order `as`, to dim `to`.
Type all_to_all_type(const Type& t, char from, char to, const Axes& axes, const Axes& as);
Type permute_axes_type(const Type& t, char dim, const Axes& from, const Axes& to);

Type slice_type(const Type& t, char dim, const Axes& axes);
Type last_type(const Type& t);
/// `parts` are the dims that replace `dim`: S_zR_yx. `extents` are theirs, without the last; empty:
/// each has as many as blocks.
Type split_dim_type(const Type& t, char dim, const Layout& parts, const Torus& torus,
                    const Shape& extents = {});
/// `parts` are the letters of neighbouring dims, "SR".
Type merge_dim_type(const Type& t, std::string_view parts, char dim, const Torus& torus);

}  // namespace shardproof
