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
Type all_reduce_type(const Type& t, const Axes& axes);
/// Removes `axes` from dim `from` and appends them, in the order `as`, to dim `to`.
Type all_to_all_type(const Type& t, char from, char to, const Axes& axes, const Axes& as);
Type permute_axes_type(const Type& t, char dim, const Axes& from, const Axes& to);

Type slice_type(const Type& t, char dim, const Axes& axes);
Type last_type(const Type& t);
/// `parts` are the two dims that replace `dim`: S_zR_yx. `first` is the extent of the first; 0: as
/// many as it has blocks.
Type split_dim_type(const Type& t, char dim, const Layout& parts, const Torus& torus,
                    std::int64_t first = 0);
/// `parts` are the letters of two neighbouring dims, "SR".
Type merge_dim_type(const Type& t, std::string_view parts, char dim, const Torus& torus);

}  // namespace shardproof
