#include "engine/ops/field_product.h"

namespace shardproof {

void field_contract(const Field& field, std::int64_t M, std::int64_t N,
                    const std::vector<FieldTerm>& terms, FieldElement* c) {
  std::int64_t K = 0;
  for (const FieldTerm& term : terms) K += term.K;
  // Concatenates the terms and copies each column of b, so that an element is one dot product.
  std::vector<FieldElement> rows, column(static_cast<std::size_t>(K));
  const FieldElement* a = terms.front().a;
  if (terms.size() > 1) {
    for (std::int64_t m = 0; m < M; ++m)
      for (const FieldTerm& term : terms)
        rows.insert(rows.end(), term.a + m * term.K, term.a + (m + 1) * term.K);
    a = rows.data();
  }
  for (std::int64_t n = 0; n < N; ++n) {
    auto to = column.begin();
    for (const FieldTerm& term : terms)
      for (std::int64_t k = 0; k < term.K; ++k) *to++ = term.b[k * N + n];
    for (std::int64_t m = 0; m < M; ++m)
      c[m * N + n] = field.dot(a + m * K, 1, column.data(), 1, K);
  }
}

}  // namespace shardproof
