#pragma once

#include <optional>
#include <string>
#include <vector>

#include "golden/bounds/number/audit.h"

namespace shardproof::bounds {

/// One way of adding an f32 sum up, and what it comes to less the exact sum.
struct Emulation {
  std::string words;        ///< "a chain", "16 lanes", "blocks of 256", "truncating sums"
  std::string declaration;  ///< what says so: "adding=h100"; empty of adders that round to nearest
  double deviation = 0.0;
};

/// Forwards, backwards, in lanes, in blocks, in pairs, with fma and without; and by the adders that
/// cut off (docs/bounds.md, T7).
std::vector<Emulation> emulations(const Products& products);

/// The emulation that comes within a factor of two of the deviation, with its sign; none does.
std::optional<Emulation> explained_by(const Products& products, double deviation);

}  // namespace shardproof::bounds
