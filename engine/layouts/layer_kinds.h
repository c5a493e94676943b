#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/layouts/around.h"

namespace shardproof {

/// Layers that run one program: those whose flags choose the same lines of a text. A model of keys
/// has one kind.
struct LayerKind {
  const Program* program;
  std::vector<std::int64_t> layers;
};

/// Returns the kinds of a model's layers, in the order of their first layers. `programs` must
/// outlive them.
std::vector<LayerKind> layer_kinds(const PhasePrograms& programs, std::int64_t layers);

/// Returns "layers 0, 2 of 3"; "layer" where the kind has all of them.
std::string title_of(const LayerKind& kind, std::int64_t layers);

}  // namespace shardproof
