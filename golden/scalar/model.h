#pragma once

#include <map>
#include <memory>
#include <string>

#include "engine/run/plan.h"
#include "golden/compare/dim_padding.h"
#include "golden/scalar/ops.h"
#include "weights/storage/weights.h"

namespace shardproof {

/// Returns the settings of an op in a pass of the run.
scalar::Setting setting_of(const RunPlan& plan, const PassPlan& pass, const Op& op);

/// The judge's own f32 run of a case: the programs of the run, interpreted op by op on logical
/// tensors, from weights and prompt to its own tokens. It defines the order of every sum; that the
/// programs compute the model is proved separately, in the exact regime (docs/spec.md section 3.3).
class ScalarModel {
 public:
  using Shared = std::shared_ptr<const scalar::Value>;
  struct ModelValue {
    Shared value;  ///< in its declared layout
    Role role;
    int layer;  ///< −1 for a value outside the layers
    bool input;
  };

  /// `weights` as stored for the run. All references must outlive the model.
  ScalarModel(const RunPlan& plan, const Weights& weights, const IntTensor& prompt);

  /// From now on these threads compute the values; they must outlive the model.
  void use(Threads& threads) { threads_ = &threads; }

  /// Runs the next pass, including any hand-over after it, and discards the previous one. Returns
  /// false if none is left. Throws what scalar::apply throws.
  bool next_pass();

  const std::string& pass() const { return pass_.name; }
  /// The plan of the last pass that was run.
  const PassPlan& plan_of_pass() const { return pass_; }
  /// The run's padding; values are as long as on chips.
  const DimPadding& padding() const { return padding_; }
  /// The values of the pass by key().
  const std::map<std::string, ModelValue>& values() const { return values_; }
  static std::string key(const Program& program, int layer, const std::string& value);
  /// The tokens [B] sampled in the pass, valid for the rows that sample; empty if it samples none.
  const std::vector<std::int32_t>& sampled() const { return sampled_; }
  /// Each row's tokens so far.
  const std::vector<std::vector<std::int32_t>>& tokens() const { return tokens_; }

 private:
  using Known = std::map<std::string, Shared>;  // by role
  Known run(const Program& program, int layer, const Known& given);
  void run_pass(const Shared& ids);
  void empty_caches(std::int64_t rows);
  void hand_over(Phase next);
  Shared weight(int layer, const ValueDecl& declared);

  const RunPlan& plan_;
  Threads* threads_ = nullptr;
  DimPadding padding_;
  const Weights& weights_;
  const IntTensor& prompt_;
  std::vector<Known> caches_;    // for each layer: k_cache, v_cache
  std::vector<Known> prefixes_;  // for each layer the prefixes' caches, once filled
  std::int64_t next_ = 0;        // pass
  PassPlan pass_;
  std::map<std::string, Shared> stored_;  // weights, by name and layout
  std::map<std::string, ModelValue> values_;
  std::vector<std::int32_t> sampled_;
  std::vector<std::vector<std::int32_t>> tokens_;
};

}  // namespace shardproof
