#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>

#include "golden/bounds/number/functions.h"
#include "golden/bounds/number/interval.h"

namespace shardproof::bounds {

/// How many ulp a library's functions may be off (docs/bounds.md section 5 has what they are).
struct Ulp {
  double exp = 4, erf = 8, tanh = 8, sigmoid = 8, rsqrt = 2;

  static Ulp all(double ulp) { return {ulp, ulp, ulp, ulp, ulp}; }
};

/// Which reductions of partial sums a value may come from: those that libraries have by name
/// (golden/bounds/value/reduction.h), one kind of them, or additions in any order or tree.
enum class Reduction { named, ring, tree, group, any };

/// In which order a sum's products are added: any order or tree; such that every partial sum is of
/// neighbours; the same in each of so many interleaved lanes.
enum class Order { any, natural, lanes };

/// An adder that aligns a block of products and the sum, cuts off, and adds (docs/bounds.md, T7).
struct Adding {
  int block = 0;  ///< products at once; 0: every addition rounds to nearest
  int extra = 0;  ///< bits kept below the largest one's last

  bool truncates() const { return block > 0; }
};

/// What is declared of somebody's arithmetic.
struct Declared {
  Format values = Format::f32;  ///< what a value that st() rounds is kept as
  Format sums = Format::f32;    ///< what sums are kept as while they grow
  Arithmetic operations = Arithmetic::of(Format::f32, 4);  ///< of all that is not a sum
  Ulp ulp = {};                                            ///< of `operations`' unit
  /// Roundings of a product beyond its own and those of the additions: one for each constant that
  /// is folded into a factor, as a scale into a weight.
  int folded = 0;
  /// How often a partial sum is rounded on the wire, at most: a group of K once, a ring K−1 times.
  int wire_roundings = 0;
  Format wire = Format::bf16;
  std::string rounding = {};  ///< what require_rounding reads; empty: every place may round
  Reduction reduction = Reduction::named;
  Order order = Order::any;
  int lanes = 1;
  std::int64_t sum_depth = 0;  ///< the most roundings of a product in a sum; 0: not said
  Adding adding = {};
  bool confident = true;  ///< whether bounds of probability 1-2^-41 are made use of
  /// What sums of products with the matrices of layers are kept as while they grow; nothing: as
  /// `sums`.
  std::optional<Format> matrix_sums = {};

  /// The same, where `sums` is what a product with a matrix of a layer is kept as.
  Declared of_matrix_product() const {
    Declared of = *this;
    of.sums = matrix_sums.value_or(sums);
    return of;
  }

  /// By how much a sum of n products may be off, relative to the sum of their sizes: in any order
  /// or tree a product goes through at most n roundings, its own included.
  double growth(std::int64_t n) const;
  /// A factor into which a constant is folded is rounded to the format of the values.
  double unit_of_folded() const { return std::max(unit_of(sums), unit_of(values)); }
  /// What a number of a value becomes that is not stored: score, max, exp, denom, logits.
  Format unstored() const { return narrow_storage(values) ? Format::f32 : values; }
};

}  // namespace shardproof::bounds
