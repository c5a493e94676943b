// Growth of the KV cache.
#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string>

#include "engine/ops/detail/chip_map.h"
#include "engine/ops/detail/formulas.h"
#include "engine/ops/detail/places.h"
#include "engine/ops/local_ops.h"
#include "weights/base/error.h"

namespace shardproof {

Sharded append(const Sharded& cache, const Sharded& t, const Sharded& pos, Threads& threads,
               std::optional<NumberFormat> kept, const RowTokens* rows, std::int64_t prefix,
               bool zeros) {
  const std::string letters = t.layout().letters(), slots = cache.layout().letters();
  const std::size_t length = letters.find('L');
  const Shape &old = cache.local(), &fresh = t.local();
  const std::int64_t B = old[letters.find('B')], M = old[length], L = fresh[length];
  Shape shape = cache.shape(), grown = old;
  shape[length] += L;
  grown[length] += L;
  // Elements of one row and slot, as they lie in each of the three values.
  const std::string others = letters_without(letters, "BL");
  const Shape extents = extents_of(others, letters, fresh);
  const auto from = places_in(others, extents, letters, fresh);
  const auto to = places_in(others, extents, slots, grown);
  const auto before = places_in(others, extents, slots, old);
  const bool adjacent = letters.starts_with("BL") || letters.starts_with("LB");
  const Strides made(slots, grown, 'B', 'M'), held(slots, old, 'B', 'M'),
      taken(letters, fresh, 'B', 'L');
  return with_formulas(t, [&](const auto& f) {
    using Number = typename std::decay_t<decltype(f)>::Number;
    const auto stored = f.stored();
    const auto first_row_of = [&](std::int64_t chip) {
      return cache.torus().block(static_cast<int>(chip), cache.layout().axes('B')) * B;
    };
    const auto copy = [&](const Number* in, const std::vector<std::int64_t>& of, Number* out) {
      if (adjacent) {
        std::copy_n(in, to.size(), out);
        return;
      }
      for (std::size_t i = 0; i < to.size(); ++i) out[to[i]] = in[of[i]];
    };
    ChipGroups groups = reading({&cache, &t, &pos}, threads);
    if (rows != nullptr) groups.split(first_row_of);
    const auto body = [&](std::int64_t chip, Number* out) {
      std::fill_n(out, element_count(grown), zeros ? Number{} : f.unwritten());
      const std::int64_t first_row = first_row_of(chip);
      for (std::int64_t b = 0; b < B; ++b) {
        const Number* const slots_held = numbers_of(f, cache, chip) + b * held.row;
        for (std::int64_t m = 0; m < M; ++m)
          copy(slots_held + m * held.slot, before, out + b * made.row + m * made.slot);
        const std::int64_t tokens =
            rows == nullptr ? L : rows->tokens.at(static_cast<std::size_t>(first_row + b));
        for (std::int64_t l = 0; l < tokens; ++l) {
          const std::int64_t slot = ints_of(pos, chip)[b * L + l] - prefix;
          if (slot < 0 || slot >= M + L)
            throw Error("append_range",
                        fmt::format("slot {} is outside a cache of length {}", slot, M + L));
          const Number* const token = numbers_of(f, t, chip) + b * taken.row + l * taken.slot;
          Number* const place = out + b * made.row + slot * made.slot;
          copy(token, from, place);
          if (kept == NumberFormat::bf16)
            for (const std::int64_t i : to) place[i] = stored(place[i]);
        }
      }
    };
    return map_chips(f, cache.torus(), groups, cache.layout(), shape, threads, body);
  });
}

}  // namespace shardproof
