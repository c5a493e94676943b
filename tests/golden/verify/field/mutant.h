#pragma once

// A fault of the 32 kinds that a partitioned program or an op can have, as it is planted in a run.
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "golden/verify/verify.h"

namespace shardproof {

/// The latest value of each name that a run showed, as the steps after it take it.
class LatestValues : public Observer {
 public:
  void observe(const Scope& scope, const Program& program, const Op* op, const ValueDecl& declared,
               const Sharded& value) override;
  const Sharded& at(const std::string& name) const { return *latest_.at(name); }

  /// Bits of logits and tokens, of every chip and pass.
  const std::vector<std::vector<std::uint64_t>>& outputs() const { return outputs_; }

 private:
  std::map<std::string, SharedValue> latest_;
  std::vector<std::vector<std::uint64_t>> outputs_;
};

/// The bits that all chips have of a value.
std::vector<std::uint64_t> bits_of(const Sharded& value);

/// Pieces of a layer's text and what stands there instead; of two phases those that have it.
using Edits = std::vector<std::pair<std::string, std::string>>;

/// Where the fault is that the field regime shows.
enum class SeenBy {
  nothing,  ///< nowhere: logits and tokens are the same formula
  field,    ///< in the program or the data: the ops of the field compute something else
  index     ///< in code that floats run too: heads, slots, positions, offsets, E, plans of moves
};

/// One mutant on one case.
struct Mutant {
  std::string number;
  std::string what;
  std::string line = {};  ///< of the case, on small_case()
  Edits refused = {};     ///< the fault as a program, which the type check refuses; of some none
  Edits planted = {};     ///< the program that runs; its layouts are believed
  std::function<void(const Case&, const LatestValues&, FaultHooks&)> hooks = {};
  SeenBy by = SeenBy::nothing;
  /// The first step that the field's judge finds different, of a silent one too where a weight or
  /// a value is not what it is called; "" if none.
  std::string at = {};
  std::string silent = {};  ///< why outputs are the same
};

/// Reads mutants as mutants.txt writes them; throws std::invalid_argument or std::out_of_range for
/// a word that is none.
std::vector<Mutant> read_mutants(const std::string& text);
/// All 32, some on several cases.
const std::vector<Mutant>& all_mutants();

/// A model that the smallest tori of mutants divide.
Case small_case(const std::string& line);

/// The plan with the texts of its layers changed. Fails a test where nothing is found to change.
void edit_layers(RunPlan& plan, const Edits& edits);

struct Outcome {
  Judgement judgement;
  std::vector<std::vector<std::uint64_t>> outputs;
};
/// The case with the mutant planted, or null, run to its end without type check.
Outcome run_with(const Mutant* mutant, const Case& c, OracleMemo& memo,
                 const Weights* weights = nullptr);

}  // namespace shardproof
