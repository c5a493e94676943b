#pragma once

#include <optional>
#include <string>
#include <vector>

#include "golden/bounds/number/audit.h"

namespace shardproof::bounds {

/// One way of adding up an f32 sum, and how far its result is from the exact sum.
struct Emulation {
  std::string words;        ///< "a chain", "16 lanes", "blocks of 256", "truncating sums"
  std::string declaration;  ///< the declaration to make: "adding=h100"; empty for adders that round
                            ///< to nearest
  double deviation = 0.0;
};

/// Adds the products forwards, backwards, in lanes, in blocks and in pairs, each with and without
/// fma; and by the truncating adders (docs/bounds.md, T7).
std::vector<Emulation> emulations(const Products& products);

/// Returns the first emulation whose deviation has the same sign and is within a factor of two,
/// otherwise nullopt.
std::optional<Emulation> explained_by(const Products& products, double deviation);

}  // namespace shardproof::bounds
