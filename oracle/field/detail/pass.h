#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "oracle/field/answer.h"
#include "oracle/field/detail/arithmetic.h"
#include "oracle/field/detail/random.h"

namespace shardproof::oracle::field {

/// A tensor, and the degree of its elements.
struct Value {
  Tensor tensor;
  Degree degree;
};

/// Degree of inputs and of the results of functions.
inline const Degree kVariable{1, {}};

/// A random function that counts its applications.
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

/// One pass: its positions, its operands, and its part of the Answer, where every value is filed
/// under its id. A negative layer means no layer ("decode.1.embed").
class Pass : public Places {
 public:
  Pass(Answer& answer, const PassPlan& plan, ActType act, const IntTensor& ids, int threads);

  const Arithmetic& math() const { return math_; }
  int threads() const { return threads_; }
  const ModelConfig& config() const { return answer_.config; }
  /// Returns the weight `name` of the layer, "wq" or "wq_scale"; null if the model has none.
  const Tensor* weight(int layer, std::string_view name) const;
  /// Returns the random number "constant WHAT".
  Number constant(std::string_view what) const;
  /// Returns the function of this name, and files the degree of its arguments.
  Function function(std::string_view name, const Degree& argument);
  /// Returns 1/E for the statistic `name`. Throws Error("field_zero", ...), naming it, if p divides
  /// E.
  Number inverse_extent(int layer, std::string_view name, std::int64_t E) const;
  /// Returns 1/x of element `at` of the layer's denom. Throws Error("field_zero", ...) if there is
  /// none.
  Number inverse_denom(int layer, const Tensor& denom, std::size_t at);

  /// Files the checkpoint st(value) and returns it.
  Value store(int layer, std::string_view name, Value value);
  /// Files a checkpoint without st: score, max, exp, denom, logits, token and the caches.
  Value keep(int layer, std::string_view name, Value value);
  /// Files the contraction S of a checkpoint that is already filed.
  void raw(int layer, std::string_view name, Value s);
  /// Records that an int8 scale multiplies the contraction.
  void with_scale(int layer, std::string_view name);
  /// Files S times the scale, before biases are added.
  void scaled(int layer, std::string_view name, const Value& value);
  void stat(int layer, std::string_view name, const Value& value);

  Answer& answer() { return answer_; }
  const std::string& name() const { return name_; }

 private:
  std::string id(int layer, std::string_view name) const;

  Answer& answer_;
  std::string name_;
  ActType act_;
  int threads_;
  Arithmetic math_;
  Random random_;
};

}  // namespace shardproof::oracle::field
