// Replay: the activation of the FFN, and the sums of a block with its input.
#include <algorithm>
#include <cmath>

#include "golden/bounds/value/replay.h"
#include "weights/base/detail/index.h"
#include "weights/model/registry.h"
#include "weights/text/block_terms.h"

namespace shardproof::bounds {

IntervalTensor Replay::hidden(const Making& m) {
  const IntervalTensor& gate = fusible(operand_of(m.at, 0));
  const bool gated = composite(m.at.name).operands.size() == 2;
  const IntervalTensor* const up = gated ? &fusible(operand_of(m.at, 1)) : nullptr;
  const Operations by(m.by);
  IntervalTensor y(gate.shape);
  threads_->for_each((std::ssize(y.center) + 4095) / 4096, [&](std::int64_t part) {
    const std::size_t first = at(part) * 4096;
    for (std::size_t i = first; i < std::min(first + 4096, y.size()); ++i) {
      Number w = activation_forms(config_.ffn, config_.softmax, gate.number(i), by,
                                  m.way.rounds("inner"), m.by.values);
      // In gated FFNs w is a value of its own.
      if (gated)
        w = by.times(rounded_if(as_value(w, m.by), m.way.rounds("act"), m.by.values),
                     up->number(i));
      y.set(i, w);
    }
  });
  return y;
}

IntervalTensor Replay::add_residual(const Making& m) {
  const Place term = operand_of(m.at, 1);
  if (config_.block == Block::parallel && !is_given(term)) return add_terms(m);
  const IntervalTensor& x = fusible(operand_of(m.at, 0));
  const IntervalTensor& y = fusible(term);
  // If the dump lacks the other term, one chip's partial sum may have started from x, so that later
  // additions rounded x too.
  const bool open = !exactly_ && torus_ && !is_given(term);
  const double first = open ? torus_->chips() * m.by.operations.unit : 0.0;
  IntervalTensor sum(x.shape);
  for (std::size_t i = 0; i < sum.size(); ++i) {
    const double own = first * std::abs(x.center[i]);
    sum.set(i, Number{x.center[i] + y.center[i], x.radius[i] + y.radius[i] + own,
                      x.likely[i] + y.likely[i] + own});
  }
  return sum;
}

/// Computes out of a parallel block: from its two terms as separate values, added in every order;
/// or also from their joint sum, if the dump has neither.
IntervalTensor Replay::add_terms(const Making& m) {
  const Place& p = m.at;
  const IntervalTensor& x = fusible(operand_of(p, 0));
  const auto term = [&](std::size_t i) -> IntervalTensor {
    const Place at{p.pass, p.layer, std::string(kBlockTerms[i])};
    if (dumped(id_of(at))) return operand(at);
    const IntervalTensor raw = derive(at);
    return hull(raw, raw.rounded(m.by.values));
  };
  const IntervalTensor a = term(0), f = term(1);
  const auto lacks = [&](std::string_view name) {
    return !dumped(checkpoint_id(p.pass, p.layer, name));
  };
  const bool open = std::all_of(std::begin(kBlockTerms), std::end(kBlockTerms), lacks);
  const IntervalTensor both = open ? derive(operand_of(p, 1)) : IntervalTensor();
  const Operations by(m.by);
  IntervalTensor sum(x.shape);
  for (std::size_t i = 0; i < sum.size(); ++i) {
    const Number of_x = x.number(i), of_a = a.number(i), of_f = f.number(i);
    const auto added = [&](const Number& one, const Number& two, const Number& last) {
      return by.plus(rounded_if(by.plus(one, two), m.way.rounds("each"), m.by.values), last);
    };
    Number all =
        hull(added(of_a, of_f, of_x), hull(added(of_x, of_a, of_f), added(of_x, of_f, of_a)));
    if (open)
      all = hull(all, by.plus(rounded_if(both.number(i), m.way.rounds("each"), m.by.values), of_x));
    sum.set(i, all);
  }
  return sum;
}

}  // namespace shardproof::bounds
