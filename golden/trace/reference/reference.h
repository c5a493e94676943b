#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>

#include "golden/bounds/value/replay.h"
#include "golden/trace/value/held.h"
#include "oracle/model/oracle.h"
#include "weights/base/error.h"

namespace shardproof::candidate {

/// What a trace is judged by: the unsharded model's answer for its weights and its token ids, and
/// the replay of each step from the trace's own operands.
class Reference {
 public:
  /// `values` and `claim` outlive it. `weights` as stored for the run. Throws what oracle::run
  /// throws.
  Reference(const Values& values, const Claim& claim, Weights weights);

  const Weights& weights() const { return weights_; }
  /// The ids of a pass, [BL]: the trace's; else, where it has none of any pass, the case's prompt,
  /// and the tokens before. Replay::kUnknownId where nothing says them, or the trace's is none.
  const IntTensor& ids(const std::string& pass) const { return ids_.at(pass); }
  /// Those of the case itself, of a pass before the decode.
  const IntTensor& case_ids(const std::string& pass) const { return case_ids_.at(pass); }
  /// Whether the unsharded model had the same ids in this pass and all before it.
  bool on_same_ids(const std::string& pass) const { return same_ids_.at(pass); }
  /// Why tokens of this pass or of one before are not known; "" where all are.
  std::string unknown(const std::string& pass) const;
  /// An id of the trace's in this pass that is none of the vocabulary.
  std::optional<double> no_id(const std::string& pass) const;
  /// What the tokens of a pass are drawn by; null where it samples none.
  const Draws* draws(const std::string& pass) const;
  bounds::Replay& replay() { return *replay_; }
  /// Whether the trace has all of a checkpoint.
  bool has(const std::string& id) const { return dump_.contains(id) && !in_part_.contains(id); }

  /// The exact regime's f32 value; null where it has none of that kind. Of tokens and ids as f32.
  const Tensor* exact(const Subject& subject);

 private:
  void find_ids(const Values& values);
  void find_prompt(const Values& values);
  void find_decoded(const Values& values);
  IntTensor decoded_ids(const Values& values, const PassPlan& pass,
                        const std::vector<std::string>& sampled_in, bool known) const;
  void note_no_id(const Held& held, const PassPlan& pass);
  void declare(const Values& values);
  void lay_out(const Values& values);
  void fill_dump(const Values& values);
  void fill_last_rows(const Values& values);
  std::optional<bounds::Carried> as_operand(const Held& held) const;
  const Tensor* whole_exact(const Subject& subject);
  bounds::Carried added_up(const Held& held, bounds::Carried whole) const;

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
  std::set<std::string> in_part_;  // of the dump: the last positions alone are the trace's
  std::unique_ptr<bounds::Replay> replay_;
  std::map<std::string, Tensor> made_;  // values that the answer does not have as f32
};

/// The whole value in the model's units and order, put together from the chips: sums of partial
/// sums; else of copies the lowest-numbered chip's, and as the radius how far the others are from
/// it. Nothing where an element is missing.
std::optional<bounds::Carried> assembled_value(const Held& held);

}  // namespace shardproof::candidate
