#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "engine/layout/layout.h"
#include "engine/layout/torus.h"
#include "golden/bounds/value/replay.h"
#include "weights/base/error.h"

namespace shardproof::diagnosis {

/// A value of a dump that differs from what follows from its operands.
struct Wrong {
  std::string id;  ///< "decode.1.layer0.gate"
  Torus torus;     ///< of the case
  /// As declared, with dims in the model's order; without axes where the dump has it whole.
  Layout layout;
  /// The local shard of every chip, row-major; or one for all where the layout has no axes.
  std::vector<std::vector<double>> shards;
  /// How the dump has other values, by id, where it says so, with dims in the model's order. Of
  /// faults that predict the same numbers, one that these layouts leave room for is meant.
  std::map<std::string, Layout> layouts = {};
  /// It is the S of the contraction, before scales and biases, and no stored value.
  bool raw = false;
  /// Elements of the value, row-major, that nothing is said of: whatever a shard holds there, it
  /// neither is wrong nor explains anything. Empty: none.
  std::vector<bool> padding = {};
  /// What stands in masked slots of score and exp means nothing, of this value as of others.
  bool masked_any = false;
  /// Whether a value of the dump is what follows from its own operands: no other explains a wrong
  /// one by being in its place. None: all are.
  std::function<bool(const std::string& id)> sound = {};
  /// Only the likely bounds exclude it (docs/bounds.md section 7): then they are what is held.
  bool unlikely = false;
};

/// One explanation: what the value would be if this had been done.
struct Hypothesis {
  std::string fault;   ///< the kind, of faults(): "reduction missing"
  std::string detail;  ///< its parameters: "over x: each chip holds its own summand"
  std::string axes;    ///< the axes it is about, "" if none: "x"
  /// Whether every element of every chip lies in the interval that the prediction leaves open.
  bool explains = false;
  /// The largest difference from the prediction, over the root mean square of what was expected.
  double residual = 0.0;
  /// The same over the largest difference from what was expected: what it leaves unexplained.
  double left = 0.0;
};

/// The kinds of faults that are tried, in the order of the documentation.
const std::vector<std::string>& faults();

/// Replays the step under every fault that its kind of value can have. Those that explain it,
/// simplest first; or, where nothing does, the nearest five by residual, as far as they leave at
/// most a tenth of the difference. `others`: later values of the same name, right or wrong; of what
/// explains the value, that comes first which holds of them, too, and what they refute is left out
/// where something holds. Throws what replay.expected throws, and Error("diagnosis_c1", ...) where
/// layout, torus and shards do not fit a value.
std::vector<Hypothesis> diagnose(bounds::Replay& replay, const Wrong& wrong,
                                 const std::vector<Wrong>& others = {});

}  // namespace shardproof::diagnosis
