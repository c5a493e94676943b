#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>

#include "oracle/formulas/degree.h"
#include "oracle/numeric/field_number.h"
#include "oracle/request/model_values.h"
#include "weights/base/error.h"
#include "weights/model/field_setting.h"
#include "weights/model/model_config.h"
#include "weights/model/numerics.h"
#include "weights/model/passes.h"

namespace shardproof::oracle::field {

using oracle::Degree;

/// Input of the unsharded model of the field regime.
struct Request {
  ModelConfig config;
  NumberFormat weights = NumberFormat::f32;
  NumberFormat act = NumberFormat::f32;
  IntTensor ids;  ///< int32 [B, P]: id of row b at position t, in prefill and decode
  Passes passes;
  FieldSetting setting;
  int threads = 1;  ///< number of worker threads; results do not depend on it
};

/// All values of a run in the field regime, unsharded, under the ids of the float oracle. `token`
/// is a checkpoint: "PASS.token", [B], of each sampling pass. Rounding (st) is a function here, so
/// with act=bf16 `unstored` contains every stored value that the function changes.
struct Answer : ModelValues<Tensor> {
  ModelConfig config;
  std::map<std::string, Tensor> weights;  ///< by the ids of weight_specs, and "ones"

  /// Number of applications of each function, by name: once per element; the function of ids once
  /// per id of the vocabulary.
  std::map<std::string, std::int64_t> applied;
  /// Number of inverses of denominators, by layer.
  std::map<int, std::int64_t> inverted;
  /// Degrees of all filed values and of the arguments of all functions.
  std::set<Degree> degrees;

  /// Returns a weight, or "ones". Throws Error("oracle_id", ...) if there is none of this id.
  const Tensor& weight(const std::string& id) const;

  /// candidates and indices, [BC], of C equal blocks of the vocabulary in the pass. If `places`
  /// exceeds V, the blocks divide `places` ids that begin with the vocabulary: the last blocks have
  /// fewer ids, or none and hold 0. Throws Error: "oracle_id" (no pass of this name samples),
  /// "oracle_range" (V, or places, is not a multiple of C, or places < V).
  Tensor candidates(const std::string& pass, std::int64_t C, std::int64_t places = 0) const;
  Tensor indices(const std::string& pass, std::int64_t C, std::int64_t places = 0) const;

  /// Returns d of the bound: the largest of_numerator of all degrees for these numbers of inverses
  /// per layer, of this model and of the implementation it is compared with.
  std::int64_t degree(const std::map<int, std::int64_t>& inverses) const;

  // Operands of candidates and indices: A(z) [BV] by pass, T(id) [V], ρ.
  std::map<std::string, Tensor> hashed_logits;
  Tensor hashed_ids;
  Number rho;
  FieldSetting setting;
};

/// Runs the model on numbers of the field (docs/field.md section 1.3). Throws Error: "field_zero"
/// (an element without an inverse: value, index and lane named), "field_setting" (2^bits − 1 is not
/// a prime of FieldSetting's list, or lanes are not 1 to 3), "oracle_range" (ids, passes or
/// positions as in oracle::run, and a position beyond the ids).
Answer run(const Request& request);
/// Runs only the embedding lookup: embed of the first pass, whose tokens are all of request.ids,
/// and its raw and unstored values. Throws Error("field_setting", ...).
Answer run_embedding(const Request& request);

}  // namespace shardproof::oracle::field
