#include "golden/diagnosis/detail/contraction.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <numeric>
#include <utility>

#include "weights/base/detail/index.h"
#include "weights/model/registry.h"
#include "weights/model/softmax.h"

namespace shardproof::diagnosis {
namespace {

using Term = Contraction::Term;

std::vector<std::size_t> first_rows(std::size_t count) {
  std::vector<std::size_t> rows(count);
  std::iota(rows.begin(), rows.end(), std::size_t{0});
  return rows;
}

Contraction projection(const Question& q, const bounds::Projection& of) {
  const bool logits = q.name() == "logits";
  Contraction c;
  for (const auto& [operand, matrix, letters] : of.terms) {
    const Tensor& w = *q.weight(q.weight_id(matrix));
    Term t{.operand = operand, .matrix = matrix, .letters = letters, .width = 1};
    for (std::size_t d = 0; d < letters.size(); ++d) {
      t.extents.push_back(logits ? w.shape[1] : w.shape[d]);
      t.width *= at(t.extents[d]);
    }
    t.x = std::make_shared<const bounds::IntervalTensor>(q.value(q.id_of(operand)));
    t.w = columns_of(w, t.width, logits);
    c.terms.push_back(std::move(t));
  }
  const Term& first = c.terms[0];
  c.columns = first.w->size() / first.width;
  c.rows = logits ? bounds::rows_of_logits(q.replay().pass(q.place().pass), at(first.x->shape[1]))
                  : first_rows(first.x->size() / first.width);
  const WeightRow* const scale = q.replay().weights().stored_type() == WeightType::int8 && !logits
                                     ? scale_of(q.config(), first.matrix)
                                     : nullptr;
  if (logits) c.scales.assign(c.columns, static_cast<double>(scale_of_logits(q.config())));
  if (scale != nullptr) {
    const Tensor& s = *q.weight(q.weight_id(scale->name));
    c.scales.assign(s.data.begin(), s.data.end());
  }
  for (const std::string& name : of.biases)
    if (const Tensor* const bias = q.weight(q.weight_id(name)))
      c.biases.push_back({name, {bias->data.begin(), bias->data.end()}});
  return c;
}

/// Rows of the table, selected by a one-hot operand.
Contraction lookup(const Question& q) {
  const Tensor& table = *q.weight("embed");
  const bounds::IntervalTensor& right = q.expected();
  const std::size_t V = at(table.shape[0]), E = at(table.shape[1]);
  Contraction c;
  Term t{
      .operand = "ids", .matrix = "embed", .letters = "V", .extents = {table.shape[0]}, .width = V};
  bounds::IntervalTensor x(Shape{std::ssize(right.center) / table.shape[1], table.shape[0]});
  const auto scale = static_cast<double>(q.config().embed_scale);
  for (std::size_t row = 0; row < right.size() / E; ++row)
    for (std::size_t v = 0; v < V; ++v) {
      bool same = true;
      for (std::size_t e = 0; e < E && same; ++e)
        same = right.center[row * E + e] == static_cast<double>(table.data[v * E + e]) * scale;
      if (!same) continue;
      x.center[row * V + v] = 1.0;
      break;
    }
  t.x = std::make_shared<const bounds::IntervalTensor>(std::move(x));
  t.w = columns_of(table, V);
  c.terms.push_back(std::move(t));
  c.columns = E;
  c.rows = first_rows(right.size() / E);
  c.scales.assign(E, scale);
  return c;
}

}  // namespace

std::shared_ptr<const std::vector<double>> columns_of(const Tensor& matrix, std::size_t width,
                                                      bool table) {
  if (table)
    return std::make_shared<const std::vector<double>>(matrix.data.begin(), matrix.data.end());
  const std::size_t columns = matrix.data.size() / width;
  std::vector<double> w(matrix.data.size());
  for (std::size_t k = 0; k < width; ++k)
    for (std::size_t c = 0; c < columns; ++c)
      w[c * width + k] = static_cast<double>(matrix.data[k * columns + c]);
  return std::make_shared<const std::vector<double>>(std::move(w));
}

std::vector<int> blocks_of(const Term& term, char letter, int blocks) {
  const std::size_t place = term.letters.find(letter);
  if (place == std::string::npos || term.extents[place] % blocks != 0) return {};
  const auto inner = static_cast<std::int64_t>(inner_of(term.extents, place));
  const std::int64_t length = term.extents[place] / blocks;
  std::vector<int> block(term.width);
  for (std::size_t k = 0; k < term.width; ++k)
    block[k] =
        static_cast<int>(static_cast<std::int64_t>(k) / inner % term.extents[place] / length);
  return block;
}

bounds::FunctionValue Contraction::at(std::size_t global, const Counts& counts,
                                      const bounds::DeclaredArithmetic& by) const {
  const std::size_t row = rows[global / columns], column = global % columns;
  bounds::IntervalSum sum;
  std::int64_t more = 0;  // additions beyond one per product
  for (std::size_t t = 0; t < terms.size(); ++t) {
    const Term& term = terms[t];
    const double* const x = term.x->center.data() + row * term.width;
    const double* const r = term.x->radius.data() + row * term.width;
    const std::size_t taken = term.takes == nullptr ? column : (*term.takes)[column];
    const double* const w = term.w->data() + taken * term.width;
    const std::size_t* const meets = term.meets == nullptr ? nullptr : term.meets->data();
    const bool all = t >= counts.of_blocks.size() || counts.of_blocks[t].empty();
    int most = 1;
    for (std::size_t k = 0; k < term.width; ++k) {
      const int count =
          all ? 1 : counts.of_blocks[t][static_cast<std::size_t>((*counts.block[t])[k])];
      if (count == 0 || (x[k] == 0 && r[k] == 0)) continue;
      most = std::max(most, std::abs(count));
      sum.add(x[k], w[meets == nullptr ? k : meets[k]] * count, r[k]);
    }
    // Each block is added as a whole, as often as it counts; w·count may round as well.
    if (most > 1)
      for (const int count : counts.of_blocks[t]) more += std::max(std::abs(count) - 1, 0) + 1;
  }
  bounds::Number v = added(sum, by, more);
  const bounds::Operations operations(by);
  if (!scales.empty()) v = operations.times(bounds::as_value(v, by), {scales[column], 0.0, 0.0});
  for (std::size_t b = 0; b < biases.size(); ++b) {
    const int count = b < counts.of_biases.size() ? counts.of_biases[b] : 1;
    const double bias = biases[b].values[column] * count;
    if (count == 0) continue;
    // A bias that counts otherwise is added several times, or scaled.
    const double extra = count == 1 ? 0.0
                                    : operations.unit() * std::abs(count) *
                                          (std::abs(v.center) + 2 * std::abs(bias));
    v = operations.plus(bounds::as_value(v, by), {bias, extra, extra});
  }
  return known(v);
}

bounds::Number Contraction::added(const bounds::IntervalSum& products,
                                  const bounds::DeclaredArithmetic& by, std::int64_t more) const {
  bounds::Sum sum = products.sum();
  sum.count += more;
  return bounds::bound(sum, by);
}

bounds::FunctionValue Contraction::at(std::size_t global,
                                      const bounds::DeclaredArithmetic& by) const {
  return at(global, Counts{}, by);
}

bounds::FunctionValue Contraction::partial_sum(std::size_t global, std::size_t t,
                                               const std::vector<int>& block, int which,
                                               const bounds::DeclaredArithmetic& by) const {
  const std::size_t row = rows[global / columns], column = global % columns;
  const Term& term = terms[t];
  bounds::IntervalSum sum;
  for (std::size_t k = 0; k < term.width; ++k) {
    const std::size_t i = row * term.width + k;
    if (block[k] == which && (term.x->center[i] != 0 || term.x->radius[i] != 0))
      sum.add(term.x->center[i], (*term.w)[column * term.width + k], term.x->radius[i]);
  }
  return known(added(sum, by));
}

std::optional<Contraction> contraction_of(const Question& q) {
  const bounds::Projection of = bounds::projection_of(q.name(), q.config());
  if (of.terms.empty() && q.name() != "embed") return std::nullopt;
  Contraction c = of.terms.empty() ? lookup(q) : projection(q, of);
  if (q.raw()) {
    c.scales.clear();
    c.biases.clear();
  }
  c.likely = q.likely();
  return c;
}

}  // namespace shardproof::diagnosis
