#include "engine/program/typing.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include "weights/error.h"

namespace shardproof {
namespace {

using Types = std::vector<Type>;

/// "H_zyx", or "H" where there are no axes.
std::string named(char letter, const Axes& axes) {
  return Layout({{letter, axes}}, Axes()).to_string();
}

/// One op being typed: its operands, and the way its rules are reported.
class Rules {
 public:
  static constexpr std::size_t kNone = ~std::size_t{0};

  Rules(const Op& op, const Types& args) : op_(op), args_(args) {}

  /// Constraint number `n` of this op; `why` is built only if it is broken.
  template <class... T>
  void require(bool holds, int n, fmt::format_string<T...> why, T&&... values) const {
    if (!holds)
      throw Error(fmt::format("{}_c{}", to_string(op_.kind), n),
                  fmt::format(why, std::forward<T>(values)...));
  }

  const Type& arg(std::size_t i) const { return args_[i]; }
  std::string text(std::size_t i) const { return args_[i].layout.to_string(); }
  std::string full(std::size_t i) const { return (arg(i).integer ? "int32 " : "f32 ") + text(i); }

  /// Constraint 1 of every op but collectives, slice, last and the views; `integer` is the operand
  /// that may be int32, if the op has one.
  void complete(std::size_t integer = kNone) const {
    for (std::size_t i = 0; i < args_.size(); ++i) {
      require(!args_[i].layout.is_partial(), 1,
              "operand {} is {}; only collectives, slice, last and views take a partial operand",
              op_.args[i], text(i));
      require(!args_[i].integer || i == integer, 1, "operand {} is int32 {}; f32 is wanted",
              op_.args[i], text(i));
    }
  }

  std::size_t dim(int n, char letter) const {
    const auto at = arg(0).layout.find(letter);
    require(at.has_value(), n, "{} has no dim {}", text(0), letter);
    return *at;
  }

  void some_axes(int n) const {
    require(!op_.axes.empty(), n, "no axes are given for {}", text(0));
  }

  void letters(int n, std::size_t i, std::string_view want) const {
    require(arg(i).layout.letters() == want, n, "operand {} is {}; dims {} are wanted", op_.args[i],
            text(i), want);
  }

  void unsharded(int n, std::size_t i, std::string_view which) const {
    for (char c : which)
      require(arg(i).layout.axes(c).empty(), n, "dim {} of {} must not be sharded", c, text(i));
  }

  /// The shared letters of two operands have the same subscripts and extents.
  void aligned(int n, std::size_t i, std::size_t j) const {
    for (const Layout::Dim& dim : arg(i).layout.dims()) {
      const auto at = arg(j).layout.find(dim.letter);
      if (!at) continue;
      const Axes other = arg(j).layout.dims()[*at].axes;
      require(dim.axes == other, n, "{} has {} where {} has {}", text(i),
              named(dim.letter, dim.axes), text(j), named(dim.letter, other));
      const std::int64_t a = arg(i).shape[*arg(i).layout.find(dim.letter)];
      const std::int64_t b = arg(j).shape[*at];
      require(a == b, n, "{} has {}={} where {} has {}={}", text(i), dim.letter, a, text(j),
              dim.letter, b);
    }
  }

 private:
  const Op& op_;
  const Types& args_;
};

/// Removes `axes` from the minor end of `dim`: constraints n (presence) and n + 1 (suffix, order).
Layout take_suffix(const Rules& rules, const Op& op, const Layout& layout, std::size_t dim, int n) {
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

Layout reduced(const Rules& rules, const Op& op, const Layout& layout, int n) {
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

/// One term of a contraction: contracted axes become partialsum.
Type einsum_term(const Rules& rules, const EinsumSpec::Term& term, std::size_t a, std::size_t b) {
  rules.letters(2, a, term.a);
  rules.letters(2, b, term.b);
  rules.aligned(3, a, b);
  const Type& ta = rules.arg(a);
  const Type& tb = rules.arg(b);
  std::string batch, of_a, of_b;
  for (char c : term.result) {
    const bool in_a = term.a.find(c) != std::string::npos;
    const bool in_b = term.b.find(c) != std::string::npos;
    rules.require(in_a || in_b, 4, "{} of the result is in neither operand", c);
    (in_a && in_b ? batch : in_a ? of_a : of_b) += c;
  }
  rules.require(batch + of_a + of_b == term.result, 4,
                "the result's letters stand in the order shared, a's, b's: {}",
                batch + of_a + of_b);
  const std::string summed = EinsumSpec::contracted(term);
  for (char c : term.a + term.b)
    rules.require(term.result.find(c) != std::string::npos || summed.find(c) != std::string::npos,
                  4, "{} is in one operand only and not in the result", c);
  std::vector<Layout::Dim> dims;
  Shape shape;
  Axes used;
  const auto use = [&](const Axes& axes) {
    for (Axis axis : axes) {
      rules.require(!used.has(axis), 5, "axis {} would shard two dims of the product of {} and {}",
                    to_char(axis), ta.layout.to_string(), tb.layout.to_string());
      used = used.with(axis);
    }
  };
  for (char c : term.result) {
    const Type& t = term.a.find(c) != std::string::npos ? ta : tb;
    dims.push_back({c, t.layout.axes(c)});
    shape.push_back(t.shape[*t.layout.find(c)]);
    use(dims.back().axes);
  }
  Axes partial;
  for (char c : summed) {
    use(ta.layout.axes(c));
    partial = partial.with(ta.layout.axes(c));
  }
  return {Layout(std::move(dims), partial), std::move(shape), false};
}

std::pair<bool, bool> operands_with(char letter, const EinsumSpec::Term& term) {
  return {term.a.find(letter) != std::string::npos, term.b.find(letter) != std::string::npos};
}

Types einsum(const Rules& rules, const Op& op) {
  rules.complete();
  const Type first = einsum_term(rules, op.spec.terms[0], 0, 1);
  for (std::size_t t = 1; t < op.spec.terms.size(); ++t) {
    const Type other = einsum_term(rules, op.spec.terms[t], 2 * t, 2 * t + 1);
    rules.require(other == first, 6, "one term yields {}, another {}", first.layout.to_string(),
                  other.layout.to_string());
    for (char c : op.spec.terms[t].result)
      rules.require(operands_with(c, op.spec.terms[t]) == operands_with(c, op.spec.terms[0]), 7,
                    "{} of the result {} lies in other operands in one term than in another", c,
                    first.layout.to_string());
  }
  return {first};
}

Types embed_lookup(const Rules& rules, const Type& ids, const Type& table) {
  rules.complete(0);
  rules.letters(2, 1, "VE");
  rules.require(ids.integer && ids.layout.letters() == "BL", 2, "ids are int32 BL, not {}",
                rules.full(0));
  rules.require(!ids.layout.used().has_any(table.layout.used()), 3,
                "an axis shards both the ids {} and the table {}", rules.text(0), rules.text(1));
  std::vector<Layout::Dim> dims = ids.layout.dims();
  dims.push_back(table.layout.dims()[1]);
  return {{Layout(std::move(dims), table.layout.axes('V')),
           {ids.shape[0], ids.shape[1], table.shape[1]},
           false}};
}

Types same_layouts(const Rules& rules, const Type& a, const Type& b) {
  rules.complete();
  rules.require(a == b, 2, "operands differ: {} and {}", a.layout.to_string(),
                b.layout.to_string());
  return {a};
}

Types broadcast(const Rules& rules, const Type& t, const Type& s) {
  rules.complete();
  for (const Layout::Dim& dim : s.layout.dims())
    rules.require(t.layout.find(dim.letter).has_value(), 2, "{} has no dim {} of {}",
                  t.layout.to_string(), dim.letter, s.layout.to_string());
  rules.aligned(3, 0, 1);
  return {t};
}

Types norm(const Rules& rules, const Type& x) {
  rules.complete();
  const std::string letters = x.layout.letters();
  rules.require(!letters.empty() && letters.back() == 'E', 2, "E is not the last dim of {}",
                rules.text(0));
  rules.letters(2, 1, std::string_view(letters).substr(0, letters.size() - 1));
  rules.letters(2, 2, "E");
  rules.aligned(3, 0, 1);
  rules.aligned(3, 0, 2);
  return {x};
}

Types rope(const Rules& rules, const Type& t) {
  rules.complete(1);
  const std::string letters = t.layout.letters();
  rules.require(letters == "BLHQ" || letters == "BLKQ", 2, "{} is neither BLHQ nor BLKQ",
                rules.text(0));
  rules.require(rules.arg(1).integer, 2, "positions are int32 BL, not {}", rules.full(1));
  rules.letters(2, 1, "BL");
  rules.unsharded(3, 0, "Q");
  rules.aligned(4, 0, 1);
  for (std::size_t table : {std::size_t{2}, std::size_t{3}}) {
    rules.letters(2, table, "PJ");
    rules.unsharded(3, table, "PJ");
    rules.require(2 * rules.arg(table).shape[1] <= t.shape[3], 4,
                  "the table rotates {} channels of Q={}", 2 * rules.arg(table).shape[1],
                  t.shape[3]);
  }
  rules.require(rules.arg(2).shape == rules.arg(3).shape, 4,
                "cos and sin differ: P={} J={} and P={} J={}", rules.arg(2).shape[0],
                rules.arg(2).shape[1], rules.arg(3).shape[0], rules.arg(3).shape[1]);
  return {t};
}

Types append(const Rules& rules, const Type& cache, const Type& t) {
  rules.complete(2);
  rules.letters(2, 0, "BMKQ");
  rules.letters(2, 1, "BLKQ");
  rules.letters(2, 2, "BL");
  rules.require(rules.arg(2).integer, 2, "positions are int32 BL, not {}", rules.full(2));
  rules.unsharded(3, 0, "M");
  rules.unsharded(3, 1, "L");
  rules.aligned(4, 0, 1);
  rules.aligned(4, 1, 2);
  Type grown = cache;
  grown.shape[1] += t.shape[1];
  return {grown};
}

Types attend(const Rules& rules, const Type& q, const Type& k) {
  rules.complete(3);
  rules.letters(2, 0, "BLHQ");
  rules.letters(2, 1, "BMKQ");
  rules.letters(2, 3, "BL");
  rules.require(rules.arg(3).integer, 2, "positions are int32 BL, not {}", rules.full(3));
  rules.require(rules.arg(2) == k, 3, "the caches differ: {} and {}", rules.text(1), rules.text(2));
  rules.unsharded(4, 0, "LQ");
  rules.unsharded(4, 1, "MQ");
  rules.aligned(5, 0, 1);
  rules.aligned(5, 0, 3);
  rules.require(q.layout.axes('H').starts_with(k.layout.axes('K')), 6,
                "the kv heads' subscript of {} is no prefix of the heads' of {}", rules.text(1),
                rules.text(0));
  rules.require(q.shape[2] % k.shape[2] == 0, 7, "H={} is not divisible by K={}", q.shape[2],
                k.shape[2]);
  const auto& dims = q.layout.dims();
  const Type row{
      Layout({dims[0], dims[1], dims[2]}, Axes()), {q.shape[0], q.shape[1], q.shape[2]}, false};
  const Type scores{Layout({dims[0], dims[1], dims[2], {'M', Axes()}}, Axes()),
                    {q.shape[0], q.shape[1], q.shape[2], k.shape[1]},
                    false};
  return {scores, row, scores, row, q};
}

Types local_argmax(const Rules& rules, const Type& z, const Torus& torus) {
  rules.complete();
  rules.letters(2, 0, "BV");
  const Layout layout({z.layout.dims()[0], {'C', z.layout.axes('V')}}, Axes());
  const Shape shape{z.shape[0], torus.size(z.layout.axes('V'))};
  return {{layout, shape, false}, {layout, shape, true}};
}

Types argmax(const Rules& rules, const Type& value) {
  rules.complete(1);
  rules.letters(2, 0, "BC");
  rules.letters(2, 1, "BC");
  rules.require(rules.arg(1).integer, 2, "indices are int32 BC, not {}", rules.full(1));
  rules.unsharded(3, 0, "C");
  rules.aligned(4, 0, 1);
  return {{Layout({value.layout.dims()[0]}, Axes()), {value.shape[0]}, true}};
}

std::size_t arg_count(OpKind kind) {
  switch (kind) {
    case OpKind::einsum:
      return 0;  // two a term, seen to by the parser
    case OpKind::embed_lookup:
    case OpKind::add:
    case OpKind::scale:
    case OpKind::bias:
    case OpKind::swiglu:
    case OpKind::argmax:
      return 2;
    case OpKind::norm:
    case OpKind::append:
      return 3;
    case OpKind::rope:
    case OpKind::attend:
      return 4;
    default:
      return 1;
  }
}

}  // namespace

std::vector<Type> infer(const Op& op, const std::vector<Type>& args, const Torus& torus) {
  const Rules rules(op, args);
  const std::size_t wanted = arg_count(op.kind);
  const bool fits = op.kind == OpKind::einsum
                        ? !op.spec.terms.empty() && args.size() == 2 * op.spec.terms.size()
                        : args.size() == wanted;
  if (!fits)
    throw Error("program_c4", fmt::format("{} has {} operands, {} takes {}", op.to_string(),
                                          args.size(), to_string(op.kind), wanted));
  switch (op.kind) {
    case OpKind::all_gather:
      return all_gather(rules, op, args[0]);
    case OpKind::reduce_scatter:
      return reduce_scatter(rules, op, args[0]);
    case OpKind::all_reduce:
      return all_reduce(rules, op, args[0]);
    case OpKind::all_to_all:
      return all_to_all(rules, op, args[0]);
    case OpKind::permute_axes:
      return permute_axes(rules, op, args[0]);
    case OpKind::slice:
      return slice(rules, op, args[0]);
    case OpKind::last:
      return last(rules, op, args[0]);
    case OpKind::split_dim:
      return split_dim(rules, op, args[0], torus);
    case OpKind::merge_dim:
      return merge_dim(rules, op, args[0], torus);
    case OpKind::einsum:
      return einsum(rules, op);
    case OpKind::embed_lookup:
      return embed_lookup(rules, args[0], args[1]);
    case OpKind::add:
    case OpKind::swiglu:
      return same_layouts(rules, args[0], args[1]);
    case OpKind::scale:
    case OpKind::bias:
      return broadcast(rules, args[0], args[1]);
    case OpKind::scale_by:
      rules.require(op.parameter == "embed_scale" || op.parameter == "logit_scale", 2,
                    "'{}' is no constant; legal: embed_scale, logit_scale", op.parameter);
      [[fallthrough]];
    case OpKind::store:
      rules.complete();
      return {args[0]};
    case OpKind::norm:
      return norm(rules, args[0]);
    case OpKind::rope:
      return rope(rules, args[0]);
    case OpKind::append:
      return append(rules, args[0], args[1]);
    case OpKind::attend:
      return attend(rules, args[0], args[1]);
    case OpKind::local_argmax:
      return local_argmax(rules, args[0], torus);
    case OpKind::argmax:
      return argmax(rules, args[0]);
  }
  return {};
}

}  // namespace shardproof
