#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "oracle/oracle.h"

namespace shardproof::oracle {

/// One pass: its place in time, and its pages of the Answer, where every value is filed under its
/// id. A layer below 0 is no layer ("decode.1.embed").
class Pass {
 public:
  Pass(Answer& answer, const PassPlan& plan, ActType act, const IntTensor& ids);

  std::int64_t batch() const { return batch_; }
  std::int64_t length() const { return length_; }  ///< L, the positions this pass adds
  /// The position of row b's token i.
  std::int64_t position(std::size_t b, std::size_t i) const {
    return start_[b] + static_cast<std::int64_t>(i);
  }
  /// The place of row b's last token.
  std::size_t last(std::size_t b) const { return last_[b]; }

  /// Files the checkpoint st(value) and returns it. Throws Error("oracle_finite", ...) if an
  /// element is not finite.
  const Tensor& store(int layer, std::string_view name, Tensor value);
  /// Files a checkpoint that st() leaves alone: score, max, exp, denom, logits and the caches.
  const Tensor& keep(int layer, std::string_view name, Tensor value);
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
  std::int64_t batch_, length_;
  std::vector<std::int64_t> start_;
  std::vector<std::size_t> last_;
};

}  // namespace shardproof::oracle
