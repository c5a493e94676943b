#pragma once

#include <array>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "weights/base/number_format.h"
#include "weights/base/tensor.h"
#include "weights/model/model_config.h"
#include "weights/model/numerics.h"
#include "weights/model/passes.h"

namespace shardproof {

/// Part of a layer to which a value or weight belongs; none for embedding, head, sampling,
/// positions and RoPE tables.
enum class Section { none, norm, attention, ffn, output };
/// Returns "norm", "attention", "FFN", "output", or "".
std::string_view to_string(Section section);

enum class ValueKind {
  checkpoint,   ///< a checkpoint of docs/spec.md section 2
  layer_input,  ///< "in": the checkpoint embed in layer 0, else the previous layer's out
  stat,         ///< judged, but not a checkpoint: statistics of norms and sampling
  input,        ///< int32 [BL], an input of a pass
  constant      ///< a vector of ones
};

/// Model-independent description of a named value.
struct ValueRow {
  std::string_view name;
  std::string_view dims;  ///< dim letters: "B", "BLE", ...
  ValueKind kind = ValueKind::checkpoint;
  bool per_layer = true;        ///< one per layer; otherwise per pass
  bool stored = false;          ///< st applies: act=bf16 rounds it, and stores and sends it as bf16
  bool contraction = false;     ///< a contraction up to scale, bias and st: it has a raw value
  bool acc = false;             ///< S with a W matrix: its sums accumulate in the type of acc
  bool wire_rounds = false;     ///< its partial sums travel in type wire; all others as f32
  bool cache = false;           ///< grows from pass to pass; unwritten slots hold NaN
  bool program_input = false;   ///< may be an input of a program
  bool of_layer_input = false;  ///< may be a layer's input; a cache as the pass before left it
  bool last_rows = false;       ///< programs compute only the last row of each sequence
  bool integer = false;         ///< int32
  bool per_block = false;       ///< one per block of the vocabulary; derived from the logits
  bool drawing = false;         ///< random sampling: derived from logits and random numbers
  int words = 0;                ///< extent of dim W: words of a sum, or of all rounds
  std::string_view norm = {};   ///< the norm of a norm's statistic: "norm2"
  std::string_view statistic = {};  ///< which statistic of that norm: "ss"
  Section section = Section::none;
  bool (*in_model)(const ModelConfig&) = nullptr;  ///< whether a model has the value

  /// Returns the type in which the complete value travels.
  NumberFormat wire(const Numerics& numerics, const ModelConfig& config) const;
};

/// Returns all value rows: checkpoints in the order of docs/spec.md's table, then the other values.
std::span<const ValueRow> all_values();
// `rows` are those of a model that is given as a text, ModelConfig::rows; null: of one of keys.

/// Returns the row of the value `name`, or null.
const ValueRow* value_row(std::string_view name, const ModelRows* rows = nullptr);
/// Returns the row of a norm's statistic: "norm2" and "ss" give ss2. Throws std::logic_error if
/// there is none.
const ValueRow& statistic_row(std::string_view norm, std::string_view statistic);

enum class WeightKind {
  matrix,      ///< a W matrix or the table: rounded by weights=bf16, codes if it has a scale
  gain,        ///< gain of a norm
  bias,        ///< bias of a norm or a contraction
  scale,       ///< scale of int8 matrices, one per output channel
  rope_table,  ///< [PJ]
  slopes       ///< ALiBi slopes [H], one per query head
};

/// Model-independent description of a named weight.
struct WeightRow {
  std::string_view name;  ///< name in programs: "wq"
  std::string_view dims;
  WeightKind kind = WeightKind::matrix;
  bool per_layer = true;
  int contracted = 0;  ///< number of leading dims that are contracted
  Section section = Section::none;
  bool (*in_model)(const ModelConfig&) = nullptr;
  /// For a scale, the one or two matrices it applies to, which weights=int8 stores as codes.
  std::array<std::string_view, 2> scaled = {};
  std::string_view file = {};  ///< its name in weights files, if that is another

  NumberFormat wire(const Numerics& numerics) const;
};

/// Returns all weight rows in file order: of the model, of a layer, of the model.
std::span<const WeightRow> all_weights();
/// Returns the row of the weight `name`, or null.
const WeightRow* weight_row(std::string_view name, const ModelRows* rows = nullptr);

/// A weight of the model: its name, its dim letters, its global shape.
struct WeightSpec {
  std::string name;  ///< "embed", "layer1.w_gate", "final_norm", "rope_cos", ...
  std::string dims;  ///< "VE", "EF", "EHQ", ...; the RoPE tables are "PJ" (position, pair)
  Shape shape;
  std::int64_t fan_in = 1;  ///< contracted extent, by which generated values are scaled
  bool matrix = false;      ///< a W matrix or the table: rounded by weights=bf16
  bool int8 = false;        ///< a W matrix that weights=int8 stores as codes
  bool scale = false;       ///< a scale of int8 matrices
};

/// Returns every weight of the model, in file order: embed VE (and unembed VE when untied,
/// unembed_bias V if it has one); per layer norm E, (serial: norm2 E), wq EHQ, wk EKQ, wv EKQ, wo
/// HQE, w_gate EF, (gated FFN: w_up EF), w_out FE, and biases where the config has them (norm_bias,
/// norm2_bias E; bq HQ, bk KQ, bv KQ; bo E, b_gate F, b_up F, b_out E); final_norm E
/// (final_norm_bias E); rope_cos PJ, rope_sin PJ with J = rotary·Q/2 where q and k are rotated,
/// alibi_slopes H with rope=alibi. Weights stored as int8 have scales after a layer's biases:
/// wq_scale HQ, wk_scale, wv_scale KQ, w_gate_scale F, (gated: w_up_scale F), and block_out_scale
/// E, or (serial) wo_scale, w_out_scale E. Of a text: its own.
std::vector<WeightSpec> weight_specs(const ModelConfig& config,
                                     NumberFormat type = NumberFormat::f32);
/// Returns whether the model has the weight, "w_up" or "norm2_bias"; scales only with weights=int8.
bool has_weight(const ModelConfig& config, std::string_view name,
                NumberFormat type = NumberFormat::f32);
/// Returns the scale of a matrix of this model, "block_out_scale" for "wo"; null if the matrix is
/// never int8.
const WeightRow* scale_of(const ModelConfig& config, std::string_view matrix);
/// Returns the id of a weight: "layer0.wq" for "wq" of layer 0; for a weight of the whole model its
/// name.
std::string weight_id(std::int64_t layer, std::string_view name, const ModelRows* rows = nullptr);

/// A checkpoint of docs/spec.md section 2: its name and its dim letters, in the table's order.
struct CheckpointSpec {
  std::string name;
  std::string dims;
  bool per_layer = true;
  bool integer = false;  ///< token, an int32
};

/// Returns the checkpoints of a pass of this model.
std::vector<CheckpointSpec> checkpoint_specs(const ModelConfig& config);

/// Extents that depend on the pass.
struct PassExtents {
  std::int64_t B = 0, L = 0, M = 0;
  std::int64_t N = 0, T = 0;  ///< prefix caches: their number and positions
};
/// Returns the shape of dims such as "BLE" in this model and pass.
Shape shape_of(std::string_view dims, const ModelConfig& config, const PassExtents& pass = {});
/// Returns the extents of a value of this pass. M counts the slots of the rows' caches; for values
/// that attention derives from caches, also those of the prefix.
PassExtents extents_of(const PassPlan& pass, const ValueRow& value);

/// Returns the constant tensor "ones".
Tensor constant_tensor(const ModelConfig& config);

/// Returns the id of a checkpoint, statistic or input of a pass: "decode.1", 0 and "gate" give
/// "decode.1.layer0.gate". The layer is omitted, as in "decode.1.embed", if layer < 0 or if the
/// value belongs to no layer.
std::string checkpoint_id(std::string_view pass, std::int64_t layer, std::string_view name,
                          const ModelRows* rows = nullptr);

}  // namespace shardproof
