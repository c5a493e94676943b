#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "engine/run/plan.h"
#include "weights/base/error.h"

namespace shardproof::tools {

/// A strategy's table, and the case and pass for which it is shown.
struct TableView {
  Case of;
  const Strategy* strategy;
  Phase phase;         ///< phase of the shown pass
  std::int64_t L, M;   ///< its positions, and the cached ones
  bool paper = false;  ///< count by the paper's formulas
};

/// Prints the table in file format, each arrow with its ops and the elements that one chip sends in
/// a comment below its line, followed by the arrows that the rules add; then, if the model is a
/// text, those of its other kinds of layers. Throws what make_plan throws.
std::string table_text(const TableView& view);

/// Returns the table as JSON (docs/json.md), once for each kind of layers.
std::vector<nlohmann::json> table_json(const TableView& view);

}  // namespace shardproof::tools
