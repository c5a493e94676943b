// Faults of which block of a weight meets which block of its operand, and of its columns.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <memory>
#include <numeric>

#include "golden/diagnosis/detail/chips.h"
#include "golden/diagnosis/detail/contraction.h"
#include "golden/diagnosis/detail/edits.h"
#include "golden/diagnosis/detail/fit.h"
#include "golden/diagnosis/detail/orders.h"
#include "golden/diagnosis/detail/trial.h"
#include "weights/base/detail/index.h"
#include "weights/model/registry.h"

namespace shardproof::diagnosis {
namespace {

using Indices = std::vector<std::size_t>;

class WeightBlocks : Trial {
 public:
  WeightBlocks(const Question& q, Search& search) : Trial(q, search), sum_(contraction_of(q)) {}

  void run() {
    if (!of_weights()) return;
    for (std::size_t t = 0; t < sum_->terms.size(); ++t)
      for (const char letter : sum_->terms[t].letters) {
        for (const Axes& list : q_.lists()) contracted(t, letter, list);
        for (const Axes& set : q_.sets()) {
          dealt_rows(t, letter, set);
          if (!q_.raw() && !q_.replay().dumped(q_.id())) exchanged_blocks(t, letter, set);
        }
        if (letter == 'H' && q_.step().graph().heads('H')) heads_of_rows(t);
      }
    for (std::size_t b = 0; b < sum_->biases.size(); ++b)
      per_column(
          sum_->biases[b].name, [b](Contraction & c) -> auto& { return c.biases[b].values; });
    if (!sum_->scale.empty())
      per_column(
          sum_->scale, [](Contraction & c) -> auto& { return c.scales; });
    // Without biases and scales a column of the weight is a column of the value.
    if (!sum_->biases.empty() || !sum_->scales.empty())
      for (std::size_t t = 0; t < sum_->terms.size(); ++t) columns_of_weight(t);
    // One chip of a group may have computed other columns than the rest.
    if (!q_.whole() && !q_.right() && !search_.explained())
      for (std::size_t t = 0; t < sum_->terms.size(); ++t)
        for (const char letter : sum_->terms[t].letters)
          for (const Axes& set : q_.sets()) columns(t, letter, set);
  }

  void run_fitted() {
    if (q_.right() || !of_weights()) return;
    for (std::size_t t = 0; t < sum_->terms.size(); ++t)
      for (const char letter : sum_->terms[t].letters)
        for (const Axes& set : q_.sets())
          if (!search_.explained()) fitted_blocks(t, letter, set);
  }

 private:
  static constexpr std::size_t kBlocks = 16;  // of as many, 256 counts are fitted

  bool of_weights() const {
    return std::all_of(sum_->terms.begin(), sum_->terms.end(),
                       [](const Contraction::Term& term) { return term.places != nullptr; });
  }

  /// Block r of a contracted dim of the operand meets block held[r] of the weight.
  void contracted(std::size_t t, char letter, const Axes& list) {
    const Contraction::Term& term = sum_->terms[t];
    const int n = q_.torus().size(list);
    const std::size_t place = term.letters.find(letter);
    if (term.extents[place] % n != 0) return;
    const auto inner = static_cast<std::int64_t>(inner_of(term.extents, place));
    const std::int64_t length = term.extents[place] / n * inner;
    const std::optional<Axes> declared = q_.declared_axes_of(term.id, letter);
    // An operand that is cut over more axes may have been gathered before.
    const bool gathered = !declared || declared->empty() || declared->starts_with(list);
    const Site site = declared == list ? Site::declared : gathered ? Site::unknown : Site::none;
    // The operand's cut determines the weight's.
    if (site == Site::none) return;
    // The rows of a lookup table are gathered nowhere, and nothing declares the order of the axes
    // that cut them: each order gives neighbouring blocks to other chips.
    const bool looked_up = term.operand == "ids";
    for (const Exchange& e :
         exchanges(q_, list, !looked_up && (!declared || declared->empty()),
                   !looked_up && site != Site::declared && list != list.sorted()))
      try_meeting({.fault = e.fault,
                   .detail = fmt::format("{} of {}, as {} meets it: {}", letter, term.matrix,
                                         term.operand, e.words),
                   .parameters = 20 + e.parameters,
                   .axes = e.axes,
                   .site = site},
                  t, reordered(term.width, length, e.held));
  }

  /// The indices of each block of a contracted dim; nothing if it is surely not cut over `set`.
  std::vector<Indices> rows_of_blocks(std::size_t t, char letter, const Axes& set) const {
    const Contraction::Term& term = sum_->terms[t];
    const std::vector<int> block = blocks_of(term, letter, q_.torus().size(set));
    const std::optional<Axes> declared = q_.declared_axes_of(term.id, letter);
    if (block.empty() || term.operand == "ids" || (declared && declared->sorted() != set))
      return {};
    std::vector<Indices> rows(at(q_.torus().size(set)));
    for (std::size_t k = 0; k < block.size(); ++k) rows[at(block[k])].push_back(k);
    return rows;
  }

  Candidate candidate_of_rows(std::size_t t, char letter, const Axes& set, int parameters,
                              std::string_view fault, const std::string& words) const {
    return {.fault = fault,
            .detail = fmt::format("{} of {}, as {} meets it: {}", letter, sum_->terms[t].matrix,
                                  sum_->terms[t].operand, words),
            .parameters = parameters,
            .axes = set.to_string()};
  }

  /// Rows of the weight are dealt out to the chips one by one, or one late.
  void dealt_rows(std::size_t t, char letter, const Axes& set) {
    const std::vector<Indices> rows = rows_of_blocks(t, letter, set);
    if (rows.empty()) return;
    const std::size_t n = rows.size(), width = sum_->terms[t].width;
    Indices dealt(width), late(width);
    for (std::size_t r = 0; r < n; ++r)
      for (std::size_t i = 0; i < rows[r].size(); ++i) {
        const std::size_t place = i * n + r;
        dealt[rows[r][i]] = rows[place / rows[r].size()][place % rows[r].size()];
      }
    for (std::size_t k = 0; k < width; ++k) late[k] = (k + width - 1) % width;
    constexpr std::string_view kOrder = "chunks in another order";
    try_meeting(
        candidate_of_rows(t, letter, set, 40, kOrder,
                          fmt::format("chip r of {} has the rows r, r+{}, r+{}, ...", n, n, 2 * n)),
        t, std::move(dealt));
    try_meeting(candidate_of_rows(t, letter, set, 41, kOrder, "its rows are one late"), t,
                std::move(late));
  }

  /// Two blocks of the weight in each other's place: what follows from a value that the dump lacks
  /// may show no block by itself.
  void exchanged_blocks(std::size_t t, char letter, const Axes& set) {
    const std::vector<Indices> rows = rows_of_blocks(t, letter, set);
    for (std::size_t i = 0; i < rows.size() && rows.size() <= kBlocks; ++i)
      for (std::size_t j = 0; j < i; ++j) {
        std::vector<std::size_t> met(rows.size());
        std::iota(met.begin(), met.end(), std::size_t{0});
        std::swap(met[i], met[j]);
        Indices meets(sum_->terms[t].width);
        for (std::size_t r = 0; r < rows.size(); ++r)
          for (std::size_t k = 0; k < rows[r].size(); ++k) meets[rows[r][k]] = rows[met[r]][k];
        try_meeting(candidate_of_rows(t, letter, set, 500, "chunks in another order",
                                      fmt::format("its blocks are {}", fmt::join(met, ","))),
                    t, std::move(meets));
      }
  }

  /// Fits how often each block of the operand meets each block of the weight.
  void fitted_blocks(std::size_t t, char letter, const Axes& set) {
    const std::vector<Indices> rows = rows_of_blocks(t, letter, set);
    const std::size_t n = rows.size();
    if (rows.empty() || n > kBlocks) return;
    const Contraction::Term& term = sum_->terms[t];
    std::vector<int> wrong;
    for (int chip = 0; chip < q_.chips(); ++chip)
      if (!q_.right(chip)) wrong.push_back(chip);
    const auto counts =
        fitted_counts(q_, wrong, n * n, 4 * n * n, [&](std::size_t g, std::vector<double>& row) {
          const double* const x = &term.x->center[sum_->row_of(term, g) * term.width];
          const double* const w = &(*term.w)[sum_->column_of(term, g) * term.width];
          for (const Indices& of_x : rows)
            for (const Indices& of_w : rows) {
              double product = 0.0;
              for (std::size_t k = 0; k < of_x.size(); ++k) product += x[of_x[k]] * w[of_w[k]];
              row.push_back(product);
            }
          return sum_->scales.empty() ? 1.0 : sum_->scales[g % sum_->columns];
        });
    if (!counts) return;
    std::vector<int> met(n, -1);
    for (std::size_t i = 0; i < n; ++i)
      for (std::size_t j = 0; j < n; ++j) {
        const int count = (*counts)[i * n + j] + (i == j ? 1 : 0);
        if (count != 0 && (count != 1 || met[i] >= 0)) return;
        if (count == 1) met[i] = static_cast<int>(j);
      }
    if (std::find(met.begin(), met.end(), -1) != met.end()) return;
    Indices meets(term.width);
    for (std::size_t i = 0; i < n; ++i)
      for (std::size_t k = 0; k < rows[i].size(); ++k) meets[rows[i][k]] = rows[at(met[i])][k];
    Candidate candidate =
        candidate_of_rows(t, letter, set, 500,
                          is_permutation(met) ? "chunks in another order" : "another chip's block",
                          fmt::format("its blocks are {}", fmt::join(met, ",")));
    candidate.fitted = true;
    try_meeting(std::move(candidate), t, std::move(meets));
  }

  void heads_of_rows(std::size_t t) {
    const Contraction::Term& term = sum_->terms[t];
    for (const auto& [words, held] : head_orders(static_cast<int>(term.extents[0])))
      try_meeting({"head order", fmt::format("the heads of {} are {}", term.matrix, words), 5}, t,
                  reordered(term.width, term.extents[1], held));
  }

  void try_meeting(Candidate candidate, std::size_t t, Indices meets) {
    Contraction other = *sum_;
    other.terms[t].meets = std::make_shared<const Indices>(std::move(meets));
    try_sum(std::move(candidate), std::move(other));
  }

  /// A bias or scales, of(contraction), with their columns moved, or those of another layer.
  template <class Of>
  void per_column(const std::string& name, Of&& of) {
    Contraction other = *sum_;
    const std::vector<double> own = of(other);
    const auto with = [&](Candidate candidate, std::vector<double> values) {
      of(other) = std::move(values);
      try_sum(std::move(candidate), other);
    };
    for (std::int64_t layer = 0; layer < q_.config().layers; ++layer) {
      const std::string id = fmt::format("layer{}.{}", layer, name);
      const std::shared_ptr<const Tensor> values =
          layer == q_.place().layer ? nullptr : q_.weight(id);
      if (values != nullptr)
        with({"another layer's weight", fmt::format("{} in place of {}", id, q_.weight_id(name))},
             {values->data.begin(), values->data.end()});
    }
    each_order_of_columns(name, [&](Candidate candidate, const Indices& from) {
      std::vector<double> values;
      for (const std::size_t column : from) values.push_back(own[column]);
      with(std::move(candidate), std::move(values));
    });
  }

  void columns_of_weight(std::size_t t) {
    each_order_of_columns(sum_->terms[t].matrix, [&](Candidate candidate, Indices from) {
      Contraction other = *sum_;
      other.terms[t].takes = std::make_shared<const Indices>(std::move(from));
      try_sum(std::move(candidate), std::move(other));
    });
  }

  /// Calls with(candidate, from), where from[c] is the column found in place of column c.
  template <class With>
  void each_order_of_columns(const std::string& name, With&& with) {
    auto inner = static_cast<std::int64_t>(sum_->columns);
    for (std::size_t d = 0; d < q_.rank(); ++d) {
      const auto& dim = q_.layout().dims()[d];
      if (dim.letter == 'B' || dim.letter == 'L') continue;
      const std::int64_t extent = q_.shape()[d];
      inner /= extent;
      const auto moved = [&](const std::vector<int>& held) {
        return reordered(sum_->columns, extent / std::ssize(held) * inner, held);
      };
      each_exchange(q_, dim.letter, extent, [&](Candidate c, const std::vector<int>& held) {
        c.detail = fmt::format("{} of {}: {}", dim.letter, name, c.detail);
        with(std::move(c), moved(held));
      });
      if (dim.letter == 'H' || dim.letter == 'K')
        for (const auto& [words, held] : head_orders(static_cast<int>(extent)))
          with({"head order", fmt::format("the heads of {} are {}", name, words), 5}, moved(held));
    }
  }

  /// One partial sum of a group belongs to another block of columns than the others.
  void columns(std::size_t t, char letter, const Axes& set) {
    const Contraction::Term& term = sum_->terms[t];
    const std::optional<Axes> declared = q_.declared_axes_of(term.id, letter);
    const Axes over = declared && declared->sorted() == set ? *declared : set;
    const int n = q_.torus().size(over);
    const auto block = std::make_shared<const std::vector<int>>(blocks_of(term, letter, n));
    if (block->empty() || (declared && *declared != over)) return;
    int wrong = 0;
    while (q_.right(wrong)) ++wrong;
    for (std::size_t d = 0; d < q_.rank(); ++d) {
      const auto& dim = q_.layout().dims()[d];
      const Axes cut = significant(dim.axes, q_.torus()).without(over);
      if (dim.letter == 'B' || dim.letter == 'L' || cut.empty()) continue;
      // The axes of a reduce_scatter come last in a dim.
      if (!significant(dim.axes, q_.torus()).starts_with(cut)) continue;
      const int blocks = q_.torus().size(cut), own = q_.torus().block(wrong, cut);
      const std::int64_t length = q_.shape()[d] / blocks;
      for (int i = 0; i < n; ++i)
        for (int other = 0; other < blocks; ++other) {
          if (other == own) continue;
          const int there = with_block(q_.torus(), wrong, cut, other);
          Contraction::Counts counts;
          counts.of_blocks.resize(sum_->terms.size());
          counts.block.resize(sum_->terms.size());
          counts.of_blocks[t].assign(at(n), 1);
          counts.of_blocks[t][at(i)] = 0;
          counts.block[t] = block.get();
          search_.consider(
              {.fault = "another chip's block",
               .detail = fmt::format("partial sum {} over {} is of block {} of {}'s columns {}", i,
                                     over.to_string(), other, term.matrix, dim.letter),
               .parameters = 20000 + other,
               .axes = axes_between(q_.torus(), wrong, there, cut).sorted().to_string(),
               .at = [&q = q_, sum = sum_, t, d, i, other, cut, length, block, counts](
                         int chip, std::size_t local) {
                 const auto& by = q.declared();
                 const std::size_t g = q.global(chip, local);
                 Index index = q.index(local);
                 const Index begin = q.offset(q.layout(), chip);
                 for (std::size_t e = 0; e < q.rank(); ++e) index[e] += begin[e];
                 index[d] += (other - q.torus().block(chip, cut)) * length;
                 bounds::FunctionValue one = sum->partial_sum(q.flat(index), t, *block, i, by);
                 if (!sum->scales.empty()) one = times(one, sum->scales[g % sum->columns]);
                 return plus(sum->at(g, counts, by), one, by);
               }});
        }
    }
  }

  std::shared_ptr<const Contraction> sum_;
};

}  // namespace

void try_weight_blocks(const Question& q, Search& search, const Row&) {
  WeightBlocks(q, search).run();
}

void try_fitted_weight_blocks(const Question& q, Search& search, const Row&) {
  WeightBlocks(q, search).run_fitted();
}

}  // namespace shardproof::diagnosis
