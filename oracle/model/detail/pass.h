#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "oracle/model/oracle.h"
#include "oracle/numeric/each.h"

namespace shardproof::oracle {

/// One pass: its place in time, and its pages of the Answer, where every value is filed under its
/// id. A layer below 0 is no layer ("decode.1.embed").
class Pass : public Places {
 public:
  Pass(Answer& answer, const PassPlan& plan, ActType act, const IntTensor& ids, int threads);

  int threads() const { return threads_; }
  /// Calls body(i) for each of so many rows of so many elements, or of so many elements, on all
  /// threads; each must write values of its own.
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
  /// Files a checkpoint that st() leaves alone: score, max, exp, denom, logits and the caches.
  const Tensor& keep(int layer, std::string_view name, Tensor value);
  /// Files the checkpoint st(S) of a contraction S, and S. Returns the checkpoint.
  const Tensor& contraction(int layer, std::string_view name, Tensor s);
  /// Files the contraction S that the checkpoint, which is filed already, was made of. It must be
  /// finite, too, as must a statistic.
  void raw(int layer, std::string_view name, Tensor s);
  /// Notes that an int8 scale multiplies the contraction.
  void with_scale(int layer, std::string_view name);
  /// S times the int8 scale, to which biases are added.
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
