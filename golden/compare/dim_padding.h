#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "engine/layout/layout.h"
#include "weights/base/tensor.h"
#include "weights/model/model_config.h"

namespace shardproof {

/// The judge's own derivation of padded dims (docs/spec.md section 6.7): the dims, by letter, that
/// are longer on chips than in the model. Elements beyond the model's extent are padding.
class DimPadding {
 public:
  DimPadding() = default;  ///< for a case without padding
  /// Pads H and V to these extents; 0 means no padding. With several kv heads, K grows with H, so
  /// that a group of query heads keeps its size.
  DimPadding(const ModelConfig& model, std::int64_t pad_heads, std::int64_t pad_vocab);

  bool none() const { return extents_.empty(); }
  /// Returns true if a dim of this letter is padded.
  bool pads(char letter) const { return extents_.contains(letter); }
  /// Returns the extent on chips of a dim whose extent in the model is `own`.
  std::int64_t placed(char letter, std::int64_t own) const;
  /// Returns the shape on chips of a value whose dims have these letters and, in the model, the
  /// shape `own`.
  Shape placed(std::string_view letters, const Shape& own) const;

 private:
  std::map<char, std::int64_t> extents_;  // padded dims and their extents on chips
};

/// Returns the letters of a layout with a split head dim merged again: S and R become H.
std::string whole_letters(const Layout& layout);

/// Calls see(element, of own) for the elements of a tensor of shape `placed` in row-major order.
/// The second argument is the index of the same element in a tensor of shape `own`, which is
/// nowhere longer than `placed`; −1 for padding.
template <class See>
void each_placed(const Shape& own, const Shape& placed, See&& see) {
  const std::int64_t count = element_count(placed);
  const std::size_t outer = placed.empty() ? 0 : placed.size() - 1;
  const std::int64_t of_row = placed.empty() ? 1 : own[outer];  // the rest of a row is padding
  const std::int64_t width = placed.empty() ? 1 : placed[outer];
  Shape index(outer, 0);
  for (std::int64_t element = 0; element < count;) {
    std::int64_t row = 0;
    for (std::size_t d = 0; d < outer && row >= 0; ++d)
      row = index[d] < own[d] ? row * own[d] + index[d] : -1;
    for (std::int64_t i = 0; i < width; ++i, ++element)
      see(element, row >= 0 && i < of_row ? row * of_row + i : -1);
    for (std::size_t d = outer; d-- > 0 && ++index[d] == placed[d];) index[d] = 0;
  }
}

/// Returns the elements of a tensor as chips hold it, with `rest` as padding.
template <class T>
std::vector<T> with_padding(const std::vector<T>& elements, const Shape& own, const Shape& placed,
                            const T& rest) {
  std::vector<T> all(static_cast<std::size_t>(element_count(placed)), rest);
  each_placed(own, placed, [&](std::int64_t element, std::int64_t of_own) {
    if (of_own >= 0)
      all[static_cast<std::size_t>(element)] = elements[static_cast<std::size_t>(of_own)];
  });
  return all;
}

/// Returns the model's own elements of a tensor as chips hold it, without its padding.
template <class T>
std::vector<T> without_padding(const std::vector<T>& elements, const Shape& own,
                               const Shape& placed) {
  std::vector<T> kept(static_cast<std::size_t>(element_count(own)));
  each_placed(own, placed, [&](std::int64_t element, std::int64_t of_own) {
    if (of_own >= 0)
      kept[static_cast<std::size_t>(of_own)] = elements[static_cast<std::size_t>(element)];
  });
  return kept;
}

}  // namespace shardproof
