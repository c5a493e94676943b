#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "oracle/oracle.h"

namespace shardproof::oracle {

/// One pass: its place in time, and its pages of the Answer, where every value is filed under its
/// id. A layer below 0 is no layer ("decode.1.embed").
class Pass {
 public:
  Pass(Answer& answer, std::string name, ActType act, const IntTensor& ids, std::int64_t start);

  std::int64_t batch() const { return batch_; }
  std::int64_t length() const { return length_; }  ///< L, the positions this pass adds
  std::int64_t start() const { return start_; }    ///< the cached length before it

  /// Files the checkpoint st(value) and returns it. Throws Error("oracle_finite", ...) if an
  /// element is not finite.
  const Tensor& store(int layer, std::string_view name, Tensor value);
  /// Files a checkpoint that st() leaves alone: score, max, exp, denom, logits and the caches.
  const Tensor& keep(int layer, std::string_view name, Tensor value);
  /// Files the contraction S that the checkpoint, which is filed already, was made of. It must be
  /// finite, too, as must a statistic.
  void raw(int layer, std::string_view name, Tensor s);
  void stat(int layer, std::string_view name, Tensor value);
  void token(IntTensor ids);  ///< int32 [B, 1], filed as [B]

 private:
  Answer& answer_;
  std::string name_;
  ActType act_;
  std::int64_t batch_, length_, start_;
};

}  // namespace shardproof::oracle
