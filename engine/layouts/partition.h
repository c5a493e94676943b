#pragma once

#include <optional>
#include <string>
#include <vector>

#include "engine/layouts/table.h"
#include "engine/layouts/writer.h"
#include "weights/base/error.h"

namespace shardproof {

/// A change of a value's layout: an arrow of its line, or one that the rules add.
struct Arrow {
  std::string value;  ///< "attn"
  std::string use;    ///< destination not in a line: "block_out", "attend", "in"; or empty
  Layout from, to;
  std::size_t begin = 0, end = 0;  ///< range of the program's ops that form the path
  std::optional<Loop> loop = {};   ///< the loop that a note demands
  bool lenient = false;  ///< a note shared with another value: ignored if it cannot be looped
  Line line = {};        ///< line of the note
};

/// A layer under a table of layouts.
struct PartitionedLayer {
  Program layer;
  Layout residual;      ///< layout of the stream between layers
  Layout cache;         ///< layout of the K and V caches
  Layout prefix_cache;  ///< NTKQ, of the prefixes that rows continue; otherwise without dims
  std::vector<Arrow> arrows;
};

/// Lowers a layer of the model to a program, by the table and the rules of docs/layouts.md; every
/// path between two layouts is the cheapest. `extents` are those of one phase's passes: if they
/// have N, its rows continue prefixes, whose caches attention also reads.
///
/// Throws Error, with file and line of the table: "layouts_c4" (an arrow has no path: a dim does
/// not divide), "layouts_c5" (a value's line is missing), "layouts_c6" (the operands of a
/// contraction use one axis twice), "layouts_c7" (the terms of a parallel block are partial over
/// different axes), "layouts_c8" (keys and values, or those of prefixes, do not have the layouts
/// that attend needs), "layouts_c9" (an arrow marked [strict] takes more than one op),
/// "layouts_c10" (an arrow marked [loop ...] cannot be looped).
PartitionedLayer partition(const LayoutTable& table, const ModelConfig& config,
                           const Extents& extents, const Torus& torus, const Numerics& numerics);

}  // namespace shardproof
