#include "golden/bounds/carried.h"

#include <cmath>
#include <utility>

namespace shardproof::bounds {

double Declared::growth(std::int64_t n) const {
  const double logarithm = static_cast<double>(n + folded) * std::log1p(unit_of(sums)) +
                           wire_roundings * std::log1p(unit_of(wire));
  return std::expm1(logarithm) * (1 + 0x1p-20);
}

Carried::Carried(Shape of) : shape(std::move(of)) {
  center.assign(static_cast<std::size_t>(element_count(shape)), 0.0);
  radius = center;
}

Carried::Carried(const Tensor& exact) : Carried(exact.shape) {
  for (std::size_t i = 0; i < center.size(); ++i) center[i] = static_cast<double>(exact.data[i]);
}

Carried::Carried(Array<double> exact)
    : shape(std::move(exact.shape)), center(std::move(exact.data)) {
  radius.assign(center.size(), 0.0);
}

Carried Carried::rounded(Format format) const {
  Carried r = *this;
  for (std::size_t i = 0; i < r.size(); ++i)
    r.radius[i] += unit_of(format) * (std::abs(center[i]) + radius[i]) + least_of(format);
  return r;
}

void CarriedSum::add(double a, double b, double radius_of_a, double radius_of_b) {
  const double product = a * b;
  const double of_product = std::fma(a, b, -product);
  const double sum = high_ + product;
  const double back = sum - high_;
  const double of_sum = (high_ - (sum - back)) + (product - back);
  high_ = sum;
  low_ += of_product + of_sum;
  size_ += (std::abs(a) + radius_of_a) * (std::abs(b) + radius_of_b);
  carried_ += std::abs(a) * radius_of_b + std::abs(b) * radius_of_a + radius_of_a * radius_of_b;
  ++count_;
}

Evaluated CarriedSum::value(const Declared& declared) const {
  const auto n = static_cast<double>(count_);
  const double center = high_ + low_;
  // Of a single product nothing but what its value is rounded to is left open; f64 itself may not
  // hold it.
  const bool sums = count_ > 1 || declared.folded > 0 || declared.wire_roundings > 0;
  const double growth = sums ? declared.growth(count_) : 0.0;
  const double own = 0x1p-53 * std::abs(center) + n * n * 0x1p-104 * size_;
  const double least = sums ? n * least_of(declared.sums) * (1 + growth) : 0.0;
  // The radius's own additions: two a term and a few.
  const double radius = (growth * size_ + carried_ + own + least) * (1 + (n + 4) * 0x1p-51);
  return {center, radius, 0.0};
}

}  // namespace shardproof::bounds
