#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "engine/layout/torus.h"
#include "engine/program/ops.h"
#include "weights/base/error.h"

namespace shardproof::cost {

/// The text of tests/engine/cost/formulas/closed_forms.txt, compiled in.
extern const std::string_view kClosedForms;

/// The kind of elements in a buffer, which determines their width.
enum class FormBytes { partial, activation, statistic, weight };

/// A collective of a closed form: `all_gather yz BLE/X activation`.
struct FormMove {
  OpKind kind{};
  Axes axes, as;  ///< its group, as a set; for permute_axes the subscript before and after
  std::string D;  ///< elements of the larger buffer on one chip
  FormBytes bytes{};
};

/// The closed forms of one table, by value and class: "q", "k YZ", "flops k none", "held cache Z".
struct FormRows {
  std::map<std::string, std::vector<FormMove>> moves;
  std::map<std::string, std::string> counts;  ///< "flops ..." and "held ..."
};

/// Reads the forms of one table from a text; empty if it has none. Throws Error("closed_c0", ...)
/// on a line of another format than tests/engine/cost/formulas/closed_forms.txt describes.
FormRows parse_forms(std::string_view text, std::string_view table);

}  // namespace shardproof::cost
