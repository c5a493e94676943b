// Replay: rotation, caches and attention.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "golden/bounds/replay.h"
#include "weights/registry.h"
#include "weights/softmax.h"

namespace shardproof::bounds {
namespace {

std::size_t at(std::int64_t i) { return static_cast<std::size_t>(i); }

}  // namespace

Carried Replay::rotated(const Place& p, const Carried& x) {
  const Carried cosines = Carried(weights_.at("rope_cos")),
                sines = Carried(weights_.at("rope_sin"));
  const PassPlan& plan = pass(p.pass);
  const std::size_t L = at(x.shape[1]), heads = at(x.shape[2]), Q = at(x.shape[3]);
  const std::size_t pairs = at(cosines.shape[1]);
  const double unit = declared_.operations.unit + 0x1p-53;
  Carried y = x;
  for (std::size_t n = 0; n < x.size() / Q; ++n) {
    const std::size_t token = n / heads;
    const std::size_t row = at(position(plan, token / L, token % L));
    if (row >= at(cosines.shape[0]))
      throw Error("bounds_c1", fmt::format("{} has a position beyond the RoPE tables", p.pass));
    for (std::size_t j = 0; j < pairs; ++j) {
      const bool half = config_.rope == Rope::half;
      const std::size_t a = n * Q + (half ? j : 2 * j), b = n * Q + (half ? j + pairs : 2 * j + 1);
      const double c = cosines.center[row * pairs + j], s = sines.center[row * pairs + j];
      // Two products and a sum, each rounded.
      const auto turned = [&](std::size_t i, std::size_t other, double sign) {
        const double one = x.center[i] * c, two = sign * x.center[other] * s;
        y.center[i] = one + two;
        y.radius[i] = unit * (std::abs(one) + std::abs(two)) * (1 + unit) +
                      unit * std::abs(one + two) + std::abs(c) * x.radius[i] +
                      std::abs(s) * x.radius[other];
      };
      turned(a, b, -1.0);
      turned(b, a, 1.0);
    }
  }
  return y;
}

Carried Replay::appended(const Place& p) {
  const PassPlan& plan = pass(p.pass);
  const bool keys = p.name == "k_cache";
  const Carried& added = operand(p, !keys ? "v" : rotates(config_) ? "k_rot" : "k");
  const std::size_t B = at(added.shape[0]), L = at(added.shape[1]);
  const std::size_t head = at(config_.K * config_.Q);
  Carried before;
  if (!plan.previous.empty()) before = operand({plan.previous, p.layer, ""}, p.name);
  const std::size_t old = before.size() == 0 ? 0 : at(before.shape[1]);
  const std::size_t M = old + L;
  Carried y(Shape{added.shape[0], static_cast<std::int64_t>(M), config_.K, config_.Q});
  for (std::size_t b = 0; b < B; ++b) {
    const auto copy = [&](const Carried& from, std::size_t row, std::size_t slot) {
      for (std::size_t i = 0; i < head; ++i) {
        y.center[(b * M + slot) * head + i] = from.center[row * head + i];
        y.radius[(b * M + slot) * head + i] = from.radius[row * head + i];
      }
    };
    for (std::size_t m = 0; m < old; ++m) copy(before, b * old + m, m);
    const std::size_t tokens = std::min(L, at(rows_of(plan, b).tokens));
    for (std::size_t l = 0; l < tokens; ++l)  // padding is not cached
      if (const std::size_t slot = at(position(plan, b, l) - plan.prefix.length); slot < M)
        copy(added, b * L + l, slot);
  }
  return y;
}

Carried Replay::read(const Place& p, std::string_view cache) {
  const Carried& own = operand(p, cache);
  const PassPlan& plan = pass(p.pass);
  const PassPlan* const filled = prefix_of(plan);
  if (filled == nullptr) return own;
  const Carried& prefix = operand({filled->name, p.layer, ""}, cache);
  const std::int64_t B = own.shape[0], P = plan.prefix.length;
  const std::size_t head = at(own.shape[2] * own.shape[3]);
  const std::size_t of_prefix = at(P) * head, of_row = at(own.shape[1]) * head;
  Carried y(Shape{B, P + own.shape[1], own.shape[2], own.shape[3]});
  for (std::int64_t b = 0; b < B; ++b) {
    const auto copy = [&](const Carried& from, std::size_t begin, std::size_t count,
                          std::size_t to) {
      for (std::size_t i = 0; i < count; ++i) {
        y.center[to + i] = from.center[begin + i];
        y.radius[to + i] = from.radius[begin + i];
      }
    };
    const std::size_t begin = at(b) * (of_prefix + of_row);
    copy(prefix, at(plan.prefix.of_row(b, B)) * of_prefix, of_prefix, begin);
    copy(own, at(b) * of_row, of_row, begin + of_prefix);
  }
  return y;
}

Carried Replay::scores(const Place& p, Stage stage) {
  const Carried& q = operand(p, rotates(config_) ? "q_rot" : "q");
  const Carried k = read(p, "k_cache");
  const PassPlan& plan = pass(p.pass);
  const std::size_t L = at(q.shape[1]), H = at(q.shape[2]), Q = at(q.shape[3]);
  const std::size_t M = at(k.shape[1]), K = at(k.shape[2]);
  const double scale = scale_of_scores(config_.softmax, static_cast<double>(Q));
  const double unit = declared_.operations.unit + 0x1p-53;
  const bool alibi = config_.rope == Rope::alibi;
  const Carried slopes = alibi ? Carried(weights_.at("alibi_slopes")) : Carried();
  Carried y(Shape{q.shape[0], q.shape[1], q.shape[2], k.shape[1]});
  for (std::size_t n = 0; n < q.size() / Q; ++n) {
    const std::size_t b = n / H / L, h = n % H;
    const std::int64_t t = position(plan, b, n / H % L);
    for (std::size_t m = 0; m < std::min(M, visible(plan, b, n / H % L)); ++m) {
      CarriedSum sum;
      const std::size_t key = ((b * M + m) * K + h * K / H) * Q;
      for (std::size_t c = 0; c < Q; ++c)
        sum.add(q.center[n * Q + c], k.center[key + c], q.radius[n * Q + c], k.radius[key + c]);
      Evaluated s = sum.value(declared_);
      if (stage == Stage::raw) {
        y.set(n * M + m, s);
        continue;
      }
      s.center *= scale;
      // S as a value, the scale's root and reciprocal, the product.
      s.radius = s.radius * scale + (3 * unit + unit_of(declared_.sums)) * std::abs(s.center);
      if (alibi) {
        const double bias = slopes.center[h] * (static_cast<double>(m) - static_cast<double>(t));
        s.radius += unit * (std::abs(s.center) + 2 * std::abs(bias));
        s.center += bias;
        s.radius += unit * std::abs(s.center);
      }
      y.set(n * M + m, s);
    }
  }
  return y;
}

Carried Replay::softmax(const Place& p) {
  const PassPlan& plan = pass(p.pass);
  const Carried& s = operand(p, "score");
  const std::size_t L = at(s.shape[1]), H = at(s.shape[2]), M = at(s.shape[3]);
  const bool exponentials = p.name == "exp";
  Carried y(exponentials ? s.shape : Shape{s.shape[0], s.shape[1], s.shape[2]});
  const Carried* const top = exponentials ? &operand(p, "max") : nullptr;
  const Carried* const e = p.name == "denom" ? &operand(p, "exp") : nullptr;
  const double unit = declared_.operations.unit + 0x1p-53;
  for (std::size_t n = 0; n < s.size() / std::max<std::size_t>(M, 1); ++n) {
    const std::size_t seen = std::min(M, visible(plan, n / H / L, n / H % L));
    const std::size_t row = n * M;
    if (p.name == "max") {
      y.center[n] = *std::max_element(s.center.begin() + static_cast<std::ptrdiff_t>(row),
                                      s.center.begin() + static_cast<std::ptrdiff_t>(row + seen));
      y.radius[n] = *std::max_element(s.radius.begin() + static_cast<std::ptrdiff_t>(row),
                                      s.radius.begin() + static_cast<std::ptrdiff_t>(row + seen));
    } else if (exponentials) {
      for (std::size_t m = 0; m < seen; ++m) {
        const double x = s.center[row + m] - top->center[n];
        Evaluated v = exponential(config_.softmax, x, declared_.operations);
        // The difference is rounded, as a value if its operations are wider.
        const double of_x = s.radius[row + m] + top->radius[n] +
                            (unit + unit_of(declared_.unstored())) * std::abs(x);
        v.radius += v.slope * of_x * (1 + of_x);
        y.set(row + m, v);
      }
    } else {
      CarriedSum sum;
      for (std::size_t m = 0; m < seen; ++m) sum.add(e->center[row + m], 1.0, e->radius[row + m]);
      y.set(n, sum.value(declared_));
    }
  }
  return y;
}

Carried Replay::expected_probs(const std::string& pass_name, std::int64_t layer) {
  const Place p{pass_name, layer, "denom"};
  const Carried& e = operand(p, "exp");
  const Carried& Z = operand(p, "denom");
  const double unit = declared_.operations.unit + 0x1p-53;
  const std::size_t M = at(e.shape[3]);
  Carried y(e.shape);
  for (std::size_t i = 0; i < y.size(); ++i) {
    const std::size_t n = i / M;
    y.center[i] = e.center[i] / Z.center[n];
    y.radius[i] =
        e.radius[i] / Z.center[n] + (unit + Z.radius[n] / Z.center[n]) * std::abs(y.center[i]);
  }
  return y;
}

Carried Replay::mean(const Place& p, Stage stage) {
  // As others have it: of the quotients, where the dump has them and not what they are made of.
  const bool raw = stage == Stage::raw;
  const auto quotients = !raw && dump_.find(checkpoint_id(p.pass, p.layer, "exp")) == dump_.end()
                             ? dump_.find(fmt::format("{}.layer{}.probs", p.pass, p.layer))
                             : dump_.end();
  const bool of_quotients = quotients != dump_.end();
  const Carried& e = of_quotients ? quotients->second : operand(p, "exp");
  Carried ones;
  if (of_quotients || raw) {
    ones = Carried(Shape{e.shape[0], e.shape[1], e.shape[2]});
    ones.center.assign(ones.size(), 1.0);
  }
  const Carried& Z = of_quotients || raw ? ones : operand(p, "denom");
  const Carried v = read(p, "v_cache");
  const PassPlan& plan = pass(p.pass);
  const std::size_t L = at(e.shape[1]), H = at(e.shape[2]), M = at(e.shape[3]);
  const std::size_t K = at(v.shape[2]), Q = at(v.shape[3]);
  const double unit = declared_.operations.unit + 0x1p-53;
  Carried y(Shape{e.shape[0], e.shape[1], e.shape[2], v.shape[3]});
  for (std::size_t n = 0; n < y.size() / Q; ++n) {
    const std::size_t b = n / H / L, h = n % H;
    const std::size_t seen = std::min(M, visible(plan, b, n / H % L));
    for (std::size_t c = 0; c < Q; ++c) {
      CarriedSum sum;
      for (std::size_t m = 0; m < seen; ++m) {
        const std::size_t value = ((b * M + m) * K + h * K / H) * Q + c;
        sum.add(e.center[n * M + m], v.center[value], e.radius[n * M + m], v.radius[value]);
      }
      Evaluated a = sum.value(declared_);
      if (raw) {
        y.set(n * Q + c, a);
        continue;
      }
      a.center /= Z.center[n];
      // S as a value, the quotient, and the denominator's own radius.
      a.radius = a.radius / Z.center[n] +
                 (unit + unit_of(declared_.sums) + Z.radius[n] / Z.center[n]) * std::abs(a.center);
      y.set(n * Q + c, a);
    }
  }
  return y;
}

}  // namespace shardproof::bounds
