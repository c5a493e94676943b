#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "oracle/model/oracle.h"
#include "oracle/numeric/each.h"

namespace shardproof::oracle {

/// One pass: its positions, and its part of the Answer, where every value is filed under its id. A
/// negative layer means no layer ("decode.1.embed").
class Pass : public Places {
 public:
  Pass(Answer& answer, const PassPlan& plan, ActType act, const IntTensor& ids, int threads);

  int threads() const { return threads_; }
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

  /// Files the checkpoint st(value) and returns it. Throws Error("oracle_finite", ...) if an
  /// element is not finite.
  const Tensor& store(int layer, std::string_view name, Tensor value);
  /// Files a checkpoint without st: score, max, exp, denom, logits and the caches.
  const Tensor& keep(int layer, std::string_view name, Tensor value);
  /// Files S and the checkpoint st(S) of a contraction. Returns the checkpoint.
  const Tensor& contraction(int layer, std::string_view name, Tensor s);
  /// Files the contraction S of a checkpoint that is already filed. S must be finite, as must
  /// statistics.
  void raw(int layer, std::string_view name, Tensor s);
  /// Records that an int8 scale multiplies the contraction.
  void with_scale(int layer, std::string_view name);
  /// Files S times the int8 scale, before biases are added.
  void scaled(int layer, std::string_view name, Tensor value);
  void stat(int layer, std::string_view name, Tensor value);
  void token(IntTensor ids);  ///< int32 [B, 1], filed as [B]

 private:
  Answer& answer_;
  std::string name_;
  ActType act_;
  int threads_;
};

}  // namespace shardproof::oracle
