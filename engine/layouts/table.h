#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/program/program.h"
#include "weights/base/error.h"
#include "weights/model/numerics.h"

namespace shardproof {

/// A value of the layer that a table can say something of, `weights`, which is all W matrices, or
/// `prefix`, which is the caches of shared prefixes.
struct LayoutValue {
  std::string_view name;
  std::string_view dims;     ///< its dim letters; of `weights` those that may be sharded
  std::string_view same_as;  ///< the value whose line holds for it if it has none; may be empty
  std::string_view uses;     ///< the values that are made of it, for a line `X for USE`
  bool product = false;      ///< a contraction: it may be a partial sum
};

/// Every value, in the order of the layer.
const std::vector<LayoutValue>& layout_values();

/// A layout that a value passes through.
struct LayoutStep {
  Layout layout;
  bool strict = false;  ///< `[strict]`: the arrow to this layout is one op, or none
  /// `[loop one-way]`: the arrow is looped with its contraction; `[loop none]`: it is not, whatever
  /// the case says.
  std::optional<Loop> loop = {};
  /// Of `weights` alone, in place of a layout: letters with their subscripts, `E_x F_zy H_zy`.
  std::vector<Layout::Dim> sharded = {};
  bool operator==(const LayoutStep&) const = default;
};

/// The layouts of one value, in order: `in : BLE_xzy -> BLE_x`.
struct LayoutLine {
  std::string value;
  std::string use;  ///< of `norm for k : BLE_xzy` the value that is made of it; else empty
  std::vector<LayoutStep> steps;
  Line line = {};
  bool operator==(const LayoutLine&) const = default;
};

/// A strategy as data: which layouts the values of a layer pass through (docs/layouts.md). What
/// moves them from one to the next is found by partition().
struct LayoutTable {
  std::string name;         ///< "ws2d:batch"
  std::string description;  ///< "2D weight-stationary, attention over the batch"; may be empty
  std::vector<LayoutLine> lines;
  Line line = {};
  Source source = {};

  /// The line of a value (for a use), or that of the value it is the same as; null if there is
  /// none.
  const LayoutLine* find(std::string_view value, std::string_view use = "") const;
  /// "my.layouts line 4: ", or "ws2d:batch: " of a table of the library's own.
  std::string where(const Line& line) const;
  bool operator==(const LayoutTable&) const = default;
};

/// Reads tables from a text of one line each:
///   layouts ws2d:batch  2D weight-stationary, attention over the batch
///   in : BLE_xzy -> BLE_x
///   weights : E_x F_zy H_zy
/// Empty lines and text after '#' are skipped. Throws Error, with `file` and line: "layouts_c0"
/// (no line of a table), "layouts_c1" (an unknown value, use or note), "layouts_c2" (a table or a
/// value defined twice), "layouts_c3" (a layout that the value cannot have); and what
/// Layout::parse throws.
std::vector<LayoutTable> parse_layouts(std::string_view text, std::string_view file = "");

/// The inverse of parse_layouts.
std::string print_layouts(const LayoutTable& table);

/// The table with no axes on B, so that it asks nothing of the batch: for a pass whose batch the
/// table's blocks do not divide. Without notes that ask for something of an arrow, which may be
/// gone.
LayoutTable without_batch(LayoutTable table);

/// Reads a file of tables. Throws what parse_layouts throws, and Error: "layouts_f1" (it cannot be
/// read), "layouts_f2" (it holds no table), "layouts_f3" (it is not text, or is larger than 1 MiB).
std::vector<LayoutTable> load_layouts(const std::string& path);

}  // namespace shardproof
