#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "golden/bounds/number/fit.h"
#include "golden/rerun/evidence.h"
#include "weights/base/tensor.h"

namespace shardproof::dump {

using bounds::Fit;

/// A wrong number, in the writer's units.
struct WrongElement {
  int chip = 0;
  Shape index;                   ///< in the model's value
  double low = 0.0, high = 0.0;  ///< allowed range
  double actual = 0.0;
};

/// Numbers of one chip that are wrong.
struct WrongPart {
  std::int64_t wrong = 0;
  double off = 0.0;  ///< the largest distance from the allowed range; infinite for NaN
};

/// How many elements of a value each way of rounding misses, over the ways its formula leaves open.
struct RoundingReport {
  std::string best;         ///< the way with the fewest misses, in words
  std::int64_t misses = 0;  ///< misses of `best`
  std::int64_t others = 0;  ///< fewest misses of any way that differs for this model
  std::int64_t elements = 0;
};

/// The verdict on one value of a trace.
struct Row {
  std::string name;   ///< name in the file
  std::string title;  ///< "raw decode.1.layer0.gate"
  std::size_t dumped = 0;
  Fit fit = Fit::not_judged;
  std::string why;                      ///< why it is not judged, or a remark on the verdict
  bounds::Extent extent;                ///< the basis of the verdict
  std::vector<std::string> needs = {};  ///< values to dump for a better verdict
  std::optional<RoundingReport> rounding = {};
  std::optional<rerun::Evidence> evidence = {};  ///< for a value whose bound accepts anything
  /// A value of a text whose bound accepts anything because operands are missing: no rerun weighs
  /// it.
  bool unweighed = false;
  std::vector<std::string> signs = {};  ///< findings from the errors' signs; no verdict
  std::int64_t outliers = 0;  ///< numbers outside the likely bound but inside the worst case
  /// Numbers that are NaN or infinite, of a value that its drift makes unlikely.
  std::int64_t not_finite = 0;
  std::int64_t unequal = 0;  ///< numbers that differ from the exact one rounded once
  double slack = 0.0;        ///< as in bounds::ValueVerdict
  /// The largest difference from the exact regime's value, over its root mean square; negative if
  /// unknown. Never judged.
  double drift = -1.0;
  bool of_run = true;                    ///< neither a weight nor an input
  bool weight = false;                   ///< an input, judged by its bits
  bool incomplete = false;               ///< some elements are missing
  std::int64_t elements = 0, wrong = 0;  ///< numbers on all chips
  std::int64_t unknown = 0;              ///< nothing known (`why`): neither judged nor counted
  int chips = 0;
  /// By chip, of those that have any; of an unlikely value its most unlikely numbers.
  std::map<int, WrongPart> wrong_parts = {};
  std::optional<WrongElement> first, worst;
  /// Indices of the wrong elements per dim, if these form a box (wrong_box).
  std::vector<std::vector<std::int64_t>> box;
  /// The bits differ from the exact regime's, but the value follows from the trace's own operands:
  /// the fault is in an earlier value.
  bool follows = false;
  bool copies_differ = false;  ///< replicas on several chips have different bits

  /// Adds a number that is wrong on these chips.
  void add_wrong(const std::vector<int>& on, double off) {
    wrong += std::ssize(on);
    for (const int chip : on) add_part(chip, off);
  }
  void add_part(int chip, double off) {
    WrongPart& part = wrong_parts[chip];
    ++part.wrong;
    part.off = std::max(part.off, off);
  }

  /// Over the root mean square: the largest distance from exact, and the largest allowed.
  double found() const { return bounds::relative(extent.found, extent.scale); }
  double allowed() const { return bounds::relative(extent.worst, extent.scale); }
  double allowed_likely() const { return bounds::relative(extent.likely, extent.scale); }
};

}  // namespace shardproof::dump
