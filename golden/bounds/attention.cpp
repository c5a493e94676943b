#include "golden/bounds/attention.h"

#include <algorithm>
#include <cmath>

#include "golden/bounds/functions.h"
#include "golden/bounds/running.h"

namespace shardproof::bounds {
namespace {

using scalar::Value;

std::size_t at(std::int64_t i) { return static_cast<std::size_t>(i); }
double wide(float v) { return static_cast<double>(v); }
Interval exactly(double v) { return {v, v}; }

/// One query's head: of q [BLHQ], the caches [BMKQ] and pos [BL].
struct Head {
  std::size_t b, token, h, kv, visible;
};

class Attention {
 public:
  explicit Attention(const std::vector<const Value*>& args)
      : args_(args),
        L_(at(args[0]->shape[1])),
        H_(at(args[0]->shape[2])),
        Q_(at(args[0]->shape[3])),
        M_(at(args[1]->shape[1])),
        K_(at(args[1]->shape[2])) {}

  std::size_t heads() const { return args_[0]->whole().size() / Q_; }
  std::size_t channels() const { return Q_; }
  std::size_t slots() const { return M_; }

  Head head(std::size_t n) const {
    Head of{n / H_ / L_, n / H_, n % H_, n % H_ / (H_ / K_), 0};
    const std::int64_t position = args_[3]->ints[of.token];
    of.visible = std::min(M_, at(std::max<std::int64_t>(position + 1, 0)));
    return of;
  }
  /// Where the cached head of the key at a position is.
  std::size_t cached(const Head& head, std::size_t position) const {
    return ((head.b * M_ + position) * K_ + head.kv) * Q_;
  }

  Interval score(std::size_t n, const Head& head, std::size_t position) const {
    const float* const q = args_[0]->whole().data() + n * Q_;
    const float* const k = args_[1]->whole().data() + cached(head, position);
    const Interval sum =
        values(chain(
                   Q_, [&](std::size_t c) { return q[c]; }, [&](std::size_t c) { return k[c]; }),
               Format::f32);
    // What follows is f64, every operation monotone: ends go to ends.
    const double scale = 1 / std::sqrt(static_cast<double>(Q_));
    const auto end = [&](double s) {
      const double scaled = s * scale;
      if (args_.size() < 5) return scaled;
      const double back = static_cast<double>(position) - wide_position(head);
      return scaled + wide(args_[4]->whole()[head.h]) * back;
    };
    return {end(sum.low), end(sum.high)};
  }

 private:
  double wide_position(const Head& head) const {
    return static_cast<double>(args_[3]->ints[head.token]);
  }

  const std::vector<const Value*>& args_;
  std::size_t L_, H_, Q_, M_, K_;
};

}  // namespace

Bounds bounds_of_attention(std::size_t result, const std::vector<const Value*>& args,
                           const std::vector<const Value*>& results) {
  const Attention attention(args);
  const Arithmetic f64;
  const std::size_t M = attention.slots(), Q = attention.channels();
  Bounds bounds;
  bounds.kind = result == 1 ? Kind::one_value : result == 2 ? Kind::formula : Kind::running;
  std::vector<Interval>& to = bounds.parts.emplace_back();
  const auto of = [&](std::size_t which, std::size_t i) { return results[which]->whole()[i]; };
  for (std::size_t n = 0; n < attention.heads(); ++n) {
    const Head head = attention.head(n);
    const auto e = [&](std::size_t m) { return of(2, n * M + m); };
    switch (result) {
      case 0:  // score
        for (std::size_t m = 0; m < M; ++m)
          to.push_back(m < head.visible ? attention.score(n, head, m) : exactly(0));
        break;
      case 1: {  // max
        double top = head.visible > 0 ? wide(of(0, n * M)) : 0.0;
        for (std::size_t m = 1; m < head.visible; ++m) top = std::max(top, wide(of(0, n * M + m)));
        to.push_back(exactly(top));
        break;
      }
      case 2:  // exp
        for (std::size_t m = 0; m < M; ++m) {
          if (m >= head.visible) {
            to.push_back(exactly(0));
            continue;
          }
          const Evaluated v = exp_of(wide(of(0, n * M + m) - of(1, n)), f64);
          to.push_back(around(v.center, v.radius));
        }
        break;
      case 3:  // denom
        to.push_back(chain(head.visible, e, [](std::size_t) { return 1.0F; }));
        break;
      default:  // attn
        for (std::size_t c = 0; c < Q; ++c) {
          const Interval sum = values(
              chain(head.visible, e,
                    [&](std::size_t m) { return args[2]->whole()[attention.cached(head, m) + c]; }),
              Format::f32);
          const double Z = wide(of(3, n));
          to.push_back({sum.low / Z, sum.high / Z});
        }
    }
  }
  return bounds;
}

}  // namespace shardproof::bounds
