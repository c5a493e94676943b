// Rotary position embedding.
#include <fmt/format.h>

#include <algorithm>

#include "engine/ops/detail/chip_map.h"
#include "engine/ops/detail/formulas.h"
#include "engine/ops/local_ops.h"
#include "weights/base/error.h"

namespace shardproof {

Sharded rope(RopePairs pairs, const Sharded& t, const Sharded& pos, const Sharded& cos,
             const Sharded& sin, Threads& threads) {
  const Shape& local = t.local();
  const std::int64_t rows = local[0] * local[1];
  const std::int64_t heads = local[2];
  const std::int64_t Q = local[3];
  const std::int64_t table_rows = cos.shape()[0];
  const std::int64_t J = cos.shape()[1];
  const std::int64_t step = pairs == RopePairs::half_split ? 1 : 2;
  const std::int64_t apart = pairs == RopePairs::half_split ? J : 1;
  return with_formulas(t, [&](const auto& f) {
    using Number = typename std::decay_t<decltype(f)>::Number;
    const ChipGroups groups = reading({&t, &pos, &cos, &sin}, threads);
    const auto body = [&](std::int64_t chip, Number* out) {
      const Number* const in = numbers_of(f, t, chip);
      for (std::int64_t i = 0; i < rows; ++i) {
        const std::int64_t p = ints_of(pos, chip)[i];
        if (p < 0 || p >= table_rows)
          throw Error("rope_range", fmt::format("position {} is outside the RoPE table of {} rows",
                                                p, table_rows));
        const Number* const c = numbers_of(f, cos, chip) + p * J;
        const Number* const s = numbers_of(f, sin, chip) + p * J;
        for (std::int64_t h = 0; h < heads; ++h) {
          const std::int64_t base = (i * heads + h) * Q;
          for (std::int64_t j = 0; j < J; ++j) {
            const std::int64_t first = base + j * step;
            const auto turned = f.rotated(in[first], in[first + apart], c[j], s[j]);
            out[first] = turned.first;
            out[first + apart] = turned.second;
          }
          std::copy_n(in + base + 2 * J, Q - 2 * J, out + base + 2 * J);
        }
      }
    };
    return map_chips(f, t.torus(), groups, t.layout(), t.shape(), threads, body);
  });
}

}  // namespace shardproof
