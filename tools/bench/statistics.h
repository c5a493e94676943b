#pragma once

#include <vector>

namespace shardproof::bench {

/// Returns the median of at least one value; the mean of the middle two for an even count.
double median(std::vector<double> values);

/// Returns the uncertainty of the median: the width of the interval between two order statistics,
/// equally far from either end, that contains the true median with probability at least 90 %,
/// divided by the measured median. (The number of values below the true median is binomial.) It
/// shrinks as values are added; infinite for fewer than five values, which have no such interval.
double spread(std::vector<double> values);

}  // namespace shardproof::bench
