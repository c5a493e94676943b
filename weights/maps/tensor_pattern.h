#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "weights/base/error.h"
#include "weights/base/tensor.h"

namespace shardproof {

/// How a file stores a value: its axes, each of letters from major to minor. "(HQ)E" is a matrix
/// whose first axis is H by Q; "(H[Q,J])R" has for each of H first Q, then J, and one of them is
/// taken; a part "1" is one row, and the letter 1 an axis of one (docs/spec-model-map.md).
struct TensorPattern {
  /// Letters, or the parts of which one is taken.
  struct Factor {
    char letter = '1';
    std::vector<std::string> parts;
  };
  std::vector<std::vector<Factor>> axes;
  std::string text;
  std::size_t take = 0;   ///< the part that is taken
  std::int64_t skip = 0;  ///< rows of the first axis that come before

  /// Throws Error("model_map_c3", ...) unless the words are a pattern with a part of this number.
  static TensorPattern parse(std::string_view text, std::size_t take, std::int64_t skip);

  /// Returns the letters that the part has, as they stand in the file.
  std::string letters() const;
};

/// Returns what the pattern takes of a stored tensor, with the letters `letters` in this order. The
/// pattern may write a letter as two: H as KG. Of P, positions, a file may hold more than the
/// extent: the first are taken. Throws Error("model_map_c5", ...), naming both shapes, unless the
/// tensor has the pattern's shape and the pattern the letters.
Tensor unpack(const Tensor& stored, const TensorPattern& pattern, std::string_view letters,
              const std::map<char, std::int64_t>& extents);

}  // namespace shardproof
