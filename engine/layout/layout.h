#pragma once

#include <iosfwd>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/layout/torus.h"
#include "weights/base/error.h"
#include "weights/base/tensor.h"

namespace shardproof {

/// How a logical tensor is sharded over the torus, in the paper's notation (§3.1): `B_xLE_yz`,
/// `BLE_x partialsum-yz`. Every dim letter carries an ordered list of axes, major to minor: in
/// `F_yzx` chip (x,y,z) holds block (y·Z+z)·X+x. An axis appears at most once, in one dim or in
/// partialsum or partialmax; an absent axis means replicas. `BL partialmax-x`: the value is the
/// largest of the chips' over x. Shapes are not part of a layout: the local shape is
/// derived from it, the global shape and the torus.
///
/// Dim letters: B batch, L query length, M cached length, N prefixes that rows of the batch share,
/// T their length, E d_model, F d_ff, H query heads, K key/value heads, Q d_head, V vocabulary, C
/// candidates, S and R the halves of a split H, P position and J channel pair of the RoPE tables, W
/// words of an exact sum. Programs of a model's text have that text's letters.
class Layout {
 public:
  struct Dim {
    char letter;
    Axes axes;
    bool operator==(const Dim&) const = default;
  };

  /// Returns whether a character can be a dim: any letter but those of the axes.
  static bool is_letter(char c) { return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'w'); }

  Layout() = default;
  /// Partial sums, or maxima if `by_max`, over the axes of `partial`. Throws Error: "layout_c1" (no
  /// dim letter), "layout_c2" (a letter twice), "layout_c3" (an axis twice, `partial` included).
  Layout(std::vector<Dim> dims, const Axes& partial, bool by_max = false);
  /// Parses the output of to_string. Throws as the constructor does, and "layout_c0" on any other
  /// text.
  static Layout parse(std::string_view text);

  const std::vector<Dim>& dims() const { return dims_; }
  std::size_t rank() const { return dims_.size(); }
  /// The axes over which shards are partial sums or maxima, in x, y, z order.
  const Axes& partial() const { return partial_; }
  bool is_partial() const { return !partial_.empty(); }
  bool is_partial_max() const { return by_max_; }
  /// "BLE".
  std::string letters() const;
  /// The index of a dim letter, if the layout has it.
  std::optional<std::size_t> find(char letter) const;
  /// The subscript of a letter. Throws Error("layout_c4", ...) if the layout does not have it.
  Axes axes(char letter) const;
  /// The subscript of a letter; no axes if the letter is absent, as if the dim were unsharded.
  Axes axes_or_none(char letter) const;
  /// Every axis in use, in dims, partialsum or partialmax, in x, y, z order.
  Axes used() const;

  /// Copies with one subscript, or the axes of the partialsum or partialmax, replaced. Throw as the
  /// constructor does.
  Layout with_axes(std::size_t dim, const Axes& axes) const;
  Layout with_partial(const Axes& partial) const;

  std::string to_string() const;
  bool operator==(const Layout&) const = default;

 private:
  std::vector<Dim> dims_;
  Axes partial_;
  bool by_max_ = false;  ///< false for a complete layout
};

/// The shape of one chip's shard. Throws Error("local_c1", ...) naming dim, extent and axes if the
/// product of a dim's axes does not divide its extent.
Shape local_shape(const Layout& layout, const Shape& shape, const Torus& torus);

std::ostream& operator<<(std::ostream& out, const Layout& layout);

}  // namespace shardproof
