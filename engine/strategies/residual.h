#pragma once

#include <string>
#include <vector>

#include "engine/strategies/programs.h"
#include "weights/error.h"

namespace shardproof {

/// What leads from one layout of a value to another: collectives and slices.
struct Resharding {
  std::vector<Op> ops;  ///< none where the layouts agree
  std::string value;    ///< the name of the last result, or of the value itself
};

/// Steps from `given`, of any layout, to the complete layout `to` over the same letters, every
/// result being what `given` is. They are legal on any torus that divides both layouts; names are
/// `given.name` with a number behind, none of those in `taken`. Every axis takes the cheapest way
/// its place allows: a partial one is reduced into the dim that wants it, an unused one sliced, a
/// minor-most one moved by one all_to_all or a permutation. What stands in the way is gathered, and
/// sliced again. Throws Error("reshard_c1", ...) if the letters are not the same.
Resharding reshard(const Result& given, const Layout& to, const std::vector<std::string>& taken);

/// Embedding, head and sampling around a layer program that a user wrote, by the layout of its
/// residual stream (`is in`, any layout over B, L and E), and the layer itself: where `out` or a
/// cache leaves the layer in another layout than it comes in, steps that lead back stand at its
/// end. Throws what require_layer throws (engine/strategies/layer_file.h).
PhasePrograms programs_around(const Program& layer, const ModelConfig& config, ActType act);

}  // namespace shardproof
