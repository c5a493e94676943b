#pragma once

#include <cstdint>
#include <map>
#include <string_view>
#include <vector>

#include "oracle/walk/array.h"
#include "weights/base/tensor.h"
#include "weights/text/model_text.h"

namespace shardproof::oracle::graph {

/// One position of a loop: of lines that need one another one position earlier.
template <class Scalar>
struct LoopPosition {
  const NamedValues<Scalar>& outside;  ///< the whole values that the loop does not compute
  std::int64_t token = 0;              ///< of the pass
  /// The loop's values one position earlier; empty at the pass's first position.
  NamedValues<Scalar> carried = {};
};

/// Where a walk is.
template <class Scalar>
struct Place {
  std::map<char, std::int64_t> extents;  ///< of the pass; in a loop L is 1
  std::vector<std::int64_t> positions;   ///< [B, L]
  std::vector<std::int64_t> tokens;      ///< [B], of each row; what follows in L is padding
  std::int64_t layer = -1;               ///< -1 stands for no layer
  TextSection section = TextSection::embedding;
  const LoopPosition<Scalar>* loop = nullptr;  ///< null outside of loops

  std::int64_t extent(char letter) const { return extents.at(letter); }
  Shape shape_of(std::string_view letters) const {
    Shape shape;
    for (const char c : letters) shape.push_back(extent(c));
    return shape;
  }
};

}  // namespace shardproof::oracle::graph
