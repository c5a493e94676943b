#pragma once

#include <memory>
#include <string>

#include "engine/numeric/threads.h"
#include "engine/ops/einsum.h"
#include "engine/ops/partial_sums.h"
#include "engine/shards/sharded.h"
#include "weights/base/error.h"
#include "weights/model/numerics.h"

namespace shardproof {

/// The largest element over some unsharded letters of x, of equals the first; with an indicator,
/// which has some of x's letters, only of the elements where it is not 0. In the field regime the
/// sum of the function "score to max" over them. Throws Error("max_empty", ...), naming the
/// result's element, where there is none.
Sharded largest(const Sharded& x, const std::string& letters, const Sharded* indicator,
                const Layout& layout, const Shape& shape, Threads& threads);

/// The sum over some letters of x: the contraction with ones of these letters, in all that
/// einsum() says of it.
Sharded sum_over(const SharedValue& x, const std::string& letters, const Layout& layout,
                 const Shape& shape, Threads& threads, Regime regime = Regime::exact,
                 FloatType acc = FloatType::f32, PartialSums values = PartialSums::materialize);

}  // namespace shardproof
