#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "engine/local_ops.h"
#include "engine/numeric/contract.h"
#include "engine/numeric/functions.h"

namespace shardproof {
namespace {

/// One chip's operands and results of attention, with local extents.
struct LocalAttention {
  std::int64_t B, L, H, Q, M, K;
  const float *q, *k, *v;
  const std::int32_t* pos;
  const float* slopes;  // of ALiBi, one for each head; null without
  float *score, *max, *exp, *denom, *attn;

  Regime regime;

  /// One query under the causal mask: its scores over the visible keys, their softmax weights, and
  /// the weighted values.
  void query(std::int64_t b, std::int64_t l, std::int64_t h, std::int64_t kv) const;
};

constexpr float kOne = 1.0F;

/// S(a,b) of two vectors.
float dot(Regime regime, const float* a, std::int64_t stride_a, const float* b,
          std::int64_t stride_b, std::int64_t n) {
  if (regime == Regime::exact) return exact_dot(a, stride_a, b, stride_b, n);
  float sum = 0.0F;
  for (std::int64_t i = 0; i < n; ++i) sum = std::fma(a[i * stride_a], b[i * stride_b], sum);
  return sum;
}

void LocalAttention::query(std::int64_t b, std::int64_t l, std::int64_t h, std::int64_t kv) const {
  const std::int64_t at = (b * L + l) * H + h;
  const std::int64_t visible = std::clamp<std::int64_t>(pos[b * L + l] + std::int64_t{1}, 0, M);
  const float* keys = k + (b * M * K + kv) * Q;  // slots are K·Q apart
  const float* values = v + (b * M * K + kv) * Q;
  float* s = score + at * M;
  float* e = exp + at * M;
  const double scale = 1.0 / std::sqrt(static_cast<double>(Q));
  for (std::int64_t m = 0; m < visible; ++m) {
    double scaled = static_cast<double>(dot(regime, q + at * Q, 1, keys + m * K * Q, 1, Q)) * scale;
    if (slopes != nullptr)
      scaled = scaled + static_cast<double>(slopes[h]) * static_cast<double>(m - pos[b * L + l]);
    s[m] = static_cast<float>(scaled);
  }
  std::fill(s + visible, s + M, 0.0F);
  float top = visible > 0 ? s[0] : 0.0F;
  for (std::int64_t m = 1; m < visible; ++m)
    if (s[m] > top) top = s[m];
  for (std::int64_t m = 0; m < visible; ++m) e[m] = exp32(s[m] - top);
  std::fill(e + visible, e + M, 0.0F);
  const float sum = dot(regime, e, 1, &kOne, 0, visible);
  max[at] = top;
  denom[at] = sum;
  for (std::int64_t c = 0; c < Q; ++c)
    attn[at * Q + c] =
        static_cast<float>(static_cast<double>(dot(regime, e, 1, values + c, K * Q, visible)) /
                           static_cast<double>(sum));
}

}  // namespace

Attention attend(const Sharded& q, const Sharded& k, const Sharded& v, const Sharded& pos,
                 Threads& threads, Regime regime, const Sharded* slopes) {
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
    return ChipArrays<float>(chips, Buffer<float>(static_cast<std::size_t>(each)));
  };
  const std::int64_t row_count = query[0] * query[1] * query[2];
  ChipArrays<float> score = buffers(row_count * cache[1]);
  ChipArrays<float> exp = score;
  ChipArrays<float> max = buffers(row_count);
  ChipArrays<float> denom = max;
  ChipArrays<float> attn = buffers(row_count * query[3]);

  threads.for_each(q.torus().chips(), [&](std::int64_t chip) {
    const auto c = static_cast<std::size_t>(chip);
    const LocalAttention local{query[0],
                               query[1],
                               query[2],
                               query[3],
                               cache[1],
                               cache[2],
                               q.f32()[c].data(),
                               k.f32()[c].data(),
                               v.f32()[c].data(),
                               pos.i32()[c].data(),
                               slopes != nullptr ? slopes->f32()[c].data() : nullptr,
                               score[c].data(),
                               max[c].data(),
                               exp[c].data(),
                               denom[c].data(),
                               attn[c].data(),
                               regime};
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
        for (std::int64_t l = 0; l < local.L; ++l) local.query(b, l, h, kv);
    }
  });
  return {{q.torus(), blhm, scores, std::move(score)},
          {q.torus(), blh, rows, std::move(max)},
          {q.torus(), blhm, scores, std::move(exp)},
          {q.torus(), blh, rows, std::move(denom)},
          {q.torus(), q.layout(), q.shape(), std::move(attn)}};
}

}  // namespace shardproof
