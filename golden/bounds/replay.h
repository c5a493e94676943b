#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "golden/bounds/carried.h"
#include "weights/error.h"
#include "weights/passes.h"
#include "weights/weights.h"

namespace shardproof::bounds {

enum class Fit { within, loose, different };
std::string_view to_string(Fit fit);

/// One named value of a dump, judged.
struct Judged {
  Fit fit = Fit::different;
  double slack = 0.0;  ///< of the largest error; 0 where there is none
  /// How far the widest interval reaches, over the value's root mean square. Above one hundredth
  /// nothing is within: the value is loose, as long as it lies inside.
  double reach = 0.0;
  // Of the first element outside:
  Shape index;
  Interval expected;  ///< of values
  double actual = 0.0;
};

/// What values of this name are rounded to.
Format format_of(std::string_view name, const ModelConfig& config, const Declared& declared);

/// The logical model, unsharded, judged by somebody's dump of its named values
/// ("decode.1.layer0.gate"): each is held against what follows from those it is made of, as the
/// dump has them. One that the dump lacks is replayed from its own operands, and what that leaves
/// open is carried on, to first order.
class Replay {
 public:
  /// A radius is how far the copies of a number are from the one that is its center.
  using Dump = std::map<std::string, Carried>;

  /// `weights` as stored for the run; kept as int8, codes and scales. `ids` [BL] are the tokens of
  /// each pass, by pass. All outlive the replay.
  Replay(const Weights& weights, const Passes& passes, const std::map<std::string, IntTensor>& ids,
         const Dump& dump, const Declared& declared);

  /// The same dump with other weights, of a model whose values have the same shapes, for what would
  /// have been. Values that the dump lacks are made anew, unless they are assumed. `weights`
  /// outlives the replay.
  Replay(const Weights& weights, const Replay& like);
  /// From now on, whatever was dumped or derived: a value, where a pass's rows stand, how it is
  /// computed. Values that have been made already stay as they are.
  void assume(const std::string& id, Carried value) { known_[id] = std::move(value); }
  void assume(const PassPlan& pass);
  void assume(const Declared& declared) { declared_ = declared; }

  /// Padding is not judged (padding_in_trace). Throws Error("bounds_c1", ...) if the dump has no
  /// such value, the model none of that name or of another shape, or something that the value is
  /// made of has another shape; of ids that are missing or out of range, too.
  Judged judge(const std::string& id);

  /// Where a named value stands: its pass, its layer (0 where it has none) and its name.
  struct Place {
    std::string pass;
    std::int64_t layer;
    std::string name;
  };
  /// Throws Error("bounds_c1", ...) if the model has no such value.
  Place place_of(const std::string& id) const;
  /// What follows for a value from those it is made of, whether the dump has it or not: the real
  /// numbers whose rounding it is. Throws as judge does.
  Carried expected(const std::string& id) { return derived(place_of(id)); }
  /// What follows for the S of a contraction, before scale, bias and st ("raw q"), from the
  /// checkpoint's operands, and for S times its scale ("scaled q": of int8, of logits); for a
  /// norm's statistic, by its name; for exp/denom. Throws as judge does; nothing where the value is
  /// not a contraction, has no scale, or is not a statistic.
  std::optional<Carried> expected_raw(const std::string& id);
  std::optional<Carried> expected_scaled(const std::string& id);
  std::optional<Carried> expected_statistic(const Place& place);
  Carried expected_probs(const std::string& pass, std::int64_t layer);
  /// The value as others are made of it: the dump's, or what follows, rounded. Throws as judge
  /// does.
  const Carried& value(const std::string& id);
  bool dumped(const std::string& id) const { return dump_.contains(id); }
  /// What values of this name are rounded to.
  Format format_of(std::string_view name) const {
    return bounds::format_of(name, config_, declared_);
  }
  const Weights& weights() const { return weights_; }
  const Declared& declared() const { return declared_; }
  /// Throws Error("bounds_c1", ...) if there is none.
  const PassPlan& pass(const std::string& name) const;
  /// Of every pass, in order.
  const std::vector<PassPlan>& passes() const { return passes_; }
  /// The pass whose caches hold the prefixes that a pass's rows go on from; null where they go on
  /// from none.
  const PassPlan* prefix_of(const PassPlan& pass) const;
  /// The position of a row's token in a pass.
  std::int64_t position(const PassPlan& pass, std::size_t row, std::size_t token) const;
  /// How many keys it sees, those of its prefix included: all up to its own. Padding sees the row's
  /// tokens.
  std::size_t visible(const PassPlan& pass, std::size_t row, std::size_t token) const;

 private:
  using Known = std::map<std::string, Carried>;
  /// How far a contraction is: its sum, with its scale, with the bias, too.
  enum class Stage { raw, scaled, finished };
  /// A row of a norm, less its mean where there is one, with its sums.
  struct NormRow {
    std::vector<double> center, radius;
    Evaluated sum, mean, squares;
  };

  /// Those that a row is one of.
  static const PassRows& rows_of(const PassPlan& pass, std::size_t row);
  /// As the dump has it, or derived and rounded.
  const Carried& operand(const Place& at, std::string_view name);
  Carried derived(const Place& at);
  Carried weight(std::int64_t layer, std::string_view name) const;
  bool has(std::string_view name) const;

  Carried embedded(const Place& at, Stage stage) const;
  Carried normed(const Place& at, const Carried& x);
  NormRow norm_row(const Carried& x, std::size_t row) const;
  /// What a norm is computed of: x, or the dump's.
  const Carried& normed_of(const Place& at);
  Carried projected(const Place& at, Stage stage);
  Carried rotated(const Place& at, const Carried& x);
  Carried appended(const Place& at);
  /// A cache as attention reads it: of each row the slots of its prefix, then its own.
  Carried read(const Place& at, std::string_view cache);
  Carried scores(const Place& at, Stage stage);
  Carried softmax(const Place& at);
  Carried mean(const Place& at, Stage stage);
  Carried hidden(const Place& at);
  Carried logits(const Place& at, Stage stage);

  const Weights& weights_;
  const ModelConfig& config_;
  std::vector<PassPlan> passes_;
  const std::map<std::string, IntTensor>& ids_;
  const Dump& dump_;
  Declared declared_;
  Known known_;
};

}  // namespace shardproof::bounds
