#pragma once

#include <optional>
#include <string>

#include "engine/layout/layout.h"

namespace shardproof::tools {

/// Writes a layout as JAX does, on a mesh with axes x, y and z: `P(None, ("y", "z"))`; of partial
/// sums with what it is unreduced over.
std::string jax_notation(const Layout& layout);

/// Writes a layout as PyTorch's DTensor does on a mesh (x, y, z): "[Replicate, Shard(2), Partial]".
/// Returns nullopt if a dim's axes are not in the mesh's order, which placements cannot say.
std::optional<std::string> dtensor_notation(const Layout& layout);

/// Writes a layout as the SGLang dumper does, its axes named x, y and z: "b l f[y,z]".
std::string dumper_notation(const Layout& layout);

}  // namespace shardproof::tools
