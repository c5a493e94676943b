#pragma once

#include <string>
#include <vector>

#include "engine/program/typing.h"
#include "tools/drawing/svg.h"

namespace shardproof {

/// Draws which chip holds which block, and which chips communicate. The block and group of one
/// example chip are highlighted.
class Glyphs {
 public:
  Glyphs(const Torus& torus, int chip) : torus_(torus), chip_(chip) {}

  /// Describes what the example chip holds, "F[144:160]; 4 partial sums; 6 copies": global index
  /// ranges (whole dims omitted, "all" if every one is), the number of chips over which its block
  /// is a partial sum, and the number of chips that hold the same block.
  std::string held(const Type& type) const;

  /// Returns the label of a block: "102" for (1,0,2), with commas if a coordinate has two digits. A
  /// replicated axis is '*', a summed one '+'.
  std::string label(const Layout& layout, const std::vector<int>& blocks) const;

  /// Returns whether two or more dims are sharded, so that the blocks are drawn as a grid.
  bool is_grid(const Layout& layout) const;
  /// Returns the rows of the grid of blocks: the blocks of the first sharded dim; 1 for a bar.
  int rows(const Layout& layout) const;

  /// Draws the global tensor cut into blocks, in index order, each in the colour of its chips and,
  /// if there is room, labelled. Hatched: partial sums. Outlined: the example chip's.
  void blocks(Svg& svg, double x, double y, double w, double row_height,
              const Layout& layout) const;

  /// Draws the torus as Z planes of X columns and Y rows, the example's group over `axes` filled
  /// and numbered in block order. Fits into `w`; returns its height.
  double group(Svg& svg, double x, double y, double w, const Axes& axes) const;

  /// Draws the torus with every chip named and coloured, axes labelled. Returns its height.
  double legend(Svg& svg, double x, double y, double w) const;

 private:
  /// Coordinates of the chips of one block; kEvery or kSum for an axis whose chips all belong to
  /// it.
  struct Place;
  Place place(const Layout& layout, const std::vector<int>& blocks) const;
  std::string text(const Place& place) const;
  std::string colour(const Place& place) const;
  /// Size and gap of chips in a map of the torus of at most w by h.
  struct Map;
  Map map(double w, double h, double widest, double highest) const;

  const Torus& torus_;
  int chip_;
};

}  // namespace shardproof
