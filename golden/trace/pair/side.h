#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "golden/diagnosis/diagnosis.h"
#include "golden/trace/pair/wander.h"
#include "golden/trace/read/dump.h"
#include "golden/trace/verdict/verdict.h"
#include "weights/base/error.h"
#include "weights/storage/weights.h"

namespace shardproof::dump {

/// A value of a trace that was judged, without its numbers.
struct JudgedValue {
  std::string name;  ///< in the file
  Subject subject;
  NumberFormat stored = NumberFormat::f32;
  std::string layout;        ///< as the file has it; "" if whole without one
  bool exact = false;        ///< claims the bits of the exact regime
  bool has_numbers = false;  ///< false if its array does not fit
  /// Follows from its operands in the trace by its own declaration, as far as a bound can say: what
  /// is loose does so only if these are all there, and the same on all chips.
  bool right = false;
  bool wrong = false;  ///< does not follow from them
};

/// One of two traces, judged: what is left when its numbers are released.
struct JudgedTrace {
  Claim claim;
  std::shared_ptr<const Weights> weights;  ///< as stored for the run
  Verdict verdict;
  std::vector<JudgedValue> values;  ///< in the order of verdict.rows
  /// By id of a named value the ids of its operands, as far back as any value of the trace reaches.
  std::map<std::string, std::vector<std::string>> operands;
  std::map<std::string, IntTensor> ids;        ///< by pass, [BL]; -1: unknown
  std::map<std::string, std::string> unknown;  ///< by pass: why ids are not known; "": they are
  Wander wander;
  std::vector<std::string> notes;
  std::vector<diagnosis::Hypothesis> diagnosis;  ///< of the first divergence

  const Row* first() const { return verdict.first ? &verdict.rows[*verdict.first] : nullptr; }
};

/// Returns the id whose operands a value has: its own; of a statistic its norm's.
std::string id_of_operands(const Subject& value, const ModelRows* rows);

/// Judges a trace by its own operands, as `compare` does, and repeats it `runs` times in random
/// orders of sums. Throws what read_values, Reference and judge throw.
JudgedTrace judged_trace(const Dump& dump, Claim claim, std::shared_ptr<const Weights> weights,
                         int runs);

}  // namespace shardproof::dump
