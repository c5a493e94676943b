#include "golden/bounds/op/ops.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "engine/program/constants.h"
#include "golden/bounds/number/functions.h"
#include "golden/bounds/op/attention.h"
#include "golden/scalar/term_order.h"
#include "golden/scalar/text_ops.h"
#include "weights/base/detail/index.h"
#include "weights/model/softmax.h"

namespace shardproof::bounds {
namespace {

using scalar::Setting;
using scalar::Value;

/// Returns bounds for a complete value of t's shape, element i in interval(i): in ascending order,
/// or on `threads`.
template <class IntervalOf>
Allowed each(const Value& t, IntervalOf&& interval, Threads* threads = nullptr) {
  Allowed a;
  a.bounds.kind = Kind::formula;
  std::vector<Interval>& part = a.bounds.parts.emplace_back(t.whole().size());
  constexpr std::size_t kOfAThread = 1 << 12;
  const std::size_t step = threads != nullptr ? kOfAThread : part.size() + 1;
  (threads != nullptr ? *threads : calling_thread())
      .for_each(static_cast<std::int64_t>((part.size() + step - 1) / step), [&](std::int64_t n) {
        const std::size_t from = at(n) * step;
        for (std::size_t i = from; i < std::min(from + step, part.size()); ++i)
          part[i] = interval(i);
      });
  return a;
}

/// Bounds of elements that have one right value: the result of one operation, or of several that
/// every machine rounds alike. An f64 sum or product of two f32 rounds to the f32 one.
template <class NumberOf>
Allowed each_number(const Value& t, NumberOf&& number) {
  Allowed a = each(t, [&](std::size_t i) {
    const double v = number(i);
    return Interval{v, v};
  });
  a.bounds.kind = Kind::one_value;
  return a;
}

/// Broadcasts s, whose dims are a subset of t's, to the elements of t.
class Spread {
 public:
  Spread(const Value& t, const Value& s) : values_(s.whole()), of_(t.whole().size(), 0) {
    std::size_t repeats = 1;
    for (std::size_t d = t.shape.size(); d-- > 0; repeats *= at(t.shape[d])) {
      std::size_t stride = 1;
      const auto in_s = s.layout.find(t.layout.dims()[d].letter);
      if (!in_s) continue;
      for (std::size_t later = *in_s + 1; later < s.shape.size(); ++later)
        stride *= at(s.shape[later]);
      for (std::size_t i = 0; i < of_.size(); ++i) of_[i] += i / repeats % at(t.shape[d]) * stride;
    }
  }
  double operator[](std::size_t i) const { return wide(values_[of_[i]]); }

 private:
  const std::vector<float>& values_;
  std::vector<std::size_t> of_;
};

Allowed with_bias(const std::vector<const Value*>& args) {
  std::vector<Spread> biases;
  for (std::size_t b = 1; b < args.size(); ++b) biases.emplace_back(*args[0], *args[b]);
  return each_number(*args[0], [&](std::size_t i) {
    double v = wide(args[0]->whole()[i]);
    for (const Spread& bias : biases) v = wide(static_cast<float>(v + bias[i]));
    return v;
  });
}

Allowed normed(const std::vector<const Value*>& args, double eps) {
  const Value& x = *args[0];
  const std::size_t E = at(x.shape.back());
  const Arithmetic f64;
  NormScale scale;
  return each(x, [&](std::size_t i) {
    if (i % E == 0)
      scale = norm_scale(wide(args[1]->whole()[i / E]), static_cast<double>(E), eps, f64);
    const double bias = args.size() > 3 ? wide(args[3]->whole()[i % E]) : 0.0;
    const FunctionValue v = norm(wide(x.whole()[i]), scale, wide(args[2]->whole()[i % E]),
                                 args.size() > 3 ? &bias : nullptr, f64);
    return around(v.center, v.radius);
  });
}

/// Rotates a pair (a, b) to (a·c − b·s, b·c + a·s): exact products, one f64 addition.
Allowed rotated(bool interleaved, const std::vector<const Value*>& args) {
  const Value& t = *args[0];
  const std::size_t Q = at(t.shape[3]), heads = at(t.shape[2]), pairs = at(args[2]->shape[1]);
  return each_number(t, [&](std::size_t i) {
    const std::size_t channel = i % Q, token = i / Q / heads;
    const auto x = [&](std::size_t c) { return wide(t.whole()[i - channel + c]); };
    if (channel >= 2 * pairs) return x(channel);
    const std::size_t pair = interleaved ? channel / 2 : channel % pairs;
    const std::size_t first = interleaved ? 2 * pair : pair;
    const std::size_t second = interleaved ? 2 * pair + 1 : pair + pairs;
    const std::size_t entry = at(args[1]->ints[token]) * pairs + pair;
    const double c = wide(args[2]->whole().at(entry)), s = wide(args[3]->whole().at(entry));
    return channel == first ? x(first) * c - x(second) * s : x(second) * c + x(first) * s;
  });
}

/// Bounds of the activation of the first operand, times the second if there is one, in f32.
Allowed activated(Ffn ffn, const std::vector<const Value*>& args, const Setting& setting) {
  const Arithmetic f64;
  const auto interval = [&](std::size_t i) {
    const FunctionValue w = activation(ffn, setting.config.softmax, wide(args[0]->whole()[i]), f64);
    const Interval in = around(w.center, w.radius);
    if (args.size() == 1) return in;
    const Interval f32 = values(in, NumberFormat::f32);
    const double up = wide(args[1]->whole()[i]);
    // A negative factor swaps the ends, also of −0 and +0.
    const Interval product{f32.low * up, f32.high * up};
    return std::signbit(up) ? Interval{product.high, product.low} : product;
  };
  return each(*args[0], interval, &setting.by());
}

/// Bounds of a contraction: what does not exist is +0.
Bounds bounds_of_product(const Op& op, const std::vector<const Value*>& args,
                         const Setting& setting) {
  Bounds bounds = bounds_of_contraction(op, args, setting);
  if (op.indicators == 0) return bounds;
  Value present;
  for (const Layout::Dim& dim : op.results[0].layout.dims())
    present.shape.push_back(
        scalar::extent(args[0]->layout.find(dim.letter) ? *args[0] : *args[1], dim.letter));
  present.parts.emplace_back(bounds.parts.at(0).size(), 1.0F);
  present = scalar::where_present(op, std::move(present), args);
  for (std::vector<Interval>& part : bounds.parts)
    for (std::size_t i = 0; i < part.size(); ++i)
      if (present.whole()[i] == 0.0F) part[i] = {0.0, 0.0};
  return bounds;
}

}  // namespace

Allowed allowed(const Op& op, std::size_t result, const std::vector<const Value*>& args,
                const std::vector<const Value*>& results, const Setting& setting) {
  const Value& t = *args.at(0);
  const auto x = [&](std::size_t arg, std::size_t i) { return wide(args[arg]->whole()[i]); };
  switch (op.kind) {
    case OpKind::einsum:
      return {{}, bounds_of_product(op, args, setting)};
    case OpKind::reduce_scatter:
    case OpKind::all_reduce:
      if (op.by_max) break;
      return {{}, bounds_of_reduction(op, t, setting)};
    case OpKind::add:
      return each_number(t, [&](std::size_t i) { return x(0, i) + x(1, i); });
    case OpKind::scale: {
      const Spread scale(t, *args[1]);
      return each_number(t, [&](std::size_t i) { return x(0, i) * scale[i]; });
    }
    case OpKind::scale_by: {
      const double s = constant_of(op, setting.config);
      return each_number(t, [&](std::size_t i) { return x(0, i) * s; });
    }
    case OpKind::divide_by: {
      const double n = constant_of(op, setting.config);
      return each_number(t, [&](std::size_t i) { return x(0, i) / n; });
    }
    case OpKind::bias:
      return with_bias(args);
    case OpKind::center: {
      const Spread mu(t, *args[1]);
      return each_number(t, [&](std::size_t i) { return x(0, i) - mu[i]; });
    }
    case OpKind::norm:
      return normed(args, eps_of_norms(setting.config));
    case OpKind::rope:
    case OpKind::rope_interleaved:
      return rotated(op.kind == OpKind::rope_interleaved, args);
    case OpKind::swiglu:
      return activated(Ffn::swiglu, args, setting);
    case OpKind::geglu:
      return activated(Ffn::geglu, args, setting);
    case OpKind::gelu:
      return activated(Ffn::gelu, args, setting);
    case OpKind::gelu_erf:
      return activated(Ffn::gelu_erf, args, setting);
    case OpKind::attend:
    case OpKind::attend_prefix:
      return {{},
              bounds_of_attention(result, args, results, setting.rows, setting.config.softmax,
                                  setting.by())};
    case OpKind::all_gather:
    case OpKind::all_to_all:
    case OpKind::permute_axes:
    case OpKind::slice:
    case OpKind::last:
    case OpKind::split_dim:
    case OpKind::merge_dim:
    case OpKind::embed_lookup:
    case OpKind::store:
    case OpKind::append:
    case OpKind::with_prefix:
    case OpKind::local_argmax:
    case OpKind::argmax:
    case OpKind::weigh:  // exp of one number, whose hard cases are known (docs/spec.md section 1.4)
    case OpKind::top_k:
    case OpKind::top_p:
    case OpKind::masses:
    case OpKind::draw:
    case OpKind::map:  // rounds once what the C library's functions give, as the scalar model does
    case OpKind::max:
    case OpKind::stored_sum:  // the regime has one order of its additions, each rounded at once
    case OpKind::mean:
    case OpKind::top:
    case OpKind::turn:
    case OpKind::gather:
      break;
    case OpKind::sum: {
      const scalar::SumAsProduct product(op, t);
      return {{}, bounds_of_contraction(product.op, {&t, &product.ones}, setting)};
    }
  }
  Allowed a;
  a.bits = std::move(scalar::apply(op, args, setting).at(result));
  return a;
}

}  // namespace shardproof::bounds
