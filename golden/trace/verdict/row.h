#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "golden/bounds/number/fit.h"
#include "golden/rerun/evidence.h"
#include "weights/base/tensor.h"

namespace shardproof::candidate {

using bounds::Fit;

/// A number that is not what it must be, in the writer's units.
struct WrongElement {
  int chip = 0;
  Shape index;                   ///< in the model's value
  double low = 0.0, high = 0.0;  ///< what it may be
  double actual = 0.0;
};

/// How many elements of a value each way of rounding misses that its formula leaves open.
struct RoundingReport {
  std::string best;         ///< the way in words that misses the fewest
  std::int64_t misses = 0;  ///< of that way
  std::int64_t others = 0;  ///< the fewest of every way that is another for this model
  std::int64_t elements = 0;
};

/// One value of a trace, judged.
struct Row {
  std::string name;   ///< in the file
  std::string title;  ///< "raw decode.1.layer0.gate"
  std::size_t held = 0;
  Fit fit = Fit::not_judged;
  std::string why;        ///< of what is not judged, and what else is to be said of a verdict
  bounds::Extent extent;  ///< what the verdict follows from
  std::vector<std::string> needs = {};  ///< names of values whose dump would judge it better
  std::optional<RoundingReport> rounding = {};
  std::optional<rerun::Evidence> evidence = {};  ///< of a value whose bound would take anything
  std::vector<std::string> signs = {};  ///< what the signs of all its errors say; no verdict
  std::int64_t outliers = 0;  ///< numbers outside of the likely bound and inside of the worst case
  std::int64_t unequal = 0;   ///< numbers that are not the exact one rounded once
  double slack = 0.0;         ///< as of bounds::Judged
  /// The largest difference from the exact regime's value, over its root mean square; below 0 where
  /// it is not known. Never judged.
  double drift = -1.0;
  bool of_run = true;                    ///< neither a weight nor an input
  bool weight = false;                   ///< it is handed in, and judged by its bits
  bool incomplete = false;               ///< not every element is there
  std::int64_t elements = 0, wrong = 0;  ///< numbers on all chips
  std::int64_t unknown = 0;  ///< of which nothing is known (`why`): neither judged nor counted
  int chips = 0, wrong_chips = 0;
  std::optional<WrongElement> first, worst;
  /// Which elements are wrong, where these are all of some indices of each dim (wrong_box).
  std::vector<std::vector<std::int64_t>> box;
  /// Of a value with other bits than the exact regime's: it follows from the trace's own operands,
  /// so that the fault is in an earlier one.
  bool follows = false;
  bool copies_differ = false;  ///< copies on several chips have different bits

  /// Over the root mean square: the largest distance from exact, and what is allowed at most.
  double found() const { return bounds::relative(extent.found, extent.scale); }
  double allowed() const { return bounds::relative(extent.worst, extent.scale); }
  double allowed_likely() const { return bounds::relative(extent.likely, extent.scale); }
};

}  // namespace shardproof::candidate
