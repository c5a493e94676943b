#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>

#include "oracle/formulas/detail/value.h"
#include "oracle/numeric/each.h"
#include "oracle/request/model_values.h"
#include "weights/model/numerics.h"
#include "weights/model/registry.h"

namespace shardproof::oracle {

/// One pass: its positions, and its part of the answer, where every value is filed under its id. A
/// negative layer means no layer ("decode.1.embed"). Math::admit sees each value that is filed: a
/// float must be finite, otherwise it throws Error("oracle_finite", ...); a field notes the degree.
template <class Math>
class Pass : public Places {
 public:
  Pass(Math math, ModelValues<TensorOf<Math>>& filed, const PassPlan& plan, NumberFormat act,
       const IntTensor& ids, int threads)
      : Places(plan),
        math_(std::move(math)),
        filed_(filed),
        name_(plan.name),
        act_(act),
        threads_(threads) {
    filed_.open(plan, *this, ids);
  }

  const Math& math() const { return math_; }
  int threads() const { return threads_; }
  std::string id(int layer, std::string_view name) const {
    return checkpoint_id(name_, layer, name);
  }

  /// each_row: calls body(i) for each of `rows` rows of `width` elements on all threads;
  /// each_element: for each of n elements. Each call must write its own values.
  template <class Body>
  void each_row(std::size_t rows, std::size_t width, Body&& body) const {
    oracle::each_row(rows, width, threads_, body);
  }
  template <class Body>
  void each_element(std::size_t n, Body&& body) const {
    oracle::each_row(n, 1, threads_, body);
  }

  /// Files the checkpoint st(value) and returns it.
  Operand<Math> store(int layer, std::string_view name, Value<Math> value) {
    if (act_ == NumberFormat::f32) return keep(layer, name, std::move(value));
    const auto bf16 = math_.bf16(value.degree);
    Value<Math> stored{value.tensor, kVariable};
    each_element(stored.tensor.data.size(),
                 [&](std::size_t n) { stored.tensor.data[n] = bf16(value.tensor.data[n]); });
    Operand<Math> checkpoint = keep(layer, name, std::move(stored));
    if (!same_bits(value.tensor, *checkpoint.tensor))
      filed_.unstored[id(layer, name)] = std::move(value.tensor);
    return checkpoint;
  }
  /// Files a checkpoint without st: score, max, exp, denom, logits, the caches and a field's token.
  Operand<Math> keep(int layer, std::string_view name, Value<Math> value) {
    const std::string id = this->id(layer, name);
    math_.admit(id, value);
    const auto at = filed_.checkpoints.insert_or_assign(id, std::move(value.tensor)).first;
    return {&at->second, std::move(value.degree)};
  }
  /// Files S and the checkpoint st(S) of a contraction. Returns the checkpoint.
  Operand<Math> contraction(int layer, std::string_view name, Value<Math> s) {
    if (act_ == NumberFormat::f32) return keep(layer, name, std::move(s));  // S is the checkpoint
    Operand<Math> checkpoint = store(layer, name, s);
    raw(layer, name, std::move(s));
    return checkpoint;
  }
  /// Files the contraction S of a checkpoint that is already filed.
  void raw(int layer, std::string_view name, Value<Math> s) {
    const std::string id = this->id(layer, name);
    math_.admit("raw " + id, s);
    if (!same_bits(s.tensor, filed_.checkpoints.at(id))) filed_.raw[id] = std::move(s.tensor);
  }
  /// Records that an int8 scale multiplies the contraction.
  void with_scale(int layer, std::string_view name) { filed_.with_scale.insert(id(layer, name)); }
  /// Files S times the int8 scale, before biases are added.
  void scaled(int layer, std::string_view name, Value<Math> value) {
    const std::string id = this->id(layer, name);
    math_.admit("scaled " + id, value);
    filed_.scaled[id] = std::move(value.tensor);
  }
  void stat(int layer, std::string_view name, Value<Math> value) {
    const std::string id = this->id(layer, name);
    math_.admit("stat " + id, value);
    filed_.stats[id] = std::move(value.tensor);
  }

 private:
  Math math_;
  ModelValues<TensorOf<Math>>& filed_;
  std::string name_;
  NumberFormat act_;
  int threads_;
};

}  // namespace shardproof::oracle
