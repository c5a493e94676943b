#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "engine/torus.h"
#include "weights/tensor.h"

namespace shardproof {

/// "1.5 (0x3fc00000)" of an f32's bits; "7" of an int32's.
std::string element_text(std::uint32_t bits, bool integer);

/// The index of an element by its number in row-major order; tensors of that shape may follow one
/// another.
Shape global_index(const Shape& shape, std::int64_t element);

/// How far a difference reaches over one value: where it is wrong, and by how much at most.
struct Reach {
  /// Whether the chips that hold the same element hold the same bits of it.
  enum class Replicas { none, agree, differ };

  int chips = 0, of_chips = 0;  ///< chips that hold a wrong element (of a partial: add to one)
  /// Elements of the global tensor that are wrong on some chip; replicas count once. Of f32 partial
  /// sums each partial sum counts by itself.
  std::int64_t elements = 0, of_elements = 0;
  Replicas replicas = Replicas::none;
  /// The element farthest from what it must be; NaN and infinity are farther than any number, and
  /// of equals the first counts.
  std::string worst_chip;
  Shape worst_index;  ///< global
  std::string worst_expected, worst_actual;

  /// "on 24 of 24 chips, 9,216 of 9,216 elements, replicas agree".
  std::string extent() const;
  /// "chip (0,0,1) at [3,0,2]: expected ..., got ...".
  std::string worst() const;
};

std::string_view to_string(Reach::Replicas replicas);

/// Measures the reach of a difference over one value, element by element.
class ReachMeter {
 public:
  /// A value of this global shape; `parts` such tensors, where each partial sum is judged by
  /// itself.
  ReachMeter(const Torus& torus, const Shape& shape, bool integer, std::int64_t parts = 1);

  /// `chips` together hold `got` for element number `element` (row-major; part after part), which
  /// must be `want`. Several chips only where partial sums are summed up.
  void see(std::span<const int> chips, std::int64_t element, std::uint32_t want, std::uint32_t got);

  Reach finish() const;

 private:
  double distance(std::uint32_t want, std::uint32_t got) const;

  const Torus& torus_;
  const Shape& shape_;
  bool integer_;
  std::vector<bool> wrong_chips_, wrong_, seen_;
  std::vector<std::uint32_t> first_;  // what the first chip held
  Reach reach_;
  double most_ = -1.0;
};

}  // namespace shardproof
