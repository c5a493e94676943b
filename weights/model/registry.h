#pragma once

#include <array>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "weights/base/tensor.h"
#include "weights/model/model_config.h"
#include "weights/model/numerics.h"
#include "weights/model/passes.h"

namespace shardproof {

/// The part of a layer that a value or a weight belongs to; none for embedding, head, sampling,
/// positions and RoPE tables.
enum class Section { none, norm, attention, ffn, output };
/// "norm", "attention", "FFN", "output", or "".
std::string_view to_string(Section section);

enum class ValueKind {
  checkpoint,   ///< of docs/spec.md section 2
  layer_input,  ///< "in": the checkpoint embed in layer 0, else the previous layer's out
  stat,         ///< judged, but no checkpoint: of norms and of sampling
  input,        ///< int32 [BL], of a pass
  constant      ///< a vector of ones
};

/// What an element of a complete value or of a weight travels as between chips.
enum class WireType { f32, bf16, int8, int32 };
std::string_view to_string(WireType type);
int bytes_of(WireType type);

/// What is known of a named value, whatever the model.
struct ValueRow {
  std::string_view name;
  std::string_view dims;  ///< letters; "B", "BLE", ...
  ValueKind kind = ValueKind::checkpoint;
  bool per_layer = true;       ///< else one a pass
  bool stored = false;         ///< st is applied: act=bf16 rounds it, keeps it and sends it as bf16
  bool contraction = false;    ///< up to scale, bias and st: it has a raw value
  bool acc = false;            ///< S of a W matrix: acc says what its sums are kept as
  bool wire_rounds = false;    ///< its partial sums travel as wire says; all others' as f32
  bool cache = false;          ///< grows from pass to pass; slots that nothing wrote hold NaN
  bool program_input = false;  ///< may be an input of a program
  bool of_layer_input = false;  ///< may be one of a layer; of a cache, as the pass before left it
  bool last_rows = false;       ///< programs compute the last row of each sequence only
  bool integer = false;         ///< int32
  bool per_block = false;       ///< one a block of the vocabulary: it follows from the logits
  bool drawing = false;         ///< of random sampling: it follows from logits and random numbers
  int words = 0;                ///< extent of dim W, of an exact sum or of those of all rounds
  std::string_view norm = {};   ///< of a norm's statistic, that norm: "norm2"
  std::string_view statistic = {};  ///< and which of its statistics: "ss"
  Section section = Section::none;
  bool (*in_model)(const ModelConfig&) = nullptr;  ///< whether a model has it

  /// Complete.
  WireType wire(const Numerics& numerics, const ModelConfig& config) const;
};

/// Checkpoints in the order of docs/spec.md's table, and the other values.
std::span<const ValueRow> all_values();
/// Null if nothing is called so.
const ValueRow* value_row(std::string_view name);
/// The row of "ss" of "norm2", which is ss2. Throws std::logic_error if there is none.
const ValueRow& statistic_row(std::string_view norm, std::string_view statistic);

enum class WeightKind {
  matrix,      ///< a W matrix or the table: rounded by weights=bf16, codes if it has a scale
  gain,        ///< of a norm
  bias,        ///< of a norm or a contraction
  scale,       ///< of int8 matrices: one for each output channel
  rope_table,  ///< [PJ]
  slopes       ///< of ALiBi [H], one for each query head
};

/// What is known of a named weight, whatever the model.
struct WeightRow {
  std::string_view name;  ///< as programs declare it: "wq"
  std::string_view dims;
  WeightKind kind = WeightKind::matrix;
  bool per_layer = true;
  int contracted = 0;  ///< leading dims that are summed over
  Section section = Section::none;
  bool (*in_model)(const ModelConfig&) = nullptr;
  /// Of a scale the matrices that it belongs to, one or two: with weights=int8 they are codes.
  std::array<std::string_view, 2> scaled = {};

  WireType wire(const Numerics& numerics) const;
};

/// In the order files list them: of the model, of a layer, of the model.
std::span<const WeightRow> all_weights();
/// Null if nothing is called so.
const WeightRow* weight_row(std::string_view name);

/// A weight of the model: its name, its dim letters, its global shape.
struct WeightSpec {
  std::string name;  ///< "embed", "layer1.w_gate", "final_norm", "rope_cos", ...
  std::string dims;  ///< "VE", "EF", "EHQ", ...; the RoPE tables are "PJ" (position, pair)
  Shape shape;
  std::int64_t fan_in = 1;  ///< the contracted extent, which scales generated values
  bool matrix = false;      ///< a W matrix or the table: rounded by weights=bf16
  bool int8 = false;        ///< a W matrix that weights=int8 keeps as codes
  bool scale = false;       ///< of such matrices
};

/// Every weight of the model, in the order files list them: embed VE (and unembed VE when untied,
/// unembed_bias V if it has one);
/// per layer norm E, (serial: norm2 E), wq EHQ, wk EKQ, wv EKQ, wo HQE, w_gate EF, (gated FFN:
/// w_up EF), w_out FE, and biases where the config has them (norm_bias, norm2_bias E; bq HQ, bk KQ,
/// bv KQ; bo E, b_gate F, b_up F, b_out E); final_norm E (final_norm_bias E); rope_cos PJ,
/// rope_sin PJ with J = rotary·Q/2 where q and k are rotated, alibi_slopes H with rope=alibi.
/// Weights kept as int8 have scales, too, after a layer's biases: wq_scale HQ, wk_scale, wv_scale
/// KQ, w_gate_scale F, (gated: w_up_scale F), and block_out_scale E, or (serial) wo_scale,
/// w_out_scale E.
std::vector<WeightSpec> weight_specs(const ModelConfig& config, WeightType kept = WeightType::f32);
/// Whether the model has the weight, "w_up" or "norm2_bias"; scales with weights=int8 alone.
bool has_weight(const ModelConfig& config, std::string_view name,
                WeightType kept = WeightType::f32);
/// The scale of a matrix of this model, "block_out_scale" of "wo"; null if it is never int8.
const WeightRow* scale_of(const ModelConfig& config, std::string_view matrix);
/// "wq" of layer 0 is "layer0.wq"; a weight of the model has the name that it is declared by.
std::string weight_id(std::int64_t layer, std::string_view name);

/// A checkpoint of docs/spec.md section 2: its name and its dim letters, in the table's order.
struct CheckpointSpec {
  std::string name;
  std::string dims;
  bool per_layer = true;
  bool integer = false;  ///< token, an int32
};

/// The checkpoints that a pass of this model has.
std::vector<CheckpointSpec> checkpoint_specs(const ModelConfig& config);

/// Extents that depend on the pass.
struct PassExtents {
  std::int64_t B = 0, L = 0, M = 0;
  std::int64_t N = 0, T = 0;  ///< of the caches of prefixes: how many, and their positions
};
/// The shape of dims "BLE", in this model and pass.
Shape shape_of(std::string_view dims, const ModelConfig& config, const PassExtents& pass = {});
/// The extents of a value of this pass: M is the slots of its caches, or, of what attention makes
/// of them, those and the prefix's.
PassExtents extents_of(const PassPlan& pass, const ValueRow& value);

/// The tensor of a constant: ones.
Tensor constant_tensor(const ModelConfig& config);

/// The id of a checkpoint, statistic or input of a pass: "decode.1" and 0 and "gate" make
/// "decode.1.layer0.gate"; what belongs to no layer has none in its id, "decode.1.embed", whatever
/// `layer` is, and nothing has where layer < 0.
std::string checkpoint_id(std::string_view pass, std::int64_t layer, std::string_view name);

}  // namespace shardproof
