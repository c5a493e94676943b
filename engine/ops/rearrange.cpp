#include "engine/ops/rearrange.h"

#include <fmt/format.h>

#include <algorithm>

#include "engine/ops/detail/chip_map.h"
#include "engine/ops/detail/formulas.h"
#include "engine/ops/detail/places.h"
#include "weights/base/error.h"

namespace shardproof {

Sharded turn_pairs(const Sharded& x, char dim, RopePairs pairs, std::int64_t channels,
                   Threads& threads) {
  const std::string letters = x.layout().letters();
  const std::int64_t apart = distance_of(letters, x.local(), dim);
  const std::int64_t extent = x.local()[letters.find(dim)];
  const std::int64_t count = element_count(x.local());
  return with_formulas(x, [&](const auto& f) {
    using Number = typename std::decay_t<decltype(f)>::Number;
    const auto body = [&](std::int64_t chip, Number* out) {
      const Number* const in = numbers_of(f, x, chip);
      std::fill_n(out, count, Number{});
      for (std::int64_t i = 0; i < count; ++i) {
        if (i / apart % extent != 0) continue;  // i is the first channel of its row
        for (std::int64_t j = 0; j < channels / 2; ++j) {
          const std::int64_t a = i + (pairs == RopePairs::half_split ? j : 2 * j) * apart;
          const std::int64_t b = a + (pairs == RopePairs::half_split ? channels / 2 : 1) * apart;
          out[a] = f.negative(in[b]);
          out[b] = in[a];
        }
      }
    };
    return map_chips(f, x.torus(), reading({&x}, threads), x.layout(), x.shape(), threads, body);
  });
}

Sharded gather_rows(const Sharded& index, const Sharded& table, const Layout& layout,
                    const Shape& shape, Threads& threads) {
  const std::int64_t rows = table.local()[0];
  const std::int64_t width = element_count(table.local()) / std::max<std::int64_t>(rows, 1);
  const std::int64_t count = element_count(index.local());
  return with_formulas(table, [&](const auto& f) {
    using Number = typename std::decay_t<decltype(f)>::Number;
    const auto body = [&](std::int64_t chip, Number* out) {
      for (std::int64_t i = 0; i < count; ++i, out += width) {
        const std::int64_t row = ints_of(index, chip)[i];
        if (row < 0 || row >= rows)
          throw Error("gather_range",
                      fmt::format("index {} is outside a table of {} rows", row, rows));
        const Number* const from = numbers_of(f, table, chip) + row * width;
        std::transform(from, from + width, out, [&](const Number& v) { return f.looked_up(v); });
      }
    };
    return map_chips(f, table.torus(), reading({&index, &table}, threads), layout, shape, threads,
                     body);
  });
}

}  // namespace shardproof
