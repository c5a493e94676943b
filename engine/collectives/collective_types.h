#pragma once

#include <string_view>

#include "engine/layout/type.h"
#include "weights/base/error.h"

namespace shardproof {

// What the collectives, and the local ops on any operand, make of their operand's layout and shape:
// the typing rules of docs/typing.md, for the type check of programs and for the functions of
// engine/collectives/collectives.h alike. Each throws Error with the label of the rule that is
// broken, its op's name and a number, e.g. "all_gather_c3". That the new axes divide a dim's extent
// is not checked here: local_shape() does.

Type all_gather_type(const Type& t, char dim, const Axes& axes);
Type reduce_scatter_type(const Type& t, char dim, const Axes& axes);
Type all_reduce_type(const Type& t, const Axes& axes);
/// `axes` leave dim `from` and are appended, in the order `as`, to dim `to`.
Type all_to_all_type(const Type& t, char from, char to, const Axes& axes, const Axes& as);
Type permute_axes_type(const Type& t, char dim, const Axes& from, const Axes& to);

Type slice_type(const Type& t, char dim, const Axes& axes);
Type last_type(const Type& t);
/// `parts` are the two dims that take the place of `dim`: S_zR_yx.
Type split_dim_type(const Type& t, char dim, const Layout& parts, const Torus& torus);
/// `parts` are the letters of two neighbouring dims, "SR".
Type merge_dim_type(const Type& t, std::string_view parts, char dim, const Torus& torus);

}  // namespace shardproof
