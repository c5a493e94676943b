#pragma once

#include <array>
#include <cmath>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "golden/diagnosis/detail/step.h"
#include "golden/diagnosis/diagnosis.h"

namespace shardproof::diagnosis {

/// The index of an element, dim by dim.
using Index = std::array<std::int64_t, 8>;

/// Maps an element of a chip's local shard to its number before rounding, under a fault.
using Prediction = std::function<bounds::FunctionValue(int chip, std::size_t local)>;

/// A place for a fault in the layouts that the dump declares: there is one, unknown, there is none.
enum class Site { declared, unknown, none };

/// Returns whether a prediction leaves a number open: its source, as padding, is not judged.
inline bool open(const bounds::FunctionValue& number) {
  return !std::isfinite(number.center) || !std::isfinite(number.radius);
}

/// A fault with its parameters, not yet tried.
struct Candidate {
  std::string_view fault;
  std::string detail;
  int parameters = 0;  ///< of explanations of one kind, the one with the lowest number comes first
  std::string axes = {};
  Prediction at = {};
  /// Format that the prediction is rounded to, if not the value's own.
  std::optional<NumberFormat> format = std::nullopt;
  /// How far the operands' layouts leave room for the fault.
  Site site = Site::declared;
  /// For reordered blocks: chips that differ only along these axes all have the fault, or none.
  Axes together = {};
  /// Parameters were fitted to the value: its openness is measured against the expected scale even
  /// if the value is larger, because anything would explain a large enough value.
  bool fitted = false;
  /// Several values have the fault; of those that the dump lacks, all together.
  bool shared = false;
  /// Returns whether another dumped value shows that it did not happen; empty: none is asked.
  /// Called for what explains the value on all chips.
  std::function<bool()> refuted = {};
};

/// A wrong value, or weight, with all that a search for its fault needs. Chips are those whose
/// shards the dump has; a whole value has one chip, number 0.
class Question {
 public:
  /// With a partial layout each shard is replaced by the sum over its group, a complete value.
  /// Throws what replay.expected throws, and Error("diagnosis_c1", ...) if layout, torus and shards
  /// do not fit the value.
  Question(bounds::Derivation& replay, const Wrong& wrong);
  /// Cuts a whole value by `cut`; its operands stay those of `whole`.
  Question(const Question& whole, const Layout& cut);

  bounds::Derivation& replay() const { return *replay_; }
  const Step& step() const { return *step_; }
  /// Returns another value with these shards, of which all else is declared as for this one.
  Wrong other(const std::string& id, const Layout& layout,
              std::vector<std::vector<double>> shards) const;
  /// Returns the step of another value.
  const Step& step_of(const std::string& id) const;
  /// Holds what contraction_of() has found.
  struct Contractions {
    bool known = false;
    std::shared_ptr<const struct Contraction> value;
  };
  Contractions& contractions() const { return *contractions_; }
  /// Returns the arithmetic of this value.
  const bounds::DeclaredArithmetic& declared() const { return replay_->declared(place_); }
  /// Returns whether the value is compared with likely bounds in place of the worst case.
  bool likely() const { return likely_; }
  const ModelConfig& config() const { return replay_->weights().config(); }
  const std::string& id() const { return id_; }
  const bounds::Derivation::Place& place() const { return place_; }
  const PassPlan& pass() const { return replay_->pass(place_.pass); }
  const std::string& name() const { return place_.name; }
  /// Returns the id of another value of the same pass and layer.
  std::string id_of(std::string_view name) const;
  const Torus& torus() const { return torus_; }
  const Layout& layout() const { return layout_; }  ///< without partial axes
  /// Axes over which the given shards were partial sums.
  const Axes& summed() const { return summed_; }
  const Shape& shape() const { return expected_->shape; }
  const Shape& local_shape() const { return local_; }
  std::size_t rank() const { return local_.size(); }
  /// Returns whether this is a weight, which no step computes.
  bool of_weight() const { return of_weight_; }
  /// Returns whether the value is a contraction's sum before scales and biases.
  bool raw() const { return raw_; }
  /// Returns whether masked slots mean nothing.
  bool masked_any() const { return masked_any_; }
  const bounds::IntervalTensor& expected() const { return *expected_; }
  /// Returns another value, as dumped or derived; unknown numbers where it is not judged.
  const bounds::IntervalTensor& value(const std::string& id) const;
  /// Flags elements that are not judged: padding, and masked slots if the dump declares them
  /// meaningless; empty: none.
  std::vector<bool> unspoken(const bounds::Derivation::Place& place, const Shape& shape) const;
  /// Returns whether a wrong value may have been taken from `id`: the dump has it, it is computed
  /// earlier in the run, and it is itself right.
  bool source(const std::string& id) const;
  NumberFormat format() const { return format_; }

  int chips() const { return static_cast<int>(shards_.size()); }
  /// Returns whether one tensor stands for all chips.
  bool whole() const { return chips() == 1 && torus_.chips() > 1; }
  std::size_t elements() const { return static_cast<std::size_t>(element_count(local_)); }
  const std::vector<double>& shard(int chip) const {
    return shards_[static_cast<std::size_t>(chip)];
  }
  /// Returns the element of the logical tensor at an element of a chip's shard.
  std::size_t global(int chip, std::size_t local) const {
    return globals_[static_cast<std::size_t>(chip)][local];
  }
  Index index(std::size_t local) const;  ///< index in the local shard
  /// Returns the flat index in the logical tensor of an index in the block that begins at `begin`.
  std::size_t flat(const Index& index, const Index& begin = {}) const;
  /// Returns where a chip's block begins, as declared or under another layout of the same dims.
  Index offset(const Layout& layout, int chip) const;
  Index offset(int chip) const { return offset(layout_, chip); }

  /// Returns the axes that cut a dim of an operand of the same layer, or of any value by id, as the
  /// dump declares; nullopt if it declares none.
  std::optional<Axes> declared_axes(const std::string& operand, char letter) const;
  std::optional<Axes> declared_axes_of(const std::string& id, char letter) const;

  /// Returns whether an element of a chip is not judged.
  bool padded(int chip, std::size_t local) const {
    return !padding_.empty() && padding_[global(chip, local)];
  }
  /// Returns the judged elements of a chip.
  std::vector<std::size_t> judged(int chip) const;
  /// Returns whether an element as given may round from `number`; always true for padding.
  bool fits(int chip, std::size_t local, const bounds::FunctionValue& number,
            std::optional<NumberFormat> format = std::nullopt) const;
  /// Returns whether an element of a chip, all of a chip, or all of the value is right.
  bool right(int chip, std::size_t local) const {
    return fits(chip, local, expected_at(global(chip, local)));
  }
  bool right(int chip) const { return right_[static_cast<std::size_t>(chip)]; }
  bool right() const;
  /// Returns the right number; unknown if the element is not judged.
  bounds::FunctionValue expected_at(std::size_t global) const {
    if (!padding_.empty() && padding_[global]) return {0.0, bounds::kInfinity, 0.0};
    return {expected_->center[global], expected_->radius[global], 0.0};
  }
  /// scale(): root mean square of the expected value; narrow(): whether its bounds are narrow.
  double scale() const { return scale_; }
  /// Root mean square of the given value; 0 if an element is not finite.
  double scale_as_given() const { return given_; }
  bool narrow() const { return narrow_; }
  /// Every list of some of the axes with more than one chip, in every order, short lists first.
  const std::vector<Axes>& lists() const { return lists_; }
  /// Every set of some of the axes with more than one chip.
  const std::vector<Axes>& sets() const { return sets_; }

  /// Predicts the same logical tensor on all chips, cut as declared.
  Prediction logical(bounds::IntervalTensor tensor) const;
  Prediction logical(std::function<bounds::FunctionValue(std::size_t global)> element) const;

  /// Returns the ids of the value's operands; of a text's those of its step.
  const std::vector<std::string>& operands() const { return operands_; }
  using Change = Step::Change;
  /// Returns the value that follows under an edit of its step.
  bounds::IntervalTensor under(const Change& change) const;
  /// Null if there is none.
  std::shared_ptr<const Tensor> weight(std::string_view id) const;
  /// Returns the weight's id in this layer: "layer1.wq".
  std::string weight_id(std::string_view name) const;

 private:
  void place_shards();

  bounds::Derivation* replay_;
  bool of_weight_;
  std::shared_ptr<const Step> step_;
  std::shared_ptr<std::map<std::string, Step>> steps_ =
      std::make_shared<std::map<std::string, Step>>();
  std::shared_ptr<Contractions> contractions_ = std::make_shared<Contractions>();
  std::string id_;
  bounds::Derivation::Place place_;
  Torus torus_;
  Layout layout_;
  Axes summed_;
  bool raw_;
  std::vector<std::string> operands_;
  std::map<std::string, Layout> layouts_;
  bool masked_any_, likely_;
  std::function<bool(const std::string&)> sound_;
  std::vector<bool> padding_;
  std::shared_ptr<std::map<std::string, bounds::IntervalTensor>>
      values_;  // unknown where not judged
  std::shared_ptr<const bounds::IntervalTensor> expected_;
  NumberFormat format_;
  Shape local_;
  std::vector<std::vector<double>> shards_;
  std::vector<std::vector<double>> slack_;  // effect of the roundings of partial sums
  std::vector<std::vector<std::size_t>> globals_;
  std::vector<bool> right_;
  double scale_ = 0.0, given_ = 0.0;
  bool narrow_ = false;
  std::vector<Axes> lists_, sets_;
};

/// Returns how many elements of a tensor one index of a dim has.
std::size_t inner_of(const Shape& shape, std::size_t dim);

/// Returns the index of an element in a dim of a value with these letters.
std::size_t index_in(std::string_view letters, const Shape& shape, std::size_t element, char dim);

/// Returns "x", "x and y", or "x, y and z".
std::string words_of(const Axes& axes);

/// Arithmetic on numbers with bounds: a whole multiple; a sum, rounded as declared.
bounds::FunctionValue times(const bounds::FunctionValue& a, double factor);
bounds::FunctionValue plus(const bounds::FunctionValue& a, const bounds::FunctionValue& b,
                           const bounds::DeclaredArithmetic& by);

}  // namespace shardproof::diagnosis
