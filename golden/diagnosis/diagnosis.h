#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "engine/layout/layout.h"
#include "engine/layout/torus.h"
#include "golden/bounds/value/derivation.h"
#include "weights/base/error.h"

namespace shardproof::diagnosis {

/// A value of a dump that differs from what its operands imply, or a weight that it shows and that
/// is another than the run's.
struct Wrong {
  std::string id;  ///< "decode.1.layer0.gate", "layer0.wq"
  Torus torus;     ///< the case's
  /// The declared layout, with dims in the model's order; without axes if the dump has the value
  /// whole.
  Layout layout;
  /// The local shard of every chip, row-major; a single one if the layout has no axes.
  std::vector<std::vector<double>> shards;
  /// Declared layouts of other values by id, with dims in the model's order. Among faults that
  /// predict the same numbers, one that these layouts leave room for is preferred.
  std::map<std::string, Layout> layouts = {};
  /// The value is the S of the contraction, before scales and biases, not a stored value.
  bool raw = false;
  /// Elements of the value, row-major, that are not judged: whatever a shard holds there is neither
  /// wrong nor an explanation. Empty: none.
  std::vector<bool> padding = {};
  /// Masked slots of score and exp are meaningless, in this value and in others.
  bool masked_any = false;
  /// Returns whether a dumped value follows from its own operands: only such a value explains a
  /// wrong one by being in its place. Empty: all do.
  std::function<bool(const std::string& id)> sound = {};
  /// Only the likely bounds exclude the value (docs/bounds.md section 7), so candidates are
  /// compared with these.
  bool unlikely = false;
};

/// One explanation: what the value would be under a fault.
struct Hypothesis {
  std::string fault;   ///< kind of fault, one of faults(): "reduction missing"
  std::string detail;  ///< its parameters: "over x: each chip holds its own partial sum"
  std::string axes;    ///< axes that the fault involves, "" if none: "x"
  /// True if every element of every chip lies in the interval that the prediction leaves open.
  bool explains = false;
  /// The largest difference from the prediction, over the root mean square of what was expected.
  double residual = 0.0;
  /// The residual over the largest difference from the expected value: the share left unexplained.
  double left = 0.0;
};

/// Returns the kinds of faults that are tried, in the order of the documentation.
const std::vector<std::string>& faults();

/// Says what to change or to declare where a fault of this kind explains a value; "" for a kind
/// that is not one of faults().
std::string_view remedy(std::string_view fault);

/// Recomputes the step under every fault that a value of its kind can have. Returns the
/// explanations, simplest first; or, if there are none, the five nearest candidates by residual
/// that leave at most a tenth of the difference. `others`: later values of the same name, right or
/// wrong. Explanations that hold for them too come first; those that they refute are dropped if one
/// holds. `without`: a kind that is not tried, so that one sees what is said of faults that are not
/// in the table. Throws what replay.expected throws, and Error("diagnosis_c1", ...) if layout,
/// torus and shards do not fit a value.
std::vector<Hypothesis> diagnose(bounds::Derivation& replay, const Wrong& wrong,
                                 const std::vector<Wrong>& others = {},
                                 std::string_view without = "");

}  // namespace shardproof::diagnosis
