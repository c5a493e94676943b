#pragma once

#include <optional>
#include <vector>

#include "golden/trace/reference/reference.h"
#include "golden/trace/verdict/measure.h"

namespace shardproof::dump {

inline constexpr const char* kNoNumbers = "it holds no number of the model's";

/// Computes the expected values of a trace, and compares the trace with them.
class Expectations {
 public:
  Expectations(const Claim& claim, Reference& reference) : claim_(claim), reference_(reference) {}

  Expected of(const DumpedValue& dumped);
  /// Compares a value with what it must be, and fills in the row.
  std::vector<Outlier> hold(const DumpedValue& dumped, const Expected& expected, Row& row);

  /// Returns the bound of a value by its own operands; nullopt if the model has no such value.
  std::optional<bounds::IntervalTensor> bound_of(const Subject& s);
  /// Returns the format to which the numbers of a value are rounded.
  NumberFormat format_of(const DumpedValue& dumped) const;
  /// Returns whether the value's numbers are marks of a text, 0 or 1.
  bool marks(const DumpedValue& dumped) const;
  /// Returns the arithmetic in effect for a value.
  const bounds::DeclaredArithmetic& declared(const Subject& s);
  /// Widens a bound by the file's rounding, if its encoding has fewer digits, or more than those
  /// of an arithmetic that it does not declare.
  void fit_to_file(const DumpedValue& dumped, bounds::IntervalTensor& bound,
                   NumberFormat& format) const;

 private:
  bool without_gain(const DumpedValue& dumped) const;
  NumberFormat own_format(const DumpedValue& dumped) const;

  const Claim& claim_;
  Reference& reference_;
};

}  // namespace shardproof::dump
