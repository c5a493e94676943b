#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>

#include "golden/bounds/number/functions.h"
#include "golden/bounds/number/interval.h"

namespace shardproof::bounds {

/// Maximum error of a library's functions, in ulp (defaults: docs/bounds.md section 5).
struct Ulp {
  double exp = 4, erf = 8, tanh = 8, sigmoid = 8, rsqrt = 2;

  static Ulp all(double ulp) { return {ulp, ulp, ulp, ulp, ulp}; }
};

/// Reductions of partial sums that a value may come from: all that libraries have by name
/// (golden/bounds/value/reduction.h), one kind of them, or additions in any order or tree.
enum class Reduction { named, ring, tree, group, any };

/// Order in which the products of a sum are added. any: any order or tree; natural: every partial
/// sum is over a contiguous range; lanes: contiguous within each of several interleaved lanes.
enum class Order { any, natural, lanes };

/// An adder that aligns a block of products with the running sum, truncates, and adds (T7 of
/// docs/bounds.md).
struct Adding {
  int block = 0;  ///< products per block; 0: every addition rounds to nearest
  int extra = 0;  ///< bits kept below the last bit of the largest term

  bool truncates() const { return block > 0; }
};

/// The declared arithmetic of the program that wrote the dump.
struct DeclaredArithmetic {
  NumberFormat values = NumberFormat::f32;  ///< storage format of values that st() rounds
  NumberFormat sums = NumberFormat::f32;    ///< accumulator format
  Arithmetic operations =
      Arithmetic::of(NumberFormat::f32, 4);  ///< arithmetic of everything except sums
  Ulp ulp = {};                              ///< in ulp of `operations`' unit
  /// Extra roundings per product: one for each constant folded into a factor, such as a scale
  /// folded into a weight.
  int folded = 0;
  /// Most wire roundings of a partial sum: 1 for a group of K chips, K−1 for a ring.
  int wire_roundings = 0;
  NumberFormat wire = NumberFormat::bf16;
  std::string rounding = {};  ///< see require_rounding; empty: every place may round
  Reduction reduction = Reduction::named;
  Order order = Order::any;
  int lanes = 1;
  std::int64_t sum_depth = 0;  ///< maximum number of roundings per product; 0: not declared
  Adding adding = {};
  bool confident = true;  ///< whether bounds of probability 1-2^-41 are used
  /// Accumulator format of products with the layers' matrices; nullopt: `sums`.
  std::optional<NumberFormat> matrix_sums = {};

  /// Returns a copy with the accumulators of products with the layers' matrices as `sums`.
  DeclaredArithmetic of_matrix_product() const {
    DeclaredArithmetic of = *this;
    of.sums = matrix_sums.value_or(sums);
    return of;
  }

  /// Returns the maximum error of a sum of n products relative to the sum of their magnitudes: in
  /// any order or tree a product goes through at most n roundings, its own included.
  double growth(std::int64_t n) const;
  /// The factor that holds a folded constant is rounded to the format of the values.
  double unit_of_folded() const { return std::max(unit_of(sums), unit_of(values)); }
  /// Returns the format of values that are not stored: score, max, exp, denom, logits.
  NumberFormat unstored() const { return narrow_storage(values) ? NumberFormat::f32 : values; }
};

}  // namespace shardproof::bounds
