#pragma once

#include <array>
#include <iosfwd>
#include <string>
#include <string_view>
#include <vector>

#include "weights/base/error.h"

namespace shardproof {

/// A physical axis of the torus.
enum class Axis : unsigned char { x, y, z };

char to_char(Axis axis);

/// An ordered list of distinct axes, major to minor: the subscript of a dim, or (sorted x, y, z)
/// the partialsum set of a layout. A small immutable value.
class Axes {
 public:
  Axes() = default;
  /// Reads "zyx"; "" is the empty list. Throws Error("axes_c1", ...) on a letter other than x, y,
  /// z, Error("axes_c2", ...) on a repeated one.
  static Axes parse(std::string_view text);

  bool empty() const { return size_ == 0; }
  int size() const { return size_; }
  const Axis* begin() const { return axes_.data(); }
  const Axis* end() const { return axes_.data() + size_; }

  bool has(Axis axis) const;
  bool has_all(const Axes& other) const;
  bool has_any(const Axes& other) const;
  /// Returns true if `tail` is the minor-most suffix, in order: `yx` of `zyx`.
  bool ends_with(const Axes& tail) const;
  /// Returns true if `head` is the major-most prefix, in order: `z` of `zyx`.
  bool starts_with(const Axes& head) const;

  /// Appends `minor`. Throws Error("axes_c2", ...) if it is present.
  Axes with(Axis minor) const;
  Axes with(const Axes& minor) const;    ///< all of `minor` appended
  Axes without(const Axes& gone) const;  ///< the other axes, in order
  Axes sorted() const;                   ///< as a set: in x, y, z order

  std::string to_string() const;
  bool operator==(const Axes& other) const;

 private:
  std::array<Axis, 3> axes_{};
  int size_ = 0;
};

/// An X×Y×Z torus of chips (TPU v4). Chip (x,y,z) has number (x·Y + y)·Z + z.
class Torus {
 public:
  /// The largest TPU v4 pod.
  static constexpr int kMaxChips = 4096;

  Torus() = default;
  /// Throws Error("torus_c1", ...) on an axis below 1, Error("torus_c2", ...) above kMaxChips.
  Torus(int X, int Y, int Z);
  /// Reads "4x2x3". Throws Error("torus_c0", ...) if the text is not such a triple, and
  /// as the constructor does.
  static Torus parse(std::string_view text);

  int chips() const { return size_[0] * size_[1] * size_[2]; }
  int size(Axis axis) const { return size_[static_cast<std::size_t>(axis)]; }
  /// The product of the axes' sizes: how many blocks a dim with this subscript has.
  int size(const Axes& axes) const;

  int coordinate(int chip, Axis axis) const;
  /// The block that `chip` holds of a dim with this subscript: in `F_zyx`, (z·Y + y)·X + x.
  int block(int chip, const Axes& axes) const;
  /// The chips that differ from `chip` along `axes` only, ordered by their block index over `axes`.
  std::vector<int> group(int chip, const Axes& axes) const;

  /// "(1,0,2)".
  std::string name(int chip) const;
  std::string to_string() const;
  bool operator==(const Torus&) const = default;

 private:
  std::array<int, 3> size_{1, 1, 1};
};

std::ostream& operator<<(std::ostream& out, const Axes& axes);
std::ostream& operator<<(std::ostream& out, const Torus& torus);

}  // namespace shardproof
