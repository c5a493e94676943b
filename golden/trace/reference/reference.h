#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>

#include "engine/numeric/threads.h"
#include "golden/bounds/text/text_lines.h"
#include "golden/bounds/value/replay.h"
#include "golden/trace/reference/token_ids.h"
#include "golden/trace/value/dumped_value.h"
#include "oracle/model/oracle.h"
#include "weights/base/error.h"

namespace shardproof::dump {

/// The basis on which a trace is judged: the unsharded model's answer for its weights and token
/// ids, and the replay of each step from the trace's own operands.
class Reference {
 public:
  /// `values` and `claim` outlive it. `weights` as stored for the run. Throws what oracle::run
  /// throws.
  Reference(const Values& values, const Claim& claim, Weights weights);

  const Weights& weights() const { return weights_; }
  // As TokenIds.
  const IntTensor& ids(const std::string& pass) const { return ids_.all().at(pass); }
  const IntTensor& case_ids(const std::string& pass) const { return ids_.of_case(pass); }
  bool on_same_ids(const std::string& pass) const { return ids_.same(pass); }
  std::string unknown(const std::string& pass) const { return ids_.unknown(pass); }
  std::optional<double> no_id(const std::string& pass) const { return ids_.no_id(pass); }
  /// Returns the random draws of a pass's tokens; null if it samples none.
  const Draws* draws(const std::string& pass) const;
  bounds::Derivation& replay() { return *replay_; }
  /// The threads on which the trace is judged: all of the machine.
  Threads& threads() { return threads_; }
  /// Returns the lines of a text's model; null for one of keys.
  const bounds::TextLines* lines() const { return lines_.get(); }
  /// Returns whether the trace has all of a checkpoint.
  bool has(const std::string& id) const { return dump_.contains(id) && !in_part_.contains(id); }

  /// Returns the logits [BV] that a pass samples by, as later steps read them.
  bounds::IntervalTensor sampled_logits(const std::string& pass);
  /// Returns the exact regime's f32 value, tokens and ids as f32; null if it has none of that kind.
  /// A weight's is valid until that of another is asked for, or it is given back.
  const Tensor* exact(const Subject& subject);
  /// Gives back the weight that was asked for last.
  void return_weight() { lent_ = nullptr; }

 private:
  void declare(const Values& values);
  void lay_out(const Values& values);
  void fill_dump(const Values& values);
  void fill_last_rows(const Values& values);
  std::optional<bounds::IntervalTensor> as_operand(const DumpedValue& dumped) const;
  const Tensor* whole_exact(const Subject& subject);
  bounds::IntervalTensor added_up(const DumpedValue& dumped, bounds::IntervalTensor whole) const;

  const Claim& claim_;
  Threads threads_{machine_threads()};
  Passes passes_;
  Weights weights_;
  TokenIds ids_;
  oracle::Answer answer_;
  std::unique_ptr<const bounds::TextLines> lines_;
  bounds::Derivation::Dump dump_;
  std::set<std::string> in_part_;  // dumped values of which the trace has only the last positions
  std::unique_ptr<bounds::Derivation> replay_;
  std::shared_ptr<const Tensor> lent_;  // the weight that was asked for last
  std::map<std::string, Tensor> made_;  // values that the answer lacks in f32
};

/// Returns a value of random sampling as f32, given the logits that it follows from.
Tensor drawing(const Subject& subject, const Tensor& logits, const Draws& draws);

}  // namespace shardproof::dump
