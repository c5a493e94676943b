#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "oracle/field/answer.h"
#include "oracle/field/detail/arithmetic.h"
#include "oracle/field/detail/random.h"
#include "oracle/formulas/detail/value.h"

namespace shardproof::oracle::field {

/// A random function that counts its applications, on any threads.
class Function {
 public:
  Function(const Random& random, std::string_view name, std::int64_t& applied);
  Number operator()(const Number& v) const;

 private:
  const Random& random_;
  std::uint64_t hash_;
  bool keeps_zero_;
  std::int64_t& applied_;
};

/// Vectors of one length, the rows or the columns of a product. Element k of vector i is at
/// data[i·vector_step + k·element_step].
struct Vectors {
  static Vectors rows_of(std::span<const Number> matrix, std::size_t count);
  static Vectors columns_of(std::span<const Number> matrix, std::size_t count);

  std::span<const Number> data;
  std::size_t count, length, vector_step, element_step;
};

/// Numbers of the field: its arithmetic, and its functions and constants by name (docs/field.md
/// section 1.3). What it is asked is counted in the answer.
class Numbers : public Arithmetic {
 public:
  using Element = Number;
  using Vectors = field::Vectors;

  /// A factor of all elements of a value.
  struct Factor {
    Number value;
    Degree degree;
  };

  explicit Numbers(Answer& answer)
      : Arithmetic(answer.setting), answer_(answer), random_(answer.setting) {}

  static Number element(const Number& v) { return v; }
  // A divisor is held as its inverse. Both throw Error("field_zero", ...), naming `id`, if there is
  // none.
  Number divide(const Number& x, const Number& divisor) const { return multiply(x, divisor); }
  Number divisor(const std::string& id, std::int64_t extent) const;
  std::vector<Number> divisors(int layer, const std::string& id, const Tensor& denom) const;

  /// Returns Σ_k rows[i][k]·columns[j][k] for all i and j, row-major.
  std::vector<Number> contract(const Vectors& rows, const Vectors& columns, int threads) const;
  Number sum_of(std::span<const Number> x) const;
  Number sum_of_squares(std::span<const Number> x) const {
    return dot(x.data(), x.data(), x.size());
  }

  /// Returns the random number "constant WHAT".
  Number constant(std::string_view what) const;
  Factor embed_scale() const;
  Factor logit_scale() const;
  Factor score_scale(std::size_t Q) const;

  /// Returns the function of this name, and files the degree of its arguments.
  Function function(std::string_view name, const Degree& argument) const;
  Function bf16(const Degree& argument) const { return function("bf16", argument); }
  Function activation(const Degree& argument) const;
  Function inverse_root(const Degree& argument) const;

  /// Models a maximum as a sum over the keys, and e^(s−m) as a product of a function of each.
  struct Softmax {
    const Numbers& math;
    Function to_max, to_exp, max_to_exp;
    /// Writes exp of each score and returns the maximum and exp's sum.
    std::pair<Number, Number> operator()(std::span<const Number> s, std::span<Number> e) const;
  };
  Softmax softmax(const Degree& argument) const;

  void admit(const std::string&, const Value<Numbers>& value) const {
    answer_.degrees.insert(value.degree);
  }

 private:
  Factor model_scale(std::string_view name, bool is_one) const;

  Answer& answer_;
  Random random_;
};

}  // namespace shardproof::oracle::field
