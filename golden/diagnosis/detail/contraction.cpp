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

Term term_of(const Question& q, std::string operand, std::string matrix) {
  const bounds::Replay::Place& p = q.place();
  Term t{.operand = std::move(operand), .matrix = std::move(matrix)};
  const WeightRow& row = *weight_row(t.matrix);
  const Tensor& w = *q.weight(q.weight_id(t.matrix));
  t.width = 1;
  for (int d = 0; d < row.contracted; ++d) {
    t.letters += row.dims[at(d)];
    t.extents.push_back(w.shape[at(d)]);
    t.width *= at(w.shape[at(d)]);
  }
  t.x = std::make_shared<const bounds::Carried>(q.value(checkpoint_id(p.pass, p.layer, t.operand)));
  t.w = columns_of(w, t.width);
  return t;
}

void add_biases(const Question& q, Contraction& c, const std::vector<std::string>& names) {
  for (const std::string& name : names)
    if (const Tensor* const bias = q.weight(q.weight_id(name)))
      c.biases.push_back({name, {bias->data.begin(), bias->data.end()}});
}

Contraction projection(const Question& q,
                       const std::vector<std::pair<std::string, std::string>>& terms,
                       const std::vector<std::string>& biases) {
  Contraction c;
  for (const auto& [operand, matrix] : terms) c.terms.push_back(term_of(q, operand, matrix));
  c.columns = c.terms[0].w->size() / c.terms[0].width;
  c.rows.resize(c.terms[0].x->size() / c.terms[0].width);
  std::iota(c.rows.begin(), c.rows.end(), std::size_t{0});
  const WeightRow* const scale = q.replay().weights().stored_type() == WeightType::int8
                                     ? scale_of(q.config(), c.terms[0].matrix)
                                     : nullptr;
  if (scale != nullptr) {
    const Tensor& s = *q.weight(q.weight_id(scale->name));
    c.scales.assign(s.data.begin(), s.data.end());
  }
  add_biases(q, c, biases);
  return c;
}

/// Rows of the table, selected by a one-hot operand.
Contraction lookup(const Question& q) {
  const Tensor& table = *q.weight("embed");
  const bounds::Carried& right = q.expected();
  const std::size_t V = at(table.shape[0]), E = at(table.shape[1]);
  Contraction c;
  Term t{
      .operand = "ids", .matrix = "embed", .letters = "V", .extents = {table.shape[0]}, .width = V};
  bounds::Carried x(Shape{std::ssize(right.center) / table.shape[1], table.shape[0]});
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
  t.x = std::make_shared<const bounds::Carried>(std::move(x));
  t.w = columns_of(table, V);
  c.terms.push_back(std::move(t));
  c.columns = E;
  c.rows.resize(right.size() / E);
  std::iota(c.rows.begin(), c.rows.end(), std::size_t{0});
  c.scales.assign(E, scale);
  return c;
}

Contraction unembedding(const Question& q) {
  const std::string matrix = q.config().tied ? "embed" : "unembed";
  const Tensor& table = *q.weight(matrix);
  Contraction c;
  Term t{.operand = "final_norm", .matrix = matrix, .letters = "E", .extents = {table.shape[1]}};
  t.width = at(table.shape[1]);
  const bounds::Carried& x = q.value(q.operands()[0]);
  t.x = std::make_shared<const bounds::Carried>(x);
  t.w = columns_of(table, t.width, true);
  c.columns = at(table.shape[0]);
  std::size_t b = 0;
  for (const PassRows& group : q.replay().pass(q.place().pass).rows)
    for (std::int64_t r = 0; r < group.rows; ++r, ++b)
      c.rows.push_back(b * at(x.shape[1]) + at(std::max<std::int64_t>(group.tokens - 1, 0)));
  c.terms.push_back(std::move(t));
  c.scales.assign(c.columns, static_cast<double>(scale_of_logits(q.config())));
  add_biases(q, c, {"unembed_bias"});
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
  std::int64_t inner = 1;
  for (std::size_t d = place + 1; d < term.extents.size(); ++d) inner *= term.extents[d];
  const std::int64_t length = term.extents[place] / blocks;
  std::vector<int> block(term.width);
  for (std::size_t k = 0; k < term.width; ++k)
    block[k] =
        static_cast<int>(static_cast<std::int64_t>(k) / inner % term.extents[place] / length);
  return block;
}

bounds::Evaluated Contraction::at(std::size_t global, const Counts& counts,
                                  const bounds::Declared& by) const {
  const std::size_t row = rows[global / columns], column = global % columns;
  bounds::CarriedSum sum;
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
  bounds::Evaluated v = added(sum, by, more);
  const double unit = by.operations.unit + 0x1p-53, kept = bounds::unit_of(by.sums);
  if (!scales.empty()) {
    v.center *= scales[column];
    v.radius = v.radius * std::abs(scales[column]) + (unit + kept) * std::abs(v.center);
  }
  for (std::size_t b = 0; b < biases.size(); ++b) {
    const int count = b < counts.of_biases.size() ? counts.of_biases[b] : 1;
    const double bias = biases[b].values[column] * count;
    if (count == 0) continue;
    v.radius += (kept + unit) * std::abs(v.center) + unit * std::abs(v.center + bias);
    if (count != 1) v.radius += unit * std::abs(count) * (std::abs(v.center) + 2 * std::abs(bias));
    v.center += bias;
  }
  return v;
}

bounds::Evaluated Contraction::added(const bounds::CarriedSum& products, const bounds::Declared& by,
                                     std::int64_t more) const {
  bounds::Sum sum = products.sum();
  sum.count += more;
  const bounds::Number v = bounds::bound(sum, by);
  return {v.center, likely ? v.likely : v.worst, 0.0};
}

bounds::Evaluated Contraction::at(std::size_t global, const bounds::Declared& by) const {
  return at(global, Counts{}, by);
}

bounds::Evaluated Contraction::summand(std::size_t global, std::size_t t,
                                       const std::vector<int>& block, int which,
                                       const bounds::Declared& by) const {
  const std::size_t row = rows[global / columns], column = global % columns;
  const Term& term = terms[t];
  bounds::CarriedSum sum;
  for (std::size_t k = 0; k < term.width; ++k) {
    const std::size_t i = row * term.width + k;
    if (block[k] == which && (term.x->center[i] != 0 || term.x->radius[i] != 0))
      sum.add(term.x->center[i], (*term.w)[column * term.width + k], term.x->radius[i]);
  }
  return added(sum, by);
}

namespace {

std::optional<Contraction> finished_contraction(const Question& q) {
  const std::string& n = q.name();
  const std::string norm = q.config().block == Block::serial ? "norm2" : "norm";
  if (n == "embed") return lookup(q);
  if (n == "q") return projection(q, {{"norm", "wq"}}, {"bq"});
  if (n == "k") return projection(q, {{"norm", "wk"}}, {"bk"});
  if (n == "v") return projection(q, {{"norm", "wv"}}, {"bv"});
  if (n == "gate") return projection(q, {{norm, "w_gate"}}, {"b_gate"});
  if (n == "up") return projection(q, {{norm, "w_up"}}, {"b_up"});
  if (n == "attn_out") return projection(q, {{"attn", "wo"}}, {"bo"});
  if (n == "ffn_out") return projection(q, {{"hidden", "w_out"}}, {"b_out"});
  if (n == "block_out")
    return projection(q, {{"attn", "wo"}, {"hidden", "w_out"}}, {"bo", "b_out"});
  if (n == "logits") return unembedding(q);
  return std::nullopt;
}

}  // namespace

std::optional<Contraction> contraction_of(const Question& q) {
  std::optional<Contraction> c = finished_contraction(q);
  if (c && q.raw()) {
    c->scales.clear();
    c->biases.clear();
  }
  if (c) c->likely = q.likely();
  return c;
}

}  // namespace shardproof::diagnosis
