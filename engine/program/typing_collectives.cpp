// Collectives, and the local ops that take partial operands too: slice, last and the views.
#include "engine/program/typing_rules.h"

namespace shardproof::typing {

/// Removes `axes` from the minor end of `dim`: constraints n (presence) and n + 1 (suffix, order).
static Layout take_suffix(const Rules& rules, const Op& op, const Layout& layout, std::size_t dim,
                          int n) {
  const Axes& has = layout.dims()[dim].axes;
  for (Axis a : op.axes)
    rules.require(has.has(a), n, "axis {} is not in {}", to_char(a), layout.to_string());
  rules.require(has.ends_with(op.axes), n + 1,
                "{} is not the minor-most suffix of {}_{}, which gives up its axes from the right",
                op.axes.to_string(), op.dim, has.to_string());
  return layout.with_axes(dim, has.without(op.axes));
}

Types all_gather(const Rules& rules, const Op& op, const Type& t) {
  const std::size_t dim = rules.dim(1, op.dim);
  rules.some_axes(1);
  return {{take_suffix(rules, op, t.layout, dim, 2), t.shape, t.integer}};
}

static Layout reduced(const Rules& rules, const Op& op, const Layout& layout, int n) {
  rules.require(!rules.arg(0).integer, n, "{} is int32; sums are of f32 partials", rules.text(0));
  for (Axis a : op.axes)
    rules.require(layout.partial().has(a), n, "axis {} is not in the partialsum of {}", to_char(a),
                  layout.to_string());
  return layout.with_partial(layout.partial().without(op.axes));
}

Types reduce_scatter(const Rules& rules, const Op& op, const Type& t) {
  const std::size_t dim = rules.dim(1, op.dim);
  rules.some_axes(1);
  const Layout layout = reduced(rules, op, t.layout, 2);
  return {{layout.with_axes(dim, layout.dims()[dim].axes.with(op.axes)), t.shape, false}};
}

Types all_reduce(const Rules& rules, const Op& op, const Type& t) {
  rules.some_axes(1);
  return {{reduced(rules, op, t.layout, 2), t.shape, false}};
}

Types all_to_all(const Rules& rules, const Op& op, const Type& t) {
  const std::size_t from = rules.dim(1, op.dim);
  const std::size_t to = rules.dim(1, op.to);
  rules.require(from != to, 1, "both dims are {}", op.dim);
  rules.some_axes(1);
  const Layout layout = take_suffix(rules, op, t.layout, from, 2);
  rules.require(op.as.sorted() == op.axes.sorted(), 4, "{} as {}: not the same axes",
                op.axes.to_string(), op.as.to_string());
  return {{layout.with_axes(to, layout.dims()[to].axes.with(op.as)), t.shape, t.integer}};
}

Types permute_axes(const Rules& rules, const Op& op, const Type& t) {
  const std::size_t dim = rules.dim(1, op.dim);
  const Axes& has = t.layout.dims()[dim].axes;
  rules.require(has == op.axes, 2, "{} is not {}", named(op.dim, has), named(op.dim, op.axes));
  rules.require(op.as.sorted() == op.axes.sorted(), 3, "{} is no order of {}", op.as.to_string(),
                op.axes.to_string());
  return {{t.layout.with_axes(dim, op.as), t.shape, t.integer}};
}

Types slice(const Rules& rules, const Op& op, const Type& t) {
  const std::size_t dim = rules.dim(1, op.dim);
  rules.some_axes(1);
  for (Axis a : op.axes)
    rules.require(!t.layout.used().has(a), 2, "axis {} is in use in {}", to_char(a),
                  t.layout.to_string());
  return {{t.layout.with_axes(dim, t.layout.dims()[dim].axes.with(op.axes)), t.shape, t.integer}};
}

Types last(const Rules& rules, const Op&, const Type& t) {
  const std::size_t dim = rules.dim(1, 'L');
  rules.unsharded(2, 0, "L");
  rules.require(t.shape[dim] > 0, 3, "L=0 of {} has no last position", t.layout.to_string());
  std::vector<Layout::Dim> dims = t.layout.dims();
  Shape shape = t.shape;
  dims.erase(dims.begin() + static_cast<std::ptrdiff_t>(dim));
  shape.erase(shape.begin() + static_cast<std::ptrdiff_t>(dim));
  return {{Layout(std::move(dims), t.layout.partial()), std::move(shape), t.integer}};
}

/// H_abc -> S_a R_bc: |S| is the number of blocks of the major prefix, so a chip's S extent is 1
/// and its memory does not move.
Types split_dim(const Rules& rules, const Op& op, const Type& t, const Torus& torus) {
  const std::size_t dim = rules.dim(1, op.dim);
  const Layout halves = Layout::parse(op.parameter);
  rules.require(halves.rank() == 2 && !halves.is_partial(), 2, "'{}' is not two dims",
                op.parameter);
  const Axes& has = t.layout.dims()[dim].axes;
  const Axes& major = halves.dims()[0].axes;
  const Axes& minor = halves.dims()[1].axes;
  rules.require(has.starts_with(major) && has.without(major) == minor, 3,
                "{} does not split into {}", named(op.dim, has), op.parameter);
  const std::int64_t outer = torus.size(major);
  std::vector<Layout::Dim> dims = t.layout.dims();
  Shape shape = t.shape;
  dims[dim] = halves.dims()[0];
  dims.insert(dims.begin() + static_cast<std::ptrdiff_t>(dim) + 1, halves.dims()[1]);
  shape[dim] = outer;
  shape.insert(shape.begin() + static_cast<std::ptrdiff_t>(dim) + 1, t.shape[dim] / outer);
  return {{Layout(std::move(dims), t.layout.partial()), std::move(shape), t.integer}};
}

Types merge_dim(const Rules& rules, const Op& op, const Type& t, const Torus& torus) {
  rules.require(op.parameter.size() == 2, 1, "'{}' is not two dims", op.parameter);
  const std::size_t dim = rules.dim(1, op.parameter[0]);
  rules.require(rules.dim(1, op.parameter[1]) == dim + 1, 2, "{} are not neighbours in {}",
                op.parameter, t.layout.to_string());
  const Axes& major = t.layout.dims()[dim].axes;
  rules.require(t.shape[dim] == torus.size(major), 3,
                "{}={} is more than the {} blocks of its axes: the merge would interleave",
                op.parameter[0], t.shape[dim], torus.size(major));
  std::vector<Layout::Dim> dims = t.layout.dims();
  Shape shape = t.shape;
  dims[dim] = {op.to, major.with(dims[dim + 1].axes)};
  shape[dim] *= shape[dim + 1];
  dims.erase(dims.begin() + static_cast<std::ptrdiff_t>(dim) + 1);
  shape.erase(shape.begin() + static_cast<std::ptrdiff_t>(dim) + 1);
  return {{Layout(std::move(dims), t.layout.partial()), std::move(shape), t.integer}};
}

}  // namespace shardproof::typing
