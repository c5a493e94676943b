#include "oracle/graph/detail/exact.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>

namespace shardproof::oracle::graph {

double Exact::pair(ModelOp op, double a, double b) {
  switch (op) {
    case ModelOp::add:
      return a + b;
    case ModelOp::sub:
      return a - b;
    case ModelOp::mul:
      return a * b;
    case ModelOp::div:
      return a / b;
    default:  // larger: of zeros +0, if either is
      if (a == b) return std::signbit(a) ? b : a;
      return std::max(a, b);
  }
}

double Exact::function(ModelOp op, double x) const {
  switch (op) {
    case ModelOp::exp:
      return std::exp(x);
    case ModelOp::exp2:
      return std::exp2(x);
    case ModelOp::log:
      return std::log(x);
    case ModelOp::sqrt:
      return std::sqrt(x);
    case ModelOp::tanh:
      return std::tanh(x);
    case ModelOp::sigmoid:
      return 1 / (1 + std::exp(-x));
    case ModelOp::relu:
      return x > 0 ? x : 0.0;
    case ModelOp::floor:
      return std::floor(x);
    case ModelOp::round:
      return std::nearbyint(x);
    case ModelOp::abs:
      return std::fabs(x);
    case ModelOp::bf16:
      return static_cast<double>(bf16(static_cast<float>(x)));
    case ModelOp::silu:
      return x / (1 + std::exp(-x));
    case ModelOp::gelu:
      return 0.5 * x * std::erfc(-x / std::sqrt(2.0));
    case ModelOp::gelu_tanh:
      return x / (1 + std::exp(-2 * (0.7978845608028654 * (x + 0.044715 * x * x * x))));
    case ModelOp::store:
      return stored(x);
    default:
      throw std::logic_error("graph: an op that is not a function of one number");
  }
}

double Exact::ranged(ModelOp op, double x, double low, double high) {
  if (op == ModelOp::within) return low <= x && x <= high ? 1.0 : 0.0;
  return std::min(std::max(x, low), high);
}

}  // namespace shardproof::oracle::graph
