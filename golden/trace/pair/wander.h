#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "golden/trace/claim/claim.h"
#include "golden/trace/reference/reference.h"

namespace shardproof::dump {

/// How far runs of the model in a trace's own arithmetic, each with another order of sums, go from
/// exact: what rounding alone does. It is evidence, and decides no verdict.
struct Wander {
  /// The output of a layer: distances from exact over the root mean square, over the runs.
  struct OfLayer {
    std::int64_t layer = 0;
    double least = 0.0, most = 0.0, rms = 0.0;
  };
  /// The logits of one row: the largest distances from exact, over the runs.
  struct OfLogits {
    double logit = 0.0;        ///< of a logit
    double probability = 0.0;  ///< of a log p
  };

  int runs = 0;
  std::string why;                                      ///< why there are no runs
  std::map<std::string, OfLayer> layers;                ///< by id of a layer's output
  std::map<std::string, std::vector<OfLogits>> logits;  ///< by pass, by row
};

/// Runs the model `runs` times (-1: as often as takes about a minute, at most 32 times) over the
/// passes for which the unsharded model had the trace's ids.
Wander wander_of(const Claim& claim, Reference& reference, int runs);

/// Returns log p of each logit of a row, of logits in base e or 2.
std::vector<double> log_probabilities(const double* logits, std::size_t count, bool base2);

}  // namespace shardproof::dump
