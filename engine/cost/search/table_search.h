#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "engine/cost/work/bounds.h"
#include "engine/cost/work/work.h"
#include "engine/layouts/table.h"
#include "weights/base/error.h"

namespace shardproof::cost {

/// What a search makes least: a number that grows, or stays, with every second of a pass. Steps of
/// rings are counted as communication: an objective that takes them otherwise is given a chip whose
/// latency is scaled.
using Objective = std::function<double(const Bounds&)>;

/// What is known in the midst of a search.
struct SearchProgress {
  double tables = 0.0;         ///< of the space
  std::int64_t bounded = 0;    ///< tables and sets of tables whose bound was worked out
  std::int64_t evaluated = 0;  ///< tables whose programs were made and counted
  double floor = 0.0;          ///< no table that is left is better than this
  double best = 0.0;           ///< the best so far
};

/// The best table for one pass.
struct SearchResult {
  LayoutTable table;    ///< called "searched", whatever it is
  std::string shipped;  ///< the best of the tables that ship
  double shipped_value = 0.0;
  bool better = false;  ///< whether a table that does not ship is better than that
  double value = 0.0;
  Work work;
  Bounds bounds;
  SearchProgress end;  ///< as it was at the end
};

/// Bytes that rest on one chip in a pass, weights and caches of all layers, and the most that the
/// values of a layer hold besides. The ends of the model can take a few rows at a time.
double chip_bytes(const Work& work);

/// The best of all tables of engine/cost/search/detail/table_space.h and of those that ship, among
/// those whose pass fits the memory of the chip. Of equal ones a shipped one, or else the first. A
/// table is not looked at only where a lower bound (engine/cost/search/detail/table_bounds.h) shows
/// that it is no better than one that was.
///
/// `numerics` without loops: they move the same bytes. `progress` is called after each table that
/// is evaluated; what it throws ends the search. Throws Error("search_c1", ...) where no table that
/// ships can run, with what the first of them lacks; Error("search_c2", ...) where none of those
/// fits the chip's memory, with the least that one needs; and what bounds_of throws.
SearchResult search_tables(const ModelConfig& model, const Numerics& numerics, const Torus& torus,
                           const Pass& pass, const Chip& chip, const Objective& objective,
                           const std::function<void(const SearchProgress&)>& progress = {});

}  // namespace shardproof::cost
