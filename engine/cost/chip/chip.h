#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "weights/base/error.h"
#include "weights/model/numerics.h"

namespace shardproof::cost {

/// A chip in the analytical model (docs/cost.md, "Chips"; paper §4). A missing feature is 0.
struct Chip {
  std::string name;
  std::string description;
  /// FLOP/s without sparsity, for f32, bf16 and int8; 0 if the chip states none. See peak().
  std::array<double, 3> peaks{};
  double hbm = 0.0;            ///< bytes of the chip's own memory
  double hbm_bandwidth = 0.0;  ///< bytes/s between memory and cores
  /// Bytes/s that one chip sends in a collective, over any number of axes: the paper's model. 0 if
  /// axis_bandwidth is given.
  double bandwidth = 0.0;
  /// Bytes/s that one chip sends along each torus axis of a collective. 0 if bandwidth is given.
  double axis_bandwidth = 0.0;
  double hop_latency = 0.0;  ///< seconds from a chip to its neighbour
  /// The bytes that a chip sends in an all-to-all of D bytes over K chips are this factor times
  /// D·(K−1)/K. The paper has no formula; 1 counts each byte once, however far it goes.
  double all_to_all = 1.0;
  double host = 0.0;            ///< bytes of host memory per chip
  double host_bandwidth = 0.0;  ///< bytes/s from the host's memory to the chip
  std::int64_t min_axis = 1;    ///< the smallest torus axis that wraps round, apart from axes of 1
  std::int64_t max_chips = 1;   ///< how many chips can be joined

  /// Returns FLOP/s for operands of this type. Throws Error("chip_c7", ...) if none is stated.
  double peak(NumberFormat type) const;
  /// Returns true if the chip states a peak for this type.
  bool has_peak(NumberFormat type) const;
  /// Returns the bytes/s that one chip sends in a collective over `axes` torus axes, at least 1; 0
  /// for a chip without an interconnect.
  double sends(int axes) const;

  bool operator==(const Chip&) const = default;
};

/// The shipped chips, tpu-v4 first.
const std::vector<Chip>& all_chips();

/// Reads a text of chips: "chip NAME DESCRIPTION", then a line "KEY : VALUE" for each key; # begins
/// a comment. Errors refer to the text as `file`. Throws Error: "chip_c0" (any other line),
/// "chip_c1" (an unknown key; names the nearest), "chip_c2" (a key or a chip defined twice),
/// "chip_c3" (a value that parse_quantity refuses, or a count that is not whole), "chip_c4" (a
/// missing key; names it), "chip_c5" (keys that contradict each other).
std::vector<Chip> parse_chips(std::string_view text, std::string_view file = "");

/// Reads the chips of a file. Throws Error: as parse_chips does; "chip_c2" (the name of a shipped
/// chip), "chip_f1" (the file cannot be read), "chip_f2" (not text, or too long), "chip_f3" (holds
/// no chip).
std::vector<Chip> load_chips(const std::string& path);

/// The inverse of parse_chips for one chip: parse_chips(print_chip(c))[0] == c.
std::string print_chip(const Chip& chip);

/// Returns the chip of this name among `own` and the shipped ones. Throws Error("chip_c6", ...)
/// naming the nearest and all legal names.
const Chip& find_chip(std::string_view name, const std::vector<Chip>& own = {});

}  // namespace shardproof::cost
