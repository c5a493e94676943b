#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "engine/cost/formulas/pass.h"
#include "weights/base/error.h"
#include "weights/text/text_model.h"

namespace shardproof::cost {

/// How much of a value exists.
struct ExistingShare {
  double pairs = 1.0;   ///< pairs of a new position and a slot of the caches that exist
  double of = 1.0;      ///< of so many, L(M+L); 1 of 1 where no position is left out
  double slots = 1.0;   ///< share of the slots that any new position sees
  double chosen = 1.0;  ///< share of a letter's extent that a `top` chooses: 2 of 8 experts
};

/// Counts where the indicators of a text are 1, for one layer and one pass. Indicators of
/// positions, `within` of sums, differences and quotients of `slot` and `pos`, are counted exactly;
/// a `top` chooses its number of its letter's extent; any other indicator is counted as 1
/// everywhere.
class Existence {
 public:
  /// `layer` decides which of a name's guarded lines counts. `model` must outlive it.
  Existence(const TextModel& model, std::int64_t layer, const Pass& pass)
      : model_(model), layer_(layer), pass_(pass) {}

  /// Returns how much exists where all these indicators are 1. Throws Error("graph_c1", ...) if
  /// they are of positions, but not of slot − pos alone, and the pass has more than 2^24 pairs.
  ExistingShare share_of(const std::vector<std::string>& indicators) const;

 private:
  /// The differences slot − pos at which something exists.
  struct Band {
    double low = -std::numeric_limits<double>::infinity();
    double high = std::numeric_limits<double>::infinity();
  };
  /// factor·(slot − pos) + constant.
  struct Distance {
    double factor = 0.0, constant = 0.0;
  };
  struct Conditions {
    Band band;
    std::vector<Expression> others;  ///< of positions, but not a band
    double chosen = 1.0;
  };

  const TextLine* line_of(const std::string& name) const;
  void add(const Expression& e, Conditions& all) const;
  void add_within(const Expression& e, Conditions& all) const;
  std::optional<Distance> distance(const Expression& e) const;
  /// Returns the value of an expression of positions; nullopt if it is of anything else.
  std::optional<double> value(const Expression& e, double pos, double slot) const;
  void count_band(const Band& band, ExistingShare& share) const;
  void count_pairs(const Conditions& all, ExistingShare& share) const;

  const TextModel& model_;
  std::int64_t layer_;
  Pass pass_;
};

}  // namespace shardproof::cost
