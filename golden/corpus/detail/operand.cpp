#include "golden/corpus/detail/operand.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>

#include "golden/corpus/detail/stacked.h"
#include "golden/trace/value/same_bits.h"

namespace shardproof::corpus {
namespace {

using dump::same_bits;

[[noreturn]] void refuse(const std::string& name, std::string_view why) {
  throw Error("golden_operand", fmt::format("{}: {}", name, why));
}

/// Below 2^24 every sum of whole numbers is exact in f32, in any order.
void require_exact_sums(const std::string& name, const std::vector<std::vector<float>>& parts) {
  for (std::size_t i = 0; i < parts[0].size(); ++i) {
    double sizes = 0.0;
    for (const std::vector<float>& part : parts) {
      const auto v = static_cast<double>(part[i]);
      if (v != std::floor(v)) refuse(name, "a partial sum is not a whole number");
      sizes += std::abs(v);
    }
    if (!(sizes < 0x1p24)) refuse(name, "partial sums whose sums f32 cannot hold");
  }
}

}  // namespace

Operand read_operand(const std::string& name, const dump::Value& value, const Torus& torus) {
  const auto layout = value.attributes.find("layout");
  if (layout == value.attributes.end()) refuse(name, "no layout");
  Operand operand;
  operand.layout = Layout::parse(layout->second);
  const dump::StoredArray& stored = value.whole;
  const std::size_t rank = operand.layout.rank();
  const Shape local(stored.shape.begin() + std::min<std::ptrdiff_t>(3, std::ssize(stored.shape)),
                    stored.shape.end());
  if (value.in_shards() || stored.encoding != NumberFormat::f32 || local.size() != rank ||
      stored.shape != stacked_shape(torus, local))
    refuse(name, "not f32, stacked over x, y, z");
  for (std::size_t d = 0; d < rank; ++d)
    operand.shape.push_back(local[d] * torus.size(operand.layout.dims()[d].axes));
  const auto block = static_cast<std::size_t>(element_count(local));
  operand.parts.resize(static_cast<std::size_t>(torus.size(operand.layout.partial())));
  std::vector<std::vector<bool>> known(operand.parts.size());
  for (int chip = 0; chip < torus.chips(); ++chip) {
    operand.shards.push_back({});
    Buffer<float>& shard = operand.shards.back();
    for (std::size_t i = 0; i < block; ++i) {
      shard.push_back(static_cast<float>(stored.at(static_cast<std::size_t>(chip) * block + i)));
      if (!std::isfinite(shard.back())) refuse(name, "an element that is not finite");
    }
    const std::size_t number = judged_part(operand.layout, torus, chip);
    std::vector<float>& part = operand.parts[number];
    part.resize(static_cast<std::size_t>(element_count(operand.shape)));
    known[number].resize(part.size());
    judged_elements(operand.layout, operand.shape, torus, chip,
                    [&](std::int64_t mine, std::int64_t global) {
                      const auto g = static_cast<std::size_t>(global);
                      const float own = shard[static_cast<std::size_t>(mine)];
                      if (known[number][g] && !same_bits(part[g], own))
                        refuse(name, "copies on several chips differ");
                      part[g] = own;
                      known[number][g] = true;
                      return false;
                    });
  }
  if (operand.layout.is_partial()) require_exact_sums(name, operand.parts);
  return operand;
}

Counts counts_keeping(const Axes& kept, const Layout& operand, const Torus& torus) {
  return [=](int chip, std::size_t part) {
    const std::array<int, 3> mine = judged_coordinates(torus, chip);
    // Decode the partial sum's coordinates on the partial axes, z the fastest.
    const std::array<Axis, 3> axes{Axis::z, Axis::y, Axis::x};
    for (const Axis axis : axes) {
      if (!operand.partial().has(axis)) continue;
      const auto size = static_cast<std::size_t>(torus.size(axis));
      const bool same =
          part % size == static_cast<std::size_t>(mine[static_cast<std::size_t>(axis)]);
      if (kept.has(axis) && !same) return 0;
      part /= size;
    }
    return 1;
  };
}

std::vector<float> result_of(const Operand& operand, const Layout& result, const Torus& torus,
                             const Counts& counts) {
  std::map<std::vector<int>, std::vector<float>> sums;
  std::vector<std::vector<int>> of_chip;
  for (int chip = 0; chip < torus.chips(); ++chip) {
    std::vector<int>& mine = of_chip.emplace_back();
    for (std::size_t part = 0; part < operand.parts.size(); ++part)
      mine.push_back(counts(chip, part));
    std::vector<float>& sum = sums[mine];
    if (!sum.empty()) continue;
    if (std::count(mine.begin(), mine.end(), 0) + 1 == std::ssize(mine) &&
        std::count(mine.begin(), mine.end(), 1) == 1) {  // only moved: keeps the bits
      sum = operand.parts[static_cast<std::size_t>(std::find(mine.begin(), mine.end(), 1) -
                                                   mine.begin())];
      continue;
    }
    sum.resize(operand.parts[0].size());
    for (std::size_t i = 0; i < sum.size(); ++i) {
      double all = 0.0;
      for (std::size_t part = 0; part < mine.size(); ++part)
        if (mine[part] != 0) all += mine[part] * static_cast<double>(operand.parts[part][i]);
      sum[i] = static_cast<float>(all);
    }
  }
  return stacked<float>(
      result, operand.shape, torus, [&](int chip) -> const auto& {
        return sums.at(of_chip[static_cast<std::size_t>(chip)]);
      });
}

}  // namespace shardproof::corpus
