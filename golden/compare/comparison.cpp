#include "golden/compare/comparison.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <bit>
#include <span>
#include <type_traits>

#include "golden/compare/block_map.h"

namespace shardproof {
namespace {

/// Word is std::uint32_t, an element's bits, or FieldElement.
template <class Word>
class Comparer {
 public:
  Comparer(const std::vector<Word>& expected, const ExpectedBits& of, const Layout& declared,
           const Sharded& value)
      : expected_(expected),
        integer_(of.integer),
        padding_(of.padding),
        layout_(declared),
        value_(value) {
    const bool integer = value.stands_for_integers();
    for (Axis a : declared.partial())
      if (!value.holds_partial() && !value.holds_field()) parts_ *= value.torus().size(a);
    const std::int64_t count = element_count(value.shape()) * parts_;
    if (!judged_divides(declared, value.shape(), value.torus()) || integer != integer_ ||
        value.holds_field() != std::is_same_v<Word, FieldElement> ||
        static_cast<std::int64_t>(expected.size()) != count ||
        (!padding_.empty() && std::ssize(padding_) * parts_ != count))
      throw Error("compare_c1",
                  fmt::format("{} expected {} elements cannot be compared with {} of shape [{}] in "
                              "{} parts as {}",
                              expected.size(), kind(integer_, std::is_same_v<Word, FieldElement>),
                              kind(integer, value.holds_field()), fmt::join(value.shape(), ","),
                              parts_, declared.to_string()));
    block_ = element_count(judged_block(declared, value.shape(), value.torus()));
  }

  Comparison run() const {
    if constexpr (std::is_same_v<Word, FieldElement>) {
      return layout_.is_partial() ? summed_numbers() : held(value_.field().values);
    } else {
      if (value_.holds_partial()) return summed();
      return integer_ ? held(value_.i32()) : held(value_.f32());
    }
  }

 private:
  static const char* kind(bool integer, bool of_field) {
    return of_field ? "field" : integer ? "int32" : "f32";
  }

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
                      if (!padding_.empty() && padding_[static_cast<std::size_t>(global)])
                        return false;
                      const std::int64_t element = first + global;
                      const Word& want = expected_[static_cast<std::size_t>(element)];
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
      each(groups.at(g), holds, [&](std::int64_t element, const Word& want, const Word& got) {
        ++result.elements;
        if (got != want) result.mismatch = mismatch(groups.at(g).front(), element, want, got);
        return got != want;
      });
    if (!result.mismatch) return result;
    ReachMeter<Word> meter(value_.torus(), value_.shape(), integer_, parts_);
    for (std::size_t g = 0; g < groups.count(); ++g)
      each(groups.at(g), holds, [&](std::int64_t element, const Word& want, const Word& got) {
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
          return [data](std::int64_t i, const Word&) { return std::bit_cast<Word>(data[i]); };
        });
  }

  Groups summed_groups() const {
    Groups sums;
    for (int chip = 0; chip < value_.torus().chips(); ++chip) {
      const std::vector<int> members = judged_group(layout_, value_.torus(), chip);
      if (members.front() != chip) continue;  // counted with its group's first chip
      sums.size = members.size();
      sums.chips.insert(sums.chips.end(), members.begin(), members.end());
    }
    return sums;
  }

  /// Partial sums of the field regime by their sum; one that is no number makes none.
  Comparison summed_numbers() const {
    const auto& chips = value_.field().values;
    const std::uint64_t p = value_.field().field->p();
    return compare(
        summed_groups(), [&](int chip) { return chips[static_cast<std::size_t>(chip)].size(); },
        [&chips, p](std::span<const int> members) {
          return [&chips, p, members](std::int64_t i, const Word&) {
            FieldElement sum{};
            for (const int member : members) {
              const auto& of_chip = chips[static_cast<std::size_t>(member)];
              const FieldElement& v = of_chip[static_cast<std::size_t>(i)];
              for (std::size_t lane = 0; lane < sum.lane.size(); ++lane) {
                if (v.lane[lane] >= p) return v;
                sum.lane[lane] = (sum.lane[lane] + v.lane[lane]) % p;
              }
            }
            return sum;
          };
        });
  }

  /// Exact partial sums by their sum: of every element by value and bound, and of a few in each
  /// group by the origins too, which a later step may need.
  Comparison summed() const {
    const Partial& partial = value_.partial();
    const Groups sums = summed_groups();
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

  Mismatch mismatch(int chip, std::int64_t element, const Word& want, const Word& got) const {
    return {.chip = value_.torus().name(chip),
            .index = global_index(value_.shape(), element),
            .expected = element_text(want, integer_),
            .actual = element_text(got, integer_),
            .reach = {}};
  }

  const std::vector<Word>& expected_;
  bool integer_;
  const std::vector<bool>& padding_;
  const Layout& layout_;
  const Sharded& value_;
  std::int64_t parts_ = 1;
  std::int64_t block_ = 0;  // elements of a chip's
};

}  // namespace

Comparison compare(const ExpectedBits& expected, const Layout& declared, const Sharded& value) {
  if (value.holds_field())
    return Comparer<FieldElement>(expected.numbers, expected, declared, value).run();
  return Comparer<std::uint32_t>(expected.bits, expected, declared, value).run();
}

}  // namespace shardproof
