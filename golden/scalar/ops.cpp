#include "golden/scalar/ops.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <utility>

#include "engine/program/constants.h"
#include "golden/scalar/detail/letters.h"
#include "golden/scalar/detail/sampling.h"
#include "golden/scalar/order.h"
#include "golden/scalar/text_ops.h"
#include "oracle/numeric/detail/constants.h"
#include "oracle/numeric/detail/functions.h"
#include "weights/base/detail/index.h"
#include "weights/base/error.h"

namespace shardproof::scalar {
namespace {

/// Calls body(from, to) for ranges of [0, n), at most `most` long, on these threads; a few ranges
/// run on the calling thread, since they are done before others have woken.
template <class Body>
void each_range(std::size_t n, std::size_t most, Threads& threads, Body&& body) {
  const std::size_t ranges = (n + most - 1) / most;
  (ranges < 2 ? calling_thread() : threads)
      .for_each(static_cast<std::int64_t>(ranges), [&](std::int64_t range) {
        const std::size_t from = at(range) * most;
        body(from, std::min(from + most, n));
      });
}

/// Returns f(i) for every element of a complete value, on these threads.
template <class F>
Value map(const Value& t, Threads& threads, F&& f) {
  Value out{{}, t.shape, {}, {}};
  std::vector<float>& to = out.parts.emplace_back(t.whole().size());
  each_range(to.size(), 1 << 12, threads, [&](std::size_t from, std::size_t end) {
    for (std::size_t i = from; i < end; ++i) to[i] = f(i);
  });
  return out;
}

/// The results of an op, moved: a braced list of values would be copied.
struct Results {
  std::vector<Value> all;

  Results(Value one) { all.push_back(std::move(one)); }  // NOLINT(google-explicit-constructor)
  Results(std::vector<Value> several)  // NOLINT(google-explicit-constructor): the same values
      : all(std::move(several)) {}
};

/// Returns the element of s, which has some of t's dims, that belongs to element i of t.
float spread(const Value& t, const Value& s, std::size_t i) {
  ByLetter element;
  auto rest = static_cast<std::int64_t>(i);
  for (std::size_t d = t.layout.rank(); d-- > 0; rest /= t.shape[d])
    element[t.layout.dims()[d].letter] = rest % t.shape[d];
  std::int64_t place = 0;
  for (std::size_t d = 0; d < s.layout.rank(); ++d)
    place = place * s.shape[d] + element[s.layout.dims()[d].letter];
  return s.whole()[at(place)];
}

/// Returns the same numbers after a move; marked with the ring of a loop, if the op has one.
Value moved(const Op& op, const Value& t) {
  Value out{{}, t.shape, t.parts, t.ints};
  if (op.loop != Loop::none) out.ring_dim = op.dim, out.ring = op.axes, out.loop = op.loop;
  return out;
}

/// Returns the last token of every row in the pass.
Value last_token(const Value& t, const std::vector<PassRows>& rows) {
  const std::size_t L = t.layout.find('L').value();
  std::vector<std::int64_t> last;
  for (const PassRows& group : rows)  // for a row without a token any position will do
    last.insert(last.end(), at(group.rows), std::max<std::int64_t>(group.tokens - 1, 0));
  const auto place = [&](std::int64_t element, std::size_t dim) {
    for (std::size_t d = t.shape.size(); d-- > dim + 1;) element /= t.shape[d];
    return element % t.shape[dim];
  };
  Value out{{}, t.shape, {}, {}};
  out.shape.erase(out.shape.begin() + static_cast<std::ptrdiff_t>(L));
  for (const std::vector<float>& from : t.parts) {
    std::vector<float>& to = out.parts.emplace_back();
    for (std::int64_t i = 0; i < std::ssize(from); ++i) {
      const auto B = t.layout.find('B');
      const bool known = B.has_value() && !last.empty();
      if (place(i, L) == (known ? last[at(place(i, *B))] : t.shape[L] - 1))
        to.push_back(from[at(i)]);
    }
  }
  return out;
}

/// Returns the same elements in another shape: H as S·R, or back.
Value reshaped(const Op& op, const Value& t, const Torus& torus) {
  Value out = t;
  const Layout& to = op.results[0].layout;
  if (op.kind == OpKind::split_dim) {
    std::size_t d = t.layout.find(op.dim).value();
    const Shape extents = op.parts.empty() ? Shape{torus.size(to.dims()[d].axes)} : op.parts;
    for (const std::int64_t extent : extents) {
      out.shape[d] /= extent;
      out.shape.insert(out.shape.begin() + static_cast<std::ptrdiff_t>(d++), extent);
    }
  } else {
    const std::size_t d = t.layout.find(op.parameter[0]).value();
    for (std::size_t i = 1; i < op.parameter.size(); ++i) {
      out.shape[d] *= out.shape[d + 1];
      out.shape.erase(out.shape.begin() + static_cast<std::ptrdiff_t>(d) + 1);
    }
  }
  return out;
}

/// Returns the same elements after a move between the chips of a group. With wire=bf16 every
/// partial sum is rounded, wherever it comes from, unless the group is one chip.
Value travelled(const Op& op, const Value& t, const Setting& setting) {
  Value out = moved(op, t);
  if (setting.wire_bf16 && t.layout.is_partial() && setting.torus.size(op.axes) > 1)
    for (std::vector<float>& part : out.parts)
      for (float& v : part) v = oracle::bf16(v);
  return out;
}

/// Every place on the partial axes looks up the ids of its own block of the vocabulary.
Value lookup(const Op& op, const Value& ids, const Value& table, const Torus& torus) {
  const std::int64_t V = table.shape[0];
  const std::int64_t E = table.shape[1];
  const Axes axes = table.layout.axes('V');
  Value out{{}, {ids.shape[0], ids.shape[1], E}, {}, {}};
  for_each_place(op.results[0].layout.partial(), torus, [&](const Place& place) {
    std::int64_t block = 0;
    for (Axis axis : axes) block = block * torus.size(axis) + place[axis];
    const std::int64_t rows = V / torus.size(axes);
    std::vector<float>& part = out.parts.emplace_back();
    for (const std::int32_t id : ids.ints)
      for (std::int64_t e = 0; e < E; ++e)
        part.push_back(id / rows == block ? table.whole()[at(id * E + e)] + 0.0F : 0.0F);
  });
  return out;
}

Value norm(const std::vector<const Value*>& args, double eps, Threads& threads) {
  const Value& x = *args[0];
  const auto E = static_cast<std::size_t>(x.shape.back());
  return map(x, threads, [&](std::size_t i) {
    const double r = 1 / std::sqrt(wide(args[1]->whole()[i / E]) / static_cast<double>(E) + eps);
    double v = wide(x.whole()[i]) * r;
    v = v * wide(args[2]->whole()[i % E]);
    if (args.size() > 3) v = v + wide(args[3]->whole()[i % E]);
    return static_cast<float>(v);
  });
}

Value rope(bool interleaved, const std::vector<const Value*>& args) {
  const Value& t = *args[0];
  const std::int64_t heads = t.shape[2];
  const std::int64_t Q = t.shape[3];
  const std::int64_t J = args[2]->shape[1];
  // One thread, so that the error names the first of several illegal positions.
  return map(t, calling_thread(), [&](std::size_t i) {
    const auto element = static_cast<std::int64_t>(i);
    const std::int64_t channel = element % Q;
    if (channel >= 2 * J) return t.whole()[i];
    const std::int64_t j = interleaved ? channel / 2 : channel % J;
    const bool second = interleaved ? channel % 2 == 1 : channel >= J;
    const std::int64_t apart = interleaved ? 1 : J;
    const std::int64_t row = args[1]->ints[at(element / Q / heads)];
    if (row < 0 || row >= args[2]->shape[0])
      throw Error("rope_range", fmt::format("position {} is outside the RoPE table", row));
    const double c = wide(args[2]->whole()[at(row * J + j)]);
    const double s = wide(args[3]->whole()[at(row * J + j)]);
    if (second)
      return static_cast<float>(wide(t.whole()[i]) * c + wide(t.whole()[i - at(apart)]) * s);
    return static_cast<float>(wide(t.whole()[i]) * c - wide(t.whole()[i + at(apart)]) * s);
  });
}

/// Returns the group of a row of the batch; null if no rows are given.
const PassRows* group_of(std::int64_t b, const std::vector<PassRows>& rows) {
  for (const PassRows& group : rows) {
    if (b < group.rows) return &group;
    b -= group.rows;
  }
  return nullptr;
}

/// Keys or values by position, as a row's queries read them: those of the row's prefix, if it has
/// one, then its own.
struct Cached {
  const Value* own;
  const Value* prefix = nullptr;

  std::int64_t before() const { return prefix == nullptr ? 0 : prefix->shape[1]; }
  std::int64_t positions() const { return before() + own->shape[1]; }
  float number(std::int64_t b, std::int64_t position, std::int64_t kv, std::int64_t c) const {
    const bool shared = position < before();
    const Value& from = shared ? *prefix : *own;
    // Each prefix belongs to the same number of adjacent rows.
    const std::int64_t row = shared ? b * prefix->shape[0] / own->shape[0] : b;
    const std::int64_t slot = shared ? position : position - before();
    return from
        .whole()[at(((row * from.shape[1] + slot) * from.shape[2] + kv) * from.shape[3] + c)];
  }
};

/// Returns score, max, exp, denom, attn; `slopes` is null without ALiBi.
std::vector<Value> attend(const Value& q, const Cached& k, const Cached& v, const Value& pos,
                          const Value* slopes, const std::vector<PassRows>& of_pass,
                          const oracle::Constants& constants, Threads& threads) {
  const std::int64_t B = q.shape[0];
  const std::int64_t L = q.shape[1];
  const std::int64_t H = q.shape[2];
  const std::int64_t Q = q.shape[3];
  const std::int64_t M = k.positions();
  const std::int64_t K = k.own->shape[2];
  std::vector<float> score(at(B * L * H * M), 0.0F), exp(score.size(), 0.0F);
  std::vector<float> max(at(B * L * H)), denom(max.size()), attn(at(B * L * H * Q));
  const auto of_row = [&](std::int64_t row) {
    const std::int64_t b = row / H / L;
    const std::int64_t kv = row % H * K / H;
    const std::int64_t position = pos.ints[at(row / H)];
    std::vector<std::int64_t> visible;
    for (std::int64_t m = 0; m < M; ++m)
      if (const PassRows* const group = group_of(b, of_pass);
          m <= position && (group == nullptr || m < group->end()))
        visible.push_back(m);
    float top = 0.0F;
    for (const std::int64_t m : visible) {
      float s = 0.0F;
      for (std::int64_t c = 0; c < Q; ++c)
        s = std::fma(q.whole()[at(row * Q + c)], k.number(b, m, kv, c), s);
      const double scaled = wide(s) * constants.of_scores(Q);
      const double biased = slopes == nullptr ? scaled
                                              : scaled + wide(slopes->whole()[at(row % H)]) *
                                                             static_cast<double>(m - position);
      s = static_cast<float>(biased);
      score[at(row * M + m)] = s;
      if (m == visible.front() || s > top) top = s;
    }
    float Z = 0.0F;
    for (const std::int64_t m : visible) {
      const float below = score[at(row * M + m)] - top;
      exp[at(row * M + m)] = constants.base2 ? oracle::exp2_of(below) : oracle::exp_of(below);
      Z = std::fma(exp[at(row * M + m)], 1.0F, Z);
    }
    max[at(row)] = top;
    denom[at(row)] = Z;
    for (std::int64_t c = 0; c < Q; ++c) {
      float s = 0.0F;
      for (const std::int64_t m : visible)
        s = std::fma(exp[at(row * M + m)], v.number(b, m, kv, c), s);
      attn[at(row * Q + c)] = static_cast<float>(wide(s) / wide(Z));
    }
  };
  each_range(max.size(), 64, threads, [&](std::size_t from, std::size_t end) {
    for (std::size_t row = from; row < end; ++row) of_row(static_cast<std::int64_t>(row));
  });
  const Shape scores{B, L, H, M};
  const Shape rows{B, L, H};
  std::vector<Value> results;
  const auto add = [&](const Shape& shape, std::vector<float>& numbers) {
    results.push_back({{}, shape, {}, {}});
    results.back().parts.push_back(std::move(numbers));
  };
  add(scores, score);
  add(rows, max);
  add(scores, exp);
  add(rows, denom);
  add(q.shape, attn);
  return results;
}

Results results_of(const Op& op, const std::vector<const Value*>& args, const Setting& setting) {
  const Value& t = *args.at(0);
  Threads& by = setting.by();
  const auto x = [&](std::size_t arg, std::size_t i) { return args[arg]->whole()[i]; };
  const auto each = [&](auto&& f) -> Results { return map(t, by, f); };
  switch (op.kind) {
    case OpKind::all_gather:
    case OpKind::all_to_all:
    case OpKind::permute_axes:
      return {travelled(op, t, setting)};
    case OpKind::slice:
      return {moved(op, t)};
    case OpKind::reduce_scatter:
    case OpKind::all_reduce:
      return {op.by_max ? largest_part(op, t, setting) : reduction(op, t, setting)};
    case OpKind::last:
      return {last_token(t, setting.rows)};
    case OpKind::split_dim:
    case OpKind::merge_dim:
      return {reshaped(op, t, setting.torus)};
    case OpKind::einsum:
      return {where_present(op, contraction(op, args, setting), args)};
    case OpKind::embed_lookup:
      return {lookup(op, t, *args[1], setting.torus)};
    case OpKind::add:
      return each([&](std::size_t i) { return x(0, i) + x(1, i); });
    case OpKind::scale:
      return each([&](std::size_t i) {
        return static_cast<float>(wide(x(0, i)) * wide(spread(t, *args[1], i)));
      });
    case OpKind::scale_by: {
      const double s = constant_of(op, setting.config);
      return each([&](std::size_t i) { return static_cast<float>(wide(x(0, i)) * s); });
    }
    case OpKind::divide_by: {
      const double n = constant_of(op, setting.config);
      return each([&](std::size_t i) { return static_cast<float>(wide(x(0, i)) / n); });
    }
    case OpKind::bias:
      return each([&](std::size_t i) {
        float v = x(0, i);
        for (std::size_t b = 1; b < args.size(); ++b) v = v + spread(t, *args[b], i);
        return v;
      });
    case OpKind::center:
      return each([&](std::size_t i) { return x(0, i) - spread(t, *args[1], i); });
    case OpKind::store:
      return each([&](std::size_t i) { return oracle::bf16(x(0, i)); });
    case OpKind::norm:
      return {norm(args, oracle::Constants(setting.config).eps, by)};
    case OpKind::rope:
      return {rope(false, args)};
    case OpKind::rope_interleaved:
      return {rope(true, args)};
    case OpKind::swiglu:
      return each([&, base2 = setting.config.softmax == Softmax::base2](std::size_t i) {
        return (base2 ? oracle::swish2(x(0, i)) : oracle::swish(x(0, i))) * x(1, i);
      });
    case OpKind::geglu:
      return each([&](std::size_t i) { return oracle::gelu(x(0, i)) * x(1, i); });
    case OpKind::gelu:
      return each([&](std::size_t i) { return oracle::gelu(x(0, i)); });
    case OpKind::gelu_erf:
      return each([&](std::size_t i) { return oracle::gelu_erf(x(0, i)); });
    case OpKind::append:
      return {appended(op, args, setting)};
    case OpKind::with_prefix:
      return {behind_prefix(op, t, *args[1])};
    case OpKind::attend:
      return attend(t, {args[1]}, {args[2]}, *args[3], args.size() > 4 ? args[4] : nullptr,
                    setting.rows, oracle::Constants(setting.config), by);
    case OpKind::attend_prefix:
      return attend(t, {args[1], args[3]}, {args[2], args[4]}, *args[5],
                    args.size() > 6 ? args[6] : nullptr, setting.rows,
                    oracle::Constants(setting.config), by);
    case OpKind::local_argmax:
    case OpKind::argmax:
    case OpKind::weigh:
    case OpKind::top_k:
    case OpKind::top_p:
    case OpKind::masses:
    case OpKind::draw:
      return sampling(op, args, setting);
    case OpKind::map:
      return {mapped(op, args, setting)};
    case OpKind::max:
    case OpKind::stored_sum:
    case OpKind::mean:
      return {locally_reduced(op, args, setting)};
    case OpKind::top:
      return {top_marked(op, args)};
    case OpKind::sum:
      return {sum_over(op, t, setting)};
    case OpKind::turn:
      return {turned(op, args)};
    case OpKind::gather:
      return {gathered(op, t, *args[1])};
  }
  throw Error("scalar_c1",
              fmt::format("the scalar model does not know the op {}", to_string(op.kind)));
}

}  // namespace

std::vector<Value> apply(const Op& op, const std::vector<const Value*>& args,
                         const Setting& setting) {
  return results_of(op, args, setting).all;
}

}  // namespace shardproof::scalar
