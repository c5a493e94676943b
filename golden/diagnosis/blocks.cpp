// Faults of which block of the right value a chip holds, and of the order of pieces within it.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <numeric>

#include "golden/compare/block_map.h"
#include "golden/diagnosis/detail/chips.h"
#include "golden/diagnosis/detail/edits.h"
#include "golden/diagnosis/detail/orders.h"
#include "golden/diagnosis/detail/trial.h"
#include "weights/base/detail/index.h"

namespace shardproof::diagnosis {
namespace {

/// Predicts that each chip holds the right shard of chip from(chip), as declared.
template <class From>
Prediction from_chip(const Question& q, From&& from) {
  std::vector<int> source;
  for (int chip = 0; chip < q.chips(); ++chip) source.push_back(from(chip));
  return [&q, source = std::move(source)](int chip, std::size_t local) {
    return q.expected_at(q.global(source[at(chip)], local));
  };
}

/// Predicts that an element of a chip is what belongs at a flat index of the logical tensor.
template <class Place>
Prediction from_place(const Question& q, Place place) {
  return [&q, place](int chip, std::size_t local) { return q.expected_at(place(chip, local)); };
}

/// Cuts over the same axes in another order, or over other axes of the same sizes.
class OtherLayouts : Trial {
 public:
  OtherLayouts(const Question& q, Search& search) : Trial(q, search), axes_(q.rank()) {
    choose(0, Axes());
  }

 private:
  void choose(std::size_t dim, const Axes& taken) {
    if (dim == q_.rank()) return propose();
    const int blocks = q_.torus().size(q_.layout().dims()[dim].axes);
    if (blocks == 1) {
      axes_[dim] = Axes();
      return choose(dim + 1, taken);
    }
    for (const Axes& list : q_.lists())
      if (!list.has_any(taken) && q_.torus().size(list) == blocks) {
        axes_[dim] = list;
        choose(dim + 1, taken.with(list));
      }
  }

  void propose() {
    Axes changed;
    const auto note = [&](const Axes& axes, const Axes& others) {
      int i = 0;
      for (const Axis a : axes) {
        const bool same = i < others.size() && *(others.begin() + i) == a;
        if (!same && q_.torus().size(a) > 1 && !changed.has(a)) changed = changed.with(a);
        ++i;
      }
    };
    for (std::size_t d = 0; d < q_.rank(); ++d) {
      const Axes declared = significant(q_.layout().dims()[d].axes, q_.torus());
      note(axes_[d], declared);
      note(declared, axes_[d]);
    }
    if (changed.empty()) return;
    std::vector<Layout::Dim> dims = q_.layout().dims();
    for (std::size_t d = 0; d < q_.rank(); ++d) dims[d].axes = axes_[d];
    const Layout held(std::move(dims), Axes());
    std::vector<Index> offsets;
    for (int chip = 0; chip < q_.chips(); ++chip) offsets.push_back(q_.offset(held, chip));
    search_.consider(
        {.fault = "axes in another order",
         .detail = fmt::format("holds {}; declared {}", held.to_string(), q_.layout().to_string()),
         .parameters = changed.size(),
         .axes = changed.sorted().to_string(),
         .at = from_place(q_,
                          [&q = q_, offsets](int chip, std::size_t i) {
                            return q.flat(q.index(i), offsets[at(chip)]);
                          }),
         .together = changed.sorted()});
  }

  std::vector<Axes> axes_;
};

/// Returns for each block which one is in its place, by which ones possible[p][r] leaves; empty if
/// it leaves some place none, or each its own.
std::vector<int> held_by(const std::vector<std::vector<bool>>& possible) {
  std::vector<int> held;
  bool moved = false;
  for (std::size_t p = 0; p < possible.size(); ++p) {
    const auto& of = possible[p];
    const auto found = std::find(of.begin(), of.end(), true);
    if (found == of.end()) return {};
    // Prefers the block's own index: blocks may be equal.
    held.push_back(static_cast<int>(of[p] ? std::ptrdiff_t(p) : found - of.begin()));
    moved = moved || held.back() != static_cast<int>(p);
  }
  return moved ? held : std::vector<int>();
}

/// Returns whether the blocks over axes are those that chips have by another order of these axes.
bool of_axes_in_another_order(const Question& q, const Axes& list, const std::vector<int>& held) {
  const Torus& torus = q.torus();
  return std::any_of(q.lists().begin(), q.lists().end(), [&](const Axes& other) {
    if (other == list || other.sorted() != list.sorted()) return false;
    for (int chip = 0; chip < torus.chips(); ++chip)
      if (held[at(torus.block(chip, list))] != torus.block(chip, other)) return false;
    return true;
  });
}

/// Returns, for each block over axes of a cut, which one all wrong chips hold in its place.
std::vector<int> blocks_held(const Question& q, const Axes& list) {
  const int n = q.torus().size(list);
  std::vector<std::vector<bool>> possible(at(n), std::vector<bool>(at(n), true));
  for (int chip = 0; chip < q.chips(); ++chip)
    for (int r = 0; r < n && !q.right(chip); ++r) {
      const int other = with_block(q.torus(), chip, list, r);
      auto of = possible[at(q.torus().block(chip, list))].begin() + r;
      for (std::size_t i = 0; i < q.elements() && *of; ++i)
        *of = q.fits(chip, i, q.expected_at(q.global(other, i)));
    }
  return held_by(possible);
}

/// Reorders the blocks of a dim cut over the layout's axes; each chip has one block.
void try_rings_of_blocks(const Question& q, Search& search) {
  for (const Axes& list : q.lists()) {
    const int n = q.torus().size(list);
    const bool of_a_dim = std::any_of(
        q.layout().dims().begin(), q.layout().dims().end(),
        [&](const Layout::Dim& d) { return d.axes.has_all(list) && is_sublist(list, d.axes); });
    if (!of_a_dim) continue;
    const auto attempt = [&](const std::string& words, int parameters, auto&& of) {
      search.consider({.fault = "chunks in another order",
                       .detail = fmt::format("the blocks over {} are {}", list.to_string(), words),
                       .parameters = list.size() * 100 + parameters,
                       .axes = list.sorted().to_string(),
                       .at = from_chip(q,
                                       [&](int chip) {
                                         return with_block(q.torus(), chip, list,
                                                           of(q.torus().block(chip, list)));
                                       }),
                       .together = list.sorted()});
    };
    for (const Order& order : orders(n))
      attempt(order.words, order.k, [&](int own) { return order.index(0, own, n, order.k); });
    if (const std::vector<int> held = blocks_held(q, list);
        !held.empty() && is_permutation(held) && !of_axes_in_another_order(q, list, held))
      attempt(fmt::format("{}", fmt::join(held, ",")), n + 1,
              [&](int own) { return held[at(own)]; });
  }
}

/// Returns, for each of n chunks of a dim, which chunk it holds on all wrong chips; empty if some
/// chunk holds none, or if each holds its own.
std::vector<int> chunks_held(const Question& q, std::size_t d, int n) {
  const std::int64_t length = q.local_shape()[d] / n;
  std::vector<std::vector<bool>> possible(at(n), std::vector<bool>(at(n), true));
  for (int chip = 0; chip < q.chips(); ++chip) {
    if (q.right(chip)) continue;
    const Index begin = q.offset(chip);
    for (std::size_t local = 0; local < q.elements(); ++local) {
      Index i = q.index(local);
      auto& of = possible[at(i[d] / length)];
      const std::int64_t within = i[d] % length;
      for (int r = 0; r < n; ++r) {
        i[d] = r * length + within;
        if (!of[at(r)] || q.fits(chip, local, q.expected_at(q.flat(i, begin)))) continue;
        of[at(r)] = false;
        if (std::find(of.begin(), of.end(), true) == of.end()) return {};
      }
    }
  }
  return held_by(possible);
}

/// Returns whether the dump declares operands that are cut over these axes in this order.
Site site_of_cut(const Question& q, char letter, const Axes& axes) {
  Site site = Site::unknown;
  for (const std::string& operand : q.operands())
    if (const auto declared = q.declared_axes_of(operand, letter); declared && !declared->empty()) {
      if (*declared == axes) return Site::declared;
      if (declared->sorted() == axes.sorted()) site = Site::none;
    }
  return site;
}

/// Describes chunks cut over `cut` that are gathered as if they were cut over `by`.
std::string gathered_words(const Question& q, char letter, const Axes& by, const Axes& cut) {
  std::string words = fmt::format("{0} is gathered as {0}_{1}; right is {0}_{2}", letter,
                                  by.to_string(), cut.to_string());
  // If the two orders are each other's inverse, as for axes of equal size, they are
  // indistinguishable.
  bool inverse = true;
  for (int p = 0; p < q.torus().size(by); ++p)
    inverse = inverse && q.torus().block(with_block(q.torus(), 0, by, p), cut) ==
                             q.torus().block(with_block(q.torus(), 0, cut, p), by);
  if (inverse && site_of_cut(q, letter, cut) != Site::declared) words += ", or the other way round";
  return words;
}

/// Reorders the chunks of a gathered dim, all of which each chip holds.
void try_gathered_chunks(const Question& q, Search& search) {
  for (std::size_t d = 0; d < q.rank(); ++d)
    for (const Axes& list : q.lists()) {
      const int n = q.torus().size(list);
      // `list` may share axes with the cuts of other dims: chunks may come from chips that hold
      // other blocks of those dims.
      if (list.has_any(q.layout().dims()[d].axes) || q.local_shape()[d] % n != 0) continue;
      const std::int64_t length = q.local_shape()[d] / n;
      const auto chunk = [&](Candidate candidate, auto of) {
        candidate.axes = list.sorted().to_string();
        candidate.at = [&q, d, length, of](int chip, std::size_t local) {
          Index i = q.index(local);
          const int from = of(chip, static_cast<int>(i[d] / length));
          if (from < 0) return bounds::FunctionValue{};
          i[d] = from * length + i[d] % length;
          return q.expected_at(q.flat(i, q.offset(chip)));
        };
        search.consider(std::move(candidate));
      };
      const char letter = q.layout().dims()[d].letter;
      for (const Axes& other : q.lists())
        if (other != list && other.sorted() == list.sorted())
          chunk({.fault = "axes in another order",
                 .detail = gathered_words(q, letter, list, other),
                 .parameters = list.size(),
                 .site = site_of_cut(q, letter, other)},
                [&q, list, other](int, int p) {
                  return q.torus().block(with_block(q.torus(), 0, list, p), other);
                });
      const std::string where =
          fmt::format("the chunks of {} over {} are ", letter, list.to_string());
      const char *const reordered = "chunks in another order", *const other =
                                                                   "another chip's block";
      const int size = list.size() * 100;
      for (const Order& order : orders(n))
        chunk({reordered, where + order.words, size + order.k},
              [n, order](int, int p) { return order.index(0, p, n, order.k); });
      if (letter != 'L' && letter != 'M' && list == list.sorted())
        if (const std::vector<int> held = chunks_held(q, d, n); !held.empty()) {
          const bool moved = is_permutation(held);
          // A permutation of single heads is left to the order of heads.
          if (moved && (letter == 'H' || letter == 'K') && length == 1) continue;
          chunk({moved ? reordered : other, fmt::format("{}{}", where, fmt::join(held, ",")),
                 size + n + 1},
                [held](int, int p) { return held[at(p)]; });
        }
      if (q.whole()) continue;
      const auto own = [&q, list](int chip) { return q.torus().block(chip, list); };
      chunk({reordered, where + "with the ring's sign changed, from a chip's own on", size + n},
            [n, own](int chip, int p) { return (2 * own(chip) - p + n) % n; });
      chunk({reordered, where + "in the order in which a ring brings them, up", size + n},
            [n, own](int chip, int p) { return (own(chip) + p) % n; });
      chunk({reordered, where + "in the order in which a ring brings them, down", size + n},
            [n, own](int chip, int p) { return (own(chip) - p + n) % n; });
      chunk({other, where + "all the chip's own", size},
            [own](int chip, int) { return own(chip); });
      chunk({other, where + "zero but for the chip's own", size + 1},
            [own](int chip, int p) { return p == own(chip) ? p : -1; });
    }
}

/// A dim dealt to the chips round-robin instead of cut into blocks.
void try_round_robin(const Question& q, Search& search) {
  for (std::size_t d = 0; d < q.rank(); ++d) {
    const char letter = q.layout().dims()[d].letter;
    if (letter == 'H' || letter == 'K') continue;  // left to the order of heads
    const Axes axes = significant(q.layout().dims()[d].axes, q.torus());
    for (const Axes& list : q.lists()) {
      // A whole value may have been cut over any axes.
      if (q.whole() ? list != list.sorted() : list != axes) continue;
      const std::int64_t n = q.torus().size(list), extent = q.shape()[d];
      const std::int64_t length = (extent + n - 1) / n;
      for (std::int64_t piece = 1; piece < length; ++piece) {
        if (length % piece != 0) continue;
        search.consider(
            {.fault = "chunks in another order",
             .detail = fmt::format("{} is dealt round-robin over {}, {} at a time, not in blocks",
                                   letter, list.to_string(), piece),
             .parameters = list.size() * 100 + static_cast<int>(piece),
             .axes = list.sorted().to_string(),
             .at = [&q, d, n, length, piece, extent](int chip, std::size_t local) {
               Index i = q.index(local);
               const Index begin = q.offset(chip);
               for (std::size_t e = 0; e < q.rank(); ++e) i[e] += begin[e];
               const std::int64_t owner = i[d] / length, place = i[d] % length;
               i[d] = (place / piece * n + owner) * piece + place % piece;
               // Padding follows the last element.
               if (i[d] >= extent) return bounds::FunctionValue{0.0, bounds::kInfinity, 0.0};
               return q.expected_at(q.flat(i));
             }});
      }
    }
  }
}

/// All chips of a group hold the block of one; or each wrong chip any block that fits.
void try_other_chips(const Question& q, Search& search) {
  const Axes used = q.layout().used();
  for (const Axes& set : q.sets()) {
    if (!used.has_all(set)) continue;
    for (int r = 0; r < q.torus().size(set); ++r)
      search.consider(
          {.fault = "another chip's block",
           .detail = fmt::format("along {} all chips hold block {}", words_of(set), r),
           .parameters = set.size() * 1000 + r,
           .axes = set.to_string(),
           .at = from_chip(q, [&](int chip) { return with_block(q.torus(), chip, set, r); })});
  }
  if (search.explained_everywhere() || q.chips() == 1) return;
  std::vector<int> source;
  std::string holders;
  int others = 0;
  Axes axes;
  for (int chip = 0; chip < q.chips(); ++chip) {
    source.push_back(chip);
    if (q.right(chip)) continue;
    int from = -1;
    for (int other = 0; other < q.chips() && from < 0; ++other) {
      bool all = true;
      bool any = false;
      for (std::size_t i = 0; i < q.elements() && all; ++i) {
        const bounds::FunctionValue there = q.expected_at(q.global(other, i));
        any = any || (!q.padded(chip, i) && !open(there));
        all = q.fits(chip, i, there);
      }
      if (all && any) from = other;
    }
    if (from < 0) return;
    source.back() = from;
    if (others++ < 3)
      holders += fmt::format("{}{} holds that of {}", holders.empty() ? "" : ", ",
                             q.torus().name(chip), q.torus().name(from));
    axes = axes.with(axes_between(q.torus(), chip, from, used).without(axes));
  }
  if (others > 3) holders += fmt::format(", and {} more", others - 3);
  search.consider({.fault = "another chip's block",
                   .detail = holders,
                   .parameters = 10000,
                   .axes = axes.sorted().to_string(),
                   .at = from_chip(q, [&](int chip) { return source[at(chip)]; })});
}

}  // namespace

void try_blocks(const Question& q, Search& search, const Row&) {
  if (!q.whole()) {
    const OtherLayouts tried(q, search);
    try_rings_of_blocks(q, search);
  }
  try_gathered_chunks(q, search);
  try_round_robin(q, search);
  if (!q.whole()) try_other_chips(q, search);
}

}  // namespace shardproof::diagnosis
