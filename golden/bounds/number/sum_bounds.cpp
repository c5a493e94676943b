#include "golden/bounds/number/sum_bounds.h"

#include <algorithm>
#include <cmath>

namespace shardproof::bounds {
namespace {

/// (1+u)^d − 1, raised by the error of the two library functions.
double grown(double d, double unit) { return std::expm1(d * std::log1p(unit)) * (1 + 0x1p-20); }

/// Quantities that T1 and T3 share; `more` covers the second-order terms.
struct Terms {
  double n, unit, least, S, A, R, more;
};

/// T1 for any order or tree; T6 if the order is declared.
double worst_of_order(const Terms& t, const DeclaredArithmetic& declared) {
  const double any = t.unit * ((t.n - 1) * t.S + t.A);
  if (declared.order == Order::any) return any;
  const double R = t.R + 2 * t.n * t.unit * t.A;
  const double natural = declared.order == Order::natural
                             ? t.unit * ((t.n - 1) * R + t.A)
                             : t.unit * (t.n * R + declared.lanes * t.S + t.A);
  return std::min(any, natural);
}

/// T3, T6 and T2: lambda·u·sqrt of the sum of squares that additions and products may round.
double likely_of_order(const Terms& t, const DeclaredArithmetic& declared, std::int64_t depth) {
  double squares = (t.n + 1) * t.S * t.S;
  if (declared.order != Order::any) {
    const double R = t.R + 2 * t.n * t.unit * t.A;
    const double nodes = declared.order == Order::natural
                             ? (t.n - 1) * R * R
                             : t.n * R * R + declared.lanes * t.S * t.S;
    squares = std::min(squares, nodes + t.A * R);
  }
  if (depth > 0) squares = std::min(squares, static_cast<double>(depth) * t.A * t.S);
  return kLambda * t.unit * std::sqrt(squares);
}

/// T7: blocks of products and the sum, aligned and truncated. Truncation errors share a sign, so
/// none are likely to cancel.
double of_truncation(const Terms& t, const Adding& adding) {
  const double blocks = std::ceil(t.n / adding.block);
  return blocks * ((adding.block + 1) * std::ldexp(1.0, -adding.extra) + 1) * 2 * t.unit * t.S;
}

}  // namespace

Number bound(const Sum& sum, const DeclaredArithmetic& d, const Depth& depth) {
  const auto n = static_cast<double>(sum.count);
  const double own =
      (0x1p-53 + n * 0x1p-100) * std::abs(sum.value) + n * n * 0x1p-104 * sum.size + sum.error;
  const double A = sum.size * (1 + (n + 2) * 0x1p-52);
  // A single product is rounded only as its value; f64 may not hold it exactly.
  if (sum.count <= 1 && d.folded == 0 && d.wire_roundings == 0)
    return {sum.value, sum.worst + own, sum.likely + own};
  const double u = unit_of(d.sums);
  const double S = 0.5 * (A + std::abs(sum.value) * (1 + 0x1p-50));
  const Terms t{n, u, least_of(d.sums), S, A, sum.range * (1 + n * 0x1p-52), 1 + 4 * n * u};
  // Constants folded into factors, and partial sums rounded on the wire.
  const double extra = std::expm1(d.folded * std::log1p(d.unit_of_folded()) +
                                  d.wire_roundings * std::log1p(unit_of(d.wire))) *
                           (1 + 0x1p-20) * A +
                       (d.wire_roundings > 0 ? d.wire_roundings * n * least_of(d.wire) : 0.0);
  double worst = 0.0, likely = 0.0;
  if (d.adding.truncates()) {
    // Other units of the same device round to nearest.
    worst = std::max(of_truncation(t, d.adding), worst_of_order(t, d)) * t.more;
    likely = worst;
  } else {
    // Beyond n·u = 1/16 the theorems do not hold; the product of all roundings does.
    const bool holds = n * u <= 0x1p-4;
    worst = holds ? worst_of_order(t, d) * t.more : grown(n, u) * A;
    likely = holds && d.confident ? std::min(worst, likely_of_order(t, d, 0) * t.more) : worst;
    if (d.sum_depth > 0) {
      worst = std::min(worst, grown(static_cast<double>(d.sum_depth), u) * A);
      likely = std::min(likely, worst);
    }
    if (depth.roundings > 0) {
      const double of_depth = grown(static_cast<double>(depth.roundings), u) * A;
      if (depth.proved) worst = std::min(worst, of_depth);
      likely = std::min({likely, worst, of_depth});
      if (holds && d.confident)
        likely = std::min(likely, likely_of_order(t, d, depth.roundings) * t.more);
    }
  }
  // Subnormal additions, and the amplification of the error by later roundings.
  const double rest = n * t.least * (1 + n * u) + own;
  const double more = (1 + extra / std::max(A, 0x1p-1000)) * (1 + (n + 8) * 0x1p-51);
  return {sum.value, (worst * more + extra + rest + sum.worst) * (1 + 0x1p-50),
          (likely * more + extra + rest + sum.likely) * (1 + 0x1p-50)};
}

}  // namespace shardproof::bounds
