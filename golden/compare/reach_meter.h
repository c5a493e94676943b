#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "engine/layout/torus.h"
#include "engine/shards/field.h"
#include "engine/shards/reach.h"
#include "weights/base/tensor.h"

namespace shardproof {

/// Returns "1.5 (0x3fc00000)" for an f32's bits, "7" for an int32's.
std::string element_text(std::uint32_t bits, bool integer);
/// Returns the lanes of a number of the field regime.
std::string element_text(const FieldElement& number, bool integer);

/// Returns the index of an element by its row-major number; tensors of that shape may be
/// concatenated.
Shape global_index(const Shape& shape, std::int64_t element);

/// Measures the reach of a difference over one value, element by element. Word is std::uint32_t, an
/// element's bits, or FieldElement; any two different FieldElements are equally far apart.
template <class Word>
class ReachMeter {
 public:
  /// Measures a value of this global shape, or `parts` such tensors of individual partial sums.
  ReachMeter(const Torus& torus, const Shape& shape, bool integer, std::int64_t parts = 1);

  /// Records that `chips` together hold `got` for element number `element` (row-major; part after
  /// part), where `want` is expected. Several chips are given only for a total of partial sums.
  void see(std::span<const int> chips, std::int64_t element, const Word& want, const Word& got);

  Reach finish() const;

 private:
  double distance(const Word& want, const Word& got) const;

  const Torus& torus_;
  const Shape& shape_;
  bool integer_;
  std::vector<bool> wrong_chips_, wrong_, seen_;
  std::vector<Word> first_;  // element of the first chip
  Reach reach_;
  double most_ = -1.0;
};

}  // namespace shardproof
