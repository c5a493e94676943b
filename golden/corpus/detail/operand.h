#pragma once

#include <functional>
#include <string>
#include <vector>

#include "engine/shards/sharded.h"
#include "golden/trace/read/dump.h"
#include "weights/base/error.h"

namespace shardproof::corpus {

/// The operand of a collective: the shards of every chip, and the tensors that they represent, one
/// for each place on the axes of partial sums.
struct Operand {
  Layout layout;
  Shape shape;                            ///< global
  ChipArrays<float> shards;               ///< by chip
  std::vector<std::vector<float>> parts;  ///< by judged_part

  Sharded sharded(const Torus& torus) const { return {torus, layout, shape, shards}; }
};

/// Reads an operand from a golden. Throws Error("golden_operand", ...) naming the value: no layout,
/// not stacked shards of f32, elements that are not finite, replicas that differ, partial sums that
/// do not add up exactly in f32 in every order; and what Layout::parse throws.
Operand read_operand(const std::string& name, const dump::Value& value, const Torus& torus);

/// How often a partial sum counts in the total that a chip gets, by chip and judged_part.
using Counts = std::function<int(int chip, std::size_t part)>;

/// Returns Counts that take each partial sum once if it agrees with the chip along the operand's
/// partial axes that are not summed over (`kept`).
Counts counts_keeping(const Axes& kept, const Layout& operand, const Torus& torus);

/// Returns a collective's result, chip after chip: the tensor that the operand represents, cut by
/// the judge's map, which shares nothing with the engine's collectives.
std::vector<float> result_of(const Operand& operand, const Layout& result, const Torus& torus,
                             const Counts& counts);

}  // namespace shardproof::corpus
