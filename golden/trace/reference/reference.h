#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>

#include "golden/bounds/value/replay.h"
#include "golden/trace/value/dumped_value.h"
#include "oracle/model/oracle.h"
#include "weights/base/error.h"

namespace shardproof::candidate {

/// The basis on which a trace is judged: the unsharded model's answer for its weights and token
/// ids, and the replay of each step from the trace's own operands.
class Reference {
 public:
  /// `values` and `claim` outlive it. `weights` as stored for the run. Throws what oracle::run
  /// throws.
  Reference(const Values& values, const Claim& claim, Weights weights);

  const Weights& weights() const { return weights_; }
  /// Returns the ids [BL] of a pass: the trace's; if it has none of any pass, the case's prompt and
  /// the preceding tokens. Replay::kUnknownId for unknown or invalid ids.
  const IntTensor& ids(const std::string& pass) const { return ids_.at(pass); }
  /// Returns the case's own ids of a pass before the decode.
  const IntTensor& case_ids(const std::string& pass) const { return case_ids_.at(pass); }
  /// Returns whether the unsharded model had the same ids in this pass and all before it.
  bool on_same_ids(const std::string& pass) const { return same_ids_.at(pass); }
  /// Returns why tokens of this pass or of a preceding one are unknown; "" if all are known.
  std::string unknown(const std::string& pass) const;
  /// Returns a number among the trace's ids of this pass that is outside of the vocabulary.
  std::optional<double> no_id(const std::string& pass) const;
  /// Returns the random draws of a pass's tokens; null if it samples none.
  const Draws* draws(const std::string& pass) const;
  bounds::Replay& replay() { return *replay_; }
  /// Returns whether the trace has all of a checkpoint.
  bool has(const std::string& id) const { return dump_.contains(id) && !in_part_.contains(id); }

  /// Returns the exact regime's f32 value, tokens and ids as f32; null if it has none of that kind.
  const Tensor* exact(const Subject& subject);

 private:
  void find_ids(const Values& values);
  void find_prompt(const Values& values);
  void find_decoded(const Values& values);
  IntTensor decoded_ids(const Values& values, const PassPlan& pass,
                        const std::vector<std::string>& sampled_in, bool known) const;
  void note_no_id(const DumpedValue& dumped, const PassPlan& pass);
  void declare(const Values& values);
  void lay_out(const Values& values);
  void fill_dump(const Values& values);
  void fill_last_rows(const Values& values);
  std::optional<bounds::Carried> as_operand(const DumpedValue& dumped) const;
  const Tensor* whole_exact(const Subject& subject);
  bounds::Carried added_up(const DumpedValue& dumped, bounds::Carried whole) const;

  const Claim& claim_;
  Passes passes_;
  Weights weights_;
  IntTensor prompt_;
  oracle::Answer answer_;
  std::map<std::string, IntTensor> ids_;
  std::map<std::string, IntTensor> case_ids_;
  std::map<std::string, bool> same_ids_;
  std::map<std::string, double> no_ids_;
  bounds::Replay::Dump dump_;
  std::set<std::string> in_part_;  // dumped values of which the trace has only the last positions
  std::unique_ptr<bounds::Replay> replay_;
  std::map<std::string, Tensor> made_;  // values that the answer lacks in f32
};

/// Returns the whole value in the model's units and order, assembled from the chips. Partial sums
/// are added; of replicas the lowest-numbered chip's is taken, with the others' distance from it as
/// the radius. Returns nullopt if an element is missing.
std::optional<bounds::Carried> assembled_value(const DumpedValue& dumped);

}  // namespace shardproof::candidate
