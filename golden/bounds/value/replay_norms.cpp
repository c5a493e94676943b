// Replay: norms and their statistics.
#include <cmath>
#include <string_view>

#include "golden/bounds/value/replay.h"
#include "weights/base/detail/index.h"
#include "weights/model/registry.h"
#include "weights/model/softmax.h"

namespace shardproof::bounds {

Replay::NormRow Replay::norm_row(const Making& m, const IntervalTensor& x, std::size_t row) const {
  const std::size_t E = at(config_.E);
  const Number extent{static_cast<double>(E), 0.0, 0.0};
  const Operations by = Operations::of_values(m.by);
  NormRow of;
  const bool centered = config_.norm == Norm::layernorm;
  if (centered) {
    IntervalSum sum;
    for (std::size_t e = 0; e < E; ++e) sum.add(x.number(row * E + e), {1.0, 0.0, 0.0});
    of.sum = sum.value(m.by);
    of.mean = rounded_if(as_value(by.over(as_value(of.sum, m.by), extent), m.by),
                         m.way.rounds("mu"), m.by.values);
  }
  IntervalSum squares;
  for (std::size_t e = 0; e < E; ++e) {
    const Number element = x.number(row * E + e);
    of.x.push_back(centered ? rounded_if(by.minus(element, of.mean), m.way.rounds("d"), m.by.values)
                            : element);
    squares.add(of.x.back(), of.x.back());
  }
  of.squares = squares.value(m.by);
  return of;
}

std::optional<IntervalTensor> Replay::expected_statistic(const Place& place) {
  const ValueRow* const row = value_row(place.name);
  if (row == nullptr || row->norm.empty()) return std::nullopt;
  const std::string_view what = row->statistic;
  if (config_.norm != Norm::layernorm && what != "ss") return std::nullopt;
  const Place norm{place.pass, place.layer, std::string(row->norm)};
  const IntervalTensor& x = fusible(operand_of(norm, 0));
  const DeclaredArithmetic by = arithmetic(place);
  const Making m{norm, by, way_of(norm, by)};
  const std::size_t E = at(config_.E);
  IntervalTensor y(what == "d" ? x.shape : Shape{x.shape[0], x.shape[1]});
  for (std::size_t n = 0; n < x.size() / E; ++n) {
    const NormRow of = norm_row(m, x, n);
    if (what == "d")
      for (std::size_t e = 0; e < E; ++e) y.set(n * E + e, of.x[e]);
    else
      y.set(n, what == "ss" ? of.squares : what == "mu" ? of.mean : of.sum);
  }
  return y;
}

IntervalTensor Replay::normalize(const Making& m) {
  const Place& p = m.at;
  const IntervalTensor& x = fusible(operand_of(p, 0));
  const std::size_t E = at(config_.E);
  const Composite& c = composite(p.name);
  const IntervalTensor gain = weight(p.layer, c.weights[0]);
  const bool biased = !c.biases.empty();
  const IntervalTensor bias = biased ? weight(p.layer, c.biases[0]) : IntervalTensor();
  const Operations by(m.by);
  const Number extent{static_cast<double>(E), 0.0, 0.0}, eps = by.constant(eps_of_norms(config_));
  const auto keep = [&](const Number& v, std::string_view place) {
    return rounded_if(v, m.way.rounds(place), m.by.values);
  };
  IntervalTensor y(x.shape);
  for (std::size_t row = 0; row < x.size() / E; ++row) {
    const NormRow of = norm_row(m, x, row);
    const Number mean_square = by.over(as_value(of.squares, m.by), extent);
    const Number r = keep(by.rsqrt(by.plus(mean_square, eps)), "r");
    for (std::size_t e = 0; e < E; ++e) {
      Number v = by.times(keep(by.times(of.x[e], r), "xr"), gain.number(e));
      if (biased) v = by.plus(keep(v, "xrg"), bias.number(e));
      y.set(row * E + e, v);
    }
  }
  return y;
}

}  // namespace shardproof::bounds
