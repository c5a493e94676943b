#pragma once

#include <vector>

namespace shardproof::bench {

/// Of at least one value; of an even number the mean of the two in the middle.
double median(std::vector<double> values);

/// How far the true median may be from the measured one: the width of the interval between two of
/// the values, as far from either end, that holds it with a probability of at least 90 %, over the
/// measured median. (The number of values below the true median is binomial.) It falls as values
/// are added; infinite for fewer than five values, which have no such interval.
double spread(std::vector<double> values);

}  // namespace shardproof::bench
