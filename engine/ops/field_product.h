#pragma once

#include <cstdint>
#include <vector>

#include "engine/shards/field.h"

namespace shardproof {

/// One term of a contraction on one chip, row-major: a[M,K]·b[K,N].
struct FieldTerm {
  const FieldElement* a;
  const FieldElement* b;
  std::int64_t K;
};

/// C[M,N] = Σ_t a_t·b_t; `c` has room for M·N elements.
void field_contract(const Field& field, std::int64_t M, std::int64_t N,
                    const std::vector<FieldTerm>& terms, FieldElement* c);

}  // namespace shardproof
