// Replay: attention from queries and caches alone, as in a fused kernel (docs/bounds.md section 5).
// Errors of scores propagate to the mean by the softmax's Jacobian.
#include <algorithm>
#include <cmath>

#include "golden/bounds/value/replay.h"
#include "weights/base/detail/index.h"
#include "weights/model/registry.h"
#include "weights/model/softmax.h"

namespace shardproof::bounds {
namespace {

/// One query's weights for its keys, exp(s − max), with their relative errors.
struct KeyWeights {
  std::vector<double> p;
  std::vector<double> worst, likely;
  double sum = 0.0;
  std::int64_t rescaled = 0;  ///< times that the running maximum grows
};

/// `base` is ln 2 if scores are in units of it, otherwise 1.
KeyWeights weights_of(const std::vector<Number>& scores, double base, const Operations& by,
                      double ulp, double unit) {
  KeyWeights w;
  double top = -kInfinity, size = 0.0;
  for (const Number& s : scores) {
    if (s.center > top) ++w.rescaled;
    top = std::max(top, s.center);
    size = std::max(size, std::abs(s.center));
  }
  for (const Number& s : scores) {
    const double x = base * (s.center - top);
    w.p.push_back(std::exp(x));
    w.sum += w.p.back();
    // Errors of exp of the difference, or exp2 of scaled scores; and per later rescaling those of
    // exp and of two roundings. Maxima in other orders grow about as often.
    const double made = by.unit() * (std::abs(x) + 2 * base * size) + 2 * ulp * unit;
    const double rescaling = static_cast<double>(w.rescaled + 8) * (2 * ulp + 3) * by.unit();
    const auto relative = [&](double radius) {
      const double d = base * radius + made + rescaling;
      return d * (1 + d);  // bounds exp(d) − 1 for d below 1
    };
    w.worst.push_back(s.worst < 0.25 ? relative(s.worst) : kInfinity);
    w.likely.push_back(s.likely < 0.25 ? relative(s.likely) : kInfinity);
  }
  return w;
}

/// Σ p·v / Σ p with its error. Values are in the order of the keys.
class Mean {
 public:
  Mean(const KeyWeights& w, const std::vector<Number>& v, const DeclaredArithmetic& by)
      : w_(w), v_(v), declared_(by) {
    for (std::size_t j = 0; j < v.size(); ++j) {
      center_ += w.p[j] * v[j].center / w.sum;
      size_ += w.p[j] * std::abs(v[j].center) / w.sum;
    }
  }

  Number value(Rounds of_weights) const {
    return {center_, radius(w_.worst, &Number::worst, of_weights),
            radius(w_.likely, &Number::likely, of_weights)};
  }

 private:
  double radius(const std::vector<double>& relative, double Number::*of_value,
                Rounds of_weights) const {
    double moved = 0.0, values = 0.0, most = 0.0, farthest = 0.0, rounded = 0.0, squares = 0.0;
    for (std::size_t j = 0; j < v_.size(); ++j) {
      const double share = w_.p[j] / w_.sum, away = std::abs(v_[j].center - center_);
      moved += share * away * relative[j];
      most = std::max(most, relative[j]);
      farthest = std::max(farthest, away);
      values += share * v_[j].*of_value;
      const double rounding =
          share * unit_of(declared_.values) * std::max(away, std::abs(v_[j].center));
      rounded += rounding;
      squares += rounding * rounding;
    }
    // A mean with any weights lies among the values.
    const double jacobian = most < 0.5 ? moved / (1 - most) : kInfinity;
    double all = std::min(jacobian, farthest) + values + sums(of_value == &Number::likely);
    if (of_weights != Rounds::none)
      all += of_value == &Number::likely && declared_.confident
                 ? std::min(rounded, kLambda * std::sqrt(squares))
                 : rounded;
    return all * (1 + 0x1p-40);
  }
  /// Errors of the sums in numerator and denominator, with up to two rescalings of both per key.
  double sums(bool likely) const {
    DeclaredArithmetic by = declared_;
    by.wire_roundings = 0;
    const auto n = 3 * std::ssize(v_) + 2;
    const Number numerator = bound({n, center_, size_, 2 * size_, 0.0, 0.0}, declared_);
    const Number denominator = bound({n, 1.0, 1.0, 1.0, 0.0, 0.0}, by);
    const auto of = [&](const Number& sum) { return likely ? sum.likely : sum.worst; };
    return of(numerator) + std::abs(center_) * of(denominator) * 2 +
           2 * (unit_of(by.sums) + by.operations.unit) * std::abs(center_);
  }

  const KeyWeights& w_;
  const std::vector<Number>& v_;
  const DeclaredArithmetic& declared_;
  double center_ = 0.0, size_ = 0.0;
};

/// Expands a place whose rounding is unknown into both possibilities.
std::vector<Rounds> choices(Rounds rounds) {
  if (rounds == Rounds::some) return {Rounds::none, Rounds::each};
  return {rounds};
}

}  // namespace

IntervalTensor Replay::attend(const Making& making) {
  const Making m = with_parts_of_keys(making);
  const Place& p = m.at;
  const Place scores = operand_of(operand_of(p, 0), 0);
  const Composite& of_scores = composite(scores.name);
  const IntervalTensor& q = operand(operand_of(scores, 0));
  const IntervalTensor k = read(operand_of(scores, 1)), v = read(operand_of(p, 2));
  const PassPlan& plan = pass(p.pass);
  const std::size_t L = at(q.shape[1]), H = at(q.shape[2]), Q = at(q.shape[3]);
  const std::size_t M = at(k.shape[1]), K = at(k.shape[2]);
  const Operations by(m.by);
  const double base = config_.softmax == Softmax::base2 ? kLn2 : 1.0;
  IntervalTensor y(q.shape);
  threads_->for_each(static_cast<std::int64_t>(q.size() / Q), [&](std::int64_t query) {
    const std::size_t n = at(query), b = n / H / L, h = n % H;
    const std::int64_t t = position(plan, b, n / H % L);
    const std::size_t seen = std::min(M, visible(plan, b, n / H % L));
    // All scores of a query round in the same way, so each open way is a case of its own.
    const auto weights = [&](Rounds qk, Rounds whole) {
      std::vector<Number> of;
      for (std::size_t j = 0; j < seen; ++j) {
        IntervalSum sum;
        const std::size_t key = ((b * M + j) * K + h * K / H) * Q;
        for (std::size_t c = 0; c < Q; ++c) sum.add(q.number(n * Q + c), k.number(key + c));
        of.push_back(rounded_if(score(m, of_scores, sum, h, static_cast<std::int64_t>(j), t, qk),
                                whole, m.by.values));
      }
      return weights_of(of, base, by, m.by.ulp.exp, m.by.operations.unit);
    };
    std::vector<KeyWeights> ways;
    for (const Rounds qk : choices(m.way.rounds("qk")))
      for (const Rounds whole : choices(m.way.rounds("scores"))) ways.push_back(weights(qk, whole));
    const Rounds probs = m.way.rounds("probs");
    std::vector<Number> values(seen);
    for (std::size_t c = 0; c < Q; ++c) {
      for (std::size_t j = 0; j < seen; ++j)
        values[j] = v.number(((b * M + j) * K + h * K / H) * Q + c);
      const auto mean_of = [&](const KeyWeights& w) {
        const Number whole = Mean(w, values, m.by).value(m.way.rounds("exp"));
        if (probs == Rounds::none) return whole;
        IntervalSum sum;
        for (std::size_t j = 0; j < seen; ++j) {
          const double share = w.p[j] / w.sum;
          const auto open = [&](double relative) { return share > 0 ? 2 * share * relative : 0.0; };
          const Number one{share, open(w.worst[j]), open(w.likely[j])};
          sum.add(stored(one, m.by.values), values[j]);
        }
        const Number other = sum.value(m.by);
        return probs == Rounds::each ? other : hull(whole, other);
      };
      Number a = mean_of(ways[0]);
      for (std::size_t i = 1; i < ways.size(); ++i) a = hull(a, mean_of(ways[i]));
      y.set(n * Q + c, a);
    }
  });
  return y;
}

}  // namespace shardproof::bounds
