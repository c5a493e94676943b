#pragma once

#include <string>
#include <string_view>

#include "engine/cost/work/bounds.h"
#include "weights/base/error.h"

namespace shardproof::cost {

/// The fraction of a chip's full speed that real runs reach: the constants of the calibrated
/// estimate, fitted on the measured times of the paper's Tables 2 and 3 (docs/cost.md). Weights and
/// caches are read at the full memory bandwidth.
struct Efficiency {
  double compute = 1.0;        ///< share of the peak, above 0, at most 1
  double interconnect = 1.0;   ///< share of the bandwidth, above 0, at most 1
  double time_of_layer = 0.0;  ///< seconds of overhead per layer

  bool operator==(const Efficiency&) const = default;
};

/// The chip that the constants were fitted on.
inline constexpr std::string_view kFittedChip = "tpu-v4";
/// Returns a one-line warning that estimates for another chip are guesses; "" for kFittedChip.
std::string guess_on(const Chip& chip);

/// Returns the constants of engine/cost/work/efficiency.txt, which `shardproof paper --fit` writes.
const Efficiency& fitted_efficiency();
/// The text of engine/cost/work/efficiency.txt, compiled in.
std::string_view fitted_text();

/// Reads the lines `NAME : VALUE` of a text of constants; # begins a comment. Throws Error:
/// "efficiency_c1" (a line of another form, an unknown, repeated or missing name), "efficiency_c2"
/// (a value that is not a number or out of its range).
Efficiency parse_efficiency(std::string_view text);
/// Reads the constants of a file. Throws Error: as parse_efficiency does; "efficiency_f1" (the file
/// cannot be read), "efficiency_f2" (not text, or too long).
Efficiency load_efficiency(const std::string& path);
/// Prints the three lines: parse_efficiency(print_efficiency(e)) == e if its numbers have at most
/// five digits.
std::string print_efficiency(const Efficiency& efficiency);

/// The seconds of each resource by the estimate: products at their share of the peak, reads at
/// full bandwidth, collectives at their share of the interconnect. The latency of ring steps is not
/// divided by a share.
Seconds terms_of_estimate(const Seconds& part, const Efficiency& efficiency = fitted_efficiency());
/// Their sum: nothing overlaps.
double estimate(const Seconds& part, const Efficiency& efficiency = fitted_efficiency());
/// Seconds of a pass: the layers, the ends, and the overhead of each layer.
double estimate(const Bounds& bounds, const Efficiency& efficiency = fitted_efficiency());

}  // namespace shardproof::cost
