#pragma once

#include <cstddef>
#include <vector>

#include "golden/bounds/number/carried.h"
#include "weights/base/tensor.h"
#include "weights/model/passes.h"

namespace shardproof::candidate {

/// Of a value [B, L, ...] of a pass, the elements of every row's last position, in order; of a row
/// without a token those of its first place, which mean nothing.
std::vector<std::size_t> last_elements(const Shape& whole, const PassPlan& pass);

/// These elements, as [B, ...].
Tensor last_rows(const Tensor& whole, const PassPlan& pass);
bounds::Carried last_rows(const bounds::Carried& whole, const PassPlan& pass);

}  // namespace shardproof::candidate
