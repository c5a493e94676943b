#include "golden/bounds/number/interval.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "golden/bounds/number/detail/short_format.h"

namespace shardproof::bounds {

const ShortFormat* short_format(NumberFormat format) {
  switch (format) {
    case NumberFormat::f32:
      return &kShortF32;
    case NumberFormat::bf16:
      return &kShortBf16;
    case NumberFormat::f16:
      return &kShortF16;
    case NumberFormat::f64:
      return nullptr;
    default:
      throw std::logic_error("no value is judged in this format");
  }
}

double nearest(double number, NumberFormat format) {
  const ShortFormat* const by = short_format(format);
  return by == nullptr ? number : to_short(number, *by);
}

Interval values(const Interval& of, NumberFormat format) {
  if (std::isnan(of.low) || std::isnan(of.high)) return {-kInfinity, kInfinity};
  const ShortFormat* const by = short_format(format);
  return by == nullptr ? of : Interval{low_of_short(of.low, *by), high_of_short(of.high, *by)};
}

bool holds(const Interval& ends, NumberFormat format, double value) {
  if (std::isnan(value)) return ends.low == -kInfinity && ends.high == kInfinity;
  const Interval own = values({value, value}, format);
  return ends.low <= value && value <= ends.high && own.low == value && own.high == value;
}

double distance(double value, NumberFormat format, double number) {
  if (!std::isfinite(value) || !std::isfinite(number))
    return nearest(number, format) == value ? 0.0 : kInfinity;
  const double away = std::abs(value - number);
  return std::max(away - unit_of(format) * std::abs(value) - least_of(format), 0.0);
}

void Slack::see(const Interval& of, NumberFormat format, double value) {
  const double middle = 0.5 * (of.low + of.high);
  const double error = std::abs(value - middle);
  if (!(error > error_) || std::isinf(error)) return;
  error_ = error;
  // The value also differs from its unrounded number by half a unit in its last place.
  bound_ = 0.5 * (of.high - of.low) + unit_of(format) * std::abs(value) + least_of(format);
}

double Slack::slack() const { return error_ > 0 ? bound_ / error_ : 0.0; }

}  // namespace shardproof::bounds
