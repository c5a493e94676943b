#include "oracle/graph/detail/products.h"

#include "oracle/numeric/contract.h"

namespace shardproof::oracle::graph {
namespace {

bool has(const std::string& letters, char c) { return letters.find(c) != std::string::npos; }

/// The letters of a term by what they are: of both operands and the result, of one and the result,
/// summed over.
struct Letters {
  std::string batch, rows, columns, summed;
  bool is_product = true;  ///< no letter is of one operand alone and not of the result

  Letters(const ContractionTerm& term) {  // NOLINT(google-explicit-constructor)
    for (const char c : term.a) (has(term.result, c) ? has(term.b, c) ? batch : rows : summed) += c;
    for (const char c : term.b)
      if (has(term.result, c) && !has(term.a, c)) columns += c;
    for (const char c : summed) is_product = is_product && has(term.b, c);
    for (const char c : term.b) is_product = is_product && (has(term.result, c) || has(term.a, c));
  }
};

std::optional<std::vector<float>> floats_of(const Lettered<double>& x, const std::string& letters) {
  std::vector<float> floats;
  if (x.floats != nullptr) {
    if (letters == x.letters) return *x.floats;
    const Lettered<float> weight{x.letters, x.shape, *x.floats};
    return in_order(weight, letters).data;
  }
  floats.reserve(x.data.size());
  for (const double v : in_order(x, letters).data) {
    floats.push_back(static_cast<float>(v));
    if (static_cast<double>(floats.back()) != v) return std::nullopt;
  }
  return floats;
}

/// Appends to each of `count` vectors of `all` that of `own`.
void join(std::vector<float>& all, const std::vector<float>& own, size_t count) {
  if (all.empty()) {
    all = own;
    return;
  }
  const size_t before = all.size() / count, more = own.size() / count;
  std::vector<float> joined;
  joined.reserve(all.size() + own.size());
  for (size_t i = 0; i < count; ++i) {
    joined.insert(joined.end(), all.begin() + static_cast<std::ptrdiff_t>(i * before),
                  all.begin() + static_cast<std::ptrdiff_t>((i + 1) * before));
    joined.insert(joined.end(), own.begin() + static_cast<std::ptrdiff_t>(i * more),
                  own.begin() + static_cast<std::ptrdiff_t>((i + 1) * more));
  }
  all = std::move(joined);
}

size_t extent_of(const std::string& letters, const std::string& all, const Shape& shape) {
  size_t count = 1;
  for (const char c : letters) count *= static_cast<size_t>(shape[all.find(c)]);
  return count;
}

/// Returns the product with a weight as it is stored, without a copy of it; nullopt if it is not
/// one matrix whose rows or columns stand in the order of the other operand.
std::optional<Lettered<double>> product_with_weight(
    const Expression& e, const std::vector<std::pair<Lettered<double>, Lettered<double>>>& operands,
    const Shape& shape) {
  const Letters own(e.terms[0]);
  const auto& [x, weight] = operands[0];
  const bool columns_last = weight.letters == own.summed + own.columns;
  if (e.terms.size() > 1 || weight.floats == nullptr || !own.is_product || !own.batch.empty() ||
      (!columns_last && weight.letters != own.columns + own.summed))
    return std::nullopt;
  const auto a = floats_of(x, own.rows + own.summed);
  if (!a) return std::nullopt;
  const std::string& result = e.terms[0].result;
  const size_t rows = extent_of(own.rows, result, shape);
  const size_t columns = extent_of(own.columns, result, shape);
  Lettered<double> y{own.rows + own.columns, {}, {}};
  for (const char c : y.letters) y.shape.push_back(shape[result.find(c)]);
  for (const float s : contract(Vectors::rows_of(*a, rows),
                                columns_last ? Vectors::columns_of(*weight.floats, columns)
                                             : Vectors::rows_of(*weight.floats, columns)))
    y.data.push_back(static_cast<double>(s));
  return in_order(y, result);
}

}  // namespace

std::optional<Lettered<double>> product_of_floats(
    const Expression& e, const std::vector<std::pair<Lettered<double>, Lettered<double>>>& operands,
    const Shape& shape) {
  if (auto product = product_with_weight(e, operands, shape)) return product;
  const std::string& result = e.terms[0].result;
  const Letters first(e.terms[0]);
  const size_t batches = extent_of(first.batch, result, shape);
  const size_t rows = extent_of(first.rows, result, shape);
  const size_t columns = extent_of(first.columns, result, shape);
  std::vector<float> a, b;
  for (size_t t = 0; t < e.terms.size(); ++t) {
    const Letters own(e.terms[t]);
    if (!own.is_product || own.batch != first.batch || own.rows != first.rows ||
        own.columns != first.columns)
      return std::nullopt;
    const auto of_a = floats_of(operands[t].first, own.batch + own.rows + own.summed);
    const auto of_b = floats_of(operands[t].second, own.batch + own.columns + own.summed);
    if (!of_a || !of_b) return std::nullopt;
    join(a, *of_a, batches * rows);
    join(b, *of_b, batches * columns);
  }
  Lettered<double> y{first.batch + first.rows + first.columns, {}, {}};
  for (const char c : y.letters) y.shape.push_back(shape[result.find(c)]);
  for (size_t n = 0; n < batches; ++n) {
    const auto part = [&](const std::vector<float>& all, size_t count) {
      const size_t size = all.size() / batches;
      return Vectors::rows_of(std::span(all).subspan(n * size, size), count);
    };
    for (const float s : contract(part(a, rows), part(b, columns)))
      y.data.push_back(static_cast<double>(s));
  }
  return in_order(y, result);
}

}  // namespace shardproof::oracle::graph
