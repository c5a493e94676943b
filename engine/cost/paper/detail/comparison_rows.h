#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "engine/cost/paper/comparison.h"
#include "engine/cost/paper/published.h"
#include "engine/cost/work/efficiency.h"

namespace shardproof::cost {

/// Returns true if formulas may name it.
bool is_quantity(std::string_view name);
/// Estimates use the given constants.
double value_of(const Formula& formula, const Efficiency& efficiency);

/// A number, and the least and the most that it may be.
struct Range {
  double value, least, most;
};
Range range_of(const Printed& printed);
/// A quantity that is computed from a printed number ranges over all that round to that one.
Range range_of(const Formula& formula, const Efficiency& efficiency);

/// Returns true if our number agrees with the published one as `verdict` asks.
bool agree(Verdict verdict, const Range& published, const Range& ours);

/// A row of numbers that a row of choices may compare.
struct KnownRow {
  const PublishedRow* row;
  double published, ours;
};
/// A choice, or an order.
struct ComparedChoice {
  std::string published, ours;
  std::vector<double> numbers;  ///< of ours and of the published one, for the reason
};
/// Returns the choice of a row that has the verdict "holds".
ComparedChoice choice_of(const PublishedRow& row, const std::vector<KnownRow>& known,
                         const Efficiency& efficiency);

}  // namespace shardproof::cost
