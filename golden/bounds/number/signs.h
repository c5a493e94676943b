#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace shardproof::bounds {

/// Differences of a whole value from the exact one of its own operands, row-major.
struct Residues {
  std::size_t rows = 0, columns = 0;
  std::vector<double> residue;  ///< the value minus the exact one, before the exact one is rounded
  std::vector<double> exact;
  /// Upper bound of each element's standard deviation in any order: C/λ of T3 (docs/bounds.md).
  /// Empty: the sizes of row and column errors are not tested.
  std::vector<double> deviation;
  std::size_t head = 0;  ///< columns per head; 0: no heads
  /// Maximum relative loss of truncating sums: 2u·n/b for n terms, b at a time (T7 of
  /// docs/bounds.md).
  double truncation = 0.0;
};

/// Reports systematic errors of a value that is within its bounds, one line each. A scale or bias
/// of the value, of a head, a row or a column shows in the signs of errors, which should be fair
/// coins; a row or column whose errors are as a whole larger than any order allows shows in their
/// squares. Reports only what chance produces with a probability of at most 2·exp(−t²/2), t > 10;
/// the sign test of a head, row or column of n elements has t ≤ √n. Returns nothing for a value
/// with two equal rows or columns, whose errors repeat, or with a single row or column. It is
/// evidence and never fails a run: truncating sums are legal, and their signs are biased.
std::vector<std::string> signs(const Residues& of);

}  // namespace shardproof::bounds
