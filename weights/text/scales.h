#pragma once

#include <set>
#include <string>
#include <vector>

#include "weights/base/error.h"
#include "weights/text/model_text.h"

namespace shardproof {

/// Matrices of a layer whose output channels weights=int8 gives one scale: those of one contraction
/// (docs/spec-model-text.md, "int8 weights").
struct TextScale {
  std::string name, file;             ///< "wq_scale"; in files
  std::vector<std::string> matrices;  ///< one, or the two that one sum has
  std::string channels;               ///< the letters of a matrix that its contraction keeps
  bool operator==(const TextScale&) const = default;
};

/// Returns the scales of a flat text. `matrices`: the names of the layer's matrices.
std::vector<TextScale> text_scales(const ModelText& flat, const std::set<std::string>& matrices);

/// Returns the flat text with the scales as weights of its layer: the sum of codes is a line of its
/// own, NAME_codes, and NAME is that sum, as f32, times the scale.
ModelText scaled_text(ModelText flat, const std::vector<TextScale>& scales);

}  // namespace shardproof
