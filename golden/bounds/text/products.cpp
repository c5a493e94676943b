// Products with weights of a text's lines, as blocked sums.
#include <algorithm>
#include <numeric>
#include <span>

#include "golden/bounds/text/interval_math.h"
#include "golden/bounds/value/matrix_sums.h"

namespace shardproof::bounds {
namespace {

using Value = IntervalMath::Value;

bool has(std::string_view letters, char c) { return letters.find(c) != std::string_view::npos; }

/// An operand's rows, and a weight as their matrix: [summed, columns], or a table [columns,
/// summed].
struct MatrixLetters {
  std::string rows, summed, columns;
  bool table = false, fits = true;

  MatrixLetters(const ContractionTerm& term) {  // NOLINT(google-explicit-constructor)
    for (const char c : term.b) (has(term.result, c) ? columns : summed) += c;
    for (const char c : term.a) {
      if (has(term.result, c)) rows += c;
      fits = fits && (has(term.result, c) ? !has(term.b, c) : has(term.b, c));
    }
    for (const char c : summed) fits = fits && has(term.a, c);
    table = term.b != summed + columns;
    fits = fits && (!table || term.b == columns + summed);
  }
};

std::size_t extent_of(std::string_view letters, const Value& of) {
  std::size_t count = 1;
  for (const char c : letters) count *= static_cast<std::size_t>(of.shape[of.letters.find(c)]);
  return count;
}

IntervalTensor numbers_of(const Value& value) {
  IntervalTensor t(value.shape);
  for (std::size_t i = 0; i < t.size(); ++i) {
    const Number& v = value.data[i].number;
    t.center[i] = v.center, t.radius[i] = v.worst, t.likely[i] = v.likely;
  }
  return t;
}

}  // namespace

std::optional<Value> IntervalMath::product(const Expression& e,
                                           const std::vector<std::pair<Value, Value>>& operands,
                                           const Shape& shape, bool) const {
  const MatrixLetters first(e.terms[0]);
  for (std::size_t t = 0; t < e.terms.size(); ++t) {
    const MatrixLetters own(e.terms[t]);
    if (!own.fits || own.rows != first.rows || own.columns != first.columns ||
        operands[t].first.floats != nullptr || operands[t].second.floats == nullptr)
      return std::nullopt;
  }
  std::vector<IntervalTensor> numbers;
  for (std::size_t t = 0; t < e.terms.size(); ++t) {
    const MatrixLetters own(e.terms[t]);
    numbers.push_back(numbers_of(in_order(operands[t].first, own.rows + own.summed)));
  }
  std::vector<MatrixTerm> terms;
  for (std::size_t t = 0; t < e.terms.size(); ++t) {
    const MatrixLetters own(e.terms[t]);
    const Value& matrix = operands[t].second;
    terms.push_back({&numbers[t], matrix.floats.get(), extent_of(own.summed, matrix), own.table});
  }
  const std::size_t columns = extent_of(first.columns, operands[0].second);
  std::vector<std::size_t> rows(extent_of(first.rows, operands[0].first));
  std::iota(rows.begin(), rows.end(), std::size_t{0});
  Value y{first.rows + first.columns, {}, std::vector<Estimate>(rows.size() * columns)};
  for (const char c : y.letters) y.shape.push_back(shape[e.terms[0].result.find(c)]);
  each_sum(terms, rows, columns, 1, SumsNeeded::of(line_.declared), *threads_,
           [&](std::size_t row, std::size_t column, std::span<const Sums> sums) {
             for (std::size_t c = 0; c < sums.size(); ++c)
               y.data[row * columns + column + c] = of_sum(sums[c][0], line_);
           });
  return in_order(y, e.terms[0].result);
}

}  // namespace shardproof::bounds
