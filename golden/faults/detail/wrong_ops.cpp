#include "golden/faults/detail/wrong_ops.h"

#include <algorithm>
#include <functional>

namespace shardproof::faults {
namespace {

/// The keys or values of each query head of its chip, as many heads as queries: h mod K.
template <class T>
void spread_heads(const Sharded& q, const Sharded& kv, const ChipArrays<T>& from,
                  ChipArrays<T>& to) {
  const std::int64_t slots = kv.local()[0] * kv.local()[1], K = kv.local()[2], Q = kv.local()[3];
  const std::int64_t heads = q.local()[2];
  for (std::size_t chip = 0; chip < from.size(); ++chip)
    for (std::int64_t slot = 0; slot < slots; ++slot)
      for (std::int64_t h = 0; h < heads; ++h)
        for (std::int64_t c = 0; c < Q; ++c)
          to[chip].push_back(from[chip][static_cast<std::size_t>((slot * K + h % K) * Q + c)]);
}

template <class T>
void fill_unmasked(const Sharded& table, const Sharded& ids, const ChipArrays<T>& rows, int chip,
                   const std::function<void(std::size_t, const T&)>& set) {
  const std::int64_t height = table.local()[0], width = table.local()[1];
  const std::int64_t base = table.torus().block(chip, table.layout().dims()[0].axes) * height;
  const auto& wanted = ids.i32()[static_cast<std::size_t>(chip)];
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    const std::int64_t row = std::clamp<std::int64_t>(wanted[i] - base, 0, height - 1);
    for (std::int64_t e = 0; e < width; ++e)
      set(i * static_cast<std::size_t>(width) + static_cast<std::size_t>(e),
          rows[static_cast<std::size_t>(chip)][static_cast<std::size_t>(row * width + e)]);
  }
}

}  // namespace

Sharded with_tiled_heads(const Sharded& q, const Sharded& kv) {
  const std::size_t dim = 2;
  const Layout layout = kv.layout().with_axes(dim, q.layout().axes('H'));
  Shape shape = kv.shape();
  shape[dim] = q.shape()[dim];
  if (kv.holds_field()) {
    FieldShards made{ChipArrays<FieldElement>(kv.field().values.size()), kv.field().field,
                     kv.field().sort, kv.field().degree};
    spread_heads(q, kv, kv.field().values, made.values);
    return {kv.torus(), layout, shape, made};
  }
  ChipArrays<float> made(kv.f32().size());
  spread_heads(q, kv, kv.f32(), made);
  return {kv.torus(), layout, shape, made};
}

void look_up_unmasked(const Sharded& ids, const Sharded& table, Sharded& value) {
  for (int chip = 0; chip < value.torus().chips(); ++chip)
    if (value.holds_field())
      fill_unmasked<FieldElement>(
          table, ids, table.field().values, chip,
          [&](std::size_t i, const FieldElement& v) { value.field_of(chip)[i] = v; });
    else if (value.holds_partial())
      fill_unmasked<float>(table, ids, table.f32(), chip, [&](std::size_t i, float v) {
        value.partial_values_of(chip)[i] = static_cast<double>(v);
      });
    else
      fill_unmasked<float>(table, ids, table.f32(), chip,
                           [&](std::size_t i, float v) { value.f32_of(chip)[i] = v; });
}

}  // namespace shardproof::faults
