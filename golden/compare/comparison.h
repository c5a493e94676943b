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

/// What a value must be: bits by global index, row-major, of f32 values and int32 ids alike. Of f32
/// partial sums, each of which must be what it is by itself, one such tensor for each summand, one
/// after the other, in the order of judged_part (golden/compare/block_map.h).
struct ExpectedBits {
  Shape shape;
  Words<std::uint32_t> bits;
  bool integer = false;
  Words<FieldElement> numbers = {};  ///< of the field regime, in place of bits
  /// Which elements of the shape are not compared, as nothing is known of them: of rows that have
  /// ended, and of padded dims (golden/compare/dim_padding.h); empty: all are.
  std::vector<bool> padding = {};
};

/// The first element that is not what it must be.
struct Mismatch {
  std::string chip;  ///< "(1,0,2)"; of exact partial sums, the first chip of the summed group
  Shape index;       ///< global; empty where a chip holds another number of elements than it must
  std::string expected, actual;  ///< value and bits
  /// None where a chip holds another number of elements than it must.
  std::optional<Reach> reach;
};

/// One value compared with what it must be, by the layout that it is declared to have.
struct Comparison {
  std::int64_t elements = 0;  ///< compared, every replica counted, up to the first mismatch
  std::optional<Mismatch> mismatch;
};

/// A complete value is compared on every chip, replicas included; exact partial sums by their sum
/// over the partial axes, and on a few elements of each shard by the exact terms of its origins;
/// f32 partial sums on every chip by the summand that the chip's place on the partial axes stands
/// for; those of the field regime by their sum. The value's own layout plays no part, nor what is
/// padding. Memory that several chips hold is read once, if they are to hold the same block of it;
/// every chip counts. Throws Error("compare_c1", ...) if the declared layout does not have as many
/// dims as the value, if there are not as many expected bits as elements, or if the value holds
/// int32 where f32 is expected or vice versa.
Comparison compare(const ExpectedBits& expected, const Layout& declared, const Sharded& value,
                   Threads& threads = calling_thread());

}  // namespace shardproof
