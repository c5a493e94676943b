#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "golden/bounds/value/derivation.h"
#include "golden/diagnosis/detail/graph.h"
#include "weights/base/error.h"
#include "weights/model/registry.h"

namespace shardproof::diagnosis {

inline bool is_call(const Expression& e, ModelOp op) {
  return e.kind == Expression::Kind::call && e.op == op;
}

/// The step that makes a value: its line of the graph, and the lines before it back to values that
/// a dump may have.
class Step {
 public:
  using Place = bounds::Derivation::Place;
  /// Returns an operand by its id.
  using Operand = std::function<const bounds::IntervalTensor&(const std::string& id)>;

  /// Which values behind masks are lines of the step, too, so that it shows what follows from other
  /// masks: none, those that the dump lacks, or those that it has, too, as where it declares that
  /// what is masked means nothing.
  enum class Unmasked { none, missing, all };

  /// `derivation` outlives the step. `raw`: the step ends with the sum of products.
  Step(const bounds::Derivation& derivation, const std::string& id, bool raw,
       Unmasked unmasked = Unmasked::none);
  /// A weight's, which no line makes.
  explicit Step(const bounds::Derivation& derivation);

  const Graph& graph() const { return *graph_; }
  /// The step's lines, in order; the value's own is the last.
  const std::vector<TextLine>& lines() const { return lines_; }
  /// Returns the ids of the values that the step reads, in the order of its lines.
  const std::vector<std::string>& operands() const { return operands_; }

  /// Returns a line of the step, or null.
  const TextLine* line(std::string_view name) const;
  /// Returns the id of a value that the step reads under a name of the text.
  std::optional<std::string> operand(const std::string& name) const;
  /// Returns a weight of the text that is in the value's layer, or null.
  const TextWeight* weight(std::string_view name) const;
  /// Returns the name of a weight in files, and its id there.
  std::string file(std::string_view weight) const;
  std::string weight_id(const TextWeight& weight) const;
  std::optional<double> number(const Expression& word) const;
  /// Returns the extent of a letter in the value's pass; of M as attention reads it.
  std::int64_t extent(char letter) const;

  /// Returns the weights of a kind that its lines read.
  std::vector<const TextWeight*> weights(WeightKind kind) const;
  /// Returns whether some of what it reads or makes exists by positions alone, as behind a mask.
  bool masked() const { return masked_; }
  /// Returns whether it reads positions otherwise, as a rotation does.
  bool reads_positions() const;
  /// Returns the value of the number with this formula that its lines read.
  std::optional<double> formula(std::string_view formula) const;
  /// Returns whether `is` holds for a call of its lines, those of positions alone aside.
  bool calls(const std::function<bool(const Expression& call)>& is) const;
  bool calls(ModelOp op) const;
  /// Returns the formulas that differ after `to` has changed the calls for which it returns true.
  using Formulas = std::map<std::string, Expression>;
  Formulas changed(const std::function<bool(Expression& call)>& to) const;

  /// Returns whether a query sees a key, `right`: whether it is to.
  using Sees = std::function<bool(std::size_t row, std::size_t token, std::size_t key, bool right)>;

  /// An edit of the step: other weights, operands, positions, arithmetic, numbers or lines.
  struct Change {
    std::map<std::string, Tensor> weights = {};
    std::vector<std::pair<std::string, bounds::IntervalTensor>> values = {};
    std::optional<PassPlan> pass = std::nullopt;
    std::optional<IntTensor> ids = std::nullopt;  ///< tokens of the pass
    std::optional<bounds::DeclaredArithmetic> declared = std::nullopt;
    std::map<std::string, double> numbers = {};
    Formulas formulas = {};                  ///< by the name of the line
    bool other_pairs = false;                ///< tables of rotations have the other order of pairs
    std::set<std::string> with_masked = {};  ///< values read with what masks hide
    Sees sees = {};                          ///< other masks
  };
  /// Returns the value that follows from the operands under a change. Throws Error("bounds_c1",
  /// ...) if a line reads what is one position earlier.
  bounds::IntervalTensor under(const Change& change, const Operand& operand) const;

 private:
  class Run;
  TextLine term() const;
  bool is_operand(const std::string& name) const;
  void visit(const TextLine& line);
  void visit(const std::string& name);

  const bounds::Derivation& derivation_;
  std::shared_ptr<const Graph> graph_;
  Place place_;
  std::vector<TextLine> lines_;
  std::vector<std::string> operands_;
  Unmasked unmasked_ = Unmasked::none;
  std::set<std::string> masks_;  // the lines that say what queries see
  bool in_loop_ = false, masked_ = false;
};

}  // namespace shardproof::diagnosis
