#pragma once

#include <string>
#include <string_view>

#include "weights/base/error.h"

namespace shardproof::cost {

/// What a number with a unit is a number of.
enum class Measure { bytes, bytes_per_second, operations_per_second, seconds, none };

/// The values that a number may have, both ends among them. The usual ones keep what is computed
/// finite and above 0: no model's FLOPs or bytes reach 10^60, and a few factors of 10^24 or 10^-24
/// take that nowhere near the ends of the doubles.
struct QuantityLimits {
  double least = 1e-24, most = 1e24;
};

/// Reads a decimal number and its unit, with or without a blank between: "32 GiB", "1.2 TB/s",
/// "275 TFLOP/s", "50ms"; of Measure::none a number alone. Gives bytes, bytes/s, FLOP/s or seconds.
/// k, M, G, T and P are powers of 1000, Ki, Mi, Gi and Ti powers of 1024.
/// Throws Error: "quantity_c1" (no unit of this measure, the nearest one named), "quantity_c2" (no
/// number, or one beyond the limits, a legal one named).
double parse_quantity(std::string_view text, Measure measure, const QuantityLimits& limits = {});

/// The shortest text that parse_quantity reads as just this value.
std::string print_quantity(double value, Measure measure);

/// The value in the largest unit of which it has at least 1, with up to `digits` digits: "1.5 GB".
/// For people; not exact.
std::string rounded_quantity(double value, Measure measure, int digits = 4);

}  // namespace shardproof::cost
