#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "weights/base/error.h"
#include "weights/base/nearest.h"
#include "weights/base/number_format.h"

namespace shardproof {

class ModelRows;

enum class Block { parallel, serial };
enum class Ffn { swiglu, geglu, gelu, gelu_erf };
enum class Norm { rmsnorm, layernorm };
enum class Bias { none, norm, qkv, ffn, all };
/// Position dependence of a score: q and k are rotated, each head adds slope·(p−t), or none.
enum class Rope { half, interleaved, alibi, none };
/// The base of softmax, of swish and of the logits. A base-2 model has its constants folded into
/// its weights (docs/spec.md section 2.9).
enum class Softmax { base_e, base2 };

/// The shape and the formulas of a PaLM-shaped model (docs/spec.md sections 2 and 6).
/// E d_model, F d_ff, H query heads, K key/value heads (1 multiquery, H multihead), Q d_head,
/// V vocabulary.
struct ModelConfig {
  std::string preset = "palm-tiny";
  std::int64_t layers = 2;
  std::int64_t E = 96, F = 384, H = 24, K = 1, Q = 8, V = 264;
  Block block = Block::parallel;
  Ffn ffn = Ffn::swiglu;
  Norm norm = Norm::rmsnorm;
  Bias bias = Bias::none;
  Rope rope = Rope::half;
  double rotary = 1.0;  ///< fraction of the Q channels that rotate; rotary·Q is even
  double theta = 10000.0;
  bool tied = true;  ///< the unembedding is the (unscaled) embedding table
  bool unembed_bias = false;
  double eps = 1e-6;
  float embed_scale = 1.0F;
  float logit_scale = 0.0F;  ///< usual_logit_scale() unless given
  Softmax softmax = Softmax::base_e;
  std::int64_t positions = 2048;      ///< rows of the RoPE tables
  std::optional<NumberFormat> cache;  ///< stores k_cache and v_cache; as activations if nullopt
  /// The rows of a model that is given as a text (weights/text/text_model.h), of which only layers,
  /// E and V stand here, too; null for one of keys.
  std::shared_ptr<const ModelRows> rows = nullptr;

  bool operator==(const ModelConfig&) const = default;
};

/// Returns whether q and k are rotated, so that the model has RoPE tables, q_rot and k_rot.
inline bool rotates(const ModelConfig& config) {
  return config.rope == Rope::half || config.rope == Rope::interleaved;
}
/// Returns the logit_scale of a model that gives none: its preset's, or else
/// (float)(1/sqrt((double)E)). Throws Error: "model_preset".
float usual_logit_scale(const ModelConfig& config);

/// Returns the names of the built-in presets, in the order help prints them.
const std::vector<std::string>& preset_names();

/// A key of a model text, as help and `shardproof list models` print it.
struct ModelKey {
  std::string name;
  std::string values;         ///< "swiglu, geglu, gelu, gelu-erf", or a range in words
  std::string default_value;  ///< empty if the preset defines it
};
/// Returns every key, in the order in which print_model writes them.
std::vector<ModelKey> model_keys();

/// Parses "PRESET[,key=value...]" with the keys of docs/spec.md section 6 in any order, e.g.
/// "palm-tiny,K=24"; logit_scale defaults to usual_logit_scale(). Throws Error: "model_preset"
/// (unknown preset, naming the nearest; or a known model that the keys cannot express), "model_key"
/// (unknown or repeated key), "model_value" (a value that is not a number, is out of range, or
/// breaks a rule: every dim at least 1, H divisible by K, rotary·Q even, eps and theta finite and
/// positive, no rotary or theta with rope=none or rope=alibi, ...).
ModelConfig parse_model(std::string_view text);

/// Inverse of parse_model, parse_model(print_model(c)) == c: the preset and every key that differs
/// from it, in a fixed order. `block` appears only if it differs from the preset's; case lines that
/// print it themselves do not use the model key.
std::string print_model(const ModelConfig& config);
/// Prints the model as case lines do, which print its block by a key of its own.
std::string print_model_of_case(ModelConfig config);

/// Returns `config` with other dims, not validated. A logit_scale that equals 1/sqrt(E) follows E.
ModelConfig with_dims(ModelConfig config, std::int64_t E, std::int64_t F, std::int64_t H,
                      std::int64_t K, std::int64_t V);

/// Throws Error("model_value", ...) unless the config obeys the rules of parse_model.
void validate(const ModelConfig& config);

std::string_view to_string(Block);
std::string_view to_string(Ffn);
std::string_view to_string(Norm);
std::string_view to_string(Bias);
std::string_view to_string(Rope);
std::string_view to_string(Softmax);
/// Parses a Block. Throws Error("case_block", ...).
Block parse_block(std::string_view word);

}  // namespace shardproof
