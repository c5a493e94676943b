#include "golden/scalar/chains.h"

#include <map>
#include <string>
#include <utility>

#include "golden/scalar/ring_place.h"

namespace shardproof::scalar {
namespace {

/// A result's elements as a matrix: rows by the dims of the left operands, columns by the right
/// ones'. If a dim belongs to both, or the rows do not come first, every element is its own row and
/// column.
struct Matrix {
  bool separable = true;
  std::int64_t rows = 1, columns = 1;

  Matrix(const EinsumSpec& spec, const Shape& shape) {
    std::size_t left = 0;  // leading dims of the left operands
    const auto& result = spec.terms[0].result;
    const auto of = [](const std::string& letters, char c) {
      return letters.find(c) != std::string::npos;
    };
    while (left < result.size() && of(spec.terms[0].a, result[left])) ++left;
    for (const EinsumSpec::Term& term : spec.terms)
      for (std::size_t d = 0; d < result.size(); ++d)
        separable = separable && of(term.a, result[d]) == (d < left) &&
                    of(term.b, result[d]) == (d >= left);
    for (std::size_t d = 0; d < shape.size(); ++d) (d < left ? rows : columns) *= shape[d];
  }
};

/// Rows, or columns, by the place of their chips.
using Groups = std::map<std::array<std::int64_t, 3>, std::vector<std::int64_t>>;

std::array<std::int64_t, 3> coordinates(const Place& place) {
  return {place.at[0], place.at[1], place.at[2]};
}

}  // namespace

Chains::Chains(const Op& op, const std::vector<const Value*>& args, const Setting& setting,
               const Place& place, const Shape& shape)
    : op_(op), args_(args), torus_(setting.torus), shape_(shape) {
  for (std::size_t t = 0; t < op.spec.terms.size(); ++t) {
    orders_.emplace_back(op, t, args, setting.torus, place);
    looped_ = looped_ || !orders_.back().ring.empty();
  }
  const Matrix m(op.spec, shape);
  if (!m.separable) {
    for (std::int64_t i = 0; i < element_count(shape); ++i) add_block(place_of(i), {i}, {0});
    return;
  }
  Groups rows, columns;
  for (std::int64_t r = 0; r < m.rows && m.columns > 0; ++r)
    rows[coordinates(place_of(r * m.columns))].push_back(r * m.columns);
  for (std::int64_t c = 0; c < m.columns && m.rows > 0; ++c)
    columns[coordinates(place_of(c))].push_back(c);
  for (const auto& [row_place, of_rows] : rows)
    for (const auto& [column_place, of_columns] : columns) {
      Place chip;
      for (std::size_t a = 0; a < 3; ++a) chip.at[a] = row_place[a] + column_place[a];
      add_block(chip, of_rows, of_columns);
    }
}

/// Returns the place whose chip computes an element; the origin if that does not matter.
Place Chains::place_of(std::int64_t element) const {
  return looped_ ? holder(op_.results[0].layout, shape_, torus_, element) : Place{};
}

void Chains::add_block(const Place& chip, std::vector<std::int64_t> rows,
                       std::vector<std::int64_t> columns) {
  Block& block = blocks_.emplace_back();
  block.rows = std::move(rows);
  block.columns = std::move(columns);
  for (const TermOrder& order : orders_) {
    block.owned.push_back(
        &order.of_chip[static_cast<std::size_t>(block_over(order.ring, torus_, chip))]);
    block.terms += block.owned.back()->a.size();
  }
}

const float* Chains::factors(std::size_t operand, std::int64_t element) const {
  const Value& of = *args_[operand];
  const std::string& result = op_.spec.terms[operand / 2].result;
  std::int64_t at = 0;
  for (std::size_t d = shape_.size(); d-- > 0; element /= shape_[d])
    at += element % shape_[d] * stride(of, result[d]);
  return of.whole().data() + at;
}

const float* Chains::row_of(const Block& block, std::size_t term, std::int64_t row,
                            std::vector<float>& copy) const {
  const float* const from = factors(2 * term, row);
  const OwnedTerms& owned = *block.owned[term];
  if (owned.a_side_by_side) return from + (owned.a.empty() ? 0 : owned.a.front());
  copy.clear();
  for (const std::int64_t a : owned.a) copy.push_back(from[a]);
  return copy.data();
}

}  // namespace shardproof::scalar
