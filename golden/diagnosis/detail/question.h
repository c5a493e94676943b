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

#include "golden/diagnosis/diagnosis.h"

namespace shardproof::diagnosis {

/// The index of an element, dim by dim.
using Index = std::array<std::int64_t, 8>;

/// What a fault makes of an element of a chip's local shard: the number that it is rounded from.
using Prediction = std::function<bounds::Evaluated(int chip, std::size_t local)>;

/// A place where a fault can be, by the layouts that the dump declares: there is one; nothing is
/// said of it; there is none.
enum class Site { declared, unknown, none };

/// Whether a prediction leaves a number open: it takes it from where nothing is said of anything,
/// as from padding.
inline bool open(const bounds::Evaluated& number) {
  return !std::isfinite(number.center) || !std::isfinite(number.radius);
}

/// One fault with its parameters, not tried yet.
struct Candidate {
  std::string_view fault;
  std::string detail, axes;
  int parameters = 0;  ///< of those of one kind that explain, the one with the least comes first
  Prediction at;
  /// What the prediction is rounded to, where it is not what the value is.
  std::optional<bounds::Format> format = std::nullopt;
  /// Whether the layouts of the operands leave room for it.
  Site site = Site::declared;
  /// Of what only changes the order of blocks: chips that differ along these axes alone have it
  /// together, or none of them has it.
  Axes together = {};
  /// Whether numbers of it were fitted to the value: then it may leave no more open than what was
  /// expected allows, however large the value is, or a large enough one is explained by any.
  bool fitted = false;
};

/// A wrong value and what a search for its fault needs of it. Chips are those whose shards there
/// are: one, with number 0, where the value is whole.
class Question {
 public:
  /// Of a partial layout each chip stands for the sum of its group, as a complete value. Throws
  /// what replay.expected throws, and Error("diagnosis_c1", ...) where layout, torus and shards do
  /// not fit the value.
  Question(bounds::Replay& replay, const Wrong& wrong);
  /// The same value, which must be whole, as if it were cut so; operands stay those of `whole`.
  Question(const Question& whole, const Layout& cut);

  bounds::Replay& replay() const { return *replay_; }
  /// How this value is computed.
  const bounds::Declared& declared() const { return replay_->declared(place_); }
  /// Whether likely bounds are held against the value, in place of what holds whatever happened.
  bool likely() const { return likely_; }
  const ModelConfig& config() const { return replay_->weights().config(); }
  const std::string& id() const { return id_; }
  const bounds::Replay::Place& place() const { return place_; }
  const std::string& name() const { return place_.name; }
  const Torus& torus() const { return torus_; }
  const Layout& layout() const { return layout_; }  ///< complete
  /// The axes over which the shards given were summands.
  const Axes& summed() const { return summed_; }
  const Shape& shape() const { return expected_->shape; }
  const Shape& local_shape() const { return local_; }
  std::size_t rank() const { return local_.size(); }
  /// Whether it is a contraction's sum before scales and biases.
  bool raw() const { return raw_; }
  const bounds::Carried& expected() const { return *expected_; }
  /// Another value, as the dump has it or as it follows; open where nothing is said of it.
  const bounds::Carried& value(const std::string& id) const;
  /// Which elements of a value nothing is said of: padding, and masked slots where the dump says
  /// so; empty: none.
  std::vector<bool> unspoken(const bounds::Replay::Place& place, const Shape& shape) const;
  /// Whether this value may come from there: the dump has it, it is earlier in the run, and it is
  /// what it must be in its own place.
  bool source(const std::string& id) const;
  bounds::Format format() const { return format_; }

  int chips() const { return static_cast<int>(shards_.size()); }
  /// Whether there is one tensor for all chips.
  bool whole() const { return chips() == 1 && torus_.chips() > 1; }
  std::size_t elements() const { return static_cast<std::size_t>(element_count(local_)); }
  const std::vector<double>& shard(int chip) const {
    return shards_[static_cast<std::size_t>(chip)];
  }
  /// The element of the logical tensor that a chip has there.
  std::size_t global(int chip, std::size_t local) const {
    return globals_[static_cast<std::size_t>(chip)][local];
  }
  Index index(std::size_t local) const;         ///< in the local shard
  std::size_t flat(const Index& global) const;  ///< of the logical tensor
  /// Where a chip's block begins under a layout of the value's dims.
  Index offset(const Layout& layout, int chip) const;

  /// The axes that cut a dim of an operand of the same layer, or of any value, as the dump declares
  /// it; none where it does not.
  std::optional<Axes> declared_axes(const std::string& operand, char letter) const;
  std::optional<Axes> declared_axes_of(const std::string& id, char letter) const;

  /// Whether nothing is said of what a chip has there.
  bool padded(int chip, std::size_t local) const {
    return !padding_.empty() && padding_[global(chip, local)];
  }
  /// The elements of a chip that something is said of.
  std::vector<std::size_t> judged(int chip) const;
  /// Whether an element as given may be rounded from that number; of padding whatever it is.
  bool fits(int chip, std::size_t local, const bounds::Evaluated& number,
            std::optional<bounds::Format> format) const;
  /// Whether all of a chip is what it must be.
  bool right(int chip) const { return right_[static_cast<std::size_t>(chip)]; }
  bool right() const;
  /// Open where nothing is said of it.
  bounds::Evaluated expected_at(std::size_t global) const {
    if (!padding_.empty() && padding_[global]) return {0.0, bounds::kInfinity, 0.0};
    return {expected_->center[global], expected_->radius[global], 0.0};
  }
  /// The root mean square of what is expected, and whether its bounds are narrow.
  double scale() const { return scale_; }
  /// The root mean square of what is there; 0 where something is not finite.
  double scale_as_given() const { return given_; }
  bool narrow() const { return narrow_; }
  /// The axes with more than one chip, as every list of some of them in every order, short first.
  const std::vector<Axes>& lists() const { return lists_; }
  /// Likewise as sets.
  const std::vector<Axes>& sets() const { return sets_; }

  /// A prediction that is the same logical tensor on all chips, cut as declared.
  Prediction logical(bounds::Carried tensor) const;
  Prediction logical(std::function<bounds::Evaluated(std::size_t global)> element) const;

  /// The ids of what the value is made of.
  std::vector<std::string> operands() const;
  /// What follows with other weights, values, positions or arithmetic in this one step.
  struct Change {
    std::optional<Weights> weights = std::nullopt;
    std::vector<std::pair<std::string, bounds::Carried>> values = {};
    std::optional<PassPlan> pass = std::nullopt;
    std::optional<bounds::Declared> declared = std::nullopt;
  };
  bounds::Carried under(const Change& change) const;
  /// The weights that this step may read, with some changed by name ("layer0.wq").
  Weights weights_with(const std::vector<std::pair<std::string, Tensor>>& changed,
                       const std::optional<ModelConfig>& config = std::nullopt) const;
  const Tensor* weight(std::string_view id) const;  ///< null if there is none
  /// Of this layer: "layer1.wq".
  std::string weight_id(std::string_view name) const;

 private:
  void place_shards();

  bounds::Replay* replay_;
  std::string id_;
  bounds::Replay::Place place_;
  Torus torus_;
  Layout layout_;
  Axes summed_;
  bool raw_;
  std::map<std::string, Layout> layouts_;
  bool masked_any_, likely_;
  std::function<bool(const std::string&)> sound_;
  std::vector<bool> padding_;
  std::shared_ptr<std::map<std::string, bounds::Carried>> values_;  // with what is open
  std::shared_ptr<const bounds::Carried> expected_;
  bounds::Format format_;
  Shape local_;
  std::vector<std::vector<double>> shards_;
  std::vector<std::vector<double>> slack_;  // what the roundings of summands leave open
  std::vector<std::vector<std::size_t>> globals_;
  std::vector<bool> right_;
  double scale_ = 0.0, given_ = 0.0;
  bool narrow_ = false;
  std::vector<Axes> lists_, sets_;
};

/// "x", "x and y", "x, y and z".
std::string words_of(const Axes& axes);

/// Bounds of what is made of numbers with bounds: a whole multiple; a sum, rounded as declared.
bounds::Evaluated times(const bounds::Evaluated& a, double factor);
bounds::Evaluated plus(const bounds::Evaluated& a, const bounds::Evaluated& b,
                       const bounds::Declared& by);

}  // namespace shardproof::diagnosis
