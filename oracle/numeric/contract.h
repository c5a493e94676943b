#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "oracle/numeric/vectors.h"
#include "weights/base/error.h"

namespace shardproof::oracle {

// S(rows[i], columns[j]) of docs/spec.md section 1 by three methods, which must give the same bits.

/// By exact_sum.h's Sum, always.
float wide_dot(const Vectors& rows, std::size_t i, const Vectors& columns, std::size_t j);
/// In 128-bit fixed point; nothing if it might not fit.
std::optional<float> fixed_point_dot(const Vectors& rows, std::size_t i, const Vectors& columns,
                                     std::size_t j);

/// Every S(rows[i], columns[j]), row-major: by limbs (limbs.h) where fixed_point_dot has an answer,
/// else by wide_dot. The same bits for any number of threads. Throws Error("oracle_length", ...) if
/// the vectors' lengths differ.
std::vector<float> contract(const Vectors& rows, const Vectors& columns, int threads = 1);

}  // namespace shardproof::oracle
