#include "engine/layouts/layer_kinds.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace shardproof {

std::vector<LayerKind> layer_kinds(const PhasePrograms& programs, std::int64_t layers) {
  std::vector<LayerKind> kinds;
  for (std::int64_t layer = 0; layer < layers; ++layer) {
    const Program* const program = &programs.layer_program(layer);
    auto at = std::find_if(kinds.begin(), kinds.end(),
                           [&](const LayerKind& kind) { return kind.program == program; });
    if (at == kinds.end()) at = kinds.insert(kinds.end(), {program, {}});
    at->layers.push_back(layer);
  }
  return kinds;
}

std::string title_of(const LayerKind& kind, std::int64_t layers) {
  constexpr std::size_t kShown = 8;
  if (static_cast<std::int64_t>(kind.layers.size()) == layers) return "layer";
  const std::vector<std::int64_t> first(
      kind.layers.begin(),
      kind.layers.begin() + static_cast<std::ptrdiff_t>(std::min(kind.layers.size(), kShown)));
  return fmt::format("layer{} {}{} of {}", kind.layers.size() > 1 ? "s" : "",
                     fmt::join(first, ", "), kind.layers.size() > kShown ? ", ..." : "", layers);
}

}  // namespace shardproof
