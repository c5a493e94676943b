#pragma once

#include <string>
#include <string_view>

#include "weights/base/error.h"

namespace shardproof::cost {

/// The physical quantity that a number with a unit measures.
enum class Measure { bytes, bytes_per_second, operations_per_second, seconds, none };

/// The inclusive range of legal values. The defaults keep computed results finite and above 0: no
/// model's FLOPs or bytes reach 10^60, and a few factors of 10^24 or 10^-24 stay far from the
/// limits of double.
struct QuantityLimits {
  double least = 1e-24, most = 1e24;
};

/// Reads a decimal number and its unit, with or without a blank between: "32 GiB", "1.2 TB/s", "275
/// TFLOP/s", "50ms"; a number alone for Measure::none. Returns bytes, bytes/s, FLOP/s or seconds.
/// k, M, G, T and P are powers of 1000, Ki, Mi, Gi and Ti powers of 1024. Throws Error:
/// "quantity_c1" (not a unit of this measure; names the nearest), "quantity_c2" (not a number, or
/// outside the limits; names a legal one).
double parse_quantity(std::string_view text, Measure measure, const QuantityLimits& limits = {});

/// Returns the shortest text that parse_quantity reads as exactly this value.
std::string print_quantity(double value, Measure measure);

/// Formats the value in the largest unit in which it is at least 1, with up to `digits` digits:
/// "1.5 GB". For people; not exact.
std::string rounded_quantity(double value, Measure measure, int digits = 4);

}  // namespace shardproof::cost
