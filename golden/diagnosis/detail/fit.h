#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <vector>

#include "golden/diagnosis/detail/question.h"

namespace shardproof::diagnosis {

/// Appends the addends of an element of the value to `row`; returns the factor of their sum.
using AddendsOf = std::function<double(std::size_t global, std::vector<double>& row)>;

/// Returns how often more than expected each addend counts on some chips, fitted to at most `most`
/// of their elements; nullopt if it has fewer than two per addend, so that a fit would be no
/// evidence, or if they do not determine the counts.
std::optional<std::vector<int>> fitted_counts(const Question& question,
                                              const std::vector<int>& chips, std::size_t addends,
                                              std::size_t most, const AddendsOf& of);

}  // namespace shardproof::diagnosis
