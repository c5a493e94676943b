#include "engine/ops/rearrange.h"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>
#include <string>

#include "engine/ops/detail/chip_map.h"
#include "engine/ops/detail/formulas.h"
#include "engine/ops/detail/places.h"
#include "weights/base/error.h"
#include "weights/model/prefix.h"

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

Sharded with_prefix(const Sharded& prefixes, const Sharded& cache, const Shape& shape,
                    Threads& threads) {
  const std::string letters = cache.layout().letters(), of_prefixes = prefixes.layout().letters();
  const Shape local = local_shape(cache.layout(), shape, cache.torus());
  const std::string others = letters_without(letters, "BM");
  const Shape extents = extents_of(others, letters, local);
  // Elements of one row and slot, as they lie in each of the three values.
  const auto to = places_in(others, extents, letters, local);
  const auto of_own = places_in(others, extents, letters, cache.local());
  const auto of_shared = places_in(others, extents, of_prefixes, prefixes.local());
  const Strides result(letters, local, 'B', 'M'), own(letters, cache.local(), 'B', 'M'),
      shared(of_prefixes, prefixes.local(), 'N', 'T');
  const std::int64_t B = local[letters.find('B')], M = local[letters.find('M')];
  const std::int64_t T = prefixes.local()[of_prefixes.find('T')];
  const std::int64_t N = prefixes.local()[of_prefixes.find('N')];
  const SharedPrefix of_batch{T, prefixes.shape()[of_prefixes.find('N')]};
  const std::int64_t batch = shape[letters.find('B')];
  const auto first_on = [](const Sharded& value, char letter, std::int64_t chip) {
    const std::size_t dim = *value.layout().find(letter);
    return value.torus().block(static_cast<int>(chip), value.layout().axes(letter)) *
           value.local()[dim];
  };
  return with_formulas(cache, [&](const auto& f) {
    using Number = typename std::decay_t<decltype(f)>::Number;
    ChipGroups groups = reading({&prefixes, &cache}, threads);
    groups.split([&](int chip) { return first_on(cache, 'B', chip); });
    groups.split([&](int chip) { return first_on(prefixes, 'N', chip); });
    const auto body = [&](std::int64_t chip, Number* out) {
      const Number* const caches = numbers_of(f, cache, chip);
      const Number* const of_all = numbers_of(f, prefixes, chip);
      const std::int64_t row = first_on(cache, 'B', chip), prefix = first_on(prefixes, 'N', chip);
      for (std::int64_t b = 0; b < B; ++b) {
        const std::int64_t n = of_batch.of_row(row + b, batch) - prefix;
        if (n < 0 || n >= N)
          throw std::logic_error(
              fmt::format("with_prefix: row {} needs a prefix that its chip lacks", row + b));
        for (std::int64_t m = 0; m < M; ++m) {
          const bool before = m < T;
          const Number* const from = before ? of_all + n * shared.row + m * shared.slot
                                            : caches + b * own.row + (m - T) * own.slot;
          const auto& places = before ? of_shared : of_own;
          Number* const place = out + b * result.row + m * result.slot;
          for (std::size_t i = 0; i < to.size(); ++i) place[to[i]] = from[places[i]];
        }
      }
    };
    return map_chips(f, cache.torus(), groups, cache.layout(), shape, threads, body);
  });
}

}  // namespace shardproof
