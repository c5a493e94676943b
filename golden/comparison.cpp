#include "golden/comparison.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <span>
#include <vector>

namespace shardproof {
namespace {

class Comparer {
 public:
  Comparer(const Expected& expected, const Layout& declared, const Sharded& value)
      : expected_(expected),
        layout_(declared),
        value_(value),
        local_(judged_block(declared, value.shape(), value.torus())) {}

  Comparison run() {
    if (value_.holds_partial()) return partial();
    return value_.holds_integers() ? complete(value_.i32()) : complete(value_.f32());
  }

 private:
  /// Calls see(local element, global element) for each element of the chip's block, in its order,
  /// until it returns true; whether it did.
  template <class See>
  bool each(int chip, See&& see) const {
    const std::int64_t count = element_count(local_);
    const Shape offset = judged_offset(layout_, value_.shape(), value_.torus(), chip);
    Shape index(local_.size(), 0);
    for (std::int64_t i = 0; i < count; ++i) {
      std::int64_t global = 0;
      for (std::size_t d = 0; d < index.size(); ++d)
        global = global * value_.shape()[d] + offset[d] + index[d];
      if (see(i, global)) return true;
      for (std::size_t d = index.size(); d-- > 0 && ++index[d] == local_[d];) index[d] = 0;
    }
    return false;
  }

  std::uint32_t wanted(std::int64_t global) const {
    return expected_.bits[static_cast<std::size_t>(global)];
  }

  /// The chips in groups of `size`, one group behind the other: each holds a block, alone or, of
  /// partial sums, as a sum.
  struct Groups {
    std::vector<int> chips;
    std::size_t size = 1;

    std::size_t count() const { return chips.size() / size; }
    std::span<const int> at(std::size_t group) const {
      return std::span(chips).subspan(group * size, size);
    }
  };

  /// Compares each group's block. holds(group) is what reads it: called with a local element and
  /// what it must be, it returns what it is. Where something differs, all is read, for the reach.
  template <class SizeOf, class Holds>
  Comparison compare(const Groups& groups, SizeOf&& size_of, Holds&& holds) {
    Comparison result;
    const auto count = static_cast<std::size_t>(element_count(local_));
    for (int chip : groups.chips)
      if (size_of(chip) != count) {
        Difference found;
        found.chip = value_.torus().name(chip);
        found.expected = fmt::format("{} elements on the chip", count);
        found.actual = fmt::format("{}", size_of(chip));
        result.difference = found;
        return result;
      }
    for (std::size_t g = 0; g < groups.count() && !result.difference; ++g) {
      auto held = holds(groups.at(g));
      each(groups.at(g).front(), [&](std::int64_t i, std::int64_t global) {
        ++result.elements;
        const std::uint32_t want = wanted(global);
        const std::uint32_t got = held(i, want);
        if (got != want) result.difference = difference(groups.at(g).front(), global, got);
        return got != want;
      });
    }
    if (!result.difference) return result;
    ReachMeter meter(value_.torus(), value_.shape(), expected_.integer);
    for (std::size_t g = 0; g < groups.count(); ++g) {
      auto held = holds(groups.at(g));
      each(groups.at(g).front(), [&](std::int64_t i, std::int64_t global) {
        meter.see(groups.at(g), global, wanted(global), held(i, wanted(global)));
        return false;
      });
    }
    result.difference->reach = meter.finish();
    return result;
  }

  template <class T>
  Comparison complete(const ChipArrays<T>& chips) {
    Groups alone;
    for (int chip = 0; chip < value_.torus().chips(); ++chip) alone.chips.push_back(chip);
    return compare(
        alone, [&](int chip) { return chips[static_cast<std::size_t>(chip)].size(); },
        [&](std::span<const int> chip) {
          const T* const data = chips[static_cast<std::size_t>(chip.front())].data();
          return [data](std::int64_t i, std::uint32_t) {
            return std::bit_cast<std::uint32_t>(data[i]);
          };
        });
  }

  /// A partial is its exact sum over the partial axes: of every element by value and bound, and of
  /// a few in each group by the origins too, which a later step may need.
  Comparison partial() {
    const Partial& partial = value_.partial();
    Groups sums;
    for (int chip = 0; chip < value_.torus().chips(); ++chip) {
      const std::vector<int> members = group(chip);
      if (members.front() != chip) continue;  // counted with its group's first chip
      sums.size = members.size();
      sums.chips.insert(sums.chips.end(), members.begin(), members.end());
    }
    const std::int64_t step = std::max<std::int64_t>(1, element_count(local_) / 4);
    return compare(
        sums, [&](int chip) { return partial.values[static_cast<std::size_t>(chip)].size(); },
        [&partial, step](std::span<const int> members) {
          std::vector<Element> sum;
          for (int member : members) sum.push_back({member, 0});
          return [&partial, step, sum](std::int64_t i, std::uint32_t want) mutable {
            for (Element& e : sum) e.index = i;
            const auto rounded = std::bit_cast<std::uint32_t>(partial.rounded_sum(sum));
            if (rounded != want || i % step != 0) return rounded;
            return std::bit_cast<std::uint32_t>(partial.sum_of_origins(sum));
          };
        });
  }

  /// The chips whose partial shards sum up to what `chip` stands for, lowest number first.
  std::vector<int> group(int chip) const {
    const std::array<int, 3> mine = judged_coordinates(value_.torus(), chip);
    std::vector<int> members;
    for (int other = 0; other < value_.torus().chips(); ++other) {
      const std::array<int, 3> theirs = judged_coordinates(value_.torus(), other);
      bool same = true;
      for (Axis a : {Axis::x, Axis::y, Axis::z}) {
        const auto at = static_cast<std::size_t>(a);
        same = same && (layout_.partial().has(a) || theirs[at] == mine[at]);
      }
      if (same) members.push_back(other);
    }
    return members;
  }

  Difference difference(int chip, std::int64_t global, std::uint32_t got) const {
    Difference found;
    found.chip = value_.torus().name(chip);
    found.index.assign(value_.shape().size(), 0);
    std::int64_t rest = global;
    for (std::size_t d = found.index.size(); d-- > 0; rest /= value_.shape()[d])
      found.index[d] = rest % value_.shape()[d];
    found.expected = element_text(wanted(global), expected_.integer);
    found.actual = element_text(got, expected_.integer);
    return found;
  }

  const Expected& expected_;
  const Layout& layout_;
  const Sharded& value_;
  Shape local_;
};

}  // namespace

Comparison compare(const Expected& expected, const Layout& declared, const Sharded& value) {
  return Comparer(expected, declared, value).run();
}

}  // namespace shardproof
