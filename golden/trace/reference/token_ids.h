#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "golden/trace/value/dumped_value.h"
#include "oracle/model/oracle.h"

namespace shardproof::dump {

/// The token ids of a trace's passes: its own; if it has none of any pass, the case's prompt and
/// the preceding tokens. Replay::kUnknownId stands for unknown or invalid ids.
class TokenIds {
 public:
  /// Finds the prompt, from the passes before the decode.
  TokenIds(const Values& values, const Claim& claim, const Passes& passes);
  /// Finds the ids of the decode steps, given the unsharded model's answer to the prompt: its
  /// tokens are the ids of steps that the trace lacks.
  void decode(const Values& values, const oracle::Answer& answer);

  const IntTensor& prompt() const { return prompt_; }
  /// Returns the ids [BL] of each pass.
  const std::map<std::string, IntTensor>& all() const { return ids_; }
  /// Returns the case's own ids of a pass before the decode.
  const IntTensor& of_case(const std::string& pass) const { return case_ids_.at(pass); }
  /// Returns whether the unsharded model had the same ids in this pass and all before it.
  bool same(const std::string& pass) const { return same_ids_.at(pass); }
  /// Returns why tokens of this pass or of a preceding one are unknown; "" if all are known.
  std::string unknown(const std::string& pass) const;
  /// Returns a number among the trace's ids of this pass that is outside of the vocabulary.
  std::optional<double> no_id(const std::string& pass) const;

 private:
  IntTensor decoded_ids(const Values& values, const PassPlan& pass,
                        const std::vector<std::string>& sampled_in, bool known,
                        const oracle::Answer& answer) const;
  void note_no_id(const DumpedValue& dumped, const PassPlan& pass);

  Passes passes_;
  std::int64_t V_;
  IntTensor prompt_;
  std::map<std::string, IntTensor> ids_, case_ids_;
  std::map<std::string, bool> same_ids_;
  std::map<std::string, double> no_ids_;
};

}  // namespace shardproof::dump
