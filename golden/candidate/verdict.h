#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "golden/candidate/held.h"
#include "golden/candidate/reference.h"

namespace shardproof::candidate {

enum class Fit { equal, within, loose, different, not_judged };
std::string_view to_string(Fit fit);

/// A number that is not what it must be, in the writer's units.
struct WrongElement {
  int chip = 0;
  Shape index;                   ///< in the model's value
  double low = 0.0, high = 0.0;  ///< what it may be
  double actual = 0.0;
};

/// One value of a trace, judged.
struct Row {
  std::string name;   ///< in the file
  std::string title;  ///< "raw decode.1.layer0.gate"
  std::size_t held = 0;
  Fit fit = Fit::not_judged;
  std::string why;                  ///< of what is not judged
  double slack = 0.0, reach = 0.0;  ///< as of bounds::Judged
  /// The largest difference from the exact regime's value, over its root mean square; below 0 where
  /// it is not known. Never judged.
  double drift = -1.0;
  bool of_run = true;                    ///< neither a weight nor an input
  bool incomplete = false;               ///< not every element is there
  std::int64_t elements = 0, wrong = 0;  ///< numbers on all chips
  int chips = 0, wrong_chips = 0;
  std::optional<WrongElement> first, worst;
  /// Which elements are wrong, where these are all of some indices of each dim (wrong_box).
  std::vector<std::vector<std::int64_t>> box;
  /// Of a value with other bits than the exact regime's: it follows from the trace's own operands,
  /// so that the fault is in an earlier one.
  bool follows = false;
  bool copies_differ = false;  ///< copies on several chips have different bits
};

struct Verdict {
  std::vector<Row> rows;  ///< in the order of the run
  std::vector<Unknown> unknown;
  std::int64_t copies = 0;  ///< values that stand in the trace as the same as another
  /// Whole values of the model that have a verdict, and all that there are.
  std::int64_t compared = 0, whole = 0;
  /// The first row that is different and does not follow from what it is made of.
  std::optional<std::size_t> first;

  std::int64_t count(Fit fit) const;
  /// Whether some whole value of the run is equal or within: loose ones prove nothing.
  bool proves() const;
  /// 0: it proves something, and nothing is different; else 1.
  int exit_code() const;
};

/// Judges every value of a trace. Throws what bounds::Replay throws.
Verdict judge(const Values& values, const Claim& claim, Reference& reference);

}  // namespace shardproof::candidate
