// Faults of the pieces that an all_to_all sends.
#include <fmt/format.h>

#include <string>

#include "golden/diagnosis/detail/chips.h"
#include "golden/diagnosis/detail/edits.h"
#include "golden/diagnosis/detail/search.h"

namespace shardproof::diagnosis {
namespace {

/// The pieces of an all_to_all that should have cut dim `a` over `list` and concatenated dim `b`.
void try_pieces(const Question& q, Search& search, const Row& row, std::size_t a, std::size_t b,
                const Axes& list) {
  const int n = q.torus().size(list);
  if (q.local_shape()[b] % n != 0) return;
  const std::int64_t length = q.local_shape()[b] / n;
  const auto& dims = q.layout().dims();
  const std::string step = fmt::format("all_to_all over {} to {}_{}: ", list.to_string(),
                                       dims[a].letter, dims[a].axes.to_string());
  const auto consider = [&](std::string detail, int parameters, auto place) {
    search.consider({.fault = row.fault,
                     .detail = step + std::move(detail),
                     .parameters = parameters,
                     .axes = list.sorted().to_string(),
                     .at = [&q, place](int chip, std::size_t local) {
                       return q.expected_at(place(chip, local));
                     }});
  };
  consider(fmt::format("the piece from a chip is what it keeps of {}", dims[a].letter), 0,
           [&q, list, b, length](int chip, std::size_t local) {
             Index i = q.index(local);
             const int from = static_cast<int>(i[b] / length);
             i[b] = q.torus().block(chip, list) * length + i[b] % length;
             return q.flat(i, q.offset(with_block(q.torus(), chip, list, from)));
           });
  // Both dims are cut: each chip sends a piece of its part of dim b, with all of dim a.
  if (q.local_shape()[b] % (static_cast<std::int64_t>(n) * n) == 0)
    consider(
        fmt::format("{} is cut and {} put together", dims[b].letter, dims[a].letter), 1,
        [&q, a, b, n, list](int chip, std::size_t local) {
          Index i{};
          auto flat = static_cast<std::int64_t>(local);
          const std::int64_t sent = q.local_shape()[a] * n, had = q.local_shape()[b] / n;
          for (std::size_t d = q.rank(); d-- > 0;) {
            const std::int64_t extent = d == a ? sent * n : d == b ? had / n : q.local_shape()[d];
            i[d] = flat % extent;
            flat /= extent;
          }
          i[b] += i[a] / sent * had + q.torus().block(chip, list) * (had / n);
          i[a] %= sent;
          return q.flat(i, q.offset(with_block(q.torus(), chip, list, 0)));
        });
  // The received pieces form a dim of their own, which belongs before dim b.
  for (std::size_t before = 0; before <= q.rank(); ++before) {
    if (before == b) continue;
    consider(before < q.rank() ? fmt::format("the pieces are put together before {}, not {}",
                                             dims[before].letter, dims[b].letter)
                               : "the pieces are put together behind the last dim",
             1 + static_cast<int>(before), [&q, b, n, length, before](int chip, std::size_t local) {
               Index i{};
               auto flat = static_cast<std::int64_t>(local);
               std::int64_t piece = 0;
               const auto take = [&](std::int64_t extent) {
                 const std::int64_t k = flat % extent;
                 flat /= extent;
                 return k;
               };
               if (before == q.rank()) piece = take(n);
               for (std::size_t d = q.rank(); d-- > 0;) {
                 i[d] = take(d == b ? length : q.local_shape()[d]);
                 if (d == before) piece = take(n);
               }
               i[b] += piece * length;
               return q.flat(i, q.offset(chip));
             });
  }
}

}  // namespace

void try_all_to_all(const Question& q, Search& search, const Row& row) {
  for (std::size_t a = 0; a < q.rank() && !q.whole(); ++a)
    for (std::size_t b = 0; b < q.rank(); ++b)
      for (const Axes& list : q.lists())
        if (a != b && significant(q.layout().dims()[a].axes, q.torus()).ends_with(list))
          try_pieces(q, search, row, a, b, list);
}

}  // namespace shardproof::diagnosis
