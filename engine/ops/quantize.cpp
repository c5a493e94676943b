#include "engine/ops/quantize.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "engine/collectives/chip_groups.h"
#include "engine/ops/detail/places.h"

namespace shardproof {
namespace {

/// An f32 value whose shards are computed by `of_chip(chip)`.
template <class F>
Sharded by_chip(const Torus& torus, const Layout& layout, const Shape& shape, F&& of_chip) {
  ChipArrays<float> chips;
  chips.reserve(static_cast<std::size_t>(torus.chips()));
  for (int chip = 0; chip < torus.chips(); ++chip) chips.push_back(of_chip(chip));
  return {torus, layout, shape, std::move(chips)};
}

/// f(chip, i) for each element of the shards of a and b; once for chips that hold the same buffers
/// of both.
template <class F>
Sharded elementwise(const Sharded& a, const Sharded& b, F&& f) {
  ChipGroups groups(a.torus(), calling_thread());
  groups.split(a);
  groups.split(b);
  const auto count = static_cast<std::size_t>(element_count(a.local()));
  return {a.torus(), a.layout(), a.shape(),
          made_by<float>(groups, a.f32().size(), count, calling_thread(),
                         [&](std::int64_t chip, float* out) {
                           for (std::size_t i = 0; i < count; ++i)
                             out[i] = f(static_cast<int>(chip), i);
                         })};
}

const Buffer<float>& of(const Sharded& value, int chip) {
  return value.f32()[static_cast<std::size_t>(chip)];
}

}  // namespace

Sharded absmax(const Sharded& w, std::string_view channels) {
  const std::string letters = w.layout().letters();
  const Torus& torus = w.torus();
  std::vector<Layout::Dim> dims;
  for (const char letter : channels) dims.push_back({letter, w.layout().axes(letter)});
  const Layout layout(std::move(dims), {});
  const Shape shape = extents_of(channels, letters, w.shape());
  Axes reduced;
  for (const char letter : letters_without(letters, channels))
    reduced = reduced.with(w.layout().axes(letter));
  const Shape local = extents_of(channels, letters, w.local());
  const std::vector<std::int64_t> channel_of = places_in(letters, w.local(), channels, local);
  const auto width = static_cast<std::size_t>(element_count(local));
  const Sharded own = by_chip(torus, layout, shape, [&](int chip) {
    Buffer<float> most(width, 0.0F);
    const Buffer<float>& shard = of(w, chip);
    for (std::size_t i = 0; i < shard.size(); ++i) {
      float& so_far = most[static_cast<std::size_t>(channel_of[i])];
      so_far = std::max(so_far, std::abs(shard[i]));
    }
    return most;
  });
  return by_chip(torus, layout, shape, [&](int chip) {
    Buffer<float> most = of(own, chip);
    for (int other : torus.group(chip, reduced))
      for (std::size_t i = 0; i < width; ++i) most[i] = std::max(most[i], of(own, other)[i]);
    return most;
  });
}

Sharded greater(const Sharded& a, const Sharded& b) {
  return elementwise(
      a, b, [&](int chip, std::size_t i) { return std::max(of(a, chip)[i], of(b, chip)[i]); });
}

Sharded scale_of_absmax(const Sharded& absmax) {
  return elementwise(absmax, absmax, [&](int chip, std::size_t i) {
    const auto scale = static_cast<float>(static_cast<double>(of(absmax, chip)[i]) / 127.0);
    return scale == 0.0F ? 1.0F : scale;
  });
}

Sharded codes(const Sharded& w, const Sharded& scale) {
  const std::vector<std::int64_t> channel_of =
      places_in(w.layout().letters(), w.local(), scale.layout().letters(), scale.local());
  return elementwise(w, scale, [&](int chip, std::size_t i) {
    const float by = of(scale, chip)[static_cast<std::size_t>(channel_of[i])];
    const double code =
        std::nearbyint(static_cast<double>(of(w, chip)[i]) / static_cast<double>(by));
    return static_cast<float>(std::clamp(code, -127.0, 127.0)) + 0.0F;  // + 0.0F turns -0 into 0
  });
}

}  // namespace shardproof
