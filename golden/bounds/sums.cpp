#include "golden/bounds/sums.h"

#include <array>

#include "golden/bounds/running.h"
#include "golden/scalar/adding.h"
#include "golden/scalar/chains.h"
#include "golden/scalar/ring_place.h"

namespace shardproof::bounds {
namespace {

using scalar::Place;
using scalar::Value;

std::size_t at(std::int64_t i) { return static_cast<std::size_t>(i); }

/// Chains with their errors, added up side by side: bounds::chain's operations, several of them at
/// once where the first does not round, so that the intervals are the very same.
class SideBySide {
 public:
  static constexpr std::size_t kMost = 32;

  SideBySide(const Step& step, std::vector<Interval>& to) : step_(step), to_(to) {}

  void start(std::size_t) {
    n_ = 0;
    sums_.fill(0.0);
    errors_.fill(0.0);
  }
  void add(std::size_t n, const float* left, const double* right, std::size_t width) {
    n_ += n;
    const Step step = step_;
    std::size_t k = 0;
    // Two terms of each chain, one after the other, before its sum goes back to memory.
    for (; k + 2 <= n; k += 2, right += 2 * width) {
      const auto a0 = static_cast<double>(left[k]), a1 = static_cast<double>(left[k + 1]);
      const double* const b1 = right + width;
      for (std::size_t c = 0; c < width; ++c) {
        Running x{sums_[c], errors_[c]};
        step.next(a0, right[c], x);
        step.next(a1, b1[c], x);
        sums_[c] = x.sum;
        errors_[c] = x.error;
      }
    }
    for (; k < n; ++k, right += width)
      for (std::size_t c = 0; c < width; ++c) {
        Running x{sums_[c], errors_[c]};
        step.next(static_cast<double>(left[k]), right[c], x);
        sums_[c] = x.sum;
        errors_[c] = x.error;
      }
  }
  void finish(std::int64_t element, std::size_t column) {
    to_[static_cast<std::size_t>(element)] =
        interval_of({sums_[column], errors_[column]}, static_cast<double>(n_));
  }

 private:
  Step step_;
  std::vector<Interval>& to_;
  std::size_t n_ = 0;
  std::array<double, kMost> sums_, errors_;
};

/// Elements side by side whose sums grow in one order, each by itself.
using Neighbours = std::array<Growing, 16>;

struct SumsOfNeighbours {
  GrowingSums each;

  Neighbours plus(const Neighbours& a, const Neighbours& b) const {
    Neighbours sums;
    for (std::size_t i = 0; i < sums.size(); ++i) sums[i] = each.plus(a[i], b[i]);
    return sums;
  }
  Neighbours hop(const Neighbours& sums) const {
    if (!each.rounds_hops) return sums;
    Neighbours sent;
    for (std::size_t i = 0; i < sent.size(); ++i) sent[i] = each.hop(sums[i]);
    return sent;
  }
};

}  // namespace

Bounds bounds_of_contraction(const Op& op, const std::vector<const Value*>& args,
                             const scalar::Setting& setting) {
  Shape shape;
  for (char letter : op.spec.terms[0].result)
    shape.push_back(scalar::extent(args[0]->layout.find(letter) ? *args[0] : *args[1], letter));
  scalar::require_placed(op, args, setting.torus);
  Bounds bounds{{}, setting.acc_bf16 ? Format::bf16 : Format::f32};
  scalar::for_each_place(op.results[0].layout.partial(), setting.torus, [&](const Place& place) {
    std::vector<Interval>& part = bounds.parts.emplace_back(at(element_count(shape)));
    const Step step = setting.acc_bf16 ? Step::bf16() : Step::f32();
    scalar::Chains(op, args, setting, place, shape)
        .each<double, SideBySide::kMost>(setting.by(), [&] { return SideBySide(step, part); });
  });
  return bounds;
}

Bounds bounds_of_reduction(const Op& op, const Value& t, const scalar::Setting& setting) {
  const Torus& torus = setting.torus;
  const std::int64_t K = torus.size(op.axes);
  const Loop way = scalar::way_round(op, setting);
  const bool sent = setting.wire_bf16 && K > 1;
  const bool rounded = sent && op.kind == OpKind::all_reduce;  // when it goes round
  const scalar::Adding<Neighbours, SumsOfNeighbours> adding{
      {{setting.acc_bf16, sent && way != Loop::none}}};
  Bounds bounds{{}, K > 1 && (setting.acc_bf16 || rounded) ? Format::bf16 : Format::f32};
  scalar::for_each_place(op.results[0].layout.partial(), torus, [&](const Place& place) {
    const auto members = scalar::members(op, t, torus, place);
    std::vector<Interval>& part = bounds.parts.emplace_back(members[0]->size());
    scalar::each_in_ring(op, t.shape, setting, way, std::tuple_size_v<Neighbours>,
                         [&](std::int64_t from, std::int64_t n, const scalar::InRing& ring) {
                           std::vector<Neighbours> terms(members.size());
                           for (std::size_t m = 0; m < terms.size(); ++m)
                             for (std::size_t i = 0; i < at(n); ++i) {
                               const float term = (*members[m])[at(from) + i];
                               terms[m][i] = {{static_cast<double>(
                                   sent && way == Loop::none ? round_to_bf16(term) : term)}};
                             }
                           const Neighbours sums = adding.sum(terms, way, setting.schedule, ring);
                           for (std::size_t i = 0; i < at(n); ++i)
                             part[at(from) + i] = interval_of(sums[i]);
                         });
  });
  return bounds;
}

}  // namespace shardproof::bounds
