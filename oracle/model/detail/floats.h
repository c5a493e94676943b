#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "oracle/formulas/detail/value.h"
#include "oracle/numeric/contract.h"
#include "oracle/numeric/detail/constants.h"
#include "oracle/numeric/detail/functions.h"
#include "oracle/numeric/exact_sum.h"
#include "weights/model/model_config.h"

namespace shardproof::oracle {

/// Numbers of the exact regime: elements are f32, intermediate values f64, sums of any length are
/// rounded once.
class Floats {
 public:
  using Element = float;
  using Vectors = oracle::Vectors;

  /// A factor of all elements of a value; floats do not read its degree.
  struct Factor {
    double value;
    Degree degree = {};
  };

  explicit Floats(const ModelConfig& config) : config_(config), constants_(config) {}

  static float element(double v) { return static_cast<float>(v); }
  static double integer(std::int64_t i) { return static_cast<double>(i); }
  static double add(double x, double y) { return x + y; }
  static double subtract(double x, double y) { return x - y; }
  static double multiply(double x, double y) { return x * y; }

  static double divide(double x, double divisor) { return x / divisor; }
  static double divisor(const std::string&, std::int64_t extent) { return integer(extent); }
  static std::vector<double> divisors(int, const std::string&, const Tensor& denom) {
    return {denom.data.begin(), denom.data.end()};
  }

  static std::vector<float> contract(const Vectors& rows, const Vectors& columns, int threads) {
    return oracle::contract(rows, columns, threads);
  }
  static float sum_of(std::span<const float> x) { return oracle::sum_of(x); }
  static float sum_of_squares(std::span<const float> x) { return sum_of_products(x, x); }

  Factor embed_scale() const { return {static_cast<double>(config_.embed_scale)}; }
  Factor logit_scale() const { return {constants_.of_logits}; }
  Factor score_scale(std::size_t Q) const { return {constants_.of_scores(Q)}; }

  // Functions. Each is asked for with the degree of its arguments.
  static auto bf16(const Degree&) { return &oracle::bf16; }
  auto activation(const Degree&) const -> float (*)(float);
  /// Returns a function of a norm's ss.
  auto inverse_root(const Degree&) const {
    return [E = static_cast<double>(config_.E), eps = constants_.eps](double ss) {
      return 1.0 / std::sqrt(ss / E + eps);
    };
  }
  /// Returns a function that writes e^(s−m), or 2^(s−m), of each score and returns m and their sum.
  auto softmax(const Degree&) const {
    return [exp = constants_.base2 ? &exp2_of : &exp_of](std::span<const float> s,
                                                         std::span<float> e) {
      const float m = *std::max_element(s.begin(), s.end());  // the first of equal ones
      for (std::size_t p = 0; p < s.size(); ++p) e[p] = exp(s[p] - m);
      return std::pair(m, oracle::sum_of(e));
    };
  }

  /// Throws Error("oracle_finite", ...) if an element is not finite.
  void admit(const std::string& id, const Value<Floats>& value) const;

 private:
  const ModelConfig& config_;
  Constants constants_;
};

}  // namespace shardproof::oracle
