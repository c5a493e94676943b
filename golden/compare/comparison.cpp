#include "golden/compare/comparison.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <numeric>
#include <span>
#include <type_traits>

#include "golden/compare/block_map.h"
#include "golden/compare/readers.h"

namespace shardproof {
namespace {

/// Elements that one thread reads at a time; below twice that, the calling thread reads all.
constexpr std::int64_t kAtATime = 1 << 14;

/// Word is std::uint32_t, an element's bits, or FieldElement.
template <class Word>
class Comparer {
 public:
  Comparer(const Words<Word>& expected, const ExpectedBits& of, const Layout& declared,
           const Sharded& value, Threads& threads)
      : expected_(expected),
        integer_(of.integer),
        padding_(of.padding),
        layout_(declared),
        value_(value),
        blocks_(checked(declared, value)),
        threads_(threads) {}

  Comparison run() const {
    if constexpr (std::is_same_v<Word, FieldElement>) {
      if (layout_.is_partial()) return compare(sums(), SummedNumbers{value_.field()});
      return compare(alone(), HeldShards<FieldElement, Word>{value_.field().values});
    } else {
      if (value_.holds_partial())
        return compare(sums(), SummedShards{value_.partial(), blocks_.elements()});
      if (integer_) return compare(alone(), HeldShards<std::int32_t, Word>{value_.i32()});
      return compare(alone(), HeldShards<float, Word>{value_.f32()});
    }
  }

 private:
  static const char* kind(bool integer, bool of_field) {
    return of_field ? "field" : integer ? "int32" : "f32";
  }

  JudgedBlocks checked(const Layout& declared, const Sharded& value) {
    const bool integer = value.is_integral();
    for (Axis a : declared.partial())
      if (!value.holds_partial() && !value.holds_field()) parts_ *= value.torus().size(a);
    const std::int64_t count = element_count(value.shape()) * parts_;
    if (!judged_divides(declared, value.shape(), value.torus()) || integer != integer_ ||
        value.holds_field() != std::is_same_v<Word, FieldElement> ||
        static_cast<std::int64_t>(expected_.size()) != count ||
        (!padding_.empty() && std::ssize(padding_) * parts_ != count))
      throw Error("compare_c1",
                  fmt::format("{} expected {} elements cannot be compared with {} of shape [{}] in "
                              "{} parts as {}",
                              expected_.size(), kind(integer_, std::is_same_v<Word, FieldElement>),
                              kind(integer, value.holds_field()), fmt::join(value.shape(), ","),
                              parts_, declared.to_string()));
    return {declared, value.shape(), value.torus()};
  }

  /// The chips in groups of `size`, concatenated: each group holds a block, as a single chip or,
  /// for exact partial sums, as a total.
  struct Groups {
    std::vector<int> chips;
    std::size_t size = 1;

    std::size_t count() const { return chips.size() / size; }
    std::span<const int> at(std::size_t group) const {
      return std::span(chips).subspan(group * size, size);
    }
  };

  Groups alone() const {
    Groups groups;
    groups.chips.reserve(static_cast<std::size_t>(value_.torus().chips()));
    for (int chip = 0; chip < value_.torus().chips(); ++chip) groups.chips.push_back(chip);
    return groups;
  }

  Groups sums() const {
    Groups groups;
    for (Axis a : layout_.partial())
      groups.size *= static_cast<std::size_t>(value_.torus().size(a));
    const auto chips = static_cast<std::size_t>(value_.torus().chips());
    groups.chips.resize(chips);
    std::vector<std::size_t> next(
        chips);  // for each group's first chip: where its next member goes
    std::size_t begun = 0;
    for (int chip = 0; chip < value_.torus().chips(); ++chip) {
      const auto first = static_cast<std::size_t>(judged_first(layout_, value_.torus(), chip));
      if (first == static_cast<std::size_t>(chip)) next[first] = groups.size * begun++;
      groups.chips[next[first]++] = chip;
    }
    return groups;
  }

  /// The block that a group must hold, in one of the expected tensors.
  struct Block {
    std::int64_t first;   ///< index of its first element in that tensor
    std::int64_t before;  ///< elements of the tensors before that

    bool operator==(const Block&) const = default;
  };
  Block block_of(std::span<const int> group) const {
    const int chip = group.front();
    const std::int64_t part =
        parts_ == 1 ? 0 : static_cast<std::int64_t>(judged_part(layout_, value_.torus(), chip));
    return {blocks_.first(chip), part * element_count(value_.shape())};
  }

  /// Calls see(local element, element, n) for all compared elements of a block from local element
  /// `from` to `to`, in pieces of n adjacent ones, until it returns true. `element` counts through
  /// all parts.
  template <class See>
  void each_piece(const Block& block, std::int64_t from, std::int64_t to, See&& see) const {
    const std::int64_t run = blocks_.run();
    std::int64_t in_run = from % run;
    for (auto r = static_cast<std::size_t>(from / run); from < to; ++r, in_run = 0) {
      const std::int64_t n = std::min(run - in_run, to - from);
      const std::int64_t global = block.first + blocks_.runs()[r] + in_run;
      if (padding_.empty()) {
        if (see(from, block.before + global, n)) return;
      } else {
        const auto left_out = [&](std::int64_t i) {
          return padding_[static_cast<std::size_t>(global + i)];
        };
        for (std::int64_t begin = 0; begin < n;) {
          std::int64_t end = begin;
          while (end < n && !left_out(end)) ++end;
          if (end > begin && see(from + begin, block.before + global + begin, end - begin)) return;
          for (begin = end; begin < n && left_out(begin);) ++begin;
        }
      }
      from += n;
    }
  }

  /// Returns, for each group, the first group that reads the same memory for the same block, as
  /// identify() tells, not because the layout makes them replicas.
  template <class Shards>
  std::vector<std::size_t> leads(const Groups& groups, const Shards& shards) const {
    std::vector<std::uintptr_t> marks;
    marks.reserve(2 * groups.count());
    for (std::size_t g = 0; g < groups.count(); ++g) {
      const Block block = block_of(groups.at(g));
      marks.push_back(static_cast<std::uintptr_t>(block.before + block.first));
      shards.identify(groups.at(g), marks);
    }
    const std::size_t each = marks.size() / std::max<std::size_t>(groups.count(), 1);
    const auto of = [&](std::size_t g) { return std::span(marks).subspan(g * each, each); };
    std::vector<std::size_t> order(groups.count()), lead(groups.count());
    std::iota(order.begin(), order.end(), 0);
    std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
      const auto [x, y] = std::ranges::mismatch(of(a), of(b));
      return x == of(a).end() ? a < b : *x < *y;
    });
    for (std::size_t i = 0; i < order.size(); ++i)
      lead[order[i]] = i > 0 && std::ranges::equal(of(order[i - 1]), of(order[i]))
                           ? lead[order[i - 1]]
                           : order[i];
    return lead;
  }

  /// A part of a group's block, read by one thread, and the result.
  struct Stretch {
    std::size_t group;
    std::int64_t from, to;
    bool apart = false;         ///< another group reads the memory; only look_apart() is left
    std::int64_t elements = 0;  ///< compared, up to the first wrong one
    std::int64_t local = -1;    ///< local and global index of the wrong one
    std::int64_t element = -1;
  };

  template <class Shards>
  void read(const Groups& groups, const Shards& shards, Stretch& stretch) const {
    const std::span<const int> group = groups.at(stretch.group);
    typename Shards::Reader reader(shards, group);
    each_piece(block_of(group), stretch.from, stretch.to,
               [&](std::int64_t local, std::int64_t element, std::int64_t n) {
                 const std::byte* const want = expected_.from(static_cast<std::size_t>(element));
                 std::int64_t right = n;
                 if constexpr (Shards::kApart)
                   right = stretch.apart ? reader.look_apart(local, want, n)
                                         : reader.wrong(local, want, n);
                 else
                   right = reader.wrong(local, want, n);
                 stretch.elements += std::min(right + 1, n);
                 if (right == n) return false;
                 stretch.local = local + right;
                 stretch.element = element + right;
                 return true;
               });
  }

  /// Compares each group's block. If something differs, all is read, to measure the reach.
  template <class Shards>
  Comparison compare(const Groups& groups, const Shards& shards) const {
    Comparison result;
    for (int chip : groups.chips)
      if (static_cast<std::int64_t>(shards.size(chip)) != blocks_.elements()) {
        result.mismatch =
            Mismatch{.chip = value_.torus().name(chip),
                     .index = {},
                     .expected = fmt::format("{} elements on the chip", blocks_.elements()),
                     .actual = fmt::format("{}", shards.size(chip)),
                     .reach = {}};
        return result;
      }
    const std::vector<std::size_t> lead = leads(groups, shards);
    std::vector<Stretch> stretches;
    for (std::size_t g = 0; g < groups.count(); ++g) {
      for (std::int64_t from = 0; lead[g] == g && from < blocks_.elements(); from += kAtATime)
        stretches.push_back({g, from, std::min(from + kAtATime, blocks_.elements())});
      if (Shards::kApart && lead[g] != g) stretches.push_back({g, 0, blocks_.elements(), true});
    }
    const std::int64_t read_in_all = std::accumulate(
        stretches.begin(), stretches.end(), std::int64_t{0},
        [](std::int64_t sum, const Stretch& s) { return sum + (s.apart ? 0 : s.to - s.from); });
    (read_in_all < 2 * kAtATime ? calling_thread() : threads_)
        .for_each(std::ssize(stretches), [&](std::int64_t i) {
          read(groups, shards, stretches[static_cast<std::size_t>(i)]);
        });

    // Report the first in ascending order, whichever thread finished first.
    std::vector<std::int64_t> compared(groups.count(), 0);
    const auto wrong = std::ranges::find_if(stretches, [&](const Stretch& s) {
      compared[s.group] += s.elements;
      return s.local >= 0;
    });
    const std::size_t last = wrong == stretches.end() ? groups.count() : wrong->group + 1;
    for (std::size_t g = 0; g < last; ++g)
      result.elements += compared[Shards::kApart ? g : lead[g]];
    if (wrong == stretches.end()) return result;
    const std::span<const int> group = groups.at(wrong->group);
    const Word want = expected_[static_cast<std::size_t>(wrong->element)];
    result.mismatch = {.chip = value_.torus().name(group.front()),
                       .index = global_index(value_.shape(), wrong->element),
                       .expected = element_text(want, integer_),
                       .actual = element_text(
                           typename Shards::Reader(shards, group).at(wrong->local, want), integer_),
                       .reach = reach(groups, shards)};
    return result;
  }

  template <class Shards>
  Reach reach(const Groups& groups, const Shards& shards) const {
    ReachMeter<Word> meter(value_.torus(), value_.shape(), integer_, parts_);
    for (std::size_t g = 0; g < groups.count(); ++g) {
      typename Shards::Reader reader(shards, groups.at(g));
      each_piece(block_of(groups.at(g)), 0, blocks_.elements(),
                 [&](std::int64_t local, std::int64_t element, std::int64_t n) {
                   for (std::int64_t i = 0; i < n; ++i) {
                     const Word want = expected_[static_cast<std::size_t>(element + i)];
                     meter.see(groups.at(g), element + i, want, reader.at(local + i, want));
                   }
                   return false;
                 });
    }
    return meter.finish();
  }

  const Words<Word>& expected_;
  bool integer_;
  const std::vector<bool>& padding_;
  const Layout& layout_;
  const Sharded& value_;
  std::int64_t parts_ = 1;
  JudgedBlocks blocks_;
  Threads& threads_;
};

}  // namespace

Comparison compare(const ExpectedBits& expected, const Layout& declared, const Sharded& value,
                   Threads& threads) {
  if (value.holds_field())
    return Comparer<FieldElement>(expected.numbers, expected, declared, value, threads).run();
  return Comparer<std::uint32_t>(expected.bits, expected, declared, value, threads).run();
}

}  // namespace shardproof
