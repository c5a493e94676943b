// Functions of single numbers in f64 (docs/spec-model-text.md, "Numbers").
#include "engine/ops/detail/float_map.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "engine/numeric/larger.h"
#include "weights/base/bf16.h"

namespace shardproof {
namespace {

double stored_as_bf16(double x) {
  return static_cast<double>(round_to_bf16(static_cast<float>(x)));
}

double silu(double x) { return x / (1.0 + std::exp(-x)); }

double gelu_by_erfc(double x) { return 0.5 * x * std::erfc(-x / std::sqrt(2.0)); }

double gelu_by_tanh(double x) {
  const double z = 0.7978845608028654 * (x + 0.044715 * x * x * x);
  return x / (1.0 + std::exp(-2.0 * z));
}

}  // namespace

double FloatMap::pair(ModelOp op, double a, double b) {
  switch (op) {
    case ModelOp::add:
      return a + b;
    case ModelOp::sub:
      return a - b;
    case ModelOp::mul:
      return a * b;
    case ModelOp::div:
      return a / b;
    case ModelOp::larger:
      return larger(a, b);
    default:
      throw std::logic_error("a map with an op that is not one of two numbers");
  }
}

std::function<double(double)> FloatMap::function(const Expression& e) const {
  const auto parameter = [&](std::size_t i) { return word(e.parameters.at(i)); };
  switch (e.op) {
    case ModelOp::exp:
      return [](double x) { return std::exp(x); };
    case ModelOp::exp2:
      return [](double x) { return std::exp2(x); };
    case ModelOp::log:
      return [](double x) { return std::log(x); };
    case ModelOp::sqrt:
      return [](double x) { return std::sqrt(x); };
    case ModelOp::tanh:
      return [](double x) { return std::tanh(x); };
    case ModelOp::sigmoid:
      return [](double x) { return 1.0 / (1.0 + std::exp(-x)); };
    case ModelOp::relu:
      return [](double x) { return x > 0.0 ? x : 0.0; };
    case ModelOp::floor:
      return [](double x) { return std::floor(x); };
    case ModelOp::round:
      return [](double x) { return std::nearbyint(x); };
    case ModelOp::abs:
      return [](double x) { return std::fabs(x); };
    case ModelOp::silu:
      return silu;
    case ModelOp::gelu:
      return gelu_by_erfc;
    case ModelOp::gelu_tanh:
      return gelu_by_tanh;
    case ModelOp::bf16:
      return stored_as_bf16;
    case ModelOp::store:
      if (map_.act == NumberFormat::bf16) return stored_as_bf16;
      return [](double x) { return static_cast<double>(static_cast<float>(x)); };
    case ModelOp::within:
      return [low = parameter(0), high = parameter(1)](double x) {
        return low <= x && x <= high ? 1.0 : 0.0;
      };
    case ModelOp::clamp:
      return [low = parameter(0), high = parameter(1)](double x) {
        return std::min(std::max(x, low), high);
      };
    default:
      throw std::logic_error("a map with an op that is not a function of one number");
  }
}

}  // namespace shardproof
