#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "weights/error.h"
#include "weights/numerics.h"
#include "weights/passes.h"
#include "weights/weights.h"

namespace shardproof::oracle {

/// What the oracle is asked: a model, its weights, a prompt, and the passes to run.
/// It knows no torus and no layout, so one answer serves every layout.
struct Request {
  Numerics numerics;  ///< regime exact only
  IntTensor prompt;   ///< int32 [B, L]
  Passes passes;
};

/// Every checkpoint of every pass, unsharded (docs/spec.md section 2), by id
/// ("decode.1.layer0.gate"), and the values that are no checkpoints but that a program may declare.
/// A map has no entry where the value is the checkpoint itself; raw_of, scaled_of and unstored_of
/// see to that.
struct Answer {
  std::vector<std::string> passes;            ///< in the order they run
  std::map<std::string, Tensor> checkpoints;  ///< f32, by id
  std::map<std::string, IntTensor> tokens;    ///< "PASS.token", int32 [B]
  /// A contraction's S before any scale, bias and st, by checkpoint id; of embed the table's rows,
  /// of logits S before logit_scale. Elementwise checkpoints have none: see unstored.
  std::map<std::string, Tensor> raw;
  /// The checkpoints whose S an int8 scale multiplies, by id: none without weights=int8.
  std::set<std::string> with_scale;
  /// S times that scale, or of logits logit_scale, where a bias is added to it, by checkpoint id.
  std::map<std::string, Tensor> scaled;
  /// The f32 value that st is applied to, by checkpoint id (act=bf16 only).
  std::map<std::string, Tensor> unstored;
  /// "PASS.layer0.ss" and (serial) "PASS.layer0.ss2", "PASS.final_ss", BL; layernorm adds mu, mu2,
  /// final_mu.
  std::map<std::string, Tensor> stats;
  std::map<std::string, IntTensor> inputs;  ///< "PASS.ids" and "PASS.pos", int32 [B, L]
  /// The place in the pass of each row's last token, by pass, int32 [B]: whose logits there are.
  std::map<std::string, IntTensor> last;
  /// The slots of each row's caches that a token of it has reached, padding too, by pass, int32
  /// [B]. The slots after them hold +0 in k_cache and v_cache.
  std::map<std::string, IntTensor> written;

  /// What a program means by `raw ID`, `scaled ID`, `unstored ID`. Throws Error("oracle_id", ...)
  /// if unknown; so is `scaled ID` where no scale is.
  const Tensor& raw_of(const std::string& id) const;
  const Tensor& scaled_of(const std::string& id) const;
  const Tensor& unstored_of(const std::string& id) const;
};

/// Runs the model. `weights` are as generated or loaded; the rounding of numerics.weights happens
/// inside. Throws Error: "oracle_regime" (another than exact), "oracle_range" (no prompt, no
/// pass, a pass that is not of the prompt's rows and positions, a row that goes on beyond the end
/// of its tokens, names of passes that are not each once and in order, a token id outside [0, V),
/// more positions than the RoPE table has), "oracle_finite" (a checkpoint, raw value or statistic
/// turned out non-finite: id and index named); and what require_ieee and validate(weights) throw.
Answer run(const Weights& weights, const Request& request);

}  // namespace shardproof::oracle
