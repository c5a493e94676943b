#include <algorithm>
#include <cstddef>
#include <type_traits>
#include <utility>
#include <vector>

#include "engine/ops/detail/chip_map.h"
#include "engine/ops/detail/formulas.h"
#include "engine/ops/local_ops.h"

namespace shardproof {
namespace {

Layout without_dim(const Layout& layout, std::size_t dim) {
  std::vector<Layout::Dim> dims = layout.dims();
  dims.erase(dims.begin() + static_cast<std::ptrdiff_t>(dim));
  return Layout(std::move(dims), layout.partial());
}

}  // namespace

Candidates local_argmax(const Sharded& z, Threads& threads, std::int64_t V) {
  const Shape& local = z.local();
  const std::int64_t rows = local[0];
  const std::int64_t width = local[1];
  const Layout layout({z.layout().dims()[0], {'C', z.layout().axes('V')}}, Axes());
  const Shape shape{z.shape()[0], z.torus().size(z.layout().axes('V'))};
  const auto chips = static_cast<std::size_t>(z.torus().chips());
  return with_formulas(z, [&](const auto& f) -> Candidates {
    using Formulas = std::decay_t<decltype(f)>;
    ChipArrays<typename Formulas::Number> values(chips);
    ChipArrays<typename Formulas::Index> indices(chips);
    const auto base_of = [&](std::int64_t chip) {
      return z.torus().block(static_cast<int>(chip), z.layout().axes('V')) * width;
    };
    ChipGroups groups = reading({&z}, threads);
    groups.split(base_of);
    groups.for_each(threads, [&](std::int64_t chip) {
      const auto c = static_cast<std::size_t>(chip);
      const std::int64_t base = base_of(chip);
      const std::int64_t ids = V > 0 ? std::clamp<std::int64_t>(V - base, 0, width) : width;
      for (std::int64_t i = 0; i < rows; ++i) {
        const auto best = ids > 0 ? f.best_of_block(numbers_of(f, z, chip) + i * width, ids, base)
                                  : f.no_candidate();
        values[c].push_back(best.first);
        indices[c].push_back(best.second);
      }
    });
    groups.share(values);
    groups.share(indices);
    return {{z.torus(), layout, shape, f.data(std::move(values), FieldSort::candidate)},
            {z.torus(), layout, shape, f.data(std::move(indices), FieldSort::index)}};
  });
}

Sharded argmax(const Sharded& value, const Sharded& index, Threads& threads, std::int64_t width,
               std::int64_t V) {
  const Shape& local = value.local();
  const std::int64_t blocks = V > 0 && width > 0 ? (V + width - 1) / width : local[1];
  return with_formulas(value, [&](const auto& f) -> Sharded {
    using Index = typename std::decay_t<decltype(f)>::Index;
    ChipArrays<Index> tokens(static_cast<std::size_t>(value.torus().chips()));
    const ChipGroups groups = reading({&value, &index}, threads);
    groups.for_each(threads, [&](std::int64_t chip) {
      const Index* const ids = f.indices(index)[static_cast<std::size_t>(chip)].data();
      for (std::int64_t i = 0; i < local[0]; ++i)
        tokens[static_cast<std::size_t>(chip)].push_back(f.best_of_candidates(
            numbers_of(f, value, chip) + i * local[1], ids + i * local[1], blocks, width));
    });
    groups.share(tokens);
    return {value.torus(),
            without_dim(value.layout(), 1),
            {value.shape()[0]},
            f.data(std::move(tokens), FieldSort::token)};
  });
}

}  // namespace shardproof
