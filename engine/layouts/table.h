#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/program/program.h"
#include "weights/base/error.h"
#include "weights/model/numerics.h"

namespace shardproof {

/// A value that a table can give layouts: a value of the layer, `weights` (all W matrices), or
/// `prefix` (the caches of shared prefixes).
struct LayoutValue {
  std::string_view name;
  std::string_view dims;     ///< its dim letters; for `weights` those that may be sharded
  std::string_view same_as;  ///< the value whose line applies if this one has none; may be empty
  std::string_view uses;     ///< the values computed from it, for a line `X for USE`
  bool product = false;      ///< the result of a contraction: may be a partial sum
};

/// Every value, in the order of the layer.
const std::vector<LayoutValue>& layout_values();

/// A layout that a value passes through.
struct LayoutStep {
  Layout layout;
  bool strict = false;  ///< `[strict]`: the arrow to this layout is at most one op
  /// `[loop one-way]`: the arrow is looped with its contraction; `[loop none]`: it is not, whatever
  /// the case says.
  std::optional<Loop> loop = {};
  /// For `weights` only, in place of a layout: letters with their subscripts, `E_x F_zy H_zy`.
  std::vector<Layout::Dim> sharded = {};
  bool operator==(const LayoutStep&) const = default;
};

/// The layouts of one value, in order: `in : BLE_xzy -> BLE_x`.
struct LayoutLine {
  std::string value;
  std::string use;  ///< USE of a line `VALUE for USE`: k in `norm for k : BLE_xzy`; otherwise empty
  std::vector<LayoutStep> steps;
  Line line = {};
  bool operator==(const LayoutLine&) const = default;
};

/// A strategy as data: the layouts that the values of a layer pass through (docs/layouts.md).
/// partition() finds the ops between them.
struct LayoutTable {
  std::string name;         ///< "ws2d:batch"
  std::string description;  ///< "2D weight-stationary, attention over the batch"; may be empty
  std::vector<LayoutLine> lines;
  Line line = {};
  Source source = {};

  /// The line of a value (for a use), or of the value given by same_as; null if there is none.
  const LayoutLine* find(std::string_view value, std::string_view use = "") const;
  /// "my.layouts line 4: ", or "ws2d:batch: " for a table that the library ships.
  std::string where(const Line& line) const;
  bool operator==(const LayoutTable&) const = default;
};

/// Reads tables from a text, one statement per line:
///   layouts ws2d:batch  2D weight-stationary, attention over the batch
///   in : BLE_xzy -> BLE_x
///   weights : E_x F_zy H_zy
/// Empty lines and text after '#' are skipped. A name that no model of keys has may be a text's.
/// Throws Error, with `file` and line: "layouts_c0" (malformed line), "layouts_c1" (an unknown use
/// or note), "layouts_c2" (a table or a value defined twice), "layouts_c3" (a layout that the value
/// cannot have); and what Layout::parse throws.
std::vector<LayoutTable> parse_layouts(std::string_view text, std::string_view file = "");

/// Throws Error, with the table's file and line, if no model of keys has what a line gives a
/// layout: "layouts_c1" (a value), "layouts_c3" (a dim of W matrices).
void require_values_of_keys(const LayoutTable& table);

/// The inverse of parse_layouts.
std::string print_layouts(const LayoutTable& table);

/// The table with no axes on B, so that any batch size divides: for a pass whose batch the table's
/// blocks do not divide. Drops notes that demand something of an arrow, since the arrow may no
/// longer exist.
LayoutTable without_batch(LayoutTable table);

/// Reads a file of tables. Throws what parse_layouts throws, and Error: "layouts_f1" (the file
/// cannot be read), "layouts_f2" (it holds no table), "layouts_f3" (it is not text, or is larger
/// than 1 MiB).
std::vector<LayoutTable> load_layouts(const std::string& path);

}  // namespace shardproof
