#include "engine/layout/torus.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <ostream>

#include "weights/base/error.h"

namespace shardproof {

char to_char(Axis axis) { return static_cast<char>('x' + static_cast<int>(axis)); }

Axes Axes::parse(std::string_view text) {
  Axes axes;
  for (char c : text) {
    if (c < 'x' || c > 'z')
      throw Error("axes_c1",
                  fmt::format("'{}' in '{}' is not an axis; axes are x, y and z", c, text));
    const auto axis = static_cast<Axis>(c - 'x');
    if (axes.has(axis))
      throw Error("axes_c2", fmt::format("axis {} appears twice in '{}'", c, text));
    axes = axes.with(axis);
  }
  return axes;
}

bool Axes::has(Axis axis) const {
  for (Axis a : *this)
    if (a == axis) return true;
  return false;
}

bool Axes::has_all(const Axes& other) const {
  return std::all_of(other.begin(), other.end(), [&](Axis a) { return has(a); });
}

bool Axes::has_any(const Axes& other) const {
  return std::any_of(other.begin(), other.end(), [&](Axis a) { return has(a); });
}

bool Axes::ends_with(const Axes& tail) const {
  return tail.size() <= size() && std::equal(tail.begin(), tail.end(), end() - tail.size());
}

bool Axes::starts_with(const Axes& head) const {
  return head.size() <= size() && std::equal(head.begin(), head.end(), begin());
}

Axes Axes::with(Axis minor) const {
  if (has(minor))
    throw Error("axes_c2", fmt::format("axis {} appears twice in '{}{}'", to_char(minor),
                                       to_string(), to_char(minor)));
  Axes axes = *this;
  axes.axes_[static_cast<std::size_t>(axes.size_++)] = minor;
  return axes;
}

Axes Axes::with(const Axes& minor) const {
  Axes axes = *this;
  for (Axis a : minor) axes = axes.with(a);
  return axes;
}

Axes Axes::without(const Axes& gone) const {
  Axes axes;
  for (Axis a : *this)
    if (!gone.has(a)) axes = axes.with(a);
  return axes;
}

Axes Axes::sorted() const {
  Axes axes;
  for (Axis a : {Axis::x, Axis::y, Axis::z})
    if (has(a)) axes.axes_[static_cast<std::size_t>(axes.size_++)] = a;
  return axes;
}

std::string Axes::to_string() const {
  std::string text;
  for (Axis a : *this) text += to_char(a);
  return text;
}

bool Axes::operator==(const Axes& other) const {
  return std::equal(begin(), end(), other.begin(), other.end());
}

Torus::Torus(int X, int Y, int Z) : size_{X, Y, Z} {
  std::int64_t chips = 1;
  for (int size : size_) {
    if (size < 1)
      throw Error("torus_c1", fmt::format("torus {} has an axis of size {}; the least is 1",
                                          to_string(), size));
    chips = std::min<std::int64_t>(chips * size, std::int64_t{1} << 31);
  }
  if (chips > kMaxChips)
    throw Error("torus_c2", fmt::format("torus {} has more than {} chips, a whole TPU v4 pod",
                                        to_string(), kMaxChips));
}

Torus Torus::parse(std::string_view text) {
  std::array<int, 3> size{};
  const char* at = text.data();
  const char* const end = at + text.size();
  for (std::size_t i = 0; i < 3; ++i) {
    const auto [next, error] = std::from_chars(at, end, size[i]);
    const bool last = i == 2;
    if (error != std::errc() || (last ? next != end : next == end || *next != 'x'))
      throw Error("torus_c0",
                  fmt::format("'{}' is not a valid torus; write XxYxZ, as in 4x2x3", text));
    at = next + 1;
  }
  return Torus(size[0], size[1], size[2]);
}

int Torus::size(const Axes& axes) const {
  int product = 1;
  for (Axis a : axes) product *= size(a);
  return product;
}

int Torus::coordinate(int chip, Axis axis) const {
  switch (axis) {
    case Axis::x:
      return chip / (size_[1] * size_[2]);
    case Axis::y:
      return chip / size_[2] % size_[1];
    default:
      return chip % size_[2];
  }
}

int Torus::block(int chip, const Axes& axes) const {
  int index = 0;
  for (Axis a : axes) index = index * size(a) + coordinate(chip, a);
  return index;
}

std::vector<int> Torus::group(int chip, const Axes& axes) const {
  const std::array<int, 3> stride{size_[1] * size_[2], size_[2], 1};
  int base = chip;
  for (Axis a : axes) base -= coordinate(chip, a) * stride[static_cast<std::size_t>(a)];
  std::vector<int> members{base};
  for (Axis a : axes) {
    std::vector<int> wider;
    wider.reserve(members.size() * static_cast<std::size_t>(size(a)));
    for (int member : members)
      for (int i = 0; i < size(a); ++i)
        wider.push_back(member + i * stride[static_cast<std::size_t>(a)]);
    members = std::move(wider);
  }
  return members;
}

std::string Torus::name(int chip) const {
  return fmt::format("({},{},{})", coordinate(chip, Axis::x), coordinate(chip, Axis::y),
                     coordinate(chip, Axis::z));
}

std::string Torus::to_string() const {
  return fmt::format("{}x{}x{}", size_[0], size_[1], size_[2]);
}

std::ostream& operator<<(std::ostream& out, const Axes& axes) { return out << axes.to_string(); }
std::ostream& operator<<(std::ostream& out, const Torus& torus) { return out << torus.to_string(); }

}  // namespace shardproof
