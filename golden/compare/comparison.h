#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "engine/numeric/threads.h"
#include "engine/shards/sharded.h"
#include "golden/compare/reach_meter.h"
#include "golden/compare/words.h"
#include "weights/base/error.h"

namespace shardproof {

/// The expected elements of a value: bits by global index, row-major, for f32 values and int32 ids
/// alike. For f32 partial sums that are judged individually, one such tensor for each partial sum,
/// concatenated in the order of judged_part (golden/compare/block_map.h).
struct ExpectedBits {
  Shape shape;
  Words<std::uint32_t> bits;
  bool integer = false;
  Words<FieldElement> numbers = {};  ///< in the field regime, instead of bits
  /// Elements that are not compared, since their values are undefined: those of ended rows and of
  /// padded dims (golden/compare/dim_padding.h). Empty if all are compared.
  std::vector<bool> padding = {};
};

/// The first element that differs from the expected one.
struct Mismatch {
  std::string chip;              ///< "(1,0,2)"; for exact partial sums, the first chip of the group
  Shape index;                   ///< global; empty if a chip holds a wrong number of elements
  std::string expected, actual;  ///< value and bits
  /// nullopt if a chip holds a wrong number of elements.
  std::optional<Reach> reach;
};

/// The result of comparing one value with the expected one under its declared layout.
struct Comparison {
  std::int64_t elements = 0;  ///< compared, every replica counted, up to the first mismatch
  std::optional<Mismatch> mismatch;
};

/// Compares a value with the expected one. A complete value is compared on every chip, replicas
/// included; exact partial sums by their total, and on a few elements of each shard by the exact
/// terms of their origins; f32 partial sums on every chip with the partial sum expected at the
/// chip's coordinates on the partial axes; partial sums of the field regime by their total. The
/// value's own layout is ignored, and padding is skipped. Memory that several chips share is read
/// once if they must hold the same block of it; every chip counts. Throws Error("compare_c1", ...)
/// if the declared layout has another rank than the value, if the number of expected bits differs
/// from the number of elements, or if the value holds int32 where f32 is expected or vice versa.
Comparison compare(const ExpectedBits& expected, const Layout& declared, const Sharded& value,
                   Threads& threads = calling_thread());

}  // namespace shardproof
