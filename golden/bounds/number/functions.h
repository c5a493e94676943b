#pragma once

#include "golden/bounds/number/interval.h"
#include "weights/model/model_config.h"

namespace shardproof::bounds {

/// How a formula is evaluated: every operation is within `unit` of itself, exp and erfc within
/// `function`.
struct Arithmetic {
  double unit = 0x1p-53;
  double function = 0x1p-49;  ///< 8 ulp of f64 (docs/spec.md section 1.4)

  /// With all operations of that format, and functions of so many ulp.
  static Arithmetic of(Format format, double ulp = 8);
};

/// The number that a formula of docs/spec.md section 2 stands for, computed in f64, and how far any
/// evaluation in an arithmetic may be from what is computed (docs/numerics.md section 10.4).
struct Evaluated {
  double center = 0.0, radius = 0.0;
  double slope = 0.0;  ///< the derivative, of a function of one number
};

Evaluated exp_of(double x, const Arithmetic& by);
Evaluated exp2_of(double x, const Arithmetic& by);
/// e of a softmax in this base.
Evaluated exponential(Softmax softmax, double x, const Arithmetic& by);
Evaluated swish(double x, const Arithmetic& by);
/// swish(2x).
Evaluated swish2(double x, const Arithmetic& by);
Evaluated gelu(double x, const Arithmetic& by);
Evaluated gelu_erf(double x, const Arithmetic& by);
/// That of the FFN, before the product with `up` where it is gated.
Evaluated activation(Ffn ffn, Softmax softmax, double x, const Arithmetic& by);

/// A norm's element of x (or x − mu): x·r·gain + bias with r = 1/sqrt(ss/E + eps).
struct NormScale {
  double r = 0.0;
  double relative = 0.0;  ///< of an evaluated r, from this one
};
NormScale norm_scale(double ss, double E, double eps, const Arithmetic& by);
Evaluated norm(double x, const NormScale& scale, double gain, const double* bias,
               const Arithmetic& by);

}  // namespace shardproof::bounds
