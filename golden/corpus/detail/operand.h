#pragma once

#include <functional>
#include <string>
#include <vector>

#include "engine/shards/sharded.h"
#include "golden/trace/read/dump.h"
#include "weights/base/error.h"

namespace shardproof::corpus {

/// The operand of a collective: the shards of every chip, and the tensors that they stand for, one
/// for each place on the axes of partial sums.
struct Operand {
  Layout layout;
  Shape shape;                            ///< global
  ChipArrays<float> shards;               ///< by chip
  std::vector<std::vector<float>> parts;  ///< by judged_part

  Sharded sharded(const Torus& torus) const { return {torus, layout, shape, shards}; }
};

/// From a golden. Throws Error("golden_operand", ...) naming the value: no layout, no stacked
/// shards of f32, elements that are not finite, copies that differ, summands that do not add up
/// exactly in f32 in every order; and what Layout::parse throws.
Operand read_operand(const std::string& name, const dump::Value& value, const Torus& torus);

/// How often a summand counts in the sum that a chip gets, by chip and judged_part of the operand.
using Counts = std::function<int(int chip, std::size_t part)>;

/// Each summand once that agrees with the chip along those of the operand's partial axes that are
/// not summed over.
Counts counts_keeping(const Axes& kept, const Layout& operand, const Torus& torus);

/// A collective's result, chip after chip: what the operand stands for, cut anew by the judge's
/// map, which shares nothing with the engine's collectives.
std::vector<float> result_of(const Operand& operand, const Layout& result, const Torus& torus,
                             const Counts& counts);

}  // namespace shardproof::corpus
