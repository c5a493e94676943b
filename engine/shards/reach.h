#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "weights/base/tensor.h"

namespace shardproof {

/// The extent of a difference over one value: where it is wrong, and by how much at most.
struct Reach {
  /// Bitwise agreement of the chips that hold the same element.
  enum class Replicas { none, agree, differ };

  int chips = 0, of_chips = 0;  ///< chips with a wrong element (of a partial: a wrong addend)
  /// Elements of the global tensor that are wrong on some chip; replicas count once. Among f32
  /// partial sums each partial sum counts by itself.
  std::int64_t elements = 0, of_elements = 0;
  Replicas replicas = Replicas::none;
  /// The element farthest from its expected value; NaN and infinity are farther than any number,
  /// and the first of equals counts.
  std::string worst_chip;
  Shape worst_index;  ///< global
  std::string worst_expected, worst_actual;

  /// "on 24 of 24 chips, 9,216 of 9,216 elements, replicas agree".
  std::string extent() const;
  /// "chip (0,0,1) at [3,0,2]: expected ..., got ...".
  std::string worst() const;
};

std::string_view to_string(Reach::Replicas replicas);

}  // namespace shardproof
