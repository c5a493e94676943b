#include "golden/corpus/detail/explained.h"

#include <fmt/format.h>

#include <bit>

#include "golden/compare/assembled.h"
#include "golden/corpus/detail/collectives.h"
#include "golden/corpus/detail/layouts.h"
#include "golden/corpus/detail/operand.h"
#include "golden/corpus/detail/stacked.h"
#include "golden/diagnosis/detail/chips.h"

namespace shardproof::corpus {
namespace {

using diagnosis::Hypothesis;
using dump::DumpedValue;

/// Returns true if the chips hold these shards; elements that the file lacks match anything.
template <class T>
bool holds(const DumpedValue& dumped, const std::vector<T>& shards) {
  const std::size_t block = shards.size() / dumped.shards.size();
  for (std::size_t chip = 0; chip < dumped.shards.size(); ++chip)
    for (std::size_t i = 0; i < dumped.shards[chip].size(); ++i)
      if (i >= block ||
          std::bit_cast<std::uint64_t>(dumped.shards[chip][i]) !=
              std::bit_cast<std::uint64_t>(static_cast<double>(shards[chip * block + i])))
        return false;
  return true;
}

Hypothesis explanation(std::string fault, std::string detail, const Axes& axes) {
  return {std::move(fault), std::move(detail), axes.to_string(), true, 0.0};
}

/// Returns the layout without axes of one chip, which neither shard nor sum anything.
Layout significant(const Layout& layout, const Torus& torus) {
  std::vector<Layout::Dim> dims = layout.dims();
  for (Layout::Dim& dim : dims) dim.axes = diagnosis::significant(dim.axes, torus);
  return {std::move(dims), diagnosis::significant(layout.partial(), torus)};
}

/// Returns every other layout of these dims with the same local shape.
std::vector<Layout> others_like(const Layout& layout, const Shape& shape, const Torus& torus) {
  const Shape block = judged_block(layout, shape, torus);
  const std::vector<Axes> lists = ordered_axes();
  std::vector<Layout> made{layout}, others;
  for (std::size_t d = 0; d < layout.rank(); ++d) made[0] = made[0].with_axes(d, Axes());
  for (std::size_t d = 0; d < layout.rank(); ++d) {
    std::vector<Layout> next;
    for (const Layout& before : made)
      for (const Axes& axes : lists)
        if (block[d] * torus.size(axes) == shape[d] && !before.used().has_any(axes) &&
            diagnosis::significant(axes, torus) == axes)
          next.push_back(before.with_axes(d, axes));
    made = std::move(next);
  }
  for (Layout& other : made)
    if (!(other == significant(layout, torus))) others.push_back(std::move(other));
  return others;
}

/// Returns "x=1, z=0": the coordinates on the partial axes of the chips with this partial sum.
std::string place_of(const Layout& layout, const Torus& torus, std::size_t part) {
  for (int chip = 0; chip < torus.chips(); ++chip)
    if (judged_part(layout, torus, chip) == part) {
      std::string text;
      for (const Axis axis : layout.partial())
        text += fmt::format("{}{}={}", text.empty() ? "" : ", ", to_char(axis),
                            torus.coordinate(chip, axis));
      return text;
    }
  return "";
}

void explain_layout(const std::vector<double>& whole, const DumpedValue& dumped,
                    std::vector<Hypothesis>& found) {
  for (const Layout& other : others_like(dumped.layout, dumped.subject.shape, dumped.torus))
    if (holds(dumped, stacked<double>(
                          other, dumped.subject.shape,
                          dumped.torus, [&](int) -> const auto& { return whole; })))
      found.push_back(explanation(
          "axes in another order",
          fmt::format("it holds {}, not {}", other.to_string(), dumped.layout.to_string()),
          other.used()));
}

void explain_sums(const Operand& operand, const DumpedValue& dumped,
                  std::vector<Hypothesis>& found) {
  const Torus& torus = dumped.torus;
  const Layout& result = dumped.layout;
  const Counts right = counts_keeping(result.partial(), operand.layout, torus);
  const auto would_hold = [&](const Counts& counts) {
    return holds(dumped, result_of(operand, result, torus, counts));
  };
  // Reductions over other axes count only partial sums that agree with the chip along the axes left
  // out. The one over no axes comes first: with few chips a smaller sum can give the same result.
  const Axes partial = diagnosis::significant(operand.layout.partial(), torus);
  std::vector<Axes> lists{partial};
  for (const Axes& list : ordered_axes())
    if (list == list.sorted() && partial.has_all(list) && !(list == partial)) lists.push_back(list);
  for (const Axes& left : lists) {
    if (left == diagnosis::significant(result.partial(), torus)) continue;
    const Counts counts = counts_keeping(left, operand.layout, torus);
    if (!would_hold(counts)) continue;
    const Axes summed = partial.without(left);
    found.push_back(
        summed.empty()
            ? explanation("reduction missing", "each chip holds its own partial sum", left)
            : explanation("reduction over another axis",
                          fmt::format("it is the sum over {}", summed.to_string()), summed));
  }
  for (std::size_t other = 0; other < operand.parts.size(); ++other)
    for (const int count : {0, 2}) {
      const Counts counts = [&, other, count](int chip, std::size_t part) {
        return right(chip, part) * (part == other ? count : 1);
      };
      if (would_hold(counts))
        found.push_back(explanation(
            count == 0 ? "partial sum missing" : "partial sum twice",
            fmt::format("that of the chips with {}", place_of(operand.layout, torus, other)),
            operand.layout.partial()));
    }
}

}  // namespace

std::vector<Hypothesis> explained(const dump::Dump& golden, const DumpedValue& dumped) {
  std::vector<Hypothesis> found;
  const dump::Value& value = golden.values.find(dumped.name)->second;
  if (!dumped.layout.is_partial()) {
    const std::size_t block = value.whole.size() / static_cast<std::size_t>(dumped.torus.chips());
    const std::vector<double> whole =
        assembled<double>(dumped.layout, dumped.subject.shape, dumped.torus, [&](int chip) {
          std::vector<double> shard(block);
          for (std::size_t i = 0; i < block; ++i)
            shard[i] = value.whole.at(static_cast<std::size_t>(chip) * block + i);
          return shard;
        });
    explain_layout(whole, dumped, found);
  }
  const std::string given = dumped.name + std::string(kOperandSuffix);
  if (const auto operand = golden.values.find(given); operand != golden.values.end()) {
    const Operand read = read_operand(given, operand->second, dumped.torus);
    if (read.layout.is_partial()) explain_sums(read, dumped, found);
    std::vector<float> shards;
    for (const Buffer<float>& shard : read.shards)
      shards.insert(shards.end(), shard.begin(), shard.end());
    if (found.empty() && holds(dumped, shards))
      found.push_back(explanation("collective missing", "it holds its operand", Axes()));
  }
  return found;
}

}  // namespace shardproof::corpus
