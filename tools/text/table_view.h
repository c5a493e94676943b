#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "engine/run/plan.h"
#include "weights/base/error.h"

namespace shardproof::tools {

/// What a strategy's table is shown for.
struct TableView {
  Case of;
  const Strategy* strategy;
  Phase phase;         ///< as a pass of which it is shown
  std::int64_t L, M;   ///< its positions, and the cached ones before them
  bool paper = false;  ///< as the paper's formulas count
};

/// The table as a file has it, each arrow with its ops and the elements that one chip sends in a
/// comment below its line; after them the arrows that the rules add. Throws what partition()
/// throws.
std::string table_text(const TableView& view);

/// The same for JSON (docs/json.md).
nlohmann::json table_json(const TableView& view);

}  // namespace shardproof::tools
