// Attention over a prefix's cache and each row's own is attention over the two put together, bit
// for bit, wherever prefixes and rows lie.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <bit>
#include <memory>
#include <random>
#include <tuple>
#include <vector>

#include "engine/ops/local_ops.h"
#include "tests/engine/random_layout.h"
#include "tests/engine/run_program.h"
#include "tests/engine/written_values.h"

namespace shardproof {
namespace {

/// Draws of a mesh, of where everything lies on it, and of operands.
template <class T>
struct Drawn {
  Torus torus = draw_torus();
  Layout query, own, prefixes, positions, heads;
  std::int64_t B = 0, L = draw_int(1, 2), H = 0, Q = draw_int(1, 3);
  std::int64_t K = 0, M = draw_int(1, 3), N = 0, P = draw_int(0, 3);
  IntTensor pos;
  RowTokens rows;
  T q, k, v, pk, pv, slopes;
  bool padded = draw_int(0, 1) == 0, with_slopes = draw_int(0, 1) == 0;

  /// `number()` is the next of the operands' elements.
  template <class Number>
  explicit Drawn(Number&& number) {
    const std::vector<Axes> bins = draw_bins(4);
    const auto [b, l, h] = std::tuple{bins[1], bins[2], bins[3]};
    const Axes n = leading(b), kv = leading(h);
    query = Layout({{'B', b}, {'L', l}, {'H', h}, {'Q', {}}}, {});
    own = Layout({{'B', b}, {'M', {}}, {'K', kv}, {'Q', {}}}, {});
    prefixes = Layout({{'N', n}, {'T', {}}, {'K', kv}, {'Q', {}}}, {});
    positions = Layout({{'B', b}, {'L', l}}, {});
    heads = Layout({{'H', h}}, {});
    B = torus.size(b) * draw_int(1, 3);
    L *= torus.size(l);
    const std::int64_t each = draw_int(1, 2);  // kv heads of a block
    K = torus.size(kv) * each;
    H = torus.size(h) * each * draw_int(1, 2);
    N = torus.size(n) * draw_int(1, static_cast<int>(B / torus.size(n)));
    RC_CLASSIFY(torus.size(n) > 1, "prefixes lie with their rows");
    RC_CLASSIFY(torus.size(n) == 1 && torus.size(b) > 1, "prefixes on every chip, rows not");
    RC_CLASSIFY(torus.size(n) > 1 && !(n == b), "rows cut more often than prefixes");
    RC_CLASSIFY(B % N != 0, "prefixes of unequally many rows");
    RC_CLASSIFY(N == B, "a prefix for each row");
    RC_CLASSIFY(P == 0, "empty prefixes");
    const auto made = [&](const Shape& shape) {
      T t(shape);
      for (auto& element : t.data) element = number();
      return t;
    };
    q = made({B, L, H, Q});
    k = made({B, M, K, Q});
    v = made({B, M, K, Q});
    pk = made({N, P, K, Q});
    pv = made({N, P, K, Q});
    slopes = made({H});
    pos = IntTensor({B, L});
    for (std::int64_t r = 0; r < B; ++r) {  // each row stands where it will
      const std::int64_t start =
          draw_int(std::max(1, static_cast<int>(P)), static_cast<int>(P + M));
      for (std::int64_t i = 0; i < L; ++i)
        pos.data[static_cast<std::size_t>(r * L + i)] = static_cast<std::int32_t>(start + i);
      rows.tokens.push_back(draw_int(0, static_cast<int>(L)));
      rows.ends.push_back(start + rows.tokens.back());
    }
  }

  static Axes leading(const Axes& axes) {
    Axes some;
    for (int i = draw_int(0, axes.size()), at = 0; at < i; ++at)
      some = some.with(*(axes.begin() + at));
    return some;
  }

  /// Both caches as one [B, P + M, K, Q], if row r goes on from prefix of(r).
  template <class Of>
  T joined(const T& shared_part, const T& own_part, Of&& of) const {
    T all({B, P + M, K, Q});
    const std::int64_t slot = K * Q;
    auto to = all.data.begin();
    for (std::int64_t r = 0; r < B; ++r) {
      to = std::copy_n(shared_part.data.begin() + of(r) * P * slot, P * slot, to);
      to = std::copy_n(own_part.data.begin() + r * M * slot, M * slot, to);
    }
    return all;
  }
};

/// Every result, as one list of numbers a chip.
template <class Numbers>
auto all_of(const Attention& a, Numbers&& numbers) {
  std::vector<std::decay_t<decltype(numbers(a.score))>> all;
  for (const Sharded* made : {&a.score, &a.max, &a.exp, &a.denom, &a.attn}) {
    RC_ASSERT(made->torus().chips() == std::ssize(numbers(*made)));
    all.push_back(numbers(*made));
  }
  return all;
}

/// The law; `on` lays a tensor on the torus, `numbers` are its elements, chip by chip.
template <class T, class On, class Numbers>
void expect_as_joined(const Drawn<T>& d, const On& on, const Numbers& numbers, Regime regime,
                      Softmax softmax) {
  const Sharded q = on(d.q, d.query), k = on(d.k, d.own), v = on(d.v, d.own);
  const Sharded pk = on(d.pk, d.prefixes), pv = on(d.pv, d.prefixes);
  const Sharded slopes = on(d.slopes, d.heads), pos = shard(d.pos, d.positions, d.torus);
  const Sharded* const of_heads = d.with_slopes ? &slopes : nullptr;
  const RowTokens* const rows = d.padded ? &d.rows : nullptr;
  const Attention a = attend_prefix(q, k, v, {pk, pv}, pos, one(), regime, of_heads, rows, softmax);
  const auto joined = [&](auto&& of) {
    return attend(q, on(d.joined(d.pk, d.k, of), d.own), on(d.joined(d.pv, d.v, of), d.own), pos,
                  one(), regime, of_heads, rows, softmax);
  };
  const Attention whole = joined([&](std::int64_t r) { return r * d.N / d.B; });
  RC_ASSERT(a.score.shape() == whole.score.shape());
  RC_ASSERT(a.score.layout() == whole.score.layout());
  RC_ASSERT(a.attn.layout() == whole.attn.layout());
  RC_ASSERT(all_of(a, numbers) == all_of(whole, numbers));

  // Of rows that took prefixes in turn, 0 1 2 0 1 2, it would be something else.
  bool differs = false;
  for (std::int64_t r = 0; r < d.B; ++r) differs = differs || r * d.N / d.B != r % d.N;
  RC_CLASSIFY(differs && d.P > 0, "a wrong prefix would show");
  if (differs && d.P > 0)
    RC_ASSERT(all_of(a, numbers) !=
              all_of(joined([&](std::int64_t r) { return r % d.N; }), numbers));
}

/// Numbers of which hardly a sum is exact.
auto floats() {
  return [words = std::mt19937(static_cast<std::uint32_t>(draw_int(0, 1 << 30)))]() mutable {
    return static_cast<float>(words()) * 0x1p-31F - 1.0F;
  };
}

/// To compare bits: chips as words.
std::vector<std::vector<std::uint32_t>> bits_of(const Sharded& value) {
  std::vector<std::vector<std::uint32_t>> chips;
  for (const auto& chip : value.f32()) {
    chips.emplace_back();
    for (const float number : chip) chips.back().push_back(std::bit_cast<std::uint32_t>(number));
  }
  return chips;
}

RC_GTEST_PROP(AttendPrefixLaw, IsAttentionOverBothCachesPutTogether, ()) {
  const Drawn<Tensor> d(floats());
  const auto on = [&](const Tensor& t, const Layout& layout) { return shard(t, layout, d.torus); };
  const auto regime = *rc::gen::element(Regime::exact, Regime::f32);
  const auto softmax = *rc::gen::element(Softmax::base_e, Softmax::base2);
  expect_as_joined(d, on, bits_of, regime, softmax);
}

RC_GTEST_PROP(AttendPrefixLaw, OfFieldElementsToo, ()) {
  FieldSetting setting;
  setting.seed = static_cast<std::uint64_t>(draw_int(0, 1 << 30));
  const auto field = std::make_shared<const Field>(setting);
  const FieldFunction stream("operands");
  std::uint64_t next = 0;
  const Drawn<Array<FieldElement>> d([&] { return field->input(stream, next++); });
  const auto on = [&](const Array<FieldElement>& t, const Layout& layout) {
    return shard(t, layout, d.torus, field);
  };
  expect_as_joined(
      d, on, [](const Sharded& value) { return value.field().values; }, Regime::exact,
      Softmax::base_e);
}

}  // namespace
}  // namespace shardproof
