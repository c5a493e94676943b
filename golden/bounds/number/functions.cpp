#include "golden/bounds/number/functions.h"

#include <cmath>

#include "weights/model/softmax.h"

namespace shardproof::bounds {
namespace {

constexpr Arithmetic kOwn{};
/// Error where an f64 underflows, as in exp(-750); far below every f32.
constexpr double kVanishing = 0x1p-1000;
constexpr double kAlpha = 0.7978845608028654, kBeta = 0.044715;

/// Both our f64 result and the other evaluation are within their own relative error of the real
/// value: adds the two, with second-order terms.
FunctionValue evaluated(double center, double ours, double theirs, double slope) {
  const double relative = (ours + theirs) * (1 + ours + theirs) * (1 + 0x1p-20);
  return {center, std::abs(center) * relative + kVanishing, slope};
}

/// Relative error of x/(1+exp(−w)) with w known to a relative error of `argument`. exp errs by
/// `function` plus |w|·argument, weighted by the share of exp in the denominator.
double of_quotient(double w, double argument, const Arithmetic& by) {
  const double e = std::exp(-w);
  const double share = std::isinf(e) ? 1.0 : e / (1 + e);
  return share * (by.function + std::abs(w) * argument) + 2 * by.unit;
}

/// Relative error of 2z of gelu: three roundings of the cubic term, one of the sum, one of the
/// product by alpha; doubling is exact.
double of_gelu(double x, const Arithmetic& by) {
  const double w = 2 * kAlpha * (x + kBeta * x * x * x);
  return of_quotient(w, 5 * by.unit, by);
}

/// Relative error of 0.5·x·erfc(y), y = −x/sqrt(2) with two roundings. The condition number of
/// erfc, |y·erfc'(y)/erfc(y)|, is at most 2y²+1 for y > 0, and below 1 for y < 0.
double of_gelu_erf(double x, const Arithmetic& by) {
  const double y = x / std::sqrt(2.0);
  const double condition = x < 0 ? 2 * y * y + 1 : 1.0;
  return condition * 2 * by.unit + by.function + by.unit;
}

}  // namespace

Arithmetic Arithmetic::of(NumberFormat format, double ulp) {
  const double unit = unit_of(format);
  return {unit, 2 * ulp * unit};
}

FunctionValue exp_of(double x, const Arithmetic& by) {
  const double e = std::exp(x);
  return evaluated(e, kOwn.function, by.function, e);
}

FunctionValue exp2_of(double x, const Arithmetic& by) {
  const double e = std::exp2(x);
  return evaluated(e, kOwn.function, by.function, kLn2 * e);
}

FunctionValue exponential(Softmax softmax, double x, const Arithmetic& by) {
  return softmax == Softmax::base2 ? exp2_of(x, by) : exp_of(x, by);
}

FunctionValue swish(double x, const Arithmetic& by) {
  const double q = 1 / (1 + std::exp(-x));
  return evaluated(x / (1 + std::exp(-x)), of_quotient(x, 0, kOwn), of_quotient(x, 0, by),
                   q + x * q * (1 - q));
}

FunctionValue swish2(double x, const Arithmetic& by) {
  // Doubling is exact, so swish2(x) = swish(2x).
  FunctionValue v = swish(2 * x, by);
  v.slope *= 2;
  return v;
}

FunctionValue gelu(double x, const Arithmetic& by) {
  const double w = 2 * kAlpha * (x + kBeta * x * x * x);
  const double q = 1 / (1 + std::exp(-w));
  const double dw = 2 * kAlpha * (1 + 3 * kBeta * x * x);
  return evaluated(x / (1 + std::exp(-w)), of_gelu(x, kOwn), of_gelu(x, by),
                   q + x * q * (1 - q) * dw);
}

FunctionValue gelu_erf(double x, const Arithmetic& by) {
  const double phi = 0.5 * std::erfc(-x / std::sqrt(2.0));
  const double density = std::exp(-0.5 * x * x) * 0.3989422804014327;
  return evaluated(0.5 * x * std::erfc(-x / std::sqrt(2.0)), of_gelu_erf(x, kOwn),
                   of_gelu_erf(x, by), phi + x * density);
}

FunctionValue activation(Ffn ffn, Softmax softmax, double x, const Arithmetic& by) {
  switch (ffn) {
    case Ffn::swiglu:
      return softmax == Softmax::base2 ? swish2(x, by) : swish(x, by);
    case Ffn::geglu:
    case Ffn::gelu:
      return gelu(x, by);
    case Ffn::gelu_erf:
      break;
  }
  return gelu_erf(x, by);
}

NormScale norm_scale(double ss, double E, double eps, const Arithmetic& by) {
  // Half the roundings of the quotient and the sum, then those of the root and the reciprocal.
  const double roundings = 3;
  return {1 / std::sqrt(ss / E + eps), roundings * (kOwn.unit + by.unit)};
}

FunctionValue norm(double x, const NormScale& scale, double gain, const double* bias,
                   const Arithmetic& by) {
  const double product = x * scale.r * gain;
  double relative = scale.relative + 2 * (kOwn.unit + by.unit);
  FunctionValue v{product, std::abs(product) * relative * (1 + relative) * (1 + 0x1p-20), 0.0};
  if (bias != nullptr) {
    v.center += *bias;
    v.radius += (kOwn.unit + by.unit) * (std::abs(v.center) + v.radius);
  }
  v.radius += kVanishing;
  return v;
}

}  // namespace shardproof::bounds
