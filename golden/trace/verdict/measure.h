#pragma once

#include <optional>
#include <string>
#include <vector>

#include "golden/bounds/number/carried.h"
#include "golden/bounds/value/replay.h"
#include "golden/trace/reference/masked.h"
#include "golden/trace/value/held.h"
#include "golden/trace/verdict/row.h"

namespace shardproof::candidate {

/// What a value must be, by one of the two gates.
struct Expected {
  const Tensor* bits = nullptr;               ///< of the exact regime
  std::optional<bounds::Carried> bound = {};  ///< of every way of rounding that is open
  std::optional<bounds::Carried> exact = {};  ///< of none: its centers; without it those of `bound`
  bounds::Format format = bounds::Format::f32;  ///< of values
  std::string why = {};                         ///< there is none
  /// Why numbers of an infinite radius are not judged; "": they are.
  std::string unknown = {};

  bool any() const { return bits != nullptr || bound.has_value(); }
};

/// An element that lies inside of its worst-case bound and outside of the likely one.
struct Outlier {
  std::int64_t place = 0;
  int chip = 0;  ///< that holds it
  double actual = 0.0, exact = 0.0;
  bounds::Number allowed;
};

/// Holds each number of a value against what it must be, and fills in the row. `summand`: the
/// format in which each summand was stored of which a number is the sum. Returns the outliers,
/// those that are furthest outside first, at most so many.
std::vector<Outlier> measure(const Held& held, const Expected& expected, const Masked& masked,
                             const bounds::Declared& by, bounds::Format summand, Row& row,
                             std::size_t outliers = 8);

/// How many numbers each way of rounding misses. Nothing where there is one way alone.
std::optional<RoundingReport> report_rounding(const Held& held, const Masked& masked,
                                              bounds::Format format,
                                              const std::vector<bounds::Replay::Variant>& variants);

/// Whether copies of a number that chips hold have different bits.
bool copies_differ(const Held& held);

}  // namespace shardproof::candidate
