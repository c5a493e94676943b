#pragma once

#include <string>
#include <vector>

#include "golden/bounds/number/interval_tensor.h"
#include "golden/trace/value/dumped_value.h"

namespace shardproof::dump {

/// Returns what the signs of a whole value's errors show beyond its bounds
/// (golden/bounds/number/signs.h), for sums [BL…] of `terms` products each whose operands are
/// known. `bound` is what the operands imply.
std::vector<std::string> sign_tests(const DumpedValue& dumped, const bounds::IntervalTensor& bound,
                                    std::size_t terms);

}  // namespace shardproof::dump
