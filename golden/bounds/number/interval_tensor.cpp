#include "golden/bounds/number/interval_tensor.h"

#include <cmath>
#include <utility>

namespace shardproof::bounds {

double DeclaredArithmetic::growth(std::int64_t n) const {
  const double logarithm = static_cast<double>(n) * std::log1p(unit_of(sums)) +
                           folded * std::log1p(unit_of_folded()) +
                           wire_roundings * std::log1p(unit_of(wire));
  return std::expm1(logarithm) * (1 + 0x1p-20);
}

IntervalTensor::IntervalTensor(Shape of) : shape(std::move(of)) {
  center.assign(static_cast<std::size_t>(element_count(shape)), 0.0);
  radius = likely = center;
}

IntervalTensor::IntervalTensor(const Tensor& exact) : IntervalTensor(exact.shape) {
  for (std::size_t i = 0; i < center.size(); ++i) center[i] = static_cast<double>(exact.data[i]);
}

IntervalTensor::IntervalTensor(Array<double> exact)
    : shape(std::move(exact.shape)), center(std::move(exact.data)) {
  radius.assign(center.size(), 0.0);
  likely = radius;
}

IntervalTensor IntervalTensor::rounded(NumberFormat format) const {
  IntervalTensor r = *this;
  for (std::size_t i = 0; i < r.size(); ++i) r.set(i, stored(number(i), format));
  return r;
}

IntervalTensor IntervalTensor::with_likely_radius() const {
  IntervalTensor r = *this;
  r.radius = r.likely;
  return r;
}

IntervalTensor hull(const IntervalTensor& a, const IntervalTensor& b) {
  IntervalTensor all = a;
  for (std::size_t i = 0; i < all.size(); ++i) all.set(i, hull(a.number(i), b.number(i)));
  return all;
}

Sum IntervalSum::sum() const {
  return {count_, high_ + low_, size_, most_ - least_, worst_, likely_};
}

Number IntervalSum::value(const DeclaredArithmetic& declared, const Depth& depth) const {
  return bound(sum(), declared, depth);
}

}  // namespace shardproof::bounds
