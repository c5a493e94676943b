#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "weights/base/error.h"
#include "weights/base/tensor.h"

namespace shardproof::oracle::graph {

using std::size_t;

/// Which elements exist: a number for each combination of some of a value's letters.
struct Presence {
  static constexpr std::uint8_t kAbsent = 0, kPerhaps = 1, kPresent = 3;
  std::string letters;
  Shape shape;
  std::vector<std::uint8_t> here;  ///< of two, what both say is the smaller: a & b
};

/// A value while it is computed: row-major over its letters; elements that do not exist are 0.
template <class Scalar>
struct Lettered {
  std::string letters;
  Shape shape;
  std::vector<Scalar> data;
  std::optional<Presence> presence = {};
  /// A weight's elements, in place of `data`; null of all other values.
  std::shared_ptr<const std::vector<float>> floats = nullptr;
};

/// Returns a value with all its elements in `data`.
template <class Math, class Scalar = typename Math::Scalar>
Lettered<Scalar> with_data(const Math& math, Lettered<Scalar> value) {
  if (value.floats == nullptr) return value;
  value.data.reserve(value.floats->size());
  for (const float v : *value.floats) value.data.push_back(math.number(static_cast<double>(v)));
  value.floats = nullptr;
  return value;
}

/// The values that an expression may read, by their names.
template <class Scalar>
using NamedValues = std::map<std::string, Lettered<Scalar>, std::less<>>;

inline size_t count_of(const Shape& shape) { return static_cast<size_t>(element_count(shape)); }

/// Returns the distance between neighbours of a letter in an array; 0 if it lacks the letter.
inline std::int64_t step_of(std::string_view letters, const Shape& shape, char letter) {
  const auto at = letters.find(letter);
  if (at == std::string_view::npos) return 0;
  std::int64_t step = 1;
  for (size_t i = at + 1; i < shape.size(); ++i) step *= shape[i];
  return step;
}

/// Returns, for each element of an array with these letters and this shape, in order, the place of
/// its element in an array that has some of the letters.
std::vector<size_t> places_in(std::string_view letters, const Shape& shape, std::string_view of,
                              const Shape& of_shape);

/// Returns the elements that exist in both, with the letters of either in the order of `letters`.
std::optional<Presence> both(const std::optional<Presence>& a, const std::optional<Presence>& b,
                             std::string_view letters, const Shape& shape);

/// Returns for each element of an array whether it exists, as Presence says; empty if all do.
std::vector<std::uint8_t> here_in(const std::optional<Presence>& presence, std::string_view letters,
                                  const Shape& shape);

/// Returns what exists by an indicator: where it is not 0, or perhaps where it is not known.
template <class Math, class Scalar = typename Math::Scalar>
Presence presence_of(const Math& math, const Lettered<Scalar>& where) {
  Presence presence{where.letters, where.shape, {}};
  for (const Scalar& s : where.data)
    presence.here.push_back(math.is_zero(s)    ? Presence::kAbsent
                            : math.is_known(s) ? Presence::kPresent
                                               : Presence::kPerhaps);
  return presence;
}

/// Throws Error("oracle_graph", ...) unless `row` is one of `rows`. `where`: the line, as errors
/// begin.
void require_row(double row, std::int64_t rows, const std::string& where);

/// Returns a value with its letters in another order.
template <class Scalar>
Lettered<Scalar> in_order(const Lettered<Scalar>& x, const std::string& letters) {
  if (x.letters == letters) return x;
  Lettered<Scalar> y{letters, {}, {}, x.presence};
  for (const char c : letters) y.shape.push_back(x.shape[x.letters.find(c)]);
  const auto places = places_in(letters, y.shape, x.letters, x.shape);
  y.data.reserve(places.size());
  for (const size_t place : places) y.data.push_back(x.data[place]);
  return y;
}

/// Returns a value whose row b is row rows[b] of another.
template <class Scalar>
Lettered<Scalar> with_rows(const Lettered<Scalar>& x, const std::vector<std::int64_t>& rows) {
  const size_t batch = x.letters.find('B');
  if (batch == std::string::npos) return x;
  Lettered<Scalar> y{x.letters, x.shape, {}};
  y.shape[batch] = static_cast<std::int64_t>(rows.size());
  const auto row = static_cast<size_t>(step_of(x.letters, x.shape, 'B'));
  const size_t blocks = row == 0 ? 0 : x.data.size() / (row * static_cast<size_t>(x.shape[batch]));
  for (size_t block = 0; block < blocks; ++block)
    for (const std::int64_t b : rows) {
      const auto from =
          x.data.begin() +
          static_cast<std::ptrdiff_t>(
              (block * static_cast<size_t>(x.shape[batch]) + static_cast<size_t>(b)) * row);
      y.data.insert(y.data.end(), from, from + static_cast<std::ptrdiff_t>(row));
    }
  return y;
}

}  // namespace shardproof::oracle::graph
