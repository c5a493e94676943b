#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>

#include "engine/collectives/chip_groups.h"
#include "engine/ops/detail/formulas.h"
#include "engine/ops/local_ops.h"
#include "weights/model/prefix.h"

namespace shardproof {
namespace {

/// A chip's keys and values with `slots` slots, [rows, slots, K, Q].
template <class Number>
struct LocalCache {
  const Number* k = nullptr;
  const Number* v = nullptr;
  std::int64_t slots = 0;
};

/// Maps a chip's rows to the prefixes that they continue.
struct LocalPrefixes {
  SharedPrefix of_batch;
  std::int64_t batch = 0, first_row = 0;
  std::int64_t first = 0, count = 0;  ///< the prefixes resident on the chip

  /// The chip-local index of the prefix of its row b.
  std::int64_t of_row(std::int64_t b) const {
    const std::int64_t at = (first_row + b) * of_batch.rows / batch - first;
    if (at < 0 || at >= count)
      throw std::logic_error(
          fmt::format("attend_prefix: row {} needs a prefix that its chip lacks", first_row + b));
    return at;
  }
};

/// One chip's operands and results of attention, with local extents. Position t of a row is in its
/// prefix's cache if t is below that cache's slots, otherwise in the row's own cache, after it.
template <class Number>
struct LocalAttention {
  std::int64_t B, L, H, Q, K;
  const Number* q;
  LocalCache<Number> prefix, own;  // prefix has no slots where rows have no prefixes
  LocalPrefixes prefixes;
  const std::int32_t* pos;
  const std::int64_t* ends;  // ends of the rows' tokens; null without padding
  const Number* slopes;      // ALiBi slopes, one per head; null without ALiBi
  Number *score, *max, *exp, *denom, *attn;

  std::int64_t positions() const { return prefix.slots + own.slots; }

  /// A query's view of one cache: the kv head's first key and value; slots are K·Q apart.
  struct Read {
    const Number *k, *v;
    std::int64_t visible, apart;

    KeysOrValues<Number> keys() const { return {k, apart, visible}; }
    KeysOrValues<Number> values() const { return {v, apart, visible}; }
  };
  Read read(const LocalCache<Number>& cache, std::int64_t row, std::int64_t kv,
            std::int64_t visible) const {
    if (visible == 0) return {cache.k, cache.v, 0, K * Q};
    const std::int64_t at = (row * cache.slots * K + kv) * Q;
    return {cache.k + at, cache.v + at, visible, K * Q};
  }

  /// One query under the causal mask: its scores over the visible keys, their softmax weights, and
  /// the weighted values.
  template <class Attend>
  void query(const Attend& f, std::int64_t b, std::int64_t l, std::int64_t h,
             std::int64_t kv) const {
    const std::int64_t at = (b * L + l) * H + h;
    const std::int64_t M = positions();
    const std::int64_t causal = pos[b * L + l] + std::int64_t{1};
    const std::int64_t visible =
        std::clamp<std::int64_t>(ends == nullptr ? causal : std::min(causal, ends[b]), 0, M);
    const std::int64_t shared = std::min(visible, prefix.slots);
    const Read first = read(prefix, shared > 0 ? prefixes.of_row(b) : 0, kv, shared);
    const Read then = read(own, b, kv, visible - shared);
    Number* s = score + at * M;
    Number* e = exp + at * M;
    const Number* const slope = slopes != nullptr ? slopes + h : nullptr;
    const std::int64_t own_distance = shared - pos[b * L + l];
    f.scores(q + at * Q, first.keys(), Q, slope, -pos[b * L + l], s);
    f.scores(q + at * Q, then.keys(), Q, slope, own_distance, s + shared);
    std::fill(s + visible, s + M, Number{});
    const Number top = f.max(s, visible);
    for (std::int64_t m = 0; m < visible; ++m) e[m] = f.exp(s[m], top);
    std::fill(e + visible, e + M, Number{});
    const Number sum = f.sum(e, visible);
    max[at] = top;
    denom[at] = sum;
    f.means(e, first.values(), then.values(), f.divisor(sum), Q, attn + at * Q);
  }
};

/// The operands of attention; the last three may be null.
struct Operands {
  const Sharded &q, &k, &v, &pos;
  const PrefixCaches* prefix;
  const Sharded* slopes;
  const RowTokens* rows;
};

/// attend() for the number type of these formulas.
template <class Formulas>
Attention attended(const Formulas& f, const Operands& of, Threads& threads, Softmax softmax) {
  using Number = typename Formulas::Number;
  const Sharded& q = of.q;
  const Shape& query = q.local();
  const Shape& cache = of.k.local();
  const std::int64_t H = q.shape()[2];
  const std::int64_t K = of.k.shape()[2];
  const std::int64_t M = (of.prefix != nullptr ? of.prefix->k.shape()[1] : 0) + of.k.shape()[1];
  const auto& dims = q.layout().dims();
  const Layout blh({dims[0], dims[1], dims[2]}, Axes());
  const Layout blhm({dims[0], dims[1], dims[2], {'M', Axes()}}, Axes());
  const Shape rows{q.shape()[0], q.shape()[1], H};
  const Shape scores{q.shape()[0], q.shape()[1], H, M};
  const auto chips = static_cast<std::size_t>(q.torus().chips());
  const auto formulas = f.attend(query[3], softmax);
  const std::int64_t row_count = query[0] * query[1] * query[2];
  ChipArrays<Number> score(chips), exp(chips), max(chips), denom(chips), attn(chips);
  // The global index of the first element of a dim that is resident on a chip.
  const auto first_on = [&](const Sharded& value, char letter, std::int64_t chip) {
    const std::size_t dim = value.layout().find(letter).value();
    return q.torus().block(static_cast<int>(chip), value.layout().dims()[dim].axes) *
           value.local()[dim];
  };
  ChipGroups groups(q.torus(), threads);
  for (const Sharded* operand : {&q, &of.k, &of.v, &of.pos}) groups.split(*operand);
  if (of.slopes != nullptr) groups.split(*of.slopes);
  if (of.prefix != nullptr) {
    groups.split(of.prefix->k);
    groups.split(of.prefix->v);
    groups.split([&](int chip) { return first_on(of.prefix->k, 'N', chip); });
  }
  if (of.prefix != nullptr || of.rows != nullptr)
    groups.split([&](int chip) { return first_on(q, 'B', chip); });
  groups.split([&](int chip) { return first_on(q, 'H', chip); });
  groups.split([&](int chip) { return first_on(of.k, 'K', chip); });

  groups.for_each(threads, [&](std::int64_t chip) {
    const auto c = static_cast<std::size_t>(chip);
    const auto first = [&](const Sharded& value, char letter) {
      return first_on(value, letter, chip);
    };
    const auto fresh = [&](ChipArrays<Number>& all, std::int64_t size) {
      all[c].resize(static_cast<std::size_t>(size));
      return all[c].data();
    };
    const auto lies = [&](const Sharded& k, const Sharded& v) -> LocalCache<Number> {
      return {f.shards(k)[c].data(), f.shards(v)[c].data(), k.local()[1]};
    };
    const std::int64_t first_row = first(q, 'B');
    LocalCache<Number> prefix;
    LocalPrefixes prefixes;
    if (of.prefix != nullptr) {
      const Sharded& shared = of.prefix->k;
      prefix = lies(shared, of.prefix->v);
      prefixes = {{shared.shape()[1], shared.shape()[0]},
                  q.shape()[0],
                  first_row,
                  first(shared, 'N'),
                  shared.local()[0]};
    }
    const LocalAttention<Number> local{
        query[0],
        query[1],
        query[2],
        query[3],
        cache[2],
        f.shards(q)[c].data(),
        prefix,
        lies(of.k, of.v),
        prefixes,
        of.pos.i32()[c].data(),
        of.rows != nullptr ? &of.rows->ends.at(static_cast<std::size_t>(first_row)) : nullptr,
        of.slopes != nullptr ? f.shards(*of.slopes)[c].data() : nullptr,
        fresh(score, row_count * M),
        fresh(max, row_count),
        fresh(exp, row_count * M),
        fresh(denom, row_count),
        fresh(attn, row_count * query[3])};
    const std::int64_t first_head = first(q, 'H');
    const std::int64_t first_kv = first(of.k, 'K');
    for (std::int64_t h = 0; h < local.H; ++h) {
      const std::int64_t kv = (first_head + h) * K / H - first_kv;
      if (kv < 0 || kv >= local.K)
        throw std::logic_error(fmt::format("attend: head {} needs a kv head that chip {} lacks",
                                           first_head + h, q.torus().name(static_cast<int>(chip))));
      for (std::int64_t b = 0; b < local.B; ++b)
        for (std::int64_t l = 0; l < local.L; ++l) local.query(formulas, b, l, h, kv);
    }
  });
  const auto made = [&](const Layout& layout, const Shape& shape, ChipArrays<Number>& values,
                        FieldSort sort) -> Sharded {
    groups.share(values);
    return {q.torus(), layout, shape, f.data(std::move(values), sort)};
  };
  return {made(blhm, scores, score, FieldSort::number), made(blh, rows, max, FieldSort::max),
          made(blhm, scores, exp, FieldSort::number), made(blh, rows, denom, FieldSort::number),
          made(q.layout(), q.shape(), attn, FieldSort::number)};
}

Attention attended(const Operands& of, Threads& threads, Regime regime, Softmax softmax) {
  return with_formulas(
      of.q, [&](const auto& f) { return attended(f, of, threads, softmax); }, regime);
}

}  // namespace

Attention attend(const Sharded& q, const Sharded& k, const Sharded& v, const Sharded& pos,
                 Threads& threads, Regime regime, const Sharded* slopes, const RowTokens* rows,
                 Softmax softmax) {
  return attended({q, k, v, pos, nullptr, slopes, rows}, threads, regime, softmax);
}

Attention attend_prefix(const Sharded& q, const Sharded& k, const Sharded& v,
                        const PrefixCaches& prefix, const Sharded& pos, Threads& threads,
                        Regime regime, const Sharded* slopes, const RowTokens* rows,
                        Softmax softmax) {
  return attended({q, k, v, pos, &prefix, slopes, rows}, threads, regime, softmax);
}

}  // namespace shardproof
