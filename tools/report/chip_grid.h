#pragma once

#include <string>

#include "tools/report/comparison.h"

namespace shardproof::tools {

/// Returns the torus as HTML tables, one for each z, in which the chips that hold wrong numbers of
/// the row's value are marked; "" for a value that the dump has whole.
std::string mesh_grid(const Comparison& of, const dump::Row& row);

/// Returns the value's blocks as an HTML table, with the largest error of each over the root mean
/// square: columns are the blocks of the last dim that is cut, rows those of the others. Replicas
/// and partial sums of a block share a cell. "" if no dim is cut.
std::string block_grid(const Comparison& of, const dump::Row& row);

}  // namespace shardproof::tools
