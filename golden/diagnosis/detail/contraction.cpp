#include "golden/diagnosis/detail/contraction.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <numeric>
#include <utility>

#include "golden/bounds/value/derivation.h"
#include "oracle/walk/array.h"
#include "weights/base/detail/index.h"

namespace shardproof::diagnosis {
namespace {

using Term = Contraction::Term;
using oracle::graph::places_in;

std::string without(const std::string& letters, const std::string& others) {
  std::string rest;
  for (const char c : letters)
    if (others.find(c) == others.npos) rest += c;
  return rest;
}

/// Reads a contraction off the lines of a step, from the value's own line back to its products.
class Reader {
 public:
  Reader(const Question& q, const Step& step)
      : q_(q), step_(step), result_(step_.lines().back().letters) {}

  std::optional<Contraction> read() {
    if (!peel(step_.lines().back().expression)) return std::nullopt;
    c_.likely = q_.likely();
    return std::move(c_);
  }

 private:
  bool peel(const Expression& e) {
    if (e.kind == Expression::Kind::name) {
      const TextLine* const line = step_.line(e.text);
      return line != nullptr && line->letters == result_ && peel(line->expression);
    }
    if (e.kind != Expression::Kind::call) return false;
    if (e.op == ModelOp::store) return peel(e.args[0]);
    if (e.op == ModelOp::einsum) return contract(e);
    if (e.op == ModelOp::gather) return look_up(e);
    if (e.op == ModelOp::add) return add(e.args);
    return e.op == ModelOp::mul && scale(e.args);
  }

  /// Returns a weight of the last dims, once for each row; null if the word is none.
  std::shared_ptr<const Tensor> of_columns(const std::string& name) const {
    const TextWeight* const weight = step_.weight(name);
    const bool fits =
        weight != nullptr && !weight->letters.empty() && result_.ends_with(weight->letters);
    return fits ? q_.weight(step_.weight_id(*weight)) : nullptr;
  }
  std::vector<double> repeated(const Tensor& weight) const {
    std::vector<double> all(c_.columns);
    for (std::size_t i = 0; i < all.size(); ++i)
      all[i] = static_cast<double>(weight.data[i % weight.data.size()]);
    return all;
  }

  bool add(const std::vector<Expression>& args) {
    const std::shared_ptr<const Tensor> bias = of_columns(args[1].text);
    if (bias == nullptr || !peel(args[0])) return false;
    c_.biases.push_back({step_.file(args[1].text), repeated(*bias)});
    return true;
  }

  bool scale(const std::vector<Expression>& args) {
    const std::string& by = args[1].text;
    const std::shared_ptr<const Tensor> weight = of_columns(by);
    const std::optional<double> number = step_.number(args[1]);
    if ((weight == nullptr && !number) || !peel(args[0])) return false;
    if (!c_.scales.empty() || !c_.biases.empty()) return false;
    c_.scales = weight != nullptr ? repeated(*weight) : std::vector<double>(c_.columns, *number);
    if (weight != nullptr) c_.scale = step_.file(by);
    return true;
  }

  /// Returns the value that the step reads under a name; null if it is no operand.
  const bounds::IntervalTensor* value(const std::string& name) const {
    const std::optional<std::string> id = step_.operand(name);
    return id ? &q_.value(*id) : nullptr;
  }

  Shape shape_of(const std::string& letters) const {
    Shape shape;
    for (const char c : letters) shape.push_back(step_.extent(c));
    return shape;
  }
  std::size_t count_of(const std::string& letters) const {
    return at(element_count(shape_of(letters)));
  }
  /// Numbers, or radii, with letters in another order.
  template <class Numbers>
  std::vector<double> in_order(const Numbers& numbers, const std::string& from,
                               const std::string& to) const {
    std::vector<double> all;
    for (const std::size_t place : places_in(to, shape_of(to), from, shape_of(from)))
      all.push_back(static_cast<double>(numbers[place]));
    return all;
  }

  bool contract(const Expression& e) {
    for (std::size_t t = 0; t < e.terms.size(); ++t) {
      const ContractionTerm& spec = e.terms[t];
      const Expression *a = &e.args[2 * t], *b = &e.args[2 * t + 1];
      const bool swapped = step_.weight(a->text) != nullptr;
      if (swapped) std::swap(a, b);
      if (!add_term(a->text, swapped ? spec.b : spec.a, b->text, swapped ? spec.a : spec.b))
        return false;
    }
    return true;
  }

  bool add_term(const std::string& operand, const std::string& x, const std::string& matrix,
                const std::string& w) {
    const TextWeight* const weight = step_.weight(matrix);
    const bounds::IntervalTensor *const of = value(operand), *const other = weight == nullptr
                                                                                ? value(matrix)
                                                                                : nullptr;
    if (of == nullptr || (weight == nullptr && other == nullptr)) return false;
    Term t{.id = *step_.operand(operand), .operand = operand, .matrix = matrix};
    if (operand == "in") t.operand = t.id.substr(t.id.rfind('.') + 1);
    t.letters = without(x, result_);
    if (without(w, result_).size() != t.letters.size()) return false;
    t.extents = shape_of(t.letters);
    t.width = count_of(t.letters);
    const std::string rows = without(x, t.letters), columns = without(w, t.letters);
    if (of->shape != shape_of(x) || (other != nullptr && other->shape != shape_of(w))) return false;
    bounds::IntervalTensor numbers(shape_of(rows + t.letters));
    numbers.center = in_order(of->center, x, rows + t.letters);
    numbers.radius = in_order(of->radius, x, rows + t.letters);
    numbers.likely = in_order(of->likely, x, rows + t.letters);
    t.x = std::make_shared<const bounds::IntervalTensor>(std::move(numbers));
    if (weight != nullptr) {
      t.matrix = step_.file(matrix);
      t.places = std::make_shared<const std::vector<std::size_t>>(
          places_in(columns + t.letters, shape_of(columns + t.letters), w, shape_of(w)));
      t.w = t.columns_of(*q_.weight(step_.weight_id(*weight)));
    } else {
      t.w = std::make_shared<const std::vector<double>>(
          in_order(other->center, w, columns + t.letters));
      t.spread = in_order(other->radius, w, columns + t.letters);
    }
    if (result_ != rows + columns) {
      t.xs = places_in(result_, shape_of(result_), rows, shape_of(rows));
      t.ws = places_in(result_, shape_of(result_), columns, shape_of(columns));
    }
    set_rows();
    c_.terms.push_back(std::move(t));
    return true;
  }

  void set_rows() {
    const std::string rows = result_.starts_with("BL") ? "BL" : "";
    c_.columns = count_of(result_) / count_of(rows);
    // The logits of keys are those of each row's last token.
    if (&step_ == &q_.step() && q_.rank() == result_.size() - 1) {
      c_.rows = bounds::rows_of_logits(q_.replay().pass(q_.place().pass), count_of("L"));
    } else {
      c_.rows.resize(count_of(rows));
      std::iota(c_.rows.begin(), c_.rows.end(), std::size_t{0});
    }
  }

  /// Rows of a table, selected by a one-hot operand.
  bool look_up(const Expression& e) {
    const TextWeight* const weight = step_.weight(e.args[0].text);
    if (weight == nullptr || e.args[1].text != "ids") return false;
    Term t{.operand = "ids",
           .matrix = step_.file(e.args[0].text),
           .letters = weight->letters.substr(0, 1)};
    t.extents = shape_of(t.letters);
    t.width = count_of(t.letters);
    const IntTensor& ids = q_.replay().ids().at(q_.place().pass);
    bounds::IntervalTensor x(Shape{std::ssize(ids.data), t.extents[0]});
    for (std::size_t row = 0; row < ids.data.size(); ++row)
      if (ids.data[row] >= 0) x.center[row * t.width + at(ids.data[row])] = 1.0;
    t.x = std::make_shared<const bounds::IntervalTensor>(std::move(x));
    const std::string columns = weight->letters.substr(1);
    if (result_ != "BL" + columns) return false;
    t.places = std::make_shared<const std::vector<std::size_t>>(
        places_in(columns + t.letters, shape_of(columns + t.letters), weight->letters,
                  shape_of(weight->letters)));
    t.w = t.columns_of(*q_.weight(step_.weight_id(*weight)));
    set_rows();
    c_.terms.push_back(std::move(t));
    return true;
  }

  const Question& q_;
  const Step& step_;
  const std::string result_;
  Contraction c_;
};

}  // namespace

std::shared_ptr<const std::vector<double>> Term::columns_of(const Tensor& weight) const {
  std::vector<double> all;
  all.reserve(places->size());
  for (const std::size_t place : *places) all.push_back(static_cast<double>(weight.data[place]));
  return std::make_shared<const std::vector<double>>(std::move(all));
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

std::size_t Contraction::row_of(const Term& term, std::size_t global) const {
  return term.xs.empty() ? rows[global / columns] : term.xs[global];
}

std::size_t Contraction::column_of(const Term& term, std::size_t global) const {
  const std::size_t column = term.ws.empty() ? global % columns : term.ws[global];
  return term.takes == nullptr ? column : (*term.takes)[column];
}

bounds::FunctionValue Contraction::at(std::size_t global, const Counts& counts,
                                      const bounds::DeclaredArithmetic& by) const {
  const std::size_t column = global % columns;
  bounds::IntervalSum sum;
  std::int64_t more = 0;  // additions beyond one per product
  for (std::size_t t = 0; t < terms.size(); ++t) {
    const Term& term = terms[t];
    const std::size_t row = row_of(term, global) * term.width,
                      other = column_of(term, global) * term.width;
    const double* const x = term.x->center.data() + row;
    const double* const r = term.x->radius.data() + row;
    const double* const w = term.w->data() + other;
    const double* const spread = term.spread.empty() ? nullptr : term.spread.data() + other;
    const std::size_t* const meets = term.meets == nullptr ? nullptr : term.meets->data();
    const bool all = t >= counts.of_blocks.size() || counts.of_blocks[t].empty();
    int most = 1;
    for (std::size_t k = 0; k < term.width; ++k) {
      const int count =
          all ? 1 : counts.of_blocks[t][static_cast<std::size_t>((*counts.block[t])[k])];
      if (count == 0 || (x[k] == 0 && r[k] == 0)) continue;
      most = std::max(most, std::abs(count));
      sum.add(x[k], w[meets == nullptr ? k : meets[k]] * count, r[k],
              spread == nullptr ? 0.0 : spread[k] * std::abs(count));
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
  const Term& term = terms[t];
  const std::size_t row = row_of(term, global) * term.width,
                    other = column_of(term, global) * term.width;
  bounds::IntervalSum sum;
  for (std::size_t k = 0; k < term.width; ++k) {
    const double x = term.x->center[row + k], r = term.x->radius[row + k];
    if (block[k] == which && (x != 0 || r != 0))
      sum.add(x, (*term.w)[other + k], r, term.spread.empty() ? 0.0 : term.spread[other + k]);
  }
  return known(added(sum, by));
}

namespace {

std::shared_ptr<const Contraction> contraction_of(const Question& q, const Step& step) {
  if (step.lines().empty()) return nullptr;
  std::optional<Contraction> read = Reader(q, step).read();
  return read ? std::make_shared<const Contraction>(std::move(*read)) : nullptr;
}

}  // namespace

std::shared_ptr<const Contraction> contraction_of(const Question& q) {
  Question::Contractions& of = q.contractions();
  if (!std::exchange(of.known, true)) of.value = contraction_of(q, q.step());
  return of.value;
}

std::shared_ptr<const Contraction> contraction_of(const Question& q, const std::string& id) {
  return contraction_of(q, q.step_of(id));
}

}  // namespace shardproof::diagnosis
