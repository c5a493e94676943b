// Faults of the multiplicity of partial sums, and of the chips that they are summed over.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <memory>

#include "golden/diagnosis/detail/chips.h"
#include "golden/diagnosis/detail/contraction.h"
#include "golden/diagnosis/detail/edits.h"
#include "golden/diagnosis/detail/fit.h"
#include "golden/diagnosis/detail/trial.h"
#include "weights/base/detail/index.h"
#include "weights/base/detail/stable_sort.h"

namespace shardproof::diagnosis {
namespace {

/// A contraction whose terms are cut over axes: all of them, or only one.
struct Cut {
  struct Part {
    char letter = 0;
    Axes axes;               ///< empty: the term is not cut
    std::vector<int> block;  ///< per contracted index
  };
  std::vector<Part> parts;  ///< per term
  Site site = Site::unknown;

  bool whole() const {
    return std::none_of(parts.begin(), parts.end(), [](const Part& p) { return p.axes.empty(); });
  }
  Axes axes() const { return parts[0].axes.empty() ? parts.back().axes : parts[0].axes; }
  /// Returns "E_xy" or "H_yz, F_zy".
  std::string to_string() const {
    std::string text;
    for (const Part& p : parts)
      if (!p.axes.empty())
        text += fmt::format("{}{}_{}", text.empty() ? "" : ", ", p.letter, p.axes.to_string());
    return text;
  }
};

class Sums : Trial {
 public:
  Sums(const Question& q, Search& search, std::shared_ptr<const Contraction> c)
      : Trial(q, search), sum_(std::move(c)) {}

  void run() {
    const std::vector<std::shared_ptr<const Cut>> cuts = all_cuts();
    for (const auto& cut : cuts) {
      // Cuts that the layouts leave no room for are tried only if nothing else explains the value.
      if (cut->site == Site::none && search_.explained_everywhere()) break;
      try_counts(cut);
      if (!q_.whole()) try_other_axes(cut);
    }
  }

  void fit() {
    for (const auto& cut : all_cuts()) fit_counts(cut);
  }

 private:
  /// Returns how often block r counts on a chip, 0 to n; both are indices over some axes.
  using Count = std::function<int(int own, int r)>;

  std::vector<std::shared_ptr<const Cut>> all_cuts() const {
    std::vector<std::shared_ptr<const Cut>> cuts;
    const auto part = [&](std::size_t t, std::size_t letter, const Axes& axes) -> Cut::Part {
      const Contraction::Term& term = sum_->terms[t];
      if (axes.empty() || letter >= term.letters.size()) return {};
      Cut::Part p{term.letters[letter], axes, {}};
      p.block = blocks_of(term, p.letter, q_.torus().size(axes));
      return p.block.empty() ? Cut::Part{} : p;
    };
    const auto add = [&](std::vector<Cut::Part> parts) {
      const Site site = site_of(parts);
      if (std::any_of(parts.begin(), parts.end(),
                      [](const Cut::Part& p) { return !p.axes.empty(); }))
        cuts.push_back(std::make_shared<const Cut>(Cut{std::move(parts), site}));
    };
    for (const Axes& list : q_.lists()) {
      if (sum_->terms.size() == 1) {
        for (std::size_t l = 0; l < sum_->terms[0].letters.size(); ++l) add({part(0, l, list)});
        continue;
      }
      for (std::size_t l = 0; l < sum_->terms[0].letters.size(); ++l) {
        const Cut::Part first = part(0, l, list);
        if (first.axes.empty()) continue;
        for (const Axes& other : q_.lists())
          if (other.sorted() == list.sorted())
            if (const Cut::Part second = part(1, 0, other); !second.axes.empty())
              add({first, second});
        add({first, {}});
      }
      add({{}, part(1, 0, list)});
    }
    stable_sort(cuts, [](const auto& a, const auto& b) { return a->site < b->site; });
    return cuts;
  }

  /// An operand that is cut over more axes than these may have been gathered before.
  Site site_of(const std::vector<Cut::Part>& parts) const {
    Site site = Site::declared;
    for (std::size_t t = 0; t < parts.size(); ++t)
      for (const char letter : sum_->terms[t].letters) {
        const std::optional<Axes> declared = q_.declared_axes_of(sum_->terms[t].id, letter);
        const Axes cut = parts[t].letter == letter ? parts[t].axes : Axes();
        if (!declared)
          site = std::max(site, Site::unknown);
        else if (*declared != cut)
          site = std::max(site, declared->starts_with(cut) && (parts.size() == 1 || !cut.empty())
                                    ? Site::unknown
                                    : Site::none);
      }
    return site;
  }

  /// blocks[t][r]: the block over some axes that block r of part t is in.
  using Blocks = std::vector<std::vector<int>>;

  Blocks blocks_over(const Cut& cut, const Axes& over) const {
    Blocks all(cut.parts.size());
    for (std::size_t t = 0; t < all.size(); ++t) {
      const Axes& axes = cut.parts[t].axes;
      for (int r = 0; !axes.empty() && r < q_.torus().size(axes); ++r)
        all[t].push_back(q_.torus().block(with_block(q_.torus(), 0, axes, r), over));
    }
    return all;
  }

  static Contraction::Counts counts(const Cut& cut, const Blocks& blocks, int own,
                                    const Count& count) {
    Contraction::Counts all;
    for (std::size_t t = 0; t < cut.parts.size(); ++t) {
      std::vector<int> of;
      for (const int block : blocks[t]) of.push_back(count(own, block));
      all.of_blocks.push_back(std::move(of));
      all.block.push_back(&cut.parts[t].block);
    }
    return all;
  }

  /// Computes the counts once per chip: predictions are evaluated chip by chip.
  Prediction predicted(std::shared_ptr<const Cut> cut,
                       std::function<Contraction::Counts(int)> of) const {
    struct Last {
      int chip = -1;
      Contraction::Counts counts;
    };
    return [this_ = &q_, sum = sum_, cut = std::move(cut), of = std::move(of),
            last = std::make_shared<Last>()](int chip, std::size_t local) {
      if (last->chip != chip) *last = {chip, of(chip)};
      return sum->at(this_->global(chip, local), last->counts, this_->declared());
    };
  }

  /// `blocks`: those of the cut over `over`.
  void consider(const std::shared_ptr<const Cut>& cut, const Axes& over,
                const std::shared_ptr<const Blocks>& blocks, std::string_view fault,
                const std::string& detail, int parameters, const Count& count) {
    const int longer = cut->axes().size() * 1000;
    search_.consider({.fault = fault,
                      .detail = fmt::format("{}, of {}", detail, cut->to_string()),
                      .parameters = longer + parameters,
                      .axes = over.sorted().to_string(),
                      .at = predicted(cut,
                                      [&q = q_, cut, over, blocks, count](int chip) {
                                        return counts(*cut, *blocks, q.torus().block(chip, over),
                                                      count);
                                      }),
                      .site = cut->site});
  }

  void try_counts(const std::shared_ptr<const Cut>& cut) {
    for (const Axes& set : q_.sets()) {
      if (!cut->axes().has_all(set)) continue;
      // Blocks over a subset of the axes, in the order of the cut.
      const Axes over = cut->axes().without(cut->axes().without(set));
      const auto blocks = std::make_shared<const Blocks>(blocks_over(*cut, over));
      const int n = q_.torus().size(over);
      const std::string along = words_of(over);
      if (!q_.whole())
        consider(cut, over, blocks, "reduction missing",
                 fmt::format("over {}: each chip holds its own partial sum", along), 0,
                 [](int own, int r) { return own == r ? 1 : 0; });
      for (int k = 0; k < n; ++k) {
        const std::string which = fmt::format("block {} of {} over {}", k, n, along);
        // If both chips hold the same one of two blocks, the other block was left out.
        if (n > 2 || q_.whole())
          consider(cut, over, blocks, "reduction missing", "holds the partial sum of " + which,
                   100 + k, [k](int, int r) { return r == k ? 1 : 0; });
        consider(cut, over, blocks, "partial sum missing", which + " is left out", 100 + k,
                 [k](int, int r) { return r == k ? 0 : 1; });
        consider(cut, over, blocks, "partial sum twice", which + " is counted twice", 100 + k,
                 [k](int, int r) { return r == k ? 2 : 1; });
        if (q_.whole()) continue;
        const std::string from = k == 0 ? std::string("a chip's own partial sum")
                                        : fmt::format("the partial sum of the chip {} further", k);
        consider(cut, over, blocks, "partial sum missing",
                 fmt::format("{} is left out over {}", from, along), 50 + k,
                 [k, n](int own, int r) { return r == (own + k) % n ? 0 : 1; });
        consider(cut, over, blocks, "partial sum twice",
                 fmt::format("{} is counted twice over {}", from, along), 50 + k,
                 [k, n](int own, int r) { return r == (own + k) % n ? 2 : 1; });
        if (k > 0)
          consider(cut, over, blocks, "reduction missing",
                   fmt::format("over {}: each chip holds {}", along, from), 50 + k,
                   [k, n](int own, int r) { return r == (own + k) % n ? 1 : 0; });
      }
      // Only if all terms are cut; otherwise a term is not added once, which is another fault.
      if (cut->whole())
        consider(cut, over, blocks, "reduction twice",
                 fmt::format("summed over {} once more, but biases are not", along), 1,
                 [n](int, int) { return n; });
    }
  }

  /// Sums, or reduce_scatters, over axes other than those that the partial sums lie along.
  void try_other_axes(const std::shared_ptr<const Cut>& cut) {
    const Axes right = cut->axes();
    const int n = q_.torus().size(right);
    const Blocks blocks = blocks_over(*cut, right);
    struct Alone {
      std::shared_ptr<const Cut> cut;             ///< to which the counts point
      std::vector<Contraction::Counts> counts{};  ///< [k]: partial sum k counts, no other does
    };
    const auto alone = std::make_shared<Alone>(Alone{cut});
    for (int k = 0; k < n; ++k)
      alone->counts.push_back(
          counts(*cut, blocks, k, [](int own, int r) { return own == r ? 1 : 0; }));
    for (const Axes& over : q_.lists()) {
      if (over.sorted() == right.sorted()) continue;
      // Summing extra replicas of the same sum is "reduction twice".
      if (over.has_all(right) && !over.without(right).has_any(q_.layout().used())) continue;
      const auto piece = [&](std::string detail, int parameters, auto&& element) {
        search_.consider(
            {.fault = "reduction over another axis",
             .detail = fmt::format("{} {} in place of {}, of {}", detail, over.to_string(),
                                   right.to_string(), cut->to_string()),
             .parameters = right.size() * 1000 + over.size() * 10 + parameters,
             .axes = right.sorted().to_string(),
             .at =
                 [&q = q_, c = sum_, alone, over, right, element](int chip, std::size_t local) {
                   bounds::FunctionValue sum;
                   for (int r = 0; r < q.torus().size(over); ++r) {
                     const int other = with_block(q.torus(), chip, over, r);
                     const bounds::FunctionValue partial_sum =
                         c->at(element(chip, other, local),
                               alone->counts[at(q.torus().block(other, right))], q.declared());
                     sum = r == 0 ? partial_sum : plus(sum, partial_sum, q.declared());
                   }
                   return sum;
                 },
             .site = cut->site});
      };
      if (over == over.sorted())
        piece("summed over", 0,
              [&q = q_](int, int other, std::size_t local) { return q.global(other, local); });
      for (std::size_t d = 0; d < q_.rank(); ++d) {
        // Axes that the reduce_scatter added to dim d.
        const Axes scattered =
            last_axes(significant(q_.layout().dims()[d].axes, q_.torus()), right);
        if (scattered.empty()) continue;
        if (over == over.sorted())
          piece("summed, and then scattered as it should be, over", 1,
                [&q = q_, scattered](int chip, int other, std::size_t local) {
                  const int own = q.torus().block(chip, scattered);
                  return q.global(with_block(q.torus(), other, scattered, own), local);
                });
        if (q_.torus().size(over) != n) continue;
        // The chip's piece is chosen by its index over the wrong axes.
        piece("summed and scattered over", 2,
              [&q = q_, scattered, over](int chip, int other, std::size_t local) {
                const int own = q.torus().block(chip, over);
                return q.global(with_block(q.torus(), other, scattered, own), local);
              });
      }
    }
  }

  /// Returns the last of a dim's axes if they are `these` in any order; otherwise none.
  static Axes last_axes(const Axes& of, const Axes& these) {
    Axes last = of;
    while (last.size() > these.size()) last = last.without(Axes().with(*last.begin()));
    return last.sorted() == these.sorted() ? last : Axes();
  }

  void fit_counts(const std::shared_ptr<const Cut>& cut) {
    std::vector<Contraction::Counts> found;
    std::size_t unknowns = 0;
    for (const Cut::Part& p : cut->parts)
      unknowns += p.axes.empty() ? 0 : at(q_.torus().size(p.axes));
    std::string words;
    bool missing = false;
    const Blocks blocks = blocks_over(*cut, cut->axes());
    for (int chip = 0; chip < q_.chips(); ++chip) {
      Contraction::Counts counts = this->counts(*cut, blocks, 0, [](int, int) { return 1; });
      if (!q_.right(chip)) {
        // Fits only differences: terms that are not cut are right.
        const auto weights = fitted_counts(
            q_, {chip}, unknowns, 4 * unknowns, [&](std::size_t g, std::vector<double>& row) {
              for (std::size_t t = 0; t < cut->parts.size(); ++t)
                for (int r = 0; r < std::ssize(counts.of_blocks[t]); ++r)
                  row.push_back(
                      sum_->partial_sum(g, t, cut->parts[t].block, r, q_.declared()).center);
              return sum_->scales.empty() ? 1.0 : sum_->scales[g % sum_->columns];
            });
        if (!weights) return;
        std::size_t next = 0;
        for (std::vector<int>& of : counts.of_blocks)
          for (int& w : of) w += (*weights)[next++];
        for (const std::vector<int>& of : counts.of_blocks)
          missing = missing || std::find(of.begin(), of.end(), 0) != of.end();
        if (words.size() < 120)
          words += fmt::format("; chip {} counts {}", q_.torus().name(chip),
                               fmt::join(counts.of_blocks[0], ","));
      }
      found.push_back(std::move(counts));
    }
    search_.consider(
        {.fault = missing ? "partial sum missing" : "partial sum twice",
         .detail =
             fmt::format("partial sums over {} are not counted once{}", cut->to_string(), words),
         .parameters = cut->axes().size() * 1000 + 500,
         .axes = cut->axes().sorted().to_string(),
         .at = predicted(cut, [found = std::move(found)](int chip) { return found[at(chip)]; }),
         .site = cut->site,
         .fitted = true});
  }

  std::shared_ptr<const Contraction> sum_;
};

/// Returns whether an extra sum over these axes is possible: the first sum's, or replicas'.
Site site_of_sum(const Question& q, const Contraction& c, const Axes& set) {
  Axes summed, used = q.layout().used();
  bool known = true;
  for (const Contraction::Term& term : c.terms)
    for (const char letter : term.letters) {
      const std::optional<Axes> axes = q.declared_axes_of(term.id, letter);
      known = known && axes.has_value();
      for (const Axis a : axes.value_or(Axes()))
        if (!summed.has(a)) summed = summed.with(a);
    }
  if (!known) return Site::unknown;
  if (summed.has_all(set)) return Site::declared;
  return used.has_any(set) ? Site::none : Site::unknown;
}

}  // namespace

void try_sums(const Question& q, Search& search, const Row&) {
  const std::shared_ptr<const Contraction> c = contraction_of(q);
  for (const Axes& set : q.sets()) {
    const int n = q.torus().size(set);
    // A sum over chips that hold different blocks is not a multiple of the value.
    if (set.has_any(q.layout().used()) && !q.layout().used().has_all(set)) continue;
    search.consider(
        {.fault = "reduction twice",
         .detail = fmt::format("summed over {} once more: {} times the value", words_of(set), n),
         .parameters = set.size() * 10 + (q.layout().used().has_any(set) ? 5 : 0),
         .axes = set.to_string(),
         .at = q.logical([&q, n](std::size_t g) { return times(q.expected_at(g), n); }),
         .site = site_of_sum(q, *c, set)});
  }
  Sums(q, search, c).run();
}

void try_fitted_sums(const Question& q, Search& search, const Row&) {
  Sums(q, search, contraction_of(q)).fit();
}

}  // namespace shardproof::diagnosis
