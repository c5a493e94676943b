#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>

#include "oracle/field/degree.h"
#include "oracle/numeric/field_number.h"
#include "oracle/request/filed.h"
#include "weights/base/error.h"
#include "weights/model/field_setting.h"
#include "weights/model/model_config.h"
#include "weights/model/numerics.h"
#include "weights/model/passes.h"

namespace shardproof::oracle::field {

/// What the unsharded model of the field regime is asked.
struct Request {
  ModelConfig config;
  WeightType weights = WeightType::f32;
  ActType act = ActType::f32;
  IntTensor ids;  ///< int32 [B, P]: of row b and position t, in prefill and decode
  Passes passes;
  FieldSetting setting;
  int threads = 1;  ///< that share the work; no number depends on them
};

/// Every value of a run in the field regime, unsharded, under the ids that the float oracle files
/// them under. `token` is one of the checkpoints: "PASS.token", [B], of each pass that samples.
/// A rounding (st) is a function here, so with act=bf16 `unstored` has all that is stored.
struct Answer : Filed<Tensor> {
  ModelConfig config;
  std::map<std::string, Tensor> weights;  ///< by weight_specs' ids, and "ones"

  /// How often each function was applied, by its name: once for each element, and the function of
  /// ids once for each id of the vocabulary.
  std::map<std::string, std::int64_t> applied;
  /// The inverses that were asked for of denominators, by layer.
  std::map<int, std::int64_t> inverted;
  /// Those of all filed values and of the arguments of all functions, without repeats.
  std::set<Degree> degrees;

  /// A weight, or "ones". Throws Error("oracle_id", ...) if there is none of this id.
  const Tensor& weight(const std::string& id) const;

  /// What C equal blocks of the vocabulary make of the pass's logits: candidates and indices, [BC].
  /// Blocks may be those of `places` ids, of which the vocabulary is the first: the last ones have
  /// fewer, or none and hold 0. Throws Error: "oracle_id" (no pass of this name samples),
  /// "oracle_range" (V, or the places, are no multiple of C, or fewer than V).
  Tensor candidates(const std::string& pass, std::int64_t C, std::int64_t places = 0) const;
  Tensor indices(const std::string& pass, std::int64_t C, std::int64_t places = 0) const;

  /// The d of the bound: the largest of_numerator of all degrees where there are so many inverses
  /// by layer, of this model and of whatever it is compared with.
  std::int64_t degree(const std::map<int, std::int64_t>& inverses) const;

  // What candidates and indices are made of: A(z) [BV] by pass, T(id) [V], ρ.
  std::map<std::string, Tensor> hashed_logits;
  Tensor hashed_ids;
  Number rho;
  FieldSetting setting;
};

/// Runs the model on numbers of the field (docs/field.md section 1.3). Throws Error: "field_zero"
/// (an element without an inverse: value, index and lane named), "field_setting" (2^bits − 1 is no
/// prime of FieldSetting's list, or lanes are not 1 to 3), "oracle_range" (ids, passes or positions
/// as in oracle::run, and a position beyond the ids).
Answer run(const Request& request);
/// Only what looks ids up: embed of the first pass, whose tokens are all of request.ids, and its
/// raw and unstored values. Throws Error("field_setting", ...).
Answer run_embedding(const Request& request);

}  // namespace shardproof::oracle::field
