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

/// The traffic of one chip in the collectives of one kind over one set of axes.
struct ClosedTraffic {
  OpKind kind{};
  Axes axes;  ///< axes of more than one chip, in x, y, z order
  double elements = 0.0;
  double bytes = 0.0;
  bool operator==(const ClosedTraffic&) const = default;
};

/// The work and memory of one chip for one layer of a pass, by the formulas of the paper (sections
/// 2.1, 3.2, 3.3, A.1 and A.2), extended by attention's projections, K and V, the second matrix of
/// a gated layer and (K−1)/K. engine/cost/work/work.h counts the same quantities from the program.
struct ClosedWork {
  double matmul_flops = 0.0;
  double attention_flops = 0.0;
  double weight_bytes = 0.0;           ///< W matrices, and gains and biases of norms
  double cache_bytes = 0.0;            ///< K and V for M + L positions
  double stream_bytes = 0.0;           ///< the residual stream between layers
  std::vector<ClosedTraffic> traffic;  ///< nonzero entries only, in a fixed order
};

/// Returns the shipped tables that have closed forms.
std::vector<std::string> closed_tables();

/// Returns the closed form of a shipped table. It holds if all chips divide H (for ws2d:few-heads
/// and ws2d:few-heads-batch Z divides H, for the latter XY divides Q) and, where attention shards
/// the batch, B; for ws2d:pre-* and ws2d:released-*, in addition, if K is 1, or if X is above 1 and
/// all chips divide K. Throws Error: "closed_c0" (a line of
/// tests/engine/cost/formulas/closed_forms.txt is malformed), "closed_c1" (the table has no closed
/// form), "closed_c2" (the form does not hold, with what does not divide), and what require_legal
/// throws.
ClosedWork closed_form(std::string_view table, const ModelConfig& model, const Numerics& numerics,
                       const Torus& torus, const Pass& pass);

}  // namespace shardproof::cost
