#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "weights/base/error.h"
#include "weights/base/tensor.h"
#include "weights/model/passes.h"

namespace shardproof::oracle {

/// Positions of a pass's tokens: token i of row b.
class Places {
 public:
  explicit Places(const PassPlan& plan);

  std::int64_t batch() const { return batch_; }
  std::int64_t length() const { return length_; }  ///< L, the positions that the pass adds
  /// Returns the position of row b's token i.
  std::int64_t position(std::size_t b, std::size_t i) const {
    return start_[b] + static_cast<std::int64_t>(i);
  }
  /// Returns the index of row b's last token in the pass; 0 if it has none.
  std::size_t last(std::size_t b) const { return last_[b]; }

 private:
  std::int64_t batch_, length_;
  std::vector<std::int64_t> start_;
  std::vector<std::size_t> last_;
};

/// Every checkpoint of every pass, unsharded (docs/spec.md section 2), by id
/// ("decode.1.layer0.gate"), and other values that a program may declare. A map has no entry if the
/// value equals the checkpoint; raw_of, scaled_of and unstored_of then return the checkpoint. T is
/// an array of floats or of numbers of a field.
template <class T>
struct ModelValues {
  std::vector<std::string> passes;       ///< in the order they run
  std::map<std::string, T> checkpoints;  ///< by id
  /// S of a contraction before scale, bias and st, by checkpoint id; for embed the table's rows,
  /// for logits S before logit_scale. Elementwise checkpoints have none: see unstored.
  std::map<std::string, T> raw;
  /// Ids of checkpoints whose S an int8 scale multiplies; empty without weights=int8.
  std::set<std::string> with_scale;
  /// S times the int8 scale (for logits times logit_scale) if a bias is added to it, by checkpoint
  /// id.
  std::map<std::string, T> scaled;
  /// Argument of st, by checkpoint id (act=bf16 only).
  std::map<std::string, T> unstored;
  /// "PASS.layer0.ss" and (serial) "PASS.layer0.ss2", "PASS.final_ss", BL; layernorm adds sum and
  /// mu, BL, and d, BLE, of each norm.
  std::map<std::string, T> stats;
  std::map<std::string, IntTensor> inputs;  ///< "PASS.ids" and "PASS.pos", int32 [B, L]
  /// Index in the pass of each row's last token, whose logits are computed, by pass, int32 [B].
  std::map<std::string, IntTensor> last;
  /// Cache slots that tokens of each row have reached, without its prefix, by pass, int32 [B].
  /// Later slots hold +0 in k_cache and v_cache.
  std::map<std::string, IntTensor> written;
  /// Number of tokens of each row, by pass, int32 [B]; the rest of L is padding, where values hold
  /// +0. Other implementations may hold anything there.
  std::map<std::string, IntTensor> tokens_in;
  /// 1 if a row's logits become its next token, otherwise 0, by pass, int32 [B].
  std::map<std::string, IntTensor> samples;

  /// Values of `raw ID`, `scaled ID`, `unstored ID` in a program. Throws Error("oracle_id", ...) if
  /// the id is unknown, or if no scale applies to `scaled ID`.
  const T& raw_of(const std::string& id) const;
  const T& scaled_of(const std::string& id) const;
  const T& unstored_of(const std::string& id) const;

  /// Files the name, inputs, last, written, tokens_in and samples of a pass before it runs.
  void open(const PassPlan& plan, const Places& places, const IntTensor& ids);
};

/// Formats the index of element `at`, row-major: "[1,0,7]".
std::string index_text(const Shape& shape, std::size_t at);

}  // namespace shardproof::oracle
