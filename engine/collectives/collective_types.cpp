#include "engine/collectives/collective_types.h"

#include "engine/collectives/detail/op_rules.h"

namespace shardproof {
namespace {

using typing::named;
using typing::OpRules;

/// Removes `axes` from the minor end of `dim`. Throws constraint n (presence), n + 1 (order).
Layout take_suffix(const OpRules& rules, const Layout& layout, std::size_t dim, const Axes& axes,
                   int n) {
  const Axes& has = layout.dims()[dim].axes;
  for (Axis a : axes) rules.require(has.has(a), n, "axis {} is not in {}", to_char(a), layout);
  rules.require(has.ends_with(axes), n + 1,
                "{} is not the minor-most suffix of {}_{}, whose axes are removed from the right",
                axes, layout.dims()[dim].letter, has);
  return layout.with_axes(dim, has.without(axes));
}

/// Removes `axes` from the partialsum. Throws constraint n.
Layout reduced(const OpRules& rules, const Type& t, const Axes& axes, int n) {
  rules.require(!t.integer, n, "{} is int32; only f32 partial sums are added up", t.layout);
  for (Axis a : axes)
    rules.require(t.layout.partial().has(a), n, "axis {} is not in the partialsum of {}",
                  to_char(a), t.layout);
  return t.layout.with_partial(t.layout.partial().without(axes));
}

}  // namespace

Type all_gather_type(const Type& t, char dim, const Axes& axes) {
  const OpRules rules("all_gather");
  const std::size_t at = rules.dim(1, t.layout, dim);
  rules.some_axes(1, axes, t.layout);
  return {take_suffix(rules, t.layout, at, axes, 2), t.shape, t.integer};
}

Type reduce_scatter_type(const Type& t, char dim, const Axes& axes) {
  const OpRules rules("reduce_scatter");
  const std::size_t at = rules.dim(1, t.layout, dim);
  rules.some_axes(1, axes, t.layout);
  const Layout layout = reduced(rules, t, axes, 2);
  return {layout.with_axes(at, layout.dims()[at].axes.with(axes)), t.shape, false};
}

Type all_reduce_type(const Type& t, const Axes& axes) {
  const OpRules rules("all_reduce");
  rules.some_axes(1, axes, t.layout);
  return {reduced(rules, t, axes, 2), t.shape, false};
}

Type all_to_all_type(const Type& t, char from, char to, const Axes& axes, const Axes& as) {
  const OpRules rules("all_to_all");
  const std::size_t from_at = rules.dim(1, t.layout, from);
  const std::size_t to_at = rules.dim(1, t.layout, to);
  rules.require(from_at != to_at, 1, "both dims are {}", from);
  rules.some_axes(1, axes, t.layout);
  const Layout layout = take_suffix(rules, t.layout, from_at, axes, 2);
  rules.require(as.sorted() == axes.sorted(), 4, "{} as {}: not the same axes", axes, as);
  return {layout.with_axes(to_at, layout.dims()[to_at].axes.with(as)), t.shape, t.integer};
}

Type permute_axes_type(const Type& t, char dim, const Axes& from, const Axes& to) {
  const OpRules rules("permute_axes");
  const std::size_t at = rules.dim(1, t.layout, dim);
  const Axes& has = t.layout.dims()[at].axes;
  rules.require(has == from, 2, "{} is not {}", named(dim, has), named(dim, from));
  rules.require(to.sorted() == from.sorted(), 3, "{} is not a permutation of {}", to, from);
  return {t.layout.with_axes(at, to), t.shape, t.integer};
}

Type slice_type(const Type& t, char dim, const Axes& axes) {
  const OpRules rules("slice");
  const std::size_t at = rules.dim(1, t.layout, dim);
  rules.some_axes(1, axes, t.layout);
  for (Axis a : axes)
    rules.require(!t.layout.used().has(a), 2, "axis {} is in use in {}", to_char(a), t.layout);
  return {t.layout.with_axes(at, t.layout.dims()[at].axes.with(axes)), t.shape, t.integer};
}

Type last_type(const Type& t) {
  const OpRules rules("last");
  const std::size_t at = rules.dim(1, t.layout, 'L');
  rules.unsharded(2, t.layout, "L");
  rules.require(t.shape[at] > 0, 3, "L=0 of {} has no last position", t.layout);
  std::vector<Layout::Dim> dims = t.layout.dims();
  Shape shape = t.shape;
  dims.erase(dims.begin() + static_cast<std::ptrdiff_t>(at));
  shape.erase(shape.begin() + static_cast<std::ptrdiff_t>(at));
  return {Layout(std::move(dims), t.layout.partial()), std::move(shape), t.integer};
}

/// H_abc -> S_a R_bc: |S| is the number of blocks of the major prefix, so a chip's S extent is 1
/// and its memory does not move.
Type split_dim_type(const Type& t, char dim, const Layout& parts, const Torus& torus,
                    std::int64_t first) {
  const OpRules rules("split_dim");
  const std::size_t at = rules.dim(1, t.layout, dim);
  rules.require(parts.rank() == 2 && !parts.is_partial(), 2, "'{}' is not two dims", parts);
  const Axes& has = t.layout.dims()[at].axes;
  const Axes& major = parts.dims()[0].axes;
  const Axes& minor = parts.dims()[1].axes;
  rules.require(has.starts_with(major) && has.without(major) == minor, 3,
                "{} does not split into {}", named(dim, has), parts);
  const std::int64_t outer = first > 0 ? first : torus.size(major);
  rules.require(t.shape[at] % outer == 0, 4, "{}={} is not {} times an extent", dim, t.shape[at],
                outer);
  rules.require(minor.empty() || outer == torus.size(major), 4,
                "{}={} is more than the {} blocks of its axes: {} would interleave",
                parts.dims()[0].letter, outer, torus.size(major), parts.dims()[1].letter);
  std::vector<Layout::Dim> dims = t.layout.dims();
  Shape shape = t.shape;
  dims[at] = parts.dims()[0];
  dims.insert(dims.begin() + static_cast<std::ptrdiff_t>(at) + 1, parts.dims()[1]);
  shape[at] = outer;
  shape.insert(shape.begin() + static_cast<std::ptrdiff_t>(at) + 1, t.shape[at] / outer);
  return {Layout(std::move(dims), t.layout.partial()), std::move(shape), t.integer};
}

Type merge_dim_type(const Type& t, std::string_view parts, char dim, const Torus& torus) {
  const OpRules rules("merge_dim");
  rules.require(parts.size() == 2, 1, "'{}' is not two dims", parts);
  const std::size_t at = rules.dim(1, t.layout, parts[0]);
  rules.require(rules.dim(1, t.layout, parts[1]) == at + 1, 2, "{} are not neighbours in {}", parts,
                t.layout);
  const Axes& major = t.layout.dims()[at].axes;
  rules.require(t.layout.dims()[at + 1].axes.empty() || t.shape[at] == torus.size(major), 3,
                "{}={} is more than the {} blocks of its axes: the merge would interleave",
                parts[0], t.shape[at], torus.size(major));
  std::vector<Layout::Dim> dims = t.layout.dims();
  Shape shape = t.shape;
  dims[at] = {dim, major.with(dims[at + 1].axes)};
  shape[at] *= shape[at + 1];
  dims.erase(dims.begin() + static_cast<std::ptrdiff_t>(at) + 1);
  shape.erase(shape.begin() + static_cast<std::ptrdiff_t>(at) + 1);
  return {Layout(std::move(dims), t.layout.partial()), std::move(shape), t.integer};
}

}  // namespace shardproof
