// Faults of norms: statistics of a part of the row.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <set>
#include <string>

#include "golden/diagnosis/detail/chips.h"
#include "golden/diagnosis/detail/edits.h"
#include "golden/diagnosis/detail/norm_row.h"
#include "weights/base/detail/index.h"

namespace shardproof::diagnosis {
namespace {

bounds::FunctionValue worst(const bounds::Number& v) { return {v.center, v.worst, 0.0}; }

}  // namespace

NormRow::NormRow(const Question& q) : q_(&q), x_(&q.value(q.operands()[0])) {
  const Step& step = q.step();
  gain_ = q.weight(step.weight_id(*step.weights(WeightKind::gain)[0]));
  E_ = gain_->data.size();
  for (const TextWeight* const bias : step.weights(WeightKind::bias))
    bias_ = q.weight(step.weight_id(*bias));
  centered_ = step.calls(ModelOp::sub);
  step.calls([&](const Expression& e) {
    if (e.op == ModelOp::add && step.number(e.args[1])) eps_ = *step.number(e.args[1]);
    return false;
  });
}

bool NormRow::fits() const {
  if (x_->shape != q_->shape() || x_->size() == 0) return false;
  const Statistics s = statistics(
      0, [](std::size_t) { return true; }, static_cast<double>(E_));
  for (std::size_t e = 0; e < E_; ++e) {
    const bounds::FunctionValue own = at(e, s), right = q_->expected_at(e);
    if (!(std::abs(own.center - right.center) <= own.radius + right.radius)) return false;
  }
  return true;
}

NormRow::Statistics NormRow::statistics(std::size_t row,
                                        const std::function<bool(std::size_t)>& part,
                                        double extent) const {
  const bounds::DeclaredArithmetic& d = q_->declared();
  const double unit = d.operations.unit + 0x1p-53;
  Statistics s;
  s.extent = extent;
  if (centered_) {
    bounds::IntervalSum sum;
    for (std::size_t e = 0; e < E_; ++e)
      if (part(e)) sum.add(x_->center[row * E_ + e], 1.0, x_->radius[row * E_ + e]);
    s.mu = worst(sum.value(d));
    s.mu.center /= extent;
    s.mu.radius = s.mu.radius / extent + (unit + bounds::unit_of(d.sums)) * std::abs(s.mu.center);
  }
  bounds::IntervalSum squares;
  for (std::size_t e = 0; e < E_; ++e) {
    if (!part(e)) continue;
    const double c = x_->center[row * E_ + e] - s.mu.center;
    const double r =
        x_->radius[row * E_ + e] + s.mu.radius + (centered_ ? unit * std::abs(c) : 0.0);
    squares.add(c, c, r, r);
  }
  s.ss = worst(squares.value(d));
  return s;
}

bounds::FunctionValue NormRow::at(std::size_t global, const Statistics& s) const {
  const bounds::DeclaredArithmetic& d = q_->declared();
  const double unit = d.operations.unit + 0x1p-53;
  const double c = x_->center[global] - s.mu.center;
  const double r = x_->radius[global] + s.mu.radius + (centered_ ? unit * std::abs(c) : 0.0);
  const bounds::NormScale scale = bounds::norm_scale(s.ss.center, s.extent, eps_, d.operations);
  // The statistic is materialized, also where sums are exact.
  const double kept = std::max(bounds::unit_of(d.sums), bounds::unit_of(d.unstored()));
  const double inside = 0.5 * (s.ss.radius + kept * s.ss.center) / (s.ss.center + s.extent * eps_);
  const std::size_t e = global % E_;
  const double gain = gain_->data[e];
  const double bias = bias_ == nullptr ? 0.0 : bias_->data[e];
  bounds::FunctionValue v =
      bounds::norm(c, scale, gain, bias_ == nullptr ? nullptr : &bias, d.operations);
  v.radius += std::abs(scale.r * gain) * (r + std::abs(c) * inside);
  return v;
}

namespace {

/// Each chip takes its statistics from the channels whose block over `set` is its own; channels are
/// cut over `list`.
void try_local(const Question& q, Search& search, const Axes& list, const Axes& set) {
  const Torus& torus = q.torus();
  const auto norm = std::make_shared<const NormRow>(q);
  const std::size_t E = norm->width();
  const Axes over = list.without(list.without(set));
  const auto length = E / static_cast<std::size_t>(torus.size(list));
  // In a gathered norm each block has the statistics of the chip that computed it.
  // Of E's other axes some may have been reduced over, along which all chips have the same.
  std::set<int> divisors{torus.size(over), 1};
  for (const Axes& other : q.sets())
    if (!list.has_any(other)) divisors.insert(torus.size(other));
  for (const bool gathered : {false, true})
    for (const int divisor : divisors) {
      const double extent = static_cast<double>(E) / divisor;
      const std::string divided = divisor == 1                  ? "E"
                                  : divisor == torus.size(over) ? "its extent"
                                                                : fmt::format("E/{}", divisor);
      const auto rows =
          std::make_shared<std::map<std::pair<int, std::size_t>, NormRow::Statistics>>();
      search.consider(
          {.fault = "local statistics",
           .detail = fmt::format("of the chip's own block over {}, of E_{}, divided by {}{}",
                                 words_of(over), list.to_string(), divided,
                                 gathered ? ", and gathered" : ""),
           .parameters = list.size() * 10 +
                         (divisor == torus.size(over) ? 0
                          : divisor == 1              ? 1
                                                      : 2) +
                         (gathered ? 5 : 0),
           .axes = over.sorted().to_string(),
           .at = [&q, E, over, list, length, extent, rows, gathered, norm](int chip,
                                                                           std::size_t local) {
             const std::size_t g = q.global(chip, local), row = g / E;
             const int maker =
                 gathered ? with_block(q.torus(), chip, list, static_cast<int>(g % E / length))
                          : chip;
             const int own = q.torus().block(maker, over);
             auto known = rows->find({own, row});
             if (known == rows->end()) {
               const auto part = [&](std::size_t e) {
                 const int holder = with_block(q.torus(), 0, list, static_cast<int>(e / length));
                 return q.torus().block(holder, over) == own;
               };
               known =
                   rows->emplace(std::pair{own, row}, norm->statistics(row, part, extent)).first;
             }
             return norm->at(g, known->second);
           }});
    }
}

}  // namespace

void try_statistics(const Question& q, Search& search, const Row&) {
  const NormRow norm(q);
  if (q.whole() || !norm.fits()) return;
  for (const Axes& list : q.lists()) {
    if (norm.width() % at(q.torus().size(list)) != 0) continue;
    for (const Axes& set : q.sets())
      if (list.has_all(set)) try_local(q, search, list, set);
  }
}

}  // namespace shardproof::diagnosis
