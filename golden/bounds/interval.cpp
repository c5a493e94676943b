#include "golden/bounds/interval.h"

#include <algorithm>
#include <cmath>

#include "weights/bf16.h"

namespace shardproof::bounds {
namespace {

/// The bf16 nearest to an f64, in one rounding; infinite beyond the largest.
double to_bf16(double v) {
  if (v == 0 || !std::isfinite(v)) return v;
  int e = 0;
  std::frexp(v, &e);
  const int quantum = std::max(e - 8, -133);
  const double nearest = std::ldexp(std::nearbyint(std::ldexp(v, -quantum)), quantum);
  return std::abs(nearest) < 0x1p128 ? nearest : std::copysign(kInfinity, v);
}

double to_f32(double v) {
  auto rounded = static_cast<float>(v);
  // g++ 12 at -O2 and above makes two such conversions side by side a copy of the f64; this keeps
  // them.
  asm("" : "+m"(rounded));
  return static_cast<double>(rounded);
}

double twice_rounded(double v) { return static_cast<double>(round_to_bf16(static_cast<float>(v))); }

}  // namespace

double unit_of(Format format) {
  switch (format) {
    case Format::f32:
      return 0x1p-24;
    case Format::bf16:
      return 0x1p-8;
    case Format::f64:
      break;
  }
  return 0x1p-53;
}

double least_of(Format format) {
  switch (format) {
    case Format::f32:
      return 0x1p-150;
    case Format::bf16:
      return 0x1p-134;
    case Format::f64:
      break;
  }
  return 0.0;  // no f64 is that small that anybody computes with; an exact zero stays one
}

Interval values(const Interval& of, Format format) {
  if (std::isnan(of.low) || std::isnan(of.high)) return {-kInfinity, kInfinity};
  switch (format) {
    case Format::f32:
      return {to_f32(of.low), to_f32(of.high)};
    case Format::bf16:
      return {std::min(to_bf16(of.low), twice_rounded(of.low)),
              std::max(to_bf16(of.high), twice_rounded(of.high))};
    case Format::f64:
      break;
  }
  return of;
}

bool holds(const Interval& ends, Format format, double value) {
  if (std::isnan(value)) return ends.low == -kInfinity && ends.high == kInfinity;
  const Interval own = values({value, value}, format);
  return ends.low <= value && value <= ends.high && own.low == value && own.high == value;
}

void Slack::see(const Interval& of, Format format, double value) {
  const double middle = 0.5 * (of.low + of.high);
  const double error = std::abs(value - middle);
  if (!(error > error_) || std::isinf(error)) return;
  error_ = error;
  // A value differs from its number by half a unit in its last place, too.
  bound_ = 0.5 * (of.high - of.low) + unit_of(format) * std::abs(value) + least_of(format);
}

double Slack::slack() const { return error_ > 0 ? bound_ / error_ : 0.0; }

}  // namespace shardproof::bounds
