#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "engine/cost/work/bounds.h"
#include "engine/cost/work/work.h"
#include "engine/layouts/table.h"
#include "weights/base/error.h"

namespace shardproof::cost {

/// The objective that a search minimizes: monotonic in every second of a pass. Ring steps count as
/// communication; for an objective that weighs them differently, pass a chip with scaled latency.
using Objective = std::function<double(const Bounds&)>;

/// Progress of a running search.
struct SearchProgress {
  double tables = 0.0;         ///< in the whole space
  std::int64_t bounded = 0;    ///< tables and sets of tables with a computed bound
  std::int64_t evaluated = 0;  ///< tables whose programs were built and counted
  double floor = 0.0;          ///< no remaining table is better than this
  double best = 0.0;           ///< the best so far
};

/// The best table for one pass.
struct SearchResult {
  LayoutTable table;    ///< always named "searched"
  std::string shipped;  ///< the best shipped table
  double shipped_value = 0.0;
  bool better = false;  ///< true if a table that does not ship beats it
  double value = 0.0;
  Work work;
  Bounds bounds;
  SearchProgress end;  ///< progress at the end of the search
};

/// Bytes on one chip in a pass: resident weights and caches of all layers, plus the peak of a
/// layer's other values. The ends of the model are left out of the peak, since they can process a
/// few rows at a time.
double chip_bytes(const Work& work);

/// Returns the best table among those of engine/cost/search/detail/table_space.h and the shipped
/// ones whose pass fits the chip's memory. Of equal ones a shipped one, otherwise the first. A
/// table is skipped only if a lower bound (engine/cost/search/detail/table_bounds.h) shows that it
/// is no better than one already evaluated.
///
/// Loops in `numerics` are ignored: they move the same bytes. `progress` is called after each
/// evaluated table; an exception from it ends the search. Throws Error("search_c1", ...) if no
/// shipped table can run, with the reason of the first; Error("search_c2", ...) if no table fits
/// the chip's memory, with the least that one needs; and what bounds_of throws.
SearchResult search_tables(const ModelConfig& model, const Numerics& numerics, const Torus& torus,
                           const Pass& pass, const Chip& chip, const Objective& objective,
                           const std::function<void(const SearchProgress&)>& progress = {});

}  // namespace shardproof::cost
