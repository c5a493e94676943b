#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "oracle/field/detail/arithmetic.h"
#include "oracle/field/detail/random.h"
#include "oracle/walk/array.h"
#include "weights/base/error.h"
#include "weights/model/numerics.h"
#include "weights/text/model_text.h"
#include "weights/text/sizes.h"

namespace shardproof::oracle::graph {

/// Numbers of the field regime (docs/field.md): sums and products are exact, every other function
/// is a random one, by name. Of a text's formulas those have the names of docs/field.md section 1.3
/// that are written as `list models --text` writes them.
class FieldMath {
 public:
  using Scalar = field::Number;
  static constexpr bool kFormal = true;

  /// Σ a·b.
  class Sum {
   public:
    explicit Sum(const field::Arithmetic& math) : math_(&math) {}
    void add(const Scalar& a, const Scalar& b) {
      total_ = math_->add(total_, math_->multiply(a, b));
    }
    void add(const Scalar& a) { total_ = math_->add(total_, a); }
    Scalar value() const { return total_; }

   private:
    const field::Arithmetic* math_;
    Scalar total_{};
  };

  /// Throws Error("field_setting", ...).
  FieldMath(const FieldSetting& setting, NumberFormat act, const ModelText& text,
            const TextSizes& sizes)
      : math_(setting), random_(setting), act_(act), text_(text), sizes_(sizes) {}

  Sum sum() const { return Sum(math_); }
  /// A whole number.
  Scalar number(double v) const { return math_.integer(static_cast<std::int64_t>(v)); }
  /// The value of a word of the text: a whole literal and an extent are integers; any other number
  /// is random by its name, with the extents that its formula reads.
  Scalar word(const std::string& word) const;
  static Scalar named(const Scalar& v) { return v; }
  Scalar stored(const Scalar& v) const {
    return act_ == NumberFormat::bf16 ? function("bf16", v) : v;
  }

  /// Throws Error("field_zero", ...) on a division by a number with a lane of 0.
  Scalar pair(ModelOp op, const Scalar& a, const Scalar& b) const;
  Scalar function(ModelOp op, const Scalar& x) const;
  Scalar function(std::string_view name, const Scalar& x) const;
  /// within of an integer of small size, as positions are, is 0 or 1; within of any other number,
  /// and clamp of any, is a random function by the op's name and its range.
  Scalar ranged(ModelOp op, const Scalar& x, double low, double high) const;
  Scalar negative(const Scalar& x) const { return math_.subtract({}, x); }
  static bool is_zero(const Scalar& x) { return x == Scalar{}; }
  static Scalar gathered(const Scalar& x) { return x; }
  static void begin(const TextLine&, std::int64_t, bool) {}
  static bool is_known(const Scalar&) { return true; }
  /// Throws Error("oracle_range", ...): every number of this regime is known.
  static Scalar perhaps(const Scalar& x) { return x; }
  static Scalar unknown() { throw Error("oracle_range", "a token's id is not known"); }
  static std::optional<Lettered<Scalar>> product(
      const Expression&, const std::vector<std::pair<Lettered<Scalar>, Lettered<Scalar>>>&,
      const Shape&, bool) {
    return std::nullopt;
  }
  Scalar divided(const Scalar& x, std::int64_t by) const {
    return pair(ModelOp::div, x, math_.integer(by));
  }
  double index(const Scalar& v) const;
  const field::Arithmetic& arithmetic() const { return math_; }
  const field::Random& random() const { return random_; }

  /// The name of a random function, and the expression that is its argument.
  struct Formula {
    std::string name;
    const Expression* argument;
  };
  /// Returns how an expression is one function of another, where it is more than one op.
  std::optional<Formula> formula(const Expression& e) const;
  /// Returns the operands of the difference whose exponential an expression is, through a line's
  /// name: exp(sub(a, b)).
  std::optional<std::pair<const Expression*, const Expression*>> difference(
      const Expression& e, TextSection section) const;

 private:
  /// The integer of small size that a number is, if it is one.
  std::optional<std::int64_t> integer_of(const Scalar& v) const;

  field::Arithmetic math_;
  field::Random random_;
  NumberFormat act_;
  const ModelText& text_;
  const TextSizes& sizes_;
};

}  // namespace shardproof::oracle::graph
