#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "weights/model_config.h"
#include "weights/tensor.h"

namespace shardproof {

/// A weight of the model: its name, its dim letters, its global shape.
/// Per-layer weights are named "layer0.wq"; the part behind the dot is what programs declare.
struct WeightSpec {
  std::string name;  ///< "embed", "layer1.w_gate", "final_norm", "rope_cos", ...
  std::string dims;  ///< "VE", "EF", "EHQ", ...; the RoPE tables are "PJ" (position, pair)
  Shape shape;
  std::int64_t fan_in = 1;  ///< the contracted extent, which scales generated values
  bool matrix = false;      ///< a W matrix or the table: rounded by weights=bf16
};

/// Every weight of the model, in the order files list them: embed VE (and unembed VE when untied);
/// per layer norm E, (serial: norm2 E), wq EHQ, wk EKQ, wv EKQ, wo HQE, w_gate EF, (gated FFN:
/// w_up EF), w_out FE, and biases where the config has them (norm_bias, norm2_bias E; bq HQ, bk KQ,
/// bv KQ; bo E, b_gate F, b_up F, b_out E); final_norm E (final_norm_bias E); rope_cos PJ,
/// rope_sin PJ with J = rotary·Q/2, unless rope is none.
std::vector<WeightSpec> weight_specs(const ModelConfig& config);

/// A checkpoint of docs/spec.md section 2: its name and its dim letters, in the table's order.
struct CheckpointSpec {
  std::string name;
  std::string dims;
  bool per_layer = true;
  bool integer = false;  ///< token, an int32
};

/// The checkpoints that a pass of this model has.
std::vector<CheckpointSpec> checkpoint_specs(const ModelConfig& config);

/// A value that is judged but no checkpoint, its dim letters, and the norm it belongs to.
struct StatSpec {
  std::string name;
  std::string dims;
  bool per_layer = true;
};

/// Of norm, norm2 and final_norm: sum = S(x,1), mu = (float)(sum/E) and d = x − mu (layernorm), and
/// ss = S(x,x) or S(d,d), as "ss", "ss2", "final_ss", ...; and of sampling candidates and indices
/// BC.
const std::vector<StatSpec>& stat_specs();

/// "decode.1" and 0 and "gate" make "decode.1.layer0.gate"; layer < 0 makes "decode.1.embed".
std::string checkpoint_id(std::string_view pass, int layer, std::string_view name);

}  // namespace shardproof
