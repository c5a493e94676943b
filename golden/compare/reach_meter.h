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

/// "1.5 (0x3fc00000)" of an f32's bits; "7" of an int32's.
std::string element_text(std::uint32_t bits, bool integer);
/// Its lanes, of a number of the field regime.
std::string element_text(const FieldElement& number, bool integer);

/// The index of an element by its number in row-major order; tensors of that shape may follow one
/// another.
Shape global_index(const Shape& shape, std::int64_t element);

/// Measures the reach of a difference over one value, element by element. Word is std::uint32_t, an
/// element's bits, or FieldElement, of which any two that differ are equally far apart.
template <class Word>
class ReachMeter {
 public:
  /// A value of this global shape; `parts` such tensors, where each partial sum is judged by
  /// itself.
  ReachMeter(const Torus& torus, const Shape& shape, bool integer, std::int64_t parts = 1);

  /// `chips` together hold `got` for element number `element` (row-major; part after part), which
  /// must be `want`. Several chips only where partial sums are summed up.
  void see(std::span<const int> chips, std::int64_t element, const Word& want, const Word& got);

  Reach finish() const;

 private:
  double distance(const Word& want, const Word& got) const;

  const Torus& torus_;
  const Shape& shape_;
  bool integer_;
  std::vector<bool> wrong_chips_, wrong_, seen_;
  std::vector<Word> first_;  // what the first chip held
  Reach reach_;
  double most_ = -1.0;
};

}  // namespace shardproof
