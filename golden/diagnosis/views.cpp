// Elements in other places because a gathered buffer is read in another shape, and sums in which
// chips add what belongs to different rows.
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <set>
#include <vector>

#include "golden/diagnosis/detail/contraction.h"
#include "golden/diagnosis/detail/edits.h"
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

/// The dims that count rows: those of tokens before any other.
std::vector<std::size_t> row_dims(const Question& q) {
  std::vector<std::size_t> dims;
  for (const char letter : {'L', 'B'})
    for (std::size_t d = 0; d < q.rank(); ++d)
      if (letter_of(q, d) == letter && q.shape()[d] > 1) dims.push_back(d);
  return dims;
}

class UnlikeRows : Trial {
 public:
  UnlikeRows(const Question& q, Search& search, const Row& row, const Contraction& sum)
      : Trial(q, search), row_(row), sum_(sum) {}

  void run() {
    for (const Axes& list : q_.lists())
      for (std::size_t t = 0; t < sum_.terms.size(); ++t)
        for (const char letter : sum_.terms[t].letters) {
          const auto block = std::make_shared<const std::vector<int>>(
              blocks_of(sum_.terms[t], letter, q_.torus().size(list)));
          if (block->empty()) continue;
          for (const std::size_t dim : row_dims(q_)) try_rows(list, t, letter, block, dim);
        }
  }

 private:
  /// By how many rows a block's partial sums are off.
  using Off = std::function<std::int64_t(int block)>;

  void try_rows(const Axes& list, std::size_t term, char letter,
                const std::shared_ptr<const std::vector<int>>& block, std::size_t dim) {
    const int n = q_.torus().size(list);
    const std::string cut = fmt::format("{}_{}", letter, list.to_string());
    const auto tried = [&](const std::string& words, int parameters, const Off& off) {
      if (search_.explained_everywhere()) return;
      Candidate c = candidate(row_, cut, words, letter_of(q_, dim));
      c.parameters = parameters;
      c.axes = list.to_string();
      c.at = q_.logical([this, n, term, block, dim, off](std::size_t g) {
        return sum(g, n, term, *block, dim, off);
      });
      search_.consider(std::move(c));
    };
    for (std::int64_t by = 1; by < q_.shape()[dim]; ++by) {
      const auto words = [&](const std::string& which) { return fmt::format("{} {}", which, by); };
      const int p = static_cast<int>(10 * by);
      tried(words("the second half of the blocks are off by"), p,
            [=](int r) { return 2 * r >= n ? by : 0; });
      if (n > 2) {
        tried(words("every other block are off by"), p + 1,
              [=](int r) { return r % 2 == 1 ? by : 0; });
        tried(words("block r are off by r times"), p + 2, [=](int r) { return r * by; });
        for (int of = 0; of < n; ++of)
          tried(words(fmt::format("block {} are off by", of)), p + 3 + of,
                [=](int r) { return r == of ? by : 0; });
      }
    }
  }

  bounds::FunctionValue sum(std::size_t g, int n, std::size_t term, const std::vector<int>& block,
                            std::size_t dim, const Off& off) const {
    const std::size_t inner = inner_of(q_.shape(), dim), extent = at(q_.shape()[dim]),
                      own = g / inner % extent;
    bounds::FunctionValue total;
    for (int r = 0; r < n; ++r) {
      const auto rows = static_cast<std::int64_t>(extent);
      const std::size_t from = at(((static_cast<std::int64_t>(own) - off(r)) % rows + rows) % rows);
      total = plus(total,
                   sum_.partial_sum(g - own * inner + from * inner, term, block, r, q_.declared()),
                   q_.declared());
    }
    for (std::size_t t = 0; t < sum_.terms.size(); ++t)
      if (t != term)
        total =
            plus(total,
                 sum_.partial_sum(g, t, std::vector<int>(sum_.terms[t].width, 0), 0, q_.declared()),
                 q_.declared());
    for (const Contraction::Bias& bias : sum_.biases)
      total = plus(total, {bias.values[sum_.column_of(sum_.terms[0], g)], 0.0, 0.0}, q_.declared());
    return total;
  }

  const Row& row_;
  const Contraction& sum_;
};

}  // namespace

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
  const bool of_weights = std::all_of(sum->terms.begin(), sum->terms.end(),
                                      [](const auto& term) { return term.places != nullptr; });
  if (of_weights && sum->scales.empty()) UnlikeRows(q, search, row, *sum).run();
}

}  // namespace shardproof::diagnosis
