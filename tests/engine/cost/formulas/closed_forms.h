#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "engine/cost/formulas/pass.h"
#include "engine/layout/torus.h"
#include "engine/program/ops.h"
#include "weights/base/error.h"
#include "weights/model/model_config.h"
#include "weights/model/numerics.h"

namespace shardproof::cost {

/// What one chip sends in the collectives of one kind over one set of axes.
struct ClosedTraffic {
  OpKind kind{};
  Axes axes;  ///< those of more than one chip, in x, y, z order
  double elements = 0.0;
  double bytes = 0.0;
  bool operator==(const ClosedTraffic&) const = default;
};

/// What one chip does and holds for one layer of a pass, by the formulas of the paper (sections
/// 2.1, 3.2, 3.3, A.1 and A.2), with attention's projections, K and V, the second matrix of a gated
/// layer and (K−1)/K. engine/cost/work/work.h counts the same from the program.
struct ClosedWork {
  double matmul_flops = 0.0;
  double attention_flops = 0.0;
  double weight_bytes = 0.0;           ///< of W matrices and of the norms' gains and biases
  double cache_bytes = 0.0;            ///< of K and V for M + L positions
  double stream_bytes = 0.0;           ///< of the residual stream between layers
  std::vector<ClosedTraffic> traffic;  ///< of what is sent at all, in a fixed order
};

/// The shipped tables that have closed forms.
std::vector<std::string> closed_tables();

/// The closed form of a shipped table. It holds where all chips divide H (of ws2d:few-heads and
/// ws2d:few-heads-batch Z does, of the latter XY divides Q) and, where attention shards the batch,
/// B; of ws2d:pre-* and ws2d:released-*, besides, where K is 1, or X is above 1 and all chips
/// divide K. Throws Error: "closed_c0" (a line of tests/engine/cost/formulas/closed_forms.txt has
/// another form), "closed_c1" (the table has none), "closed_c2" (it does not hold, with
/// what does not divide), and what require_legal throws.
ClosedWork closed_form(std::string_view table, const ModelConfig& model, const Numerics& numerics,
                       const Torus& torus, const Pass& pass);

}  // namespace shardproof::cost
