#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "golden/scalar/value.h"
#include "weights/base/detail/index.h"

namespace shardproof::scalar {

/// The index of an element by the letters of its dims.
class ByLetter {
 public:
  std::int64_t& operator[](char letter) { return at_[index(letter)]; }
  std::int64_t operator[](char letter) const { return at_[index(letter)]; }

  /// Returns the place of this element in an array with these letters and this shape, which may
  /// lack some of its letters.
  std::size_t in(std::string_view letters, const Shape& shape) const {
    std::int64_t place = 0;
    for (std::size_t d = 0; d < shape.size(); ++d) place = place * shape[d] + (*this)[letters[d]];
    return shardproof::at(place);
  }
  std::size_t in(const Value& value) const { return in(value.layout.letters(), value.shape); }

 private:
  static std::size_t index(char letter) { return static_cast<unsigned char>(letter) & 0x3fU; }
  std::array<std::int64_t, 64> at_{};  // letters differ in their last six bits
};

/// Calls body(element) for every element of an array, the last letter fastest; other letters keep
/// their index in `element`.
template <class Body>
void each_element(const std::string& letters, const Shape& shape, ByLetter element, Body&& body) {
  const std::int64_t count = element_count(shape);
  for (std::int64_t i = 0; i < count; ++i) {
    std::int64_t rest = i;
    for (std::size_t d = shape.size(); d-- > 0; rest /= shape[d])
      element[letters[d]] = rest % shape[d];
    body(element);
  }
}

}  // namespace shardproof::scalar
