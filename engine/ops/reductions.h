#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "engine/numeric/threads.h"
#include "engine/ops/einsum.h"
#include "engine/ops/partial_sums.h"
#include "engine/shards/sharded.h"
#include "weights/base/error.h"
#include "weights/model/numerics.h"

namespace shardproof {

/// A value and the indicators of which of its elements exist: those where no indicator is 0. Each
/// has some of the value's letters.
struct Present {
  const Sharded& value;
  std::vector<const Sharded*> indicators = {};
};

/// The largest element that exists over some letters of x, of zeros +0 if any is. In the field
/// regime the sum of the function "score to max" over them. Of sharded letters each chip has that
/// of its own block, -inf (in the field 0) where nothing of it exists. Throws Error("max_empty",
/// ...), naming the result's element, where a complete one is of nothing.
Sharded largest(const Present& x, const std::string& letters, const Layout& layout,
                const Shape& shape, Threads& threads);

/// The sum of the elements that exist over some unsharded letters, divided by how many they are,
/// rounded once. In the f32 regime the sum is a chain of f32 additions, the last letter fastest.
/// Throws Error("mean_empty", ...), naming the result's element, where there is none.
Sharded mean_of(const Present& x, const std::string& letters, const Layout& layout,
                const Shape& shape, Threads& threads, Regime regime = Regime::exact);

/// The sum of the elements that exist along some unsharded letters, the last fastest, from 0 on,
/// stored as act says after each addition.
Sharded stored_sum(const Present& x, const std::string& letters, const Layout& layout,
                   const Shape& shape, Threads& threads, NumberFormat act);

/// 1 for each of the `count` largest elements that exist along an unsharded letter, of equals the
/// first, 0 for all others. Throws Error("top_order", ...) in the field regime, whose numbers have
/// no order.
Sharded mark_top(const Present& x, char letter, std::int64_t count, Threads& threads);

/// The sum over some letters of x: the contraction with ones of these letters, in all that
/// einsum() says of it.
Sharded sum_over(const SharedValue& x, const std::string& letters, const Layout& layout,
                 const Shape& shape, Threads& threads, Regime regime = Regime::exact,
                 NumberFormat acc = NumberFormat::f32,
                 PartialSums values = PartialSums::materialize);

}  // namespace shardproof
