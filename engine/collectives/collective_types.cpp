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

/// Removes `axes` from the partialsum, or the partialmax. Throws constraint n.
Layout reduced(const OpRules& rules, const Type& t, const Axes& axes, int n, bool by_max = false) {
  rules.require(!t.integer, n, "{} is int32; only f32 partial sums are added up", t.layout);
  for (Axis a : axes)
    rules.require(t.layout.partial().has(a) && t.layout.is_partial_max() == by_max, n,
                  "axis {} is not in the {} of {}", to_char(a),
                  by_max ? "partialmax" : "partialsum", t.layout);
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

Type all_reduce_type(const Type& t, const Axes& axes, bool by_max) {
  const OpRules rules("all_reduce");
  rules.some_axes(1, axes, t.layout);
  return {reduced(rules, t, axes, 2, by_max), t.shape, false};
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

/// Requires that a block of some neighbouring dims, seen as one, is a block of that one: each dim
/// before the last one that is sharded has one element a block. Throws constraint n.
static void require_blocks(const OpRules& rules, int n, const std::vector<Layout::Dim>& dims,
                           const Shape& extents, const Torus& torus) {
  for (std::size_t i = 0; i < dims.size(); ++i)
    for (std::size_t j = i + 1; j < dims.size(); ++j)
      rules.require(dims[j].axes.empty() || extents[i] == torus.size(dims[i].axes), n,
                    "{}={} is more than the {} blocks of its axes: {} would interleave",
                    dims[i].letter, extents[i], torus.size(dims[i].axes), dims[j].letter);
}

/// H_abc -> S_a R_bc: |S| is the number of blocks of the major prefix, so a chip's S extent is 1
/// and its memory does not move.
Type split_dim_type(const Type& t, char dim, const Layout& parts, const Torus& torus,
                    const Shape& extents) {
  const OpRules rules("split_dim");
  const std::size_t at = rules.dim(1, t.layout, dim);
  const std::size_t leading = extents.empty() ? 1 : extents.size();
  rules.require(parts.rank() == leading + 1 && !parts.is_partial(), 2, "'{}' is not {} dims", parts,
                leading + 1);
  const Axes& has = t.layout.dims()[at].axes;
  Axes joined;
  for (const Layout::Dim& part : parts.dims()) joined = joined.with(part.axes);
  rules.require(has == joined, 3, "{} does not split into {}", named(dim, has), parts);
  Shape own = extents;
  if (own.empty()) own.push_back(torus.size(parts.dims()[0].axes));
  std::int64_t outer = 1;
  for (const std::int64_t extent : own) {
    rules.require(extent <= t.shape[at] / outer, 4, "{}={} is not {} times an extent", dim,
                  t.shape[at], extent);
    outer *= extent;
  }
  rules.require(t.shape[at] % outer == 0, 4, "{}={} is not {} times an extent", dim, t.shape[at],
                outer);
  own.push_back(t.shape[at] / outer);
  require_blocks(rules, 4, parts.dims(), own, torus);
  std::vector<Layout::Dim> dims = t.layout.dims();
  Shape shape = t.shape;
  const auto place = static_cast<std::ptrdiff_t>(at);
  dims.erase(dims.begin() + place);
  shape.erase(shape.begin() + place);
  dims.insert(dims.begin() + place, parts.dims().begin(), parts.dims().end());
  shape.insert(shape.begin() + place, own.begin(), own.end());
  return {Layout(std::move(dims), t.layout.partial()), std::move(shape), t.integer};
}

Type merge_dim_type(const Type& t, std::string_view parts, char dim, const Torus& torus) {
  const OpRules rules("merge_dim");
  rules.require(parts.size() >= 2, 1, "'{}' is not several dims", parts);
  const std::size_t at = rules.dim(1, t.layout, parts[0]);
  for (std::size_t i = 1; i < parts.size(); ++i)
    rules.require(rules.dim(1, t.layout, parts[i]) == at + i, 2, "{} are not neighbours in {}",
                  parts, t.layout);
  const auto begin = static_cast<std::ptrdiff_t>(at);
  const auto end = begin + static_cast<std::ptrdiff_t>(parts.size());
  std::vector<Layout::Dim> dims = t.layout.dims();
  Shape shape = t.shape;
  const std::vector<Layout::Dim> merged(dims.begin() + begin, dims.begin() + end);
  require_blocks(rules, 3, merged, Shape(shape.begin() + begin, shape.begin() + end), torus);
  Axes axes;
  for (const Layout::Dim& one : merged) axes = axes.with(one.axes);
  for (std::size_t i = 1; i < parts.size(); ++i) shape[at] *= shape[at + i];
  dims[at] = {dim, axes};
  dims.erase(dims.begin() + begin + 1, dims.begin() + end);
  shape.erase(shape.begin() + begin + 1, shape.begin() + end);
  return {Layout(std::move(dims), t.layout.partial()), std::move(shape), t.integer};
}

}  // namespace shardproof
