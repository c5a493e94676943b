// Elements in other places because a gathered buffer is read in another shape, and sums in which
// chips add what belongs to different rows.
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <set>
#include <vector>

#include "golden/diagnosis/detail/contraction.h"
#include "golden/diagnosis/detail/edits.h"
#include "golden/diagnosis/detail/orders.h"
#include "golden/diagnosis/detail/trial.h"
#include "weights/base/detail/index.h"

namespace shardproof::diagnosis {
namespace {

/// Returns the numbers of blocks that some axes cut a dim into.
std::set<std::size_t> block_counts(const Question& q) {
  std::set<std::size_t> counts;
  for (const Axes& set : q.sets()) counts.insert(at(q.torus().size(set)));
  return counts;
}

char letter_of(const Question& q, std::size_t dim) { return q.layout().dims()[dim].letter; }

/// A contraction with one of its terms cut into n blocks along a dim.
struct CutSum {
  std::shared_ptr<const Contraction> sum;
  std::size_t term;
  int blocks;
  std::vector<int> block;  ///< per contracted index

  /// Returns an element to which each block adds what belongs elsewhere in a dim.
  bounds::FunctionValue at(const Question& q, std::size_t g, std::size_t dim,
                           const Misplaced& misplaced) const {
    const auto rows = q.shape()[dim];
    const std::size_t inner = inner_of(q.shape(), dim);
    const auto own = static_cast<std::int64_t>(g / inner) % rows;
    bounds::FunctionValue total;
    double rounded = 0.0;  // where partial sums and biases are added, as in the rows that are right
    for (int r = 0; r < blocks; ++r) {
      const std::int64_t other = (misplaced.from(own, r) % rows + rows) % rows;
      const std::size_t element = g - shardproof::at(own) * inner + shardproof::at(other) * inner;
      total = plus(total, sum->partial_sum(element, term, block, r, q.declared()), q.declared());
      rounded = std::max(rounded, q.expected().radius[element]);
    }
    for (std::size_t t = 0; t < sum->terms.size(); ++t)
      if (t != term)
        total =
            plus(total,
                 sum->partial_sum(g, t, std::vector<int>(sum->terms[t].width, 0), 0, q.declared()),
                 q.declared());
    for (const Contraction::Bias& bias : sum->biases)
      total = plus(total, {bias.values[sum->column_of(sum->terms[0], g)], 0.0, 0.0}, q.declared());
    total.radius += rounded;
    return total;
  }
};

}  // namespace

std::vector<Misplaced> misplaced_blocks(char letter, std::int64_t extent, int n) {
  std::vector<Misplaced> all;
  if (extent % n == 0)
    all.push_back({fmt::format("are each of its own block of {}", letter), 0,
                   [w = extent / n](std::int64_t own, int r) { return own % w + r * w; }});
  if (letter != 'L' && letter != 'B') return all;
  for (std::int64_t by = 1; by < extent; ++by) {
    const auto off = [&](const std::string& blocks, int parameters, auto&& rows) {
      all.push_back({fmt::format("of {} off by {} along {}", blocks, by, letter),
                     static_cast<int>(10 * by) + parameters,
                     [rows](std::int64_t own, int r) { return own - rows(r); }});
    };
    off("the second half of the blocks are", 0, [=](int r) { return 2 * r >= n ? by : 0; });
    if (n == 2) continue;
    off("every other block are", 1, [=](int r) { return r % 2 == 1 ? by : 0; });
    off("block r are r times", 2, [=](int r) { return r * by; });
    for (int of = 0; of < n; ++of)
      off(fmt::format("block {} are", of), 3 + of, [=](int r) { return r == of ? by : 0; });
  }
  return all;
}

void try_views(const Question& q, Search& search, const Row& row) {
  for (const std::size_t n : block_counts(q))
    for (std::size_t d = 1; d < q.rank(); ++d) {
      const std::size_t extent = at(q.shape()[d]), inner = inner_of(q.shape(), d),
                        outer = at(element_count(q.shape())) / extent / inner;
      if (extent % n != 0 || outer == 1) continue;
      const std::size_t local = extent / n;
      Trial(q, search).try_places(candidate(row, letter_of(q, d), n), [=](std::size_t g) {
        // The buffer's dims: blocks, those before the dim, a block's own part of it, the rest.
        const std::size_t r = g / (outer * local * inner), o = g / (local * inner) % outer,
                          i = g / inner % local;
        return (o * extent + r * local + i) * inner + g % inner;
      });
    }
}

void try_unlike_rows(const Question& q, Search& search, const Row& row) {
  const std::shared_ptr<const Contraction> sum = contraction_of(q);
  for (const Contraction::Term& term : sum->terms)
    if (term.places == nullptr || !sum->scales.empty()) return;
  for (const Axes& list : q.lists())
    for (std::size_t t = 0; t < sum->terms.size(); ++t)
      for (const char letter : sum->terms[t].letters) {
        const int n = q.torus().size(list);
        const auto cut =
            std::make_shared<const CutSum>(CutSum{sum, t, n, blocks_of(sum->terms[t], letter, n)});
        for (std::size_t dim = 0; dim < q.rank(); ++dim)
          if (!cut->block.empty() && q.shape()[dim] > 1)
            for (const Misplaced& misplaced :
                 misplaced_blocks(letter_of(q, dim), q.shape()[dim], n)) {
              if (search.explained_everywhere()) return;
              Candidate c =
                  candidate(row, fmt::format("{}_{}", letter, list.to_string()), misplaced.words);
              c.parameters = misplaced.parameters;
              c.axes = list.to_string();
              c.at = q.logical([&q, cut, dim, misplaced](std::size_t g) {
                return cut->at(q, g, dim, misplaced);
              });
              search.consider(std::move(c));
            }
      }
}

}  // namespace shardproof::diagnosis
