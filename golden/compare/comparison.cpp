#include "golden/compare/comparison.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <bit>
#include <span>

#include "golden/compare/block_map.h"

namespace shardproof {
namespace {

class Comparer {
 public:
  Comparer(const ExpectedBits& expected, const Layout& declared, const Sharded& value)
      : expected_(expected), layout_(declared), value_(value) {
    const bool integer = std::holds_alternative<ChipArrays<std::int32_t>>(value.data());
    for (Axis a : declared.partial())
      if (!value.holds_partial()) parts_ *= value.torus().size(a);
    const std::int64_t count = element_count(value.shape()) * parts_;
    if (!judged_divides(declared, value.shape(), value.torus()) || integer != expected.integer ||
        static_cast<std::int64_t>(expected.bits.size()) != count)
      throw Error("compare_c1",
                  fmt::format("{} expected {} elements cannot be compared with {} of shape [{}] in "
                              "{} parts as {}",
                              expected.bits.size(), expected.integer ? "int32" : "f32",
                              integer ? "int32" : "f32", fmt::join(value.shape(), ","), parts_,
                              declared.to_string()));
    block_ = element_count(judged_block(declared, value.shape(), value.torus()));
  }

  Comparison run() const {
    if (value_.holds_partial()) return summed();
    return expected_.integer ? held(value_.i32()) : held(value_.f32());
  }

 private:
  /// The chips in groups of `size`, one group after the other: each holds a block, alone or, of
  /// exact partial sums, as a sum.
  struct Groups {
    std::vector<int> chips;
    std::size_t size = 1;

    std::size_t count() const { return chips.size() / size; }
    std::span<const int> at(std::size_t group) const {
      return std::span(chips).subspan(group * size, size);
    }
  };

  /// Calls see(element, what it must be, what the group holds) for each element of a group's block,
  /// elements counted through all parts, until it returns true.
  template <class Holds, class See>
  void each(std::span<const int> group, Holds&& holds, See&& see) const {
    const int chip = group.front();
    const std::int64_t part =
        parts_ == 1 ? 0 : static_cast<std::int64_t>(judged_part(layout_, value_.torus(), chip));
    const std::int64_t first = part * element_count(value_.shape());
    auto held = holds(group);
    judged_elements(layout_, value_.shape(), value_.torus(), chip,
                    [&](std::int64_t local, std::int64_t global) {
                      const std::int64_t element = first + global;
                      const std::uint32_t want = expected_.bits[static_cast<std::size_t>(element)];
                      return see(element, want, held(local, want));
                    });
  }

  /// Compares each group's block. holds(group) is what reads it: called with a local element and
  /// what it must be, it returns what it is. Where something differs, all is read, for the reach.
  template <class SizeOf, class Holds>
  Comparison compare(const Groups& groups, SizeOf&& size_of, Holds&& holds) const {
    Comparison result;
    for (int chip : groups.chips)
      if (static_cast<std::int64_t>(size_of(chip)) != block_) {
        result.mismatch = Mismatch{.chip = value_.torus().name(chip),
                                   .index = {},
                                   .expected = fmt::format("{} elements on the chip", block_),
                                   .actual = fmt::format("{}", size_of(chip)),
                                   .reach = {}};
        return result;
      }
    for (std::size_t g = 0; g < groups.count() && !result.mismatch; ++g)
      each(groups.at(g), holds, [&](std::int64_t element, std::uint32_t want, std::uint32_t got) {
        ++result.elements;
        if (got != want) result.mismatch = mismatch(groups.at(g).front(), element, want, got);
        return got != want;
      });
    if (!result.mismatch) return result;
    ReachMeter meter(value_.torus(), value_.shape(), expected_.integer, parts_);
    for (std::size_t g = 0; g < groups.count(); ++g)
      each(groups.at(g), holds, [&](std::int64_t element, std::uint32_t want, std::uint32_t got) {
        meter.see(groups.at(g), element, want, got);
        return false;
      });
    result.mismatch->reach = meter.finish();
    return result;
  }

  /// Each chip by what it holds.
  template <class T>
  Comparison held(const ChipArrays<T>& chips) const {
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

  /// Exact partial sums by their sum: of every element by value and bound, and of a few in each
  /// group by the origins too, which a later step may need.
  Comparison summed() const {
    const Partial& partial = value_.partial();
    Groups sums;
    for (int chip = 0; chip < value_.torus().chips(); ++chip) {
      const std::vector<int> members = judged_group(layout_, value_.torus(), chip);
      if (members.front() != chip) continue;  // counted with its group's first chip
      sums.size = members.size();
      sums.chips.insert(sums.chips.end(), members.begin(), members.end());
    }
    const std::int64_t step = std::max<std::int64_t>(1, block_ / 4);
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

  Mismatch mismatch(int chip, std::int64_t element, std::uint32_t want, std::uint32_t got) const {
    return {.chip = value_.torus().name(chip),
            .index = global_index(value_.shape(), element),
            .expected = element_text(want, expected_.integer),
            .actual = element_text(got, expected_.integer),
            .reach = {}};
  }

  const ExpectedBits& expected_;
  const Layout& layout_;
  const Sharded& value_;
  std::int64_t parts_ = 1;
  std::int64_t block_ = 0;  // elements of a chip's
};

}  // namespace

Comparison compare(const ExpectedBits& expected, const Layout& declared, const Sharded& value) {
  return Comparer(expected, declared, value).run();
}

}  // namespace shardproof
