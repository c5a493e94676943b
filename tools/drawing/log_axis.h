#pragma once

#include <vector>

namespace shardproof {

/// A logarithmic axis: numbers above 0 onto a length.
class LogAxis {
 public:
  /// The numbers `least` to `most` and a little beyond lie on `from` to `to`; `from` may be the
  /// larger, as of an axis that goes up.
  LogAxis(double least, double most, double from, double to);

  double at(double value) const;
  /// The numbers 1, 2 and 5 times a power of 10 on the axis; of an axis of more than two decades
  /// the powers alone, of one of less than one decade all multiples.
  std::vector<double> ticks() const;

 private:
  double low_, high_;  // logarithms to base 10
  double from_, to_;
};

}  // namespace shardproof
