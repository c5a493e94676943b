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

/// Where a pass's tokens stand: token i of row b.
class Places {
 public:
  explicit Places(const PassPlan& plan);

  std::int64_t batch() const { return batch_; }
  std::int64_t length() const { return length_; }  ///< L, the positions this pass adds
  /// The position of row b's token i.
  std::int64_t position(std::size_t b, std::size_t i) const {
    return start_[b] + static_cast<std::int64_t>(i);
  }
  /// The place of row b's last token; the first place where it has none in the pass.
  std::size_t last(std::size_t b) const { return last_[b]; }

 private:
  std::int64_t batch_, length_;
  std::vector<std::int64_t> start_;
  std::vector<std::size_t> last_;
};

/// Every checkpoint of every pass, unsharded (docs/spec.md section 2), by id
/// ("decode.1.layer0.gate"), and the values that are no checkpoints but that a program may declare.
/// A map has no entry where the value is the checkpoint itself; raw_of, scaled_of and unstored_of
/// see to that. T is an array of floats or of numbers of a field.
template <class T>
struct Filed {
  std::vector<std::string> passes;       ///< in the order they run
  std::map<std::string, T> checkpoints;  ///< by id
  /// A contraction's S before any scale, bias and st, by checkpoint id; of embed the table's rows,
  /// of logits S before logit_scale. Elementwise checkpoints have none: see unstored.
  std::map<std::string, T> raw;
  /// The checkpoints whose S an int8 scale multiplies, by id: none without weights=int8.
  std::set<std::string> with_scale;
  /// S times that scale, or of logits logit_scale, where a bias is added to it, by checkpoint id.
  std::map<std::string, T> scaled;
  /// What st is applied to, by checkpoint id (act=bf16 only).
  std::map<std::string, T> unstored;
  /// "PASS.layer0.ss" and (serial) "PASS.layer0.ss2", "PASS.final_ss", BL; layernorm adds sum and
  /// mu, BL, and d, BLE, each likewise of each norm.
  std::map<std::string, T> stats;
  std::map<std::string, IntTensor> inputs;  ///< "PASS.ids" and "PASS.pos", int32 [B, L]
  /// The place in the pass of each row's last token, by pass, int32 [B]: whose logits there are.
  std::map<std::string, IntTensor> last;
  /// The slots of each row's caches that a token of it has reached, by pass, int32 [B], those of
  /// its prefix apart. The slots after them hold +0 in k_cache and v_cache.
  std::map<std::string, IntTensor> written;
  /// How many tokens each row has in a pass, by pass, int32 [B]; what is left of L is padding,
  /// where values hold +0, which nothing says of other implementations.
  std::map<std::string, IntTensor> tokens_in;
  /// Whether a row's logits become its next token, by pass, int32 [B], 1 or 0.
  std::map<std::string, IntTensor> samples;

  /// What a program means by `raw ID`, `scaled ID`, `unstored ID`. Throws Error("oracle_id", ...)
  /// if unknown; so is `scaled ID` where no scale is.
  const T& raw_of(const std::string& id) const;
  const T& scaled_of(const std::string& id) const;
  const T& unstored_of(const std::string& id) const;

  /// Files what is known of a pass before it runs: its name, its inputs, last, written, tokens_in
  /// and samples.
  void open(const PassPlan& plan, const Places& places, const IntTensor& ids);
};

/// "[1,0,7]" of element `at`, row-major.
std::string index_text(const Shape& shape, std::size_t at);

}  // namespace shardproof::oracle
