// Replay: rotation, caches and attention.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "golden/bounds/value/replay.h"
#include "weights/base/detail/index.h"
#include "weights/model/registry.h"
#include "weights/model/softmax.h"

namespace shardproof::bounds {
namespace {

/// Widens a value that the specification does not store but an engine may.
void may_be_stored(IntervalTensor& y, const DeclaredArithmetic& by) {
  if (!narrow_storage(by.values)) return;
  for (std::size_t i = 0; i < y.size(); ++i)
    y.set(i, rounded_if(y.number(i), Rounds::some, by.values));
}

}  // namespace

IntervalTensor Replay::rotate(const Making& m) {
  const Place& p = m.at;
  const IntervalTensor& x = fusible(operand_of(p, 0));
  const std::vector<std::string>& tables = composite(p.name).weights;
  const IntervalTensor cosines = IntervalTensor(*weights_.at(tables[0])),
                       sines = IntervalTensor(*weights_.at(tables[1]));
  const PassPlan& plan = pass(p.pass);
  const std::size_t L = at(x.shape[1]), heads = at(x.shape[2]), Q = at(x.shape[3]);
  const std::size_t pairs = at(cosines.shape[1]);
  const Operations by(m.by);
  const auto keep = [&](const Number& v, std::string_view place) {
    return rounded_if(v, m.way.rounds(place), m.by.values);
  };
  IntervalTensor y = x;
  for (std::size_t n = 0; n < x.size() / Q; ++n) {
    const std::size_t token = n / heads;
    const std::size_t row = at(position(plan, token / L, token % L));
    if (row >= at(cosines.shape[0]))
      throw Error("bounds_c1", fmt::format("{} has a position beyond the RoPE tables", p.pass));
    for (std::size_t j = 0; j < pairs; ++j) {
      const bool half = config_.rope == Rope::half;
      const std::size_t a = n * Q + (half ? j : 2 * j), b = n * Q + (half ? j + pairs : 2 * j + 1);
      const Number c = keep(cosines.number(row * pairs + j), "tables");
      Number s = keep(sines.number(row * pairs + j), "tables");
      const auto product = [&](std::size_t i, const Number& table) {
        return keep(by.times(x.number(i), table), "products");
      };
      y.set(b, by.plus(product(b, c), product(a, s)));
      s.center = -s.center;
      y.set(a, by.plus(product(a, c), product(b, s)));
    }
  }
  return y;
}

const IntervalTensor& Replay::cache_of(const Place& cache) {
  const std::string id = id_of(cache);
  if (!forgotten_.contains(cache.pass) || dumped(id) || known_.contains(id)) return operand(cache);
  const ValueRow& row = *value_row(cache.name);
  IntervalTensor unknown(shape_of(row.dims, config_, extents_of(pass(cache.pass), row)));
  unknown.radius.assign(unknown.size(), kInfinity);
  unknown.likely = unknown.radius;
  return known_[id] = std::move(unknown);
}

IntervalTensor Replay::append_to_cache(const Place& p) {
  const PassPlan& plan = pass(p.pass);
  const IntervalTensor& added = operand(operand_of(p, 0));
  const std::size_t B = at(added.shape[0]), L = at(added.shape[1]);
  const std::size_t head = at(config_.K * config_.Q);
  IntervalTensor before;
  if (!plan.previous.empty()) before = cache_of({plan.previous, p.layer, p.name});
  const std::size_t old = before.size() == 0 ? 0 : at(before.shape[1]);
  const std::size_t M = old + L;
  IntervalTensor y(Shape{added.shape[0], static_cast<std::int64_t>(M), config_.K, config_.Q});
  for (std::size_t b = 0; b < B; ++b) {
    const auto copy = [&](const IntervalTensor& from, std::size_t row, std::size_t slot) {
      for (std::size_t i = 0; i < head; ++i)
        y.set((b * M + slot) * head + i, from.number(row * head + i));
    };
    for (std::size_t m = 0; m < old; ++m) copy(before, b * old + m, m);
    const std::size_t tokens = std::min(L, at(rows_of(plan, b).tokens));
    for (std::size_t l = 0; l < tokens; ++l)  // padding is not cached
      if (const std::size_t slot = at(position(plan, b, l) - plan.prefix.length); slot < M)
        copy(added, b * L + l, slot);
  }
  return y;
}

IntervalTensor Replay::read(const Place& cache) {
  const IntervalTensor& own = operand(cache);
  const PassPlan& plan = pass(cache.pass);
  const PassPlan* const filled = prefix_of(plan);
  if (filled == nullptr) return own;
  const IntervalTensor& prefix = cache_of({filled->name, cache.layer, cache.name});
  const std::int64_t B = own.shape[0], P = plan.prefix.length;
  const std::size_t head = at(own.shape[2] * own.shape[3]);
  const std::size_t of_prefix = at(P) * head, of_row = at(own.shape[1]) * head;
  IntervalTensor y(Shape{B, P + own.shape[1], own.shape[2], own.shape[3]});
  for (std::int64_t b = 0; b < B; ++b) {
    const auto copy = [&](const IntervalTensor& from, std::size_t begin, std::size_t count,
                          std::size_t to) {
      for (std::size_t i = 0; i < count; ++i) y.set(to + i, from.number(begin + i));
    };
    const std::size_t begin = at(b) * (of_prefix + of_row);
    copy(prefix, at(plan.prefix.of_row(b, B)) * of_prefix, of_prefix, begin);
    copy(own, at(b) * of_row, of_row, begin + of_prefix);
  }
  return y;
}

Number Replay::score(const Making& m, const Composite& of, const IntervalSum& sum, std::size_t head,
                     std::int64_t key, std::int64_t query, Rounds qk) const {
  const Operations by(m.by);
  Number s = rounded_if(as_value(sum.value(m.by), m.by), qk, m.by.values);
  // Two roundings: of the scale's root and of its reciprocal.
  Number scale = by.constant(scale_of_scores(config_.softmax, static_cast<double>(config_.Q)));
  scale.worst *= 2, scale.likely *= 2;
  s = by.times(s, scale);
  if (of.weights.empty()) return s;
  const auto slope = static_cast<double>(weights_.at(of.weights[0])->data[head]);
  const Number back{static_cast<double>(key) - static_cast<double>(query), 0.0, 0.0};
  return by.plus(s, by.times({slope, 0.0, 0.0}, back));
}

IntervalTensor Replay::scores(const Making& m, Stage stage) {
  const Place& p = m.at;
  const IntervalTensor& q = operand(operand_of(p, 0));
  const IntervalTensor k = read(operand_of(p, 1));
  const PassPlan& plan = pass(p.pass);
  const std::size_t L = at(q.shape[1]), H = at(q.shape[2]), Q = at(q.shape[3]);
  const std::size_t M = at(k.shape[1]), K = at(k.shape[2]);
  IntervalTensor y(Shape{q.shape[0], q.shape[1], q.shape[2], k.shape[1]});
  for (std::size_t n = 0; n < q.size() / Q; ++n) {
    const std::size_t b = n / H / L, h = n % H;
    const std::int64_t t = position(plan, b, n / H % L);
    for (std::size_t j = 0; j < std::min(M, visible(plan, b, n / H % L)); ++j) {
      IntervalSum sum;
      const std::size_t key = ((b * M + j) * K + h * K / H) * Q;
      for (std::size_t c = 0; c < Q; ++c) sum.add(q.number(n * Q + c), k.number(key + c));
      y.set(n * M + j, stage == Stage::raw
                           ? sum.value(m.by)
                           : score(m, composite(p.name), sum, h, static_cast<std::int64_t>(j), t,
                                   m.way.rounds("qk")));
    }
  }
  if (stage == Stage::finished) may_be_stored(y, m.by);
  return y;
}

IntervalTensor Replay::softmax(const Making& m) {
  const Place& p = m.at;
  const PassPlan& plan = pass(p.pass);
  const CompositeKind kind = composite(p.name).kind;
  const bool exponentials = kind == CompositeKind::exponential;
  // The denominator's operand has the scores' shape.
  const IntervalTensor& s = operand(operand_of(p, 0));
  const std::size_t L = at(s.shape[1]), H = at(s.shape[2]), M = at(s.shape[3]);
  IntervalTensor y(exponentials ? s.shape : Shape{s.shape[0], s.shape[1], s.shape[2]});
  const IntervalTensor* const top = exponentials ? &operand(operand_of(p, 1)) : nullptr;
  const Operations by(m.by);
  for (std::size_t n = 0; n < s.size() / std::max<std::size_t>(M, 1); ++n) {
    const std::size_t seen = std::min(M, visible(plan, n / H / L, n / H % L));
    const std::size_t row = n * M;
    if (kind == CompositeKind::maximum) {
      const auto most = [&](const std::vector<double>& of) {
        return *std::max_element(of.begin() + static_cast<std::ptrdiff_t>(row),
                                 of.begin() + static_cast<std::ptrdiff_t>(row + seen));
      };
      y.set(n, Number{most(s.center), most(s.radius), most(s.likely)});
    } else if (exponentials) {
      for (std::size_t j = 0; j < seen; ++j)
        y.set(row + j, exponential_forms(config_.softmax, s.number(row + j), top->number(n), by,
                                         Operations::of_values(m.by), m.way.rounds("difference"),
                                         m.by.values));
    } else {
      IntervalSum sum;
      for (std::size_t j = 0; j < seen; ++j) sum.add(s.number(row + j), {1.0, 0.0, 0.0});
      y.set(n, sum.value(m.by));
    }
  }
  may_be_stored(y, m.by);
  return y;
}

std::optional<IntervalTensor> Replay::expected_probs(const std::string& pass_name,
                                                     std::int64_t layer) {
  const Place p{pass_name, layer, mean_};
  const IntervalTensor& e = operand(operand_of(p, 0));
  const IntervalTensor& Z = operand(operand_of(p, 1));
  const DeclaredArithmetic d = arithmetic({pass_name, layer, "probs"});
  const Operations by(d);
  const std::size_t M = at(e.shape[3]);
  IntervalTensor y(e.shape);
  for (std::size_t i = 0; i < y.size(); ++i)
    if (e.center[i] != 0 || e.radius[i] != 0) y.set(i, by.over(e.number(i), Z.number(i / M)));
  may_be_stored(y, d);
  return y;
}

Replay::Making Replay::with_parts_of_keys(const Making& making) const {
  Making m = making;
  const Place mean{m.at.pass, m.at.layer, mean_};
  const Place exp = operand_of(mean, 0), score = operand_of(exp, 0);
  int chips = 1;
  for (const Place& of_keys : {operand_of(score, 1), operand_of(mean, 2), score, exp})
    if (const auto axes = axes_that_cut(of_keys, "M")) chips = std::max(chips, torus_->size(*axes));
  if (chips > 1 && narrow_storage(m.by.values) && m.by.wire_roundings == 0) {
    m.by.wire = m.by.values;
    m.by.wire_roundings = chips;
  }
  return m;
}

IntervalTensor Replay::mean(const Making& making, Stage stage) {
  const Making m = with_parts_of_keys(making);
  const Place& p = m.at;
  const Place exp = operand_of(p, 0);
  // Uses the operands that the dump has: quotients (probs) if it lacks exp; queries and keys if it
  // has none of exp, score and probs.
  const bool raw = stage == Stage::raw;
  const auto quotients = !raw && !is_given(exp)
                             ? dump_.find(fmt::format("{}.layer{}.probs", p.pass, p.layer))
                             : dump_.end();
  const bool of_quotients = quotients != dump_.end();
  if (!raw && !of_quotients && !is_given(exp) && !is_given(operand_of(exp, 0))) return attend(m);
  const IntervalTensor& e = of_quotients ? quotients->second : operand(exp);
  const IntervalTensor* const Z = of_quotients || raw ? nullptr : &operand(operand_of(p, 1));
  const IntervalTensor v = read(operand_of(p, 2));
  const PassPlan& plan = pass(p.pass);
  const std::size_t L = at(e.shape[1]), H = at(e.shape[2]), M = at(e.shape[3]);
  const std::size_t K = at(v.shape[2]), Q = at(v.shape[3]);
  const Operations by(m.by);
  IntervalTensor y(Shape{e.shape[0], e.shape[1], e.shape[2], v.shape[3]});
  const auto averaged = [&](std::size_t n, std::size_t c, const auto& weight_of) {
    const std::size_t b = n / H / L, h = n % H;
    IntervalSum sum;
    for (std::size_t j = 0; j < std::min(M, visible(plan, b, n / H % L)); ++j)
      sum.add(weight_of(n * M + j), v.number(((b * M + j) * K + h * K / H) * Q + c));
    return sum.value(m.by);
  };
  for (std::size_t n = 0; n < y.size() / Q; ++n)
    for (std::size_t c = 0; c < Q; ++c) {
      if (Z == nullptr) {
        y.set(n * Q + c, averaged(n, c, [&](std::size_t i) { return e.number(i); }));
        continue;
      }
      Number a = averaged(n, c, [&](std::size_t i) {
        return rounded_if(e.number(i), m.way.rounds("exp"), m.by.values);
      });
      a = by.over(as_value(a, m.by), Z->number(n));
      if (const Rounds probs = m.way.rounds("probs"); probs != Rounds::none) {
        const Number other = averaged(n, c, [&](std::size_t i) {
          return stored(by.over(e.number(i), Z->number(n)), m.by.values);
        });
        a = probs == Rounds::each ? other : hull(a, other);
      }
      y.set(n * Q + c, a);
    }
  return y;
}

}  // namespace shardproof::bounds
