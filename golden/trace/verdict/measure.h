#pragma once

#include <optional>
#include <string>
#include <vector>

#include "golden/bounds/number/interval_tensor.h"
#include "golden/bounds/value/derivation.h"
#include "golden/trace/reference/masked_slots.h"
#include "golden/trace/value/dumped_value.h"
#include "golden/trace/verdict/row.h"

namespace shardproof::dump {

/// The requirement on a value: exact bits, or bounds.
struct Expected {
  const Tensor* bits = nullptr;                      ///< the exact regime's
  std::optional<bounds::IntervalTensor> bound = {};  ///< over all ways of rounding left open
  std::optional<bounds::IntervalTensor> exact = {};  ///< exact centers; else those of `bound`
  NumberFormat format = NumberFormat::f32;           ///< of the values
  bool marks = false;    ///< inside of the bounds only 0 and 1 are right
  std::string why = {};  ///< why there is no expectation
  /// Why numbers of infinite radius are not judged; "": they are judged.
  std::string unknown = {};

  bool any() const { return bits != nullptr || bound.has_value(); }
};

/// An element inside its worst-case bound and outside of the likely one.
struct Outlier {
  std::int64_t place = 0;
  int chip = 0;  ///< a chip that holds it
  double actual = 0.0, exact = 0.0;
  bounds::Number allowed;
};

/// Compares each number of a value with what it must be, and fills in the row. `partial_sum`: the
/// storage format of the parts, if a number is the sum of several. Returns at most `outliers`
/// outliers, those furthest outside first.
std::vector<Outlier> measure(const DumpedValue& dumped, const Expected& expected,
                             const MaskedSlots& masked, const bounds::DeclaredArithmetic& by,
                             NumberFormat partial_sum, Row& row, std::size_t outliers = 8);

/// Fills in the row of a value all of whose numbers have exactly these bits, and returns true;
/// otherwise false, and the row is as it was. Much faster than measure(), for f32 numbers that lie
/// in the trace as blocks of the value.
bool has_all_bits(const DumpedValue& dumped, const Tensor& bits, Row& row);

/// Reports how many numbers each way of rounding misses; nullopt if there is only one way.
std::optional<RoundingReport> report_rounding(
    const DumpedValue& dumped, const MaskedSlots& masked, NumberFormat format,
    const std::vector<bounds::Derivation::Variant>& variants);

/// Returns whether replicas of a number on several chips have different bits.
bool copies_differ(const DumpedValue& dumped);

}  // namespace shardproof::dump
