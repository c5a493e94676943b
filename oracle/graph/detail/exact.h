#pragma once

#include <cmath>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "oracle/graph/detail/products.h"
#include "oracle/numeric/detail/functions.h"
#include "oracle/numeric/wide_sum.h"
#include "oracle/walk/array.h"
#include "oracle/walk/selection.h"
#include "weights/base/error.h"
#include "weights/model/numerics.h"
#include "weights/text/ops.h"
#include "weights/text/sizes.h"

namespace shardproof::oracle::graph {

/// Numbers of the exact regime: values are f32, what is nested in a line is f64, sums are rounded
/// once (docs/spec-model-text.md, "Numbers").
class Exact {
 public:
  using Scalar = double;
  using Sum = WideSum;
  static constexpr bool kFormal = false;

  Exact(NumberFormat act, const TextSizes& sizes) : act_(act), sizes_(sizes) {}

  static Sum sum() { return {}; }
  static double number(double v) { return v; }
  double word(const std::string& word) const { return sizes_.number(word); }
  /// Returns the element of a named value.
  static double named(double v) { return static_cast<double>(static_cast<float>(v)); }
  double stored(double v) const {
    const auto rounded = static_cast<float>(v);
    return static_cast<double>(act_ == NumberFormat::bf16 ? bf16(rounded) : rounded);
  }

  static double pair(ModelOp op, double a, double b);
  /// A function of one number; store is stored().
  double function(ModelOp op, double x) const;
  static double ranged(ModelOp op, double x, double low, double high);
  static double index(double v) { return v; }
  static double negative(double x) { return -x; }
  /// Returns 1 for each of the k largest, of equals the first, otherwise 0.
  static std::vector<double> top(const std::vector<double>& all, std::size_t k) {
    return marks_of_largest(all, k);
  }
  static double gathered(double x) { return x + 0.0; }  ///< -0 becomes +0, as in a sum over shards
  static void begin(const TextLine&, std::int64_t, bool) {}
  static bool is_known(double) { return true; }
  /// Throws Error("oracle_range", ...): every number of this regime is known.
  static double perhaps(double x) { return x; }
  static double unknown() { throw Error("oracle_range", "a token's id is not known"); }
  /// Returns an einsum that is to be rounded to f32, by the products that the model by hand has;
  /// nullopt where those have none, or if it is not `outermost` in its line.
  static std::optional<Lettered<double>> product(
      const Expression& e,
      const std::vector<std::pair<Lettered<double>, Lettered<double>>>& operands,
      const Shape& shape, bool outermost) {
    return outermost ? product_of_floats(e, operands, shape) : std::nullopt;
  }
  static bool is_zero(double x) { return x == 0; }
  static double divided(double x, std::int64_t by) { return x / static_cast<double>(by); }

 private:
  NumberFormat act_;
  const TextSizes& sizes_;
};

}  // namespace shardproof::oracle::graph
