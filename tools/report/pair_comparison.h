#pragma once

#include <string>
#include <vector>

#include "golden/trace/pair/pair.h"
#include "golden/trace/pair/plain.h"
#include "tools/report/comparison.h"
#include "weights/base/error.h"

namespace shardproof::tools {

/// What two traces are compared by, besides what they say themselves.
struct PairComparisonRequest {
  ComparisonRequest a, b;
  bool same = false;   ///< --same
  bool plain = false;  ///< --model none: no model says what values must be
  int runs = -1;       ///< runs in random orders; -1: as many as take about a minute
};

/// Two traces side by side.
struct PairComparison {
  PairComparisonRequest request;
  dump::Pair pair;    ///< unless they are compared without a model
  dump::Plain plain;  ///< if they are

  int exit_code() const { return request.plain ? plain.exit_code() : pair.exit_code(); }
};

/// Compares two traces, with weights in place of files' where they are given. Throws what compare()
/// throws of each, and Error("compare_pair", ...).
PairComparison compare_pair(const dump::Dump& a, const dump::Dump& b, PairComparisonRequest request,
                            const Weights* given_a = nullptr, const Weights* given_b = nullptr);

/// Returns the result in one sentence.
std::string sentence(const PairComparison& of);

/// Returns the command that compares them again.
std::string command(const PairComparison& of);

/// Returns in words how far the probabilities of a position, and two tokens, are apart.
std::string words_of(const dump::PositionOfLogits& position);
std::string words_of(const dump::Parting& parting);

/// One line of the table of layers: a layer's output in a pass.
struct LayerDrift {
  std::string id;
  std::int64_t layer = 0;
  double a = -1.0, b = -1.0;  ///< drift from exact; negative: unknown
  /// Those of runs in random orders, in each one's arithmetic; null: none.
  const dump::Wander::OfLayer *runs_a = nullptr, *runs_b = nullptr;
};
/// Returns the drift of the outputs of layers, in the order of A's run, then what B alone has.
std::vector<LayerDrift> layer_drifts(const dump::Pair& pair);

}  // namespace shardproof::tools
