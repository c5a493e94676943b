#pragma once

#include <string>
#include <string_view>

#include "engine/cost/work/bounds.h"
#include "weights/base/error.h"

namespace shardproof::cost {

/// What a real run reaches of a chip's full speed: the named constants of the calibrated estimate,
/// fitted once on the measured times of the paper's Tables 2 and 3 (docs/cost.md). Weights and
/// caches are read at the full bandwidth of the memory.
struct Efficiency {
  double compute = 1.0;        ///< share of the peak that products reach, above 0, at most 1
  double interconnect = 1.0;   ///< share of the bandwidth that collectives reach, likewise
  double time_of_layer = 0.0;  ///< what each layer takes beside its work

  bool operator==(const Efficiency&) const = default;
};

/// The chip that the constants were fitted on.
inline constexpr std::string_view kFittedChip = "tpu-v4";
/// What an estimate by them is on another chip, in a line; empty on that one.
std::string guess_on(const Chip& chip);

/// The constants of engine/cost/work/efficiency.txt, which `shardproof paper --fit` writes.
const Efficiency& fitted_efficiency();
/// That file, compiled in.
std::string_view fitted_text();

/// Reads the lines `NAME : VALUE` of such a text; # begins a comment. Throws Error:
/// "efficiency_c1" (a line of another form, an unknown, repeated or missing name), "efficiency_c2"
/// (a value that is no number or out of its range).
Efficiency parse_efficiency(std::string_view text);
/// That of a file. Throws Error: as parse_efficiency does; "efficiency_f1" (it cannot be read),
/// "efficiency_f2" (no text, or too long).
Efficiency load_efficiency(const std::string& path);
/// The three lines: parse_efficiency(print_efficiency(e)) == e where its numbers have at most five
/// digits.
std::string print_efficiency(const Efficiency& efficiency);

/// Seconds of one part of a pass, one thing after the other: products at the share of the peak
/// that is reached, reads at full bandwidth, collectives at the share of the interconnect, whose
/// steps take their latency, which no share divides.
double estimate(const Seconds& part, const Efficiency& efficiency = fitted_efficiency());
/// Seconds of a pass: each layer, the ends, and what each layer takes beside its work.
double estimate(const Bounds& bounds, const Efficiency& efficiency = fitted_efficiency());

}  // namespace shardproof::cost
