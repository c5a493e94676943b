#pragma once

#include <cstddef>
#include <vector>

#include "golden/bounds/number/interval_tensor.h"
#include "weights/base/tensor.h"
#include "weights/model/passes.h"

namespace shardproof::dump {

/// Returns the elements of every row's last position in a value [B, L, ...] of a pass, in order;
/// for a row without tokens those of its first position, which are meaningless.
std::vector<std::size_t> last_elements(const Shape& whole, const PassPlan& pass);

/// Returns these elements as [B, ...].
Tensor last_rows(const Tensor& whole, const PassPlan& pass);
bounds::IntervalTensor last_rows(const bounds::IntervalTensor& whole, const PassPlan& pass);

}  // namespace shardproof::dump
