#pragma once

#include <string>
#include <vector>

#include "engine/ops/einsum.h"
#include "weights/model/model_config.h"
#include "weights/model/numerics.h"

namespace shardproof {

/// One step of a layer in the model's formulas (docs/spec.md section 2): unsharded values, no
/// layouts, no storage.
struct LogicalOp {
  enum class Kind {
    norm,      ///< operands {x}; statistics, gain and bias are implied
    einsum,    ///< operands {value, weight, ...}, one pair per term; then its scale and biases
    attend,    ///< operands {q, k, v}; rotation and cache are implied
    activate,  ///< operands {gate} or {gate, up}
    add        ///< operands {a, b}
  };
  /// The use of an einsum's result, for which tables of layouts have lines.
  enum class Role { query, key, value, gate, up, output };
  Kind kind{};
  std::string result;  ///< "norm2", "q", ..., the name in tables and checkpoints
  std::vector<std::string> operands;
  EinsumSpec spec = {};
  std::string scale = {};                ///< "wq_scale", with int8 weights
  std::vector<std::string> biases = {};  ///< "bq"; only biases that the model has
  Role role = Role::output;
  std::string variable = {};  ///< of an einsum: its result in programs, "h" for the gate
  // For attend, of queries and keys, and of keys and values:
  std::vector<std::string> rotations = {};  ///< "q_rot", "k_rot"; none where nothing is rotated
  std::vector<std::string> caches = {};     ///< "k_cache", "v_cache"

  /// Returns whether it makes queries, keys or values.
  bool is_projection() const {
    return kind == Kind::einsum &&
           (role == Role::query || role == Role::key || role == Role::value);
  }
  /// Returns whether it makes what is activated, or gates it.
  bool is_wide() const { return kind == Kind::einsum && (role == Role::gate || role == Role::up); }
};

/// The ops of a model's layer, in execution order.
std::vector<LogicalOp> logical_layer(const ModelConfig& config,
                                     NumberFormat weights = NumberFormat::f32);

}  // namespace shardproof
