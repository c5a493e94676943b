#pragma once

#include <string>
#include <vector>

#include "engine/run/case.h"

namespace shardproof::cases {

/// The cells of a case that the quick matrix covers: each of its strategies with its regime, block,
/// kind of heads, type of weights, type of activations and loop.
std::vector<std::string> quick_cells_of(const Case& c);

/// Few cases of standard_matrix() that together have every cell that any of its cases has: what
/// `verify` runs without arguments. The cheapest of those that add most cells are taken first.
std::vector<Case> quick_matrix();

}  // namespace shardproof::cases
