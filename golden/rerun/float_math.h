#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "golden/rerun/arithmetic.h"
#include "golden/rerun/order.h"
#include "oracle/walk/array.h"
#include "oracle/walk/selection.h"
#include "weights/base/error.h"
#include "weights/text/model_text.h"
#include "weights/text/text_model.h"

namespace shardproof::rerun {

/// Numbers of one rerun of a text in f32 or (Real = double) f64, for the walk over it
/// (oracle/walk/evaluation.h): sums are added in an order drawn for each line, functions have a
/// drawn form, and where `rounding` leaves it open, each op of a line rounds to the format of
/// values or does not, as drawn for it.
template <class Real>
class FloatMath {
 public:
  using Scalar = Real;
  using Value = oracle::graph::Lettered<Real>;
  static constexpr bool kFormal = false;

  /// A sum of products and of numbers.
  class Sum {
   public:
    explicit Sum(const FloatMath& math) : math_(&math) {}
    void add(Real a, Real b) {
      a_.push_back(a);
      b_.push_back(b);
    }
    void add(Real a) { add(a, 1); }
    Real value() const {
      return math_->rounds(ModelOp::sum, math_->added(
                                             a_.size(), [&](std::size_t k) { return a_[k]; },
                                             [&](std::size_t k) { return &b_[k]; }));
    }

   private:
    const FloatMath* math_;
    std::vector<Real> a_, b_;
  };

  /// `model` outlives the math. Draws depend on (seed, run, line) alone.
  FloatMath(const TextModel& model, const Arithmetic& arithmetic, std::uint64_t seed,
            std::uint64_t run);

  Sum sum() const { return Sum(*this); }
  static Real number(double v) { return static_cast<Real>(v); }
  Real word(const std::string& word) const { return number(model_.sizes().number(word)); }
  static Real named(Real v) { return v; }
  Real stored(Real v) const { return kept(v, arithmetic_.values); }
  Real pair(ModelOp op, Real a, Real b) const;
  Real function(ModelOp op, Real x) const;
  static Real ranged(ModelOp op, Real x, double low, double high);
  static double index(Real v) { return static_cast<double>(v); }
  static Real negative(Real x) { return -x; }
  static bool is_zero(Real x) { return x == 0; }
  static bool is_known(Real) { return true; }
  static Real perhaps(Real x) { return x; }
  /// Throws Error("oracle_range", ...): every number of a rerun is known.
  static Real unknown() { throw Error("oracle_range", "a token's id is not known"); }
  Real divided(Real x, std::int64_t by) const {
    return pair(ModelOp::div, x, number(static_cast<double>(by)));
  }
  /// Returns 1 for each of the k largest, of equals the first, otherwise 0.
  static std::vector<Real> top(const std::vector<Real>& all, std::size_t k) {
    return oracle::graph::marks_of_largest(all, k);
  }
  static Real gathered(Real x) { return x; }
  /// Begins a line of a layer (-1: of none), whose sums have an order of their own.
  void begin(const TextLine& line, std::int64_t layer, bool in_loop) const;
  /// Returns an einsum, whose terms are added without being kept.
  std::optional<Value> product(const Expression& e,
                               const std::vector<std::pair<Value, Value>>& operands,
                               const Shape& shape, bool outermost) const;

 private:
  Draw draw(const std::string& purpose) const { return {seed_, run_, purpose}; }
  /// Rounds to a format; at random where the arithmetic says so.
  Real kept(Real v, NumberFormat format) const;
  /// Returns the result of a line's op, rounded where this is drawn.
  Real rounds(ModelOp op, Real v) const;
  template <class Factor, class Other>
  Real added(std::size_t n, Factor&& factor, Other&& other) const {
    Real out{};
    adder_.add_up(order(n), sums_, 1, factor, other, &out);
    return out;
  }
  const Order& order(std::size_t n) const;

  const TextModel& model_;
  const Arithmetic& arithmetic_;
  std::uint64_t seed_, run_;
  bool sigmoid_ = false;   ///< x·sigmoid(x), not x/(1+exp(−x))
  bool one_plus_ = false;  ///< gelu by 1+erf and 1+tanh
  bool open_ = false;      ///< `rounding` leaves places open
  mutable Draw chance_;    ///< for random roundings
  mutable Adder<Real> adder_;
  // State of the current line:
  mutable std::string name_, id_;
  mutable Sums sums_;
  mutable std::map<std::size_t, Order> orders_;  ///< by number of terms
  mutable std::map<std::pair<std::string, ModelOp>, bool>
      ops_;  ///< of all lines: whether an op rounds
};

}  // namespace shardproof::rerun
