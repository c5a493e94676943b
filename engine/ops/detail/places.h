#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "engine/layout/layout.h"
#include "engine/layout/torus.h"
#include "weights/base/tensor.h"

namespace shardproof {

/// Returns the distance between neighbours of a letter in an array; 0 if it lacks the letter.
inline std::int64_t distance_of(std::string_view letters, const Shape& shape, char letter) {
  const auto at = letters.find(letter);
  if (at == std::string_view::npos) return 0;
  std::int64_t distance = 1;
  for (std::size_t d = at + 1; d < shape.size(); ++d) distance *= shape[d];
  return distance;
}

/// Returns, for each element of an array with these letters and this shape, in order, the place of
/// its element in an array that has some of the letters.
inline std::vector<std::int64_t> places_in(std::string_view letters, const Shape& shape,
                                           std::string_view of, const Shape& of_shape) {
  std::vector<std::int64_t> places{0};
  for (std::size_t d = 0; d < shape.size(); ++d) {
    const std::int64_t distance = distance_of(of, of_shape, letters[d]);
    std::vector<std::int64_t> wider;
    wider.reserve(places.size() * static_cast<std::size_t>(shape[d]));
    for (const std::int64_t base : places)
      for (std::int64_t i = 0; i < shape[d]; ++i) wider.push_back(base + i * distance);
    places = std::move(wider);
  }
  return places;
}

/// How far apart neighbours of two letters are in an array: rows, and their slots or tokens.
struct Strides {
  std::int64_t row, slot;
  Strides(std::string_view letters, const Shape& shape, char of_rows, char of_slots)
      : row(distance_of(letters, shape, of_rows)), slot(distance_of(letters, shape, of_slots)) {}
};

/// Returns the extents of some letters of an array.
inline Shape extents_of(std::string_view which, std::string_view letters, const Shape& shape) {
  Shape extents;
  for (const char letter : which) extents.push_back(shape[letters.find(letter)]);
  return extents;
}

/// Returns the letters without those of `gone`.
inline std::string letters_without(std::string_view letters, std::string_view gone) {
  std::string rest;
  for (const char letter : letters)
    if (gone.find(letter) == std::string_view::npos) rest += letter;
  return rest;
}

}  // namespace shardproof
