#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace shardproof::bounds {

/// What a whole value differs by from the exact one of its own operands, row-major.
struct Residues {
  std::size_t rows = 0, columns = 0;
  std::vector<double> residue;  ///< the value less the exact one, before the exact one's rounding
  std::vector<double> exact;
  /// What each element's standard deviation is at most, in any order: C/λ of T3 (docs/bounds.md);
  /// empty: the errors of rows and columns are not looked at by their sizes.
  std::vector<double> deviation;
  std::size_t head = 0;  ///< columns of a head; 0: no heads
  /// The most that sums which truncate may lose, relative to their size: 2u·n/b of n terms, b at a
  /// time (T7 of docs/bounds.md).
  double truncation = 0.0;
};

/// Where a value is within, and still not by chance: that it, or a head, a row or a column of it,
/// has another scale, or something is added to it, by signs of errors that should be fair coins; or
/// that the errors of a row or a column are as a whole beyond what any order leaves. One line each,
/// only where chance would do it with at most 2·exp(−t²/2), t > 10. By signs a head, row or column
/// of n elements has t ≤ √n. Nothing of a value with two equal rows or two equal columns, whose
/// errors are the same, nor of one of a single row or column. Evidence, and no gate: sums that
/// truncate are legal, and their signs are not fair.
std::vector<std::string> signs(const Residues& of);

}  // namespace shardproof::bounds
