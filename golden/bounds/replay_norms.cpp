// Replay: norms and their statistics.
#include <algorithm>
#include <cmath>
#include <string_view>

#include "golden/bounds/replay.h"
#include "weights/registry.h"
#include "weights/softmax.h"

namespace shardproof::bounds {
namespace {

std::size_t at(std::int64_t i) { return static_cast<std::size_t>(i); }

}  // namespace

const Carried& Replay::normed_of(const Place& p) {
  if (p.name == "norm2") return operand(p, "mid");
  if (p.name == "final_norm") return operand({p.pass, config_.layers - 1, ""}, "out");
  return p.layer == 0 ? operand({p.pass, 0, ""}, "embed")
                      : operand({p.pass, p.layer - 1, ""}, "out");
}

Replay::NormRow Replay::norm_row(const Carried& x, std::size_t row) const {
  const std::size_t E = at(config_.E);
  const auto extent = static_cast<double>(E);
  const double unit = declared_.operations.unit;
  const double kept = unit_of(declared_.unstored());
  NormRow of;
  if (config_.norm == Norm::layernorm) {
    CarriedSum sum;
    for (std::size_t e = 0; e < E; ++e) sum.add(x.center[row * E + e], 1.0, x.radius[row * E + e]);
    of.sum = of.mean = sum.value(declared_);
    of.mean.center /= extent;
    // The quotient's rounding, and that of the mean as a value.
    of.mean.radius =
        of.mean.radius / extent +
        (unit + 0x1p-53 + std::max(kept, unit_of(declared_.sums))) * std::abs(of.mean.center);
  }
  CarriedSum squares;
  for (std::size_t e = 0; e < E; ++e) {
    const double c = x.center[row * E + e] - of.mean.center;
    double r = x.radius[row * E + e] + of.mean.radius;
    if (config_.norm == Norm::layernorm) r += (std::max(unit, kept) + 0x1p-53) * std::abs(c);
    squares.add(c, c, r, r);
    of.center.push_back(c);
    of.radius.push_back(r);
  }
  of.squares = squares.value(declared_);
  return of;
}

std::optional<Carried> Replay::expected_statistic(const Place& place) {
  const ValueRow* const row = value_row(place.name);
  if (row == nullptr || row->norm.empty()) return std::nullopt;
  const std::string_view what = row->statistic;
  if (config_.norm != Norm::layernorm && what != "ss") return std::nullopt;
  const Carried& x = normed_of({place.pass, place.layer, std::string(row->norm)});
  const std::size_t E = at(config_.E);
  Carried y(what == "d" ? x.shape : Shape{x.shape[0], x.shape[1]});
  for (std::size_t n = 0; n < x.size() / E; ++n) {
    const NormRow of = norm_row(x, n);
    if (what == "d")
      for (std::size_t e = 0; e < E; ++e) {
        y.center[n * E + e] = of.center[e];
        y.radius[n * E + e] = of.radius[e];
      }
    else
      y.set(n, what == "ss" ? of.squares : what == "mu" ? of.mean : of.sum);
  }
  return y;
}

Carried Replay::normed(const Place& p, const Carried& x) {
  const std::size_t E = at(config_.E);
  const auto extent = static_cast<double>(E);
  const double eps = eps_of_norms(config_);
  const Carried gain = weight(p.layer, p.name);
  const bool biased = has(p.name + "_bias");
  const Carried bias = biased ? weight(p.layer, p.name + "_bias") : Carried();
  const Declared& d = declared_;
  Carried y(x.shape);
  for (std::size_t row = 0; row < x.size() / E; ++row) {
    const NormRow of = norm_row(x, row);
    const NormScale scale = norm_scale(of.squares.center, extent, eps, d.operations);
    // Half the relative error of what is under the root.
    const double inside = 0.5 * (of.squares.radius + unit_of(d.sums) * of.squares.center) /
                          (of.squares.center + extent * eps);
    for (std::size_t e = 0; e < E; ++e) {
      const double b = biased ? bias.center[e] : 0.0;
      Evaluated v = norm(of.center[e], scale, gain.center[e], biased ? &b : nullptr, d.operations);
      v.radius +=
          std::abs(scale.r * gain.center[e]) * (of.radius[e] + std::abs(of.center[e]) * inside);
      y.set(row * E + e, v);
    }
  }
  return y;
}

}  // namespace shardproof::bounds
