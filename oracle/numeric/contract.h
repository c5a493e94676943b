#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "oracle/numeric/vectors.h"
#include "weights/base/error.h"

namespace shardproof::oracle {

// S(rows[i], columns[j]) of docs/spec.md section 1 by three methods, which must give the same bits.

/// Computes S by Sum of exact_sum.h.
float wide_dot(const Vectors& rows, std::size_t i, const Vectors& columns, std::size_t j);
/// Computes S in 128-bit fixed point; nullopt if the sum might not fit.
std::optional<float> fixed_point_dot(const Vectors& rows, std::size_t i, const Vectors& columns,
                                     std::size_t j);

/// Returns every S(rows[i], columns[j]), row-major: by limbs (limbs.h) where fixed_point_dot has a
/// result, otherwise by wide_dot. Bits do not depend on the number of threads. Throws
/// Error("oracle_length", ...) if the vectors' lengths differ.
std::vector<float> contract(const Vectors& rows, const Vectors& columns, int threads = 1);

}  // namespace shardproof::oracle
