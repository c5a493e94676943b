#pragma once

#include "golden/bounds/number/interval.h"
#include "weights/model/model_config.h"

namespace shardproof::bounds {

/// Rounding error of a formula's operations: each has a relative error of at most `unit`; exp and
/// erfc of at most `function`.
struct Arithmetic {
  double unit = 0x1p-53;
  double function = 0x1p-49;  ///< 8 ulp of f64 (docs/spec.md section 1.4)

  /// Returns the arithmetic whose operations are in `format` and whose functions err by `ulp` ulp.
  static Arithmetic of(NumberFormat format, double ulp = 8);
};

/// The value of a formula of docs/spec.md section 2, computed in f64, and the maximum distance of
/// an evaluation in some arithmetic from it (docs/numerics.md section 10.4).
struct FunctionValue {
  double center = 0.0, radius = 0.0;
  double slope = 0.0;  ///< the derivative, for a function of one number
};

FunctionValue exp_of(double x, const Arithmetic& by);
FunctionValue exp2_of(double x, const Arithmetic& by);
/// exp or exp2, whichever the softmax uses.
FunctionValue exponential(Softmax softmax, double x, const Arithmetic& by);
FunctionValue swish(double x, const Arithmetic& by);
/// swish(2x).
FunctionValue swish2(double x, const Arithmetic& by);
FunctionValue gelu(double x, const Arithmetic& by);
FunctionValue gelu_erf(double x, const Arithmetic& by);
/// The activation of the FFN, before the product with `up` in gated FFNs.
FunctionValue activation(Ffn ffn, Softmax softmax, double x, const Arithmetic& by);

/// A norm's element for x (or x − mu): x·r·gain + bias with r = 1/sqrt(ss/E + eps).
struct NormScale {
  double r = 0.0;
  double relative = 0.0;  ///< relative error of r in an evaluation
};
NormScale norm_scale(double ss, double E, double eps, const Arithmetic& by);
FunctionValue norm(double x, const NormScale& scale, double gain, const double* bias,
                   const Arithmetic& by);

}  // namespace shardproof::bounds
