// Growth of the KV cache.
#include <fmt/format.h>

#include <algorithm>

#include "engine/ops/detail/chip_map.h"
#include "engine/ops/detail/formulas.h"
#include "engine/ops/local_ops.h"
#include "weights/base/error.h"

namespace shardproof {

Sharded append(const Sharded& cache, const Sharded& t, const Sharded& pos, Threads& threads,
               CacheType kept, const RowTokens* rows, std::int64_t prefix) {
  const Shape& old_local = cache.local();
  const Shape& new_rows = t.local();
  const std::int64_t B = old_local[0];
  const std::int64_t M = old_local[1];
  const std::int64_t L = new_rows[1];
  const std::int64_t row = new_rows[2] * new_rows[3];
  Shape shape = cache.shape();
  shape[1] += L;
  return with_formulas(t, [&](const auto& f) {
    using Number = typename std::decay_t<decltype(f)>::Number;
    const auto stored = f.stored();
    const auto first_row_of = [&](std::int64_t chip) {
      return cache.torus().block(static_cast<int>(chip), cache.layout().dims()[0].axes) * B;
    };
    ChipGroups groups = reading({&cache, &t, &pos}, threads);
    if (rows != nullptr) groups.split(first_row_of);
    const auto body = [&](std::int64_t chip, Number* out) {
      std::fill_n(out, B * (M + L) * row, f.unwritten());
      const std::int64_t first_row = first_row_of(chip);
      for (std::int64_t b = 0; b < B; ++b) {
        std::copy_n(numbers_of(f, cache, chip) + b * M * row, M * row, out + b * (M + L) * row);
        const std::int64_t tokens =
            rows == nullptr ? L : rows->tokens.at(static_cast<std::size_t>(first_row + b));
        for (std::int64_t l = 0; l < tokens; ++l) {
          const std::int64_t slot = ints_of(pos, chip)[b * L + l] - prefix;
          if (slot < 0 || slot >= M + L)
            throw Error("append_range",
                        fmt::format("slot {} is outside a cache of length {}", slot, M + L));
          Number* const slots = out + (b * (M + L) + slot) * row;
          std::copy_n(numbers_of(f, t, chip) + (b * L + l) * row, row, slots);
          if (kept == CacheType::bf16) std::transform(slots, slots + row, slots, stored);
        }
      }
    };
    return map_chips(f, cache.torus(), groups, cache.layout(), shape, threads, body);
  });
}

}  // namespace shardproof
