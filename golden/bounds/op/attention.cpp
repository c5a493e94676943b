#include "golden/bounds/op/attention.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <span>

#include "golden/bounds/number/detail/running.h"
#include "golden/bounds/number/functions.h"
#include "weights/base/detail/index.h"
#include "weights/model/softmax.h"

namespace shardproof::bounds {
namespace {

using scalar::Value;

Interval exactly(double v) { return {v, v}; }

/// One head of one query. Shapes: q [BLHQ], caches [BMKQ], caches of the prefixes [NTKQ], pos [BL].
struct Head {
  std::size_t b, token, h, kv, visible;
};

class Attention {
 public:
  Attention(const std::vector<const Value*>& args, const std::vector<PassRows>& rows,
            Softmax softmax)
      : q_(*args[0]),
        own_{args[1], args[2]},
        softmax_(softmax),
        L_(at(args[0]->shape[1])),
        H_(at(args[0]->shape[2])),
        Q_(at(args[0]->shape[3])),
        own_slots_(at(args[1]->shape[1])),
        K_(at(args[1]->shape[2])) {
    std::size_t next = 3;
    if (args.size() > 5) {  // attend has at most 5
      prefix_ = {args[3], args[4]};
      T_ = at(args[3]->shape[1]);
      next = 5;
    }
    pos_ = args[next];
    if (args.size() > next + 1) slopes_ = args[next + 1];
    for (const PassRows& group : rows) ends_.insert(ends_.end(), at(group.rows), group.end());
  }

  std::size_t heads() const { return q_.whole().size() / Q_; }
  std::size_t channels() const { return Q_; }
  /// Slots of the prefix plus the row's own.
  std::size_t slots() const { return T_ + own_slots_; }

  Head head(std::size_t n) const {
    Head of{n / H_ / L_, n / H_, n % H_, n % H_ / (H_ / K_), 0};
    const std::int64_t position = pos_->ints[of.token];
    // Padding of a row sees only the row's own tokens.
    const std::int64_t end = ends_.empty() ? position + 1 : std::min(position + 1, ends_.at(of.b));
    of.visible = std::min(slots(), at(std::max<std::int64_t>(end, 0)));
    return of;
  }
  enum Cache { of_keys, of_values };
  /// Returns the channels of a cached head at a position.
  const float* cached(Cache which, const Head& head, std::size_t position) const {
    const auto channels = [&](const Value& cache, std::size_t row, std::size_t slot) {
      return cache.whole().data() + ((row * at(cache.shape[1]) + slot) * K_ + head.kv) * Q_;
    };
    if (position >= T_) return channels(*own_[which], head.b, position - T_);
    // B rows share N prefixes.
    const std::size_t row = head.b * at(prefix_[which]->shape[0]) / at(own_[which]->shape[0]);
    return channels(*prefix_[which], row, position);
  }

  Interval score(std::size_t n, const Head& head, std::size_t position) const {
    const float* const q = q_.whole().data() + n * Q_;
    const float* const k = cached(of_keys, head, position);
    const Interval sum =
        values(chain(
                   Q_, [&](std::size_t c) { return q[c]; }, [&](std::size_t c) { return k[c]; }),
               NumberFormat::f32);
    // The rest is f64 and monotone, so the ends of the interval map to ends.
    const double scale = scale_of_scores(softmax_, static_cast<double>(Q_));
    const auto end = [&](double s) {
      const double scaled = s * scale;
      if (slopes_ == nullptr) return scaled;
      const double back = static_cast<double>(position) - wide_position(head);
      return scaled + wide(slopes_->whole()[head.h]) * back;
    };
    return {end(sum.low), end(sum.high)};
  }

 private:
  double wide_position(const Head& head) const {
    return static_cast<double>(pos_->ints[head.token]);
  }

  const Value& q_;
  std::array<const Value*, 2> own_, prefix_ = {};  // keys and values
  const Value* pos_ = nullptr;
  const Value* slopes_ = nullptr;
  Softmax softmax_;
  std::size_t L_, H_, Q_, own_slots_, K_;
  std::size_t T_ = 0;               // length of a prefix
  std::vector<std::int64_t> ends_;  // end of each row's tokens
};

}  // namespace

Bounds bounds_of_attention(std::size_t result, const std::vector<const Value*>& args,
                           const std::vector<const Value*>& results,
                           const std::vector<PassRows>& rows, Softmax softmax, Threads& threads) {
  const Attention attention(args, rows, softmax);
  const Arithmetic f64;
  const std::size_t M = attention.slots(), Q = attention.channels();
  Bounds bounds;
  bounds.kind = result == 1 ? Kind::one_value : result == 2 ? Kind::formula : Kind::running;
  const std::size_t of_head = result == 0 || result == 2 ? M : result == 4 ? Q : 1;
  std::vector<Interval>& all = bounds.parts.emplace_back(attention.heads() * of_head);
  const auto of = [&](std::size_t which, std::size_t i) { return results[which]->whole()[i]; };
  constexpr std::size_t kHeads = 64;  // per thread and step
  const std::size_t heads = attention.heads();
  const auto look_at = [&](std::size_t n) {
    const Head head = attention.head(n);
    const auto e = [&](std::size_t m) { return of(2, n * M + m); };
    const std::span<Interval> to = std::span(all).subspan(n * of_head, of_head);
    switch (result) {
      case 0:  // score
        for (std::size_t m = 0; m < M; ++m)
          to[m] = m < head.visible ? attention.score(n, head, m) : exactly(0);
        break;
      case 1: {  // max
        double top = head.visible > 0 ? wide(of(0, n * M)) : 0.0;
        for (std::size_t m = 1; m < head.visible; ++m) top = std::max(top, wide(of(0, n * M + m)));
        to[0] = exactly(top);
        break;
      }
      case 2:  // exp
        for (std::size_t m = 0; m < M; ++m) {
          if (m >= head.visible) {
            to[m] = exactly(0);
            continue;
          }
          const FunctionValue v = exponential(softmax, wide(of(0, n * M + m) - of(1, n)), f64);
          to[m] = around(v.center, v.radius);
        }
        break;
      case 3:  // denom
        to[0] = chain(head.visible, e, [](std::size_t) { return 1.0F; });
        break;
      default:  // attn
        for (std::size_t c = 0; c < Q; ++c) {
          const Interval sum =
              values(chain(head.visible, e,
                           [&](std::size_t m) {
                             return attention.cached(Attention::of_values, head, m)[c];
                           }),
                     NumberFormat::f32);
          const double Z = wide(of(3, n));
          to[c] = {sum.low / Z, sum.high / Z};
        }
    }
  };
  // With fewer heads the calling thread is done before the others have woken.
  (heads < 2 * kHeads ? calling_thread() : threads)
      .for_each(static_cast<std::int64_t>((heads + kHeads - 1) / kHeads), [&](std::int64_t part) {
        const std::size_t from = at(part) * kHeads;
        for (std::size_t n = from; n < std::min(from + kHeads, heads); ++n) look_at(n);
      });
  return bounds;
}

}  // namespace shardproof::bounds
