#pragma once

#include <string>
#include <vector>

#include "engine/program/typing.h"
#include "tools/drawing/svg.h"

namespace shardproof {

/// The drawn parts of a picture of a program: which chip holds which block, and which chips talk.
/// One chip is the example, whose block and group stand out.
class Glyphs {
 public:
  Glyphs(const Torus& torus, int chip) : torus_(torus), chip_(chip) {}

  /// "F[144:160]; 4 summands; 6 copies": what the example chip holds of a value's global index
  /// ranges (dims that are whole go unsaid, "all" if every one is), over how many chips its block
  /// is a sum, and how many chips hold the very same block.
  std::string held(const Type& type) const;

  /// "(1,0,2)" as blocks are labelled: "102", commas between where a coordinate has two digits. A
  /// replicated axis is '*', a summed one '+'.
  std::string label(const Layout& layout, const std::vector<int>& blocks) const;

  /// Whether two or more dims are sharded, so that the blocks are drawn as a grid.
  bool is_grid(const Layout& layout) const;
  /// Rows of that grid: the blocks of the first dim that is sharded; 1 for a bar.
  int rows(const Layout& layout) const;

  /// The global tensor cut into its blocks, in index order, each in the colour of its chips and, if
  /// there is room, with their label. Hatched: summands. Outlined: the example's.
  void blocks(Svg& svg, double x, double y, double w, double row_height,
              const Layout& layout) const;

  /// The torus as Z planes of X columns and Y rows, the example's group over `axes` filled and
  /// numbered in block order. Fits into `w`; returns its height.
  double group(Svg& svg, double x, double y, double w, const Axes& axes) const;

  /// The torus with every chip named and coloured, axes labelled. Returns its height.
  double legend(Svg& svg, double x, double y, double w) const;

 private:
  /// Coordinates of the chips of one block; kEvery and kSum where every one of an axis belongs.
  struct Place;
  Place place(const Layout& layout, const std::vector<int>& blocks) const;
  std::string text(const Place& place) const;
  std::string colour(const Place& place) const;
  /// Size and gap of chips in a map of the torus that is w by h at most.
  struct Map;
  Map map(double w, double h, double widest, double highest) const;

  const Torus& torus_;
  int chip_;
};

}  // namespace shardproof
