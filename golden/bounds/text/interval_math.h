#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "engine/numeric/threads.h"
#include "golden/bounds/number/declared_arithmetic.h"
#include "golden/bounds/number/interval_tensor.h"
#include "golden/bounds/number/number.h"
#include "oracle/walk/array.h"
#include "weights/base/error.h"
#include "weights/text/model_text.h"
#include "weights/text/sizes.h"

namespace shardproof::bounds {

/// A number of another program's evaluation of a text. `terms`: of a sum or a difference the
/// magnitudes of its two terms, added up; otherwise 0.
struct Estimate {
  Number number;
  double terms = 0.0;
};

/// How the line that is being evaluated is computed.
struct LineArithmetic {
  DeclaredArithmetic declared = {};
  bool exactly = false;    ///< nothing is rounded, for the centers of derivations
  bool integral = false;   ///< integers made of positions alone, which no engine rounds
  bool may_round = false;  ///< each operation may round to the format in which values are stored
  /// The format that the line's value is rounded to before another position of a loop reads it;
  /// nullopt outside of loops.
  std::optional<NumberFormat> in_loop = {};
};

/// Numbers that another program may have where it evaluates a text in declared arithmetic, for the
/// walk over it (oracle/walk/evaluation.h): each operation widens a number's radius by its error,
/// over every way in which textbooks and libraries write it (docs/bounds.md section 5). Sums and
/// differences may be added up in any order.
class IntervalMath {
 public:
  using Scalar = Estimate;
  static constexpr bool kFormal = false;

  /// A sum of products and of numbers.
  class Sum {
   public:
    explicit Sum(const LineArithmetic& by) : by_(&by) {}
    void add(const Estimate& a, const Estimate& b) { sum_.add(a.number, b.number); }
    void add(const Estimate& a) { sum_.add(a.number, {1.0, 0.0, 0.0}); }
    Estimate value() const;

   private:
    const LineArithmetic* by_;
    IntervalSum sum_;
  };

  /// Returns how a line of a layer (-1: of none) is computed; in_loop: at one position of a loop.
  using ArithmeticOf =
      std::function<LineArithmetic(const TextLine& line, std::int64_t layer, bool in_loop)>;

  /// `sizes` outlives the math.
  IntervalMath(const TextSizes& sizes, ArithmeticOf arithmetic)
      : sizes_(sizes), arithmetic_(std::move(arithmetic)) {}

  Sum sum() const { return Sum(line_); }
  static Estimate number(double v) { return {{v, 0.0, 0.0}}; }
  Estimate word(const std::string& word) const;
  Estimate named(const Estimate& v) const;
  Estimate stored(const Estimate& v) const;

  Estimate pair(ModelOp op, const Estimate& a, const Estimate& b) const;
  Estimate function(ModelOp op, const Estimate& x) const;
  Estimate ranged(ModelOp op, const Estimate& x, double low, double high) const;
  static double index(const Estimate& v) { return v.number.center; }
  static Estimate negative(const Estimate& x);
  /// Returns whether the number is 0 and cannot be another.
  static bool is_zero(const Estimate& x) { return x.number.center == 0 && x.number.worst == 0; }
  /// Returns whether the number is exactly known, as indicators and indices must be.
  static bool is_known(const Estimate& x) { return x.number.worst == 0; }
  static Estimate unknown() { return {{0.0, kInfinity, kInfinity}}; }
  /// Returns a number that may be 0 in its place.
  static Estimate perhaps(const Estimate& x) { return {hull(x.number, {0.0, 0.0, 0.0})}; }
  Estimate divided(const Estimate& x, std::int64_t by) const;
  /// Returns 1 for those that are surely among the k largest, 0 for those that surely are not, and
  /// for all others a number that may be either.
  static std::vector<Estimate> top(const std::vector<Estimate>& all, std::size_t k);
  /// A row of a table, which a sharded lookup may have sent.
  Estimate gathered(const Estimate& x) const;
  void begin(const TextLine& line, std::int64_t layer, bool in_loop) const {
    line_ = arithmetic_(line, layer, in_loop);
  }
  using Value = oracle::graph::Lettered<Estimate>;
  /// Returns an einsum with weights as blocked products (golden/bounds/value/matrix_sums.h), on the
  /// threads in use; nullopt if the weights are no matrices of it.
  std::optional<Value> product(const Expression& e,
                               const std::vector<std::pair<Value, Value>>& operands,
                               const Shape& shape, bool) const;
  /// Uses these threads, which outlive the math, in place of the caller's.
  void use(Threads& threads) { threads_ = &threads; }

 private:
  Estimate rounded(const Number& x) const;
  static Estimate of_sum(const bounds::Sum& sum, const LineArithmetic& by);

  const TextSizes& sizes_;
  ArithmeticOf arithmetic_;
  Threads* threads_ = &calling_thread();
  mutable LineArithmetic line_;  ///< of the line that is being evaluated
};

}  // namespace shardproof::bounds
