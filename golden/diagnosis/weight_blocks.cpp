// Faults of which block of a weight meets which block of its operand, and of its columns.
#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "golden/diagnosis/detail/chips.h"
#include "golden/diagnosis/detail/contraction.h"
#include "golden/diagnosis/detail/families.h"
#include "golden/diagnosis/detail/orders.h"
#include "golden/diagnosis/detail/what_if.h"
#include "weights/base/detail/index.h"
#include "weights/model/registry.h"

namespace shardproof::diagnosis {
namespace {

class WeightBlocks {
 public:
  WeightBlocks(const Question& q, Search& search, Contraction c)
      : q_(q), search_(search), sum_(std::make_shared<const Contraction>(std::move(c))) {}

  void run() {
    for (std::size_t t = 0; t < sum_->terms.size(); ++t)
      for (const char letter : sum_->terms[t].letters) {
        for (const Axes& list : q_.lists()) contracted(t, letter, list);
        if (letter == 'H') heads_of_rows(t);
      }
    for (std::size_t b = 0; b < sum_->biases.size(); ++b) bias(b);
    int8_scales();
    // Without biases and scales a column of the weight is a column of the value.
    if (!sum_->biases.empty() || !sum_->scales.empty())
      for (std::size_t t = 0; t < sum_->terms.size(); ++t) columns_of_weight(t);
    // One chip of a group may have computed other columns than the rest.
    if (!q_.whole() && !q_.right() && !search_.explained())
      for (std::size_t t = 0; t < sum_->terms.size(); ++t)
        for (const char letter : sum_->terms[t].letters)
          for (const Axes& set : q_.sets()) columns(t, letter, set);
  }

 private:
  void consider(Candidate candidate, Contraction changed) {
    candidate.at =
        q_.logical([&q = q_, c = std::make_shared<const Contraction>(std::move(changed))](
                       std::size_t g) { return c->at(g, q.declared()); });
    search_.consider(std::move(candidate));
  }

  /// Block r of a contracted dim of the operand meets block held[r] of the weight.
  void contracted(std::size_t t, char letter, const Axes& list) {
    const Contraction::Term& term = sum_->terms[t];
    const int n = q_.torus().size(list);
    const std::vector<int> block = blocks_of(term, letter, n);
    if (block.empty()) return;
    const std::size_t place = term.letters.find(letter);
    std::int64_t inner = 1;
    for (std::size_t d = place + 1; d < term.extents.size(); ++d) inner *= term.extents[d];
    const std::int64_t length = term.extents[place] / n * inner;
    const std::optional<Axes> declared = q_.declared_axes(term.operand, letter);
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
                   !looked_up && site != Site::declared && list != list.sorted())) {
      Contraction other = *sum_;
      std::vector<std::size_t> meets;
      for (std::size_t k = 0; k < term.width; ++k)
        meets.push_back(at(std::ssize(meets) + (e.held[at(block[k])] - block[k]) * length));
      other.terms[t].meets = std::make_shared<const std::vector<std::size_t>>(std::move(meets));
      consider({.fault = e.fault,
                .detail = fmt::format("{} of {}, as {} meets it: {}", letter, term.matrix,
                                      term.operand, e.words),
                .axes = e.axes,
                .parameters = 20 + e.parameters,
                .at = {},
                .site = site},
               std::move(other));
    }
  }

  void heads_of_rows(std::size_t t) {
    const Contraction::Term& term = sum_->terms[t];
    const std::size_t H = at(term.extents[0]), Q = term.width / H;
    for (const auto& [words, held] : head_orders(static_cast<int>(H))) {
      Contraction other = *sum_;
      std::vector<std::size_t> meets;
      for (std::size_t k = 0; k < term.width; ++k) meets.push_back(at(held[k / Q]) * Q + k % Q);
      other.terms[t].meets = std::make_shared<const std::vector<std::size_t>>(std::move(meets));
      consider({.fault = "head order",
                .detail = fmt::format("the heads of {} are {}", term.matrix, words),
                .axes = "",
                .parameters = 5,
                .at = {}},
               std::move(other));
    }
  }

  /// A bias with its columns moved, or that of another layer.
  void bias(std::size_t b) {
    const Contraction::Bias& own = sum_->biases[b];
    const auto with = [&](Candidate candidate, std::vector<double> values) {
      Contraction other = *sum_;
      other.biases[b].values = std::move(values);
      candidate.at = {};
      consider(std::move(candidate), std::move(other));
    };
    for (std::int64_t layer = 0; layer < q_.config().layers; ++layer) {
      const std::string id = shardproof::weight_id(layer, own.name);
      const Tensor* const values = layer == q_.place().layer ? nullptr : q_.weight(id);
      if (values != nullptr)
        with({.fault = "another layer's weight",
              .detail = fmt::format("{} in place of {}", id, q_.weight_id(own.name)),
              .axes = "",
              .at = {}},
             {values->data.begin(), values->data.end()});
    }
    each_order_of_columns(own.name, [&](Candidate candidate, const std::vector<std::size_t>& from) {
      std::vector<double> values;
      for (const std::size_t column : from) values.push_back(own.values[column]);
      with(std::move(candidate), std::move(values));
    });
  }

  /// Scales with their columns moved, or those of another layer.
  void int8_scales() {
    const WeightRow* const row = q_.replay().weights().stored_type() == WeightType::int8
                                     ? scale_of(q_.config(), sum_->terms[0].matrix)
                                     : nullptr;
    if (q_.raw() || row == nullptr) return;
    const std::string name(row->name);
    const auto with = [&](Candidate candidate, std::vector<double> scales) {
      Contraction other = *sum_;
      other.scales = std::move(scales);
      consider(std::move(candidate), std::move(other));
    };
    for (std::int64_t layer = 0; layer < q_.config().layers; ++layer) {
      const std::string id = shardproof::weight_id(layer, name);
      const Tensor* const values = layer == q_.place().layer ? nullptr : q_.weight(id);
      if (values != nullptr)
        with({.fault = "another layer's weight",
              .detail = fmt::format("{} in place of {}", id, q_.weight_id(name)),
              .axes = "",
              .at = {}},
             {values->data.begin(), values->data.end()});
    }
    each_order_of_columns(name, [&](Candidate candidate, const std::vector<std::size_t>& from) {
      std::vector<double> scales;
      for (const std::size_t column : from) scales.push_back(sum_->scales[column]);
      with(std::move(candidate), std::move(scales));
    });
  }

  void columns_of_weight(std::size_t t) {
    each_order_of_columns(
        sum_->terms[t].matrix, [&](Candidate candidate, std::vector<std::size_t> from) {
          Contraction other = *sum_;
          other.terms[t].takes = std::make_shared<const std::vector<std::size_t>>(std::move(from));
          consider(std::move(candidate), std::move(other));
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
        const std::int64_t length = extent / std::ssize(held) * inner;
        std::vector<std::size_t> from;
        for (std::int64_t i = 0; i < std::int64_t(sum_->columns); ++i) {
          const std::int64_t block = i / length % std::ssize(held);
          from.push_back(at(i + (held[at(block)] - block) * length));
        }
        return from;
      };
      for (const Axes& list : q_.lists())
        if (extent % q_.torus().size(list) == 0)
          for (const Exchange& e : exchanges(q_, list, dim.axes.empty(),
                                             !dim.axes.starts_with(list) && list != list.sorted()))
            with({.fault = e.fault,
                  .detail = fmt::format("{} of {}: {}", dim.letter, name, e.words),
                  .axes = e.axes,
                  .parameters = 20 + e.parameters,
                  .at = {}},
                 moved(e.held));
      if (dim.letter == 'H' || dim.letter == 'K')
        for (const auto& [words, held] : head_orders(static_cast<int>(extent)))
          with({.fault = "head order",
                .detail = fmt::format("the heads of {} are {}", name, words),
                .axes = "",
                .parameters = 5,
                .at = {}},
               moved(held));
    }
  }

  /// One partial sum of a group belongs to another block of columns than the others.
  void columns(std::size_t t, char letter, const Axes& set) {
    const Contraction::Term& term = sum_->terms[t];
    const std::optional<Axes> declared = q_.declared_axes(term.operand, letter);
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
          Axes apart;
          const int there = with_block(q_.torus(), wrong, cut, other);
          for (const Axis a : cut)
            if (q_.torus().coordinate(wrong, a) != q_.torus().coordinate(there, a))
              apart = apart.with(a);
          Contraction::Counts counts;
          counts.of_blocks.resize(sum_->terms.size());
          counts.block.resize(sum_->terms.size());
          counts.of_blocks[t].assign(at(n), 1);
          counts.of_blocks[t][at(i)] = 0;
          counts.block[t] = block.get();
          search_.consider(
              {.fault = "another chip's block",
               .detail = fmt::format("summand {} over {} is of block {} of {}'s columns {}", i,
                                     over.to_string(), other, term.matrix, dim.letter),
               .axes = apart.sorted().to_string(),
               .parameters = 20000 + other,
               .at = [&q = q_, sum = sum_, t, d, i, other, cut, length, block, counts](
                         int chip, std::size_t local) {
                 const auto& by = q.declared();
                 const std::size_t g = q.global(chip, local);
                 Index index = q.index(local);
                 const Index begin = q.offset(q.layout(), chip);
                 for (std::size_t e = 0; e < q.rank(); ++e) index[e] += begin[e];
                 index[d] += (other - q.torus().block(chip, cut)) * length;
                 bounds::Evaluated one = sum->summand(q.flat(index), t, *block, i, by);
                 if (!sum->scales.empty()) one = times(one, sum->scales[g % sum->columns]);
                 return plus(sum->at(g, counts, by), one, by);
               }});
        }
    }
  }

  const Question& q_;
  Search& search_;
  std::shared_ptr<const Contraction> sum_;
};

/// Blocks of a norm's gain in other places than those of its operand.
void try_gain(const Question& q, Search& search) {
  const std::string id = q.weight_id(q.name());
  const Tensor& gain = *q.weight(id);
  const std::size_t E = gain.data.size();
  const Axes cut = significant(q.layout().axes('E'), q.torus());
  for (const Axes& list : q.lists()) {
    const auto n = at(q.torus().size(list));
    if (E % n != 0) continue;
    for (const Exchange& e :
         exchanges(q, list, cut.empty(), !cut.starts_with(list) && list != list.sorted())) {
      Tensor other = gain;
      for (std::size_t i = 0; i < E; ++i) {
        const std::size_t length = E / n;
        other.data[i] = gain.data[at(e.held[i / length]) * length + i % length];
      }
      consider_change(q, search,
                      {.fault = e.fault,
                       .detail = fmt::format("E of {}: {}", id, e.words),
                       .axes = e.axes,
                       .parameters = 20 + e.parameters,
                       .at = {}},
                      {.weights = q.weights_with({{id, other}})});
    }
  }
}

}  // namespace

void try_weight_blocks(const Question& q, Search& search) {
  if (q.name() == "norm" || q.name() == "norm2" || q.name() == "final_norm")
    return try_gain(q, search);
  if (std::optional<Contraction> c = contraction_of(q))
    WeightBlocks(q, search, std::move(*c)).run();
}

}  // namespace shardproof::diagnosis
