#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>

#include "engine/formulas.h"
#include "engine/local_ops.h"

namespace shardproof {
namespace {

/// One chip's operands and results of attention, with local extents.
template <class Number>
struct LocalAttention {
  std::int64_t B, L, H, Q, M, K;
  const Number *q, *k, *v;
  const std::int32_t* pos;
  const Number* slopes;  // of ALiBi, one for each head; null without
  Number *score, *max, *exp, *denom, *attn;

  /// One query under the causal mask: its scores over the visible keys, their softmax weights, and
  /// the weighted values.
  template <class Attend>
  void query(const Attend& f, std::int64_t b, std::int64_t l, std::int64_t h,
             std::int64_t kv) const {
    const std::int64_t at = (b * L + l) * H + h;
    const std::int64_t visible = std::clamp<std::int64_t>(pos[b * L + l] + std::int64_t{1}, 0, M);
    const Number* keys = k + (b * M * K + kv) * Q;  // slots are K·Q apart
    const Number* values = v + (b * M * K + kv) * Q;
    Number* s = score + at * M;
    Number* e = exp + at * M;
    for (std::int64_t m = 0; m < visible; ++m)
      s[m] = f.score(q + at * Q, keys + m * K * Q, Q, slopes != nullptr ? slopes + h : nullptr,
                     m - pos[b * L + l]);
    std::fill(s + visible, s + M, Number{});
    const Number top = f.max(s, visible);
    for (std::int64_t m = 0; m < visible; ++m) e[m] = f.exp(s[m], top);
    std::fill(e + visible, e + M, Number{});
    const Number sum = f.sum(e, visible);
    max[at] = top;
    denom[at] = sum;
    const auto divisor = f.divisor(sum);
    for (std::int64_t c = 0; c < Q; ++c)
      attn[at * Q + c] = f.mean(e, values + c, K * Q, visible, divisor);
  }
};

/// attend() of numbers that have these formulas.
template <class Formulas>
Attention attended(const Formulas& f, const Sharded& q, const Sharded& k, const Sharded& v,
                   const Sharded& pos, Threads& threads, const Sharded* slopes) {
  using Number = typename Formulas::Number;
  const Shape& query = q.local();
  const Shape& cache = k.local();
  const std::int64_t H = q.shape()[2];
  const std::int64_t K = k.shape()[2];
  const auto& dims = q.layout().dims();
  const Layout blh({dims[0], dims[1], dims[2]}, Axes());
  const Layout blhm({dims[0], dims[1], dims[2], {'M', Axes()}}, Axes());
  const Shape rows{q.shape()[0], q.shape()[1], H};
  const Shape scores{q.shape()[0], q.shape()[1], H, k.shape()[1]};
  const auto chips = static_cast<std::size_t>(q.torus().chips());
  const auto buffers = [&](std::int64_t each) {
    return ChipArrays<Number>(chips, Buffer<Number>(static_cast<std::size_t>(each)));
  };
  const auto formulas = f.attend(query[3]);
  const std::int64_t row_count = query[0] * query[1] * query[2];
  ChipArrays<Number> score = buffers(row_count * cache[1]);
  ChipArrays<Number> exp = score;
  ChipArrays<Number> max = buffers(row_count);
  ChipArrays<Number> denom = max;
  ChipArrays<Number> attn = buffers(row_count * query[3]);

  threads.for_each(q.torus().chips(), [&](std::int64_t chip) {
    const auto c = static_cast<std::size_t>(chip);
    const LocalAttention<Number> local{query[0],
                                       query[1],
                                       query[2],
                                       query[3],
                                       cache[1],
                                       cache[2],
                                       f.shards(q)[c].data(),
                                       f.shards(k)[c].data(),
                                       f.shards(v)[c].data(),
                                       pos.i32()[c].data(),
                                       slopes != nullptr ? f.shards(*slopes)[c].data() : nullptr,
                                       score[c].data(),
                                       max[c].data(),
                                       exp[c].data(),
                                       denom[c].data(),
                                       attn[c].data()};
    const std::int64_t first_head =
        q.torus().block(static_cast<int>(chip), q.layout().axes('H')) * query[2];
    const std::int64_t first_kv =
        q.torus().block(static_cast<int>(chip), k.layout().axes('K')) * cache[2];
    for (std::int64_t h = 0; h < local.H; ++h) {
      const std::int64_t kv = (first_head + h) * K / H - first_kv;
      if (kv < 0 || kv >= local.K)
        throw std::logic_error(fmt::format("attend: head {} needs a kv head that chip {} lacks",
                                           first_head + h, q.torus().name(static_cast<int>(chip))));
      for (std::int64_t b = 0; b < local.B; ++b)
        for (std::int64_t l = 0; l < local.L; ++l) local.query(formulas, b, l, h, kv);
    }
  });
  const auto made = [&](const Layout& layout, const Shape& shape, ChipArrays<Number>& values,
                        FieldSort sort) -> Sharded {
    return {q.torus(), layout, shape, f.data(std::move(values), sort)};
  };
  return {made(blhm, scores, score, FieldSort::number), made(blh, rows, max, FieldSort::max),
          made(blhm, scores, exp, FieldSort::number), made(blh, rows, denom, FieldSort::number),
          made(q.layout(), q.shape(), attn, FieldSort::number)};
}

}  // namespace

Attention attend(const Sharded& q, const Sharded& k, const Sharded& v, const Sharded& pos,
                 Threads& threads, Regime regime, const Sharded* slopes) {
  return with_formulas(
      q, [&](const auto& f) { return attended(f, q, k, v, pos, threads, slopes); }, regime);
}

}  // namespace shardproof
