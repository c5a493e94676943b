#include "golden/bounds/op/sums.h"

#include <algorithm>
#include <array>
#include <bit>
#include <span>
#include <type_traits>

#include "golden/bounds/number/detail/running.h"
#include "golden/scalar/chains.h"
#include "golden/scalar/detail/adding.h"
#include "golden/scalar/ring_place.h"
#include "weights/base/detail/index.h"

namespace shardproof::bounds {
namespace {

using scalar::Place;
using scalar::Value;

constexpr std::size_t kColumns = 64;  // chains computed side by side

/// Returns whether no chain of these products, its error included, can reach 2^126.
bool stays_finite(const Op& op, const std::vector<const Value*>& args, const Step& step) {
  double products = 0.0;  // maximum per chain
  for (std::size_t t = 0; t < op.spec.terms.size(); ++t) {
    double of_term = 1.0;
    for (const char letter : EinsumSpec::contracted(op.spec.terms[t]))
      of_term *= static_cast<double>(scalar::extent(*args[2 * t], letter));
    products += of_term;
  }
  std::uint32_t largest = 0;  // bits of the largest factor, or of a NaN or infinity
  for (const Value* const arg : args)
    for (const float v : arg->whole())
      largest = std::max(largest, std::bit_cast<std::uint32_t>(v) & 0x7fffffffU);
  const double factor = static_cast<double>(std::bit_cast<float>(largest));
  // The error of n roundings is below the sum of the magnitudes if n·unit is at most a half.
  return products * step.unit <= 0.5 && 4 * products * factor * factor < 0x1p126;
}

/// Several chains with their errors, side by side; performs the same operations as bounds::chain,
/// so the intervals are identical.
template <Overflow kOverflow>
class SideBySide {
 public:
  SideBySide(const Step& step, std::vector<Interval>& to) : step_(step), to_(to) {}

  void start(std::size_t) {
    n_ = 0;
    sums_.fill(0.0);
    errors_.fill(0.0);
  }
  void add(std::size_t n, const float* left, const double* right, std::size_t width) {
    n_ += n;
    const Step step = step_;
    for (std::size_t k = 0; k < n; ++k, right += width) {
      const auto a = static_cast<double>(left[k]);
      for (std::size_t c = 0; c < width; ++c) {
        Running x{sums_[c], errors_[c]};
        step.next<kOverflow>(a, right[c], x);
        sums_[c] = x.sum;
        errors_[c] = x.error;
      }
    }
  }
  void finish(std::int64_t row, std::span<const std::int64_t> columns) {
    const auto n = static_cast<double>(n_);
    for (std::size_t c = 0; c < columns.size(); ++c)
      to_[at(row + columns[c])] = interval_of({sums_[c], errors_[c]}, n);
  }

 private:
  Step step_;
  std::vector<Interval>& to_;
  std::size_t n_ = 0;
  std::array<double, kColumns> sums_, errors_;
};

/// Elements whose sums grow in the same order, side by side: an array of Growing that share one
/// pending rounding.
struct Neighbours {
  static constexpr std::size_t kMost = 32;

  std::array<double, kMost> sums, errors;
  Growing::Waits waits = Growing::Waits::nothing;

  Growing of(std::size_t i) const { return {{sums[i], errors[i]}, waits}; }
};

/// Applies GrowingSums to each element.
struct SumsOfNeighbours {
  GrowingSums each;

  Neighbours plus(const Neighbours& a, const Neighbours& b) const {
    Neighbours sum;
    with_waits(a.waits, [&](auto of_a) {
      with_waits(b.waits, [&](auto of_b) {
        for (std::size_t i = 0; i < Neighbours::kMost; ++i) {
          const Growing one =
              each.plus({{a.sums[i], a.errors[i]}, of_a}, {{b.sums[i], b.errors[i]}, of_b});
          sum.sums[i] = one.x.sum;
          sum.errors[i] = one.x.error;
        }
      });
    });
    sum.waits = each.plus(a.of(0), b.of(0)).waits;
    return sum;
  }
  Neighbours hop(const Neighbours& sums) const {
    if (!each.rounds_hops) return sums;
    Neighbours sent = sums;
    for (std::size_t i = 0; i < Neighbours::kMost; ++i) {
      const Growing one = each.hop(sums.of(i));
      sent.sums[i] = one.x.sum;
      sent.errors[i] = one.x.error;
    }
    sent.waits = each.hop(sums.of(0)).waits;
    return sent;
  }

 private:
  /// Calls body(waits) with a compile-time constant: the loop over elements does not branch.
  template <class Body>
  static void with_waits(Growing::Waits waits, Body&& body) {
    using Waits = Growing::Waits;
    if (waits == Waits::nothing) return body(std::integral_constant<Waits, Waits::nothing>());
    if (waits == Waits::f32) return body(std::integral_constant<Waits, Waits::f32>());
    body(std::integral_constant<Waits, Waits::bf16>());
  }
};

}  // namespace

Bounds bounds_of_contraction(const Op& op, const std::vector<const Value*>& args,
                             const scalar::Setting& setting) {
  Shape shape;
  for (char letter : op.spec.terms[0].result)
    shape.push_back(scalar::extent(args[0]->layout.find(letter) ? *args[0] : *args[1], letter));
  scalar::require_placed(op, args, setting.torus);
  Bounds bounds{{}, setting.acc_bf16 ? NumberFormat::bf16 : NumberFormat::f32};
  const Step step = setting.acc_bf16 ? Step::bf16() : Step::f32();
  const bool finite = stays_finite(op, args, step);
  scalar::for_each_place(op.results[0].layout.partial(), setting.torus, [&](const Place& place) {
    std::vector<Interval>& part = bounds.parts.emplace_back(at(element_count(shape)));
    const scalar::Chains chains(op, args, setting, place, shape);
    if (finite)
      chains.each<double, kColumns>(setting.by(),
                                    [&] { return SideBySide<Overflow::excluded>(step, part); });
    else
      chains.each<double, kColumns>(setting.by(),
                                    [&] { return SideBySide<Overflow::possible>(step, part); });
  });
  return bounds;
}

Bounds bounds_of_reduction(const Op& op, const Value& t, const scalar::Setting& setting) {
  const Torus& torus = setting.torus;
  const std::int64_t K = torus.size(op.axes);
  const Loop way = scalar::way_round(op, setting);
  const bool sent = setting.wire_bf16 && K > 1;
  const bool rounded = sent && op.kind == OpKind::all_reduce;  // by its all_gather
  const scalar::Adding<Neighbours, SumsOfNeighbours> adding{
      {{setting.acc_bf16, sent && way != Loop::none}}};
  Bounds bounds{{},
                K > 1 && (setting.acc_bf16 || rounded) ? NumberFormat::bf16 : NumberFormat::f32};
  scalar::for_each_place(op.results[0].layout.partial(), torus, [&](const Place& place) {
    const auto members = scalar::members(op, t, torus, place);
    std::vector<Interval>& part = bounds.parts.emplace_back(members[0]->size());
    scalar::each_in_ring(
        op, t.shape, setting, way, Neighbours::kMost, std::vector<Neighbours>(members.size()),
        [&](std::int64_t from, std::int64_t n, const scalar::InRing& ring, auto& terms) {
          for (std::size_t m = 0; m < terms.size(); ++m) {
            terms[m].sums.fill(0.0);
            terms[m].errors.fill(0.0);
            for (std::size_t i = 0; i < at(n); ++i) {
              const float term = (*members[m])[at(from) + i];
              terms[m].sums[i] =
                  static_cast<double>(sent && way == Loop::none ? round_to_bf16(term) : term);
            }
          }
          const Neighbours sums = adding.sum(terms, way, setting.schedule, ring);
          for (std::size_t i = 0; i < at(n); ++i) part[at(from) + i] = interval_of(sums.of(i));
        });
  });
  return bounds;
}

}  // namespace shardproof::bounds
