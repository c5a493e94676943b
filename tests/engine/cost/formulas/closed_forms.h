#pragma once

#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/cost/formulas/pass.h"
#include "engine/layout/torus.h"
#include "engine/program/ops.h"
#include "weights/base/error.h"
#include "weights/model/model_config.h"
#include "weights/model/numerics.h"

namespace shardproof::cost {

/// The text of tests/engine/cost/formulas/closed_forms.txt, compiled in.
extern const std::string_view kClosedForms;

/// Elements and bytes that one chip sends, by collective and its axes of more than one chip, in x,
/// y, z order; nothing that is not sent.
struct Sent {
  double elements = 0.0, bytes = 0.0;
};
using Totals = std::map<std::pair<OpKind, std::string>, Sent>;
/// Returns the axes of more than one chip, in x, y, z order.
Axes long_axes(const Axes& axes, const Torus& torus);

/// The work and memory of one chip for one layer of a pass, by the formulas of the paper (sections
/// 2.1, 3.2, 3.3, A.1 and A.2), extended by attention's projections, K and V, the second matrix of
/// a gated layer and (K−1)/K. engine/cost/work/work.h counts the same quantities from the program.
struct ClosedWork {
  double matmul_flops = 0.0;
  double attention_flops = 0.0;
  double weight_bytes = 0.0;  ///< W matrices, and gains and biases of norms
  double cache_bytes = 0.0;   ///< K and V for M + L positions
  double stream_bytes = 0.0;  ///< the residual stream between layers
  Totals traffic;
};

/// Returns the shipped tables that have closed forms.
std::vector<std::string> closed_tables();

/// Returns the closed form of a shipped table. It holds if all chips divide H (for ws2d:few-heads
/// and ws2d:few-heads-batch Z divides H, for the latter XY divides Q) and, where attention shards
/// the batch, B; for ws2d:pre-* and ws2d:released-*, in addition, if K is 1, or if X is above 1 and
/// all chips divide K. Throws Error: "closed_c1" (the table has no closed form), "closed_c2" (the
/// form does not hold, with what does not divide), and what require_legal throws;
/// std::out_of_range where a line of closed_forms.txt has another form than it says there.
ClosedWork closed_form(std::string_view table, const ModelConfig& model, const Numerics& numerics,
                       const Torus& torus, const Pass& pass);

}  // namespace shardproof::cost
