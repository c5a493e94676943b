// Rows that go on from shared prefixes: whose prefix a row read, and where its own positions begin.
#include <functional>

#include "tests/golden/diagnosis/planted.h"

namespace shardproof::diagnosis {
namespace {

constexpr std::int64_t kP = 3, kN = 4, kB = 24, kH = 24, kK = 2, kQ = 4;

class PrefixesExplained : public testing::Test {
 protected:
  using Mapping = std::function<std::int64_t(std::int64_t row)>;

  /// The first channel of a row's cached head at a position, of the prefix that the mapping says.
  static const double* head(const Planted::Value& prefix, const Planted::Value& own,
                            const Mapping& of_row, std::int64_t b, std::int64_t position,
                            std::int64_t kv) {
    const Planted::Value& from = position < kP ? prefix : own;
    const std::int64_t row = position < kP ? of_row(b) : b;
    const std::int64_t slot = position < kP ? position : position - kP;
    return from.data.data() + ((row * from.shape[1] + slot) * kK + kv) * kQ;
  }

  /// Scores of the prefill's one chunk, and means of its values, by plain loops.
  Planted::Value scores(const Mapping& of_row) const {
    const Planted::Value &q = p.value(kAt + "q_rot"), &own = p.value(kAt + "k_cache"),
                         &prefix = p.value("prefix.c0.layer1.k_cache");
    Planted::Value s(p.value(kAt + "score").shape);
    each_seen([&](std::int64_t b, std::int64_t n, std::int64_t m, std::int64_t kv) {
      const double* const key = head(prefix, own, of_row, b, m, kv);
      double sum = 0.0;
      for (std::int64_t c = 0; c < kQ; ++c) sum += q.data[at(n * kQ + c)] * key[c];
      s.data[at(n * (kP + 3) + m)] = sum / 2.0;
    });
    return s;
  }
  Planted::Value means(const Mapping& of_row) const {
    const Planted::Value &e = p.value(kAt + "exp"), &Z = p.value(kAt + "denom"),
                         &own = p.value(kAt + "v_cache"),
                         &prefix = p.value("prefix.c0.layer1.v_cache");
    Planted::Value a(p.value(kAt + "attn").shape);
    each_seen([&](std::int64_t b, std::int64_t n, std::int64_t m, std::int64_t kv) {
      const double* const value = head(prefix, own, of_row, b, m, kv);
      for (std::int64_t c = 0; c < kQ; ++c)
        a.data[at(n * kQ + c)] += e.data[at(n * (kP + 3) + m)] * value[c] / Z.data[at(n)];
    });
    return a;
  }
  /// Calls see(row, query's head among all, key, kv head).
  template <class See>
  void each_seen(See&& see) const {
    for (std::int64_t n = 0; n < kB * 3 * kH; ++n)
      for (std::int64_t m = 0; m <= kP + n / kH % 3; ++m) see(n / kH / 3, n, m, n % kH * kK / kH);
  }

  Planted p{
      "model=palm-tiny,layers=2,E=48,F=96,H=24,K=2,Q=4,V=48 batch=24 prompt=6 chunk=3 gen=3 "
      "seed=9 prefix=3:4"};
};

TEST_F(PrefixesExplained, WhatIsRightIsNoFault) {
  for (const auto& [id, value] : std::map<std::string, Planted::Value>(p.dump))
    if (id.starts_with(kAt) || id.starts_with("prefix.c0.layer1.") ||
        id.starts_with("decode.2.layer0."))
      expect_right(p.ask(id, value), id);
  const Mapping right = [](std::int64_t b) { return b * kN / kB; };
  expect_right(p.ask(kAt + "score", scores(right)));
  expect_right(p.ask(kAt + "attn", means(right)));
}

TEST_F(PrefixesExplained, RowsThatReadOthers) {
  const std::vector<std::pair<std::string, Mapping>> wrong{
      {"all rows read prefix 0", [](std::int64_t) { return 0; }},
      {"row b reads prefix b mod N", [](std::int64_t b) { return b % kN; }},
      {"of 12 rows on a chip, row b of the chip reads prefix ⌊b·N/B⌋",
       [](std::int64_t b) { return b % 12 * kN / kB; }},
      {"of 12 rows on a chip, row b of the chip reads prefix ⌊b·N/12⌋",
       [](std::int64_t b) { return b % 12 * kN / 12; }}};
  for (const auto& [detail, of_row] : wrong) {
    expect_first(p.ask(kAt + "score", scores(of_row)),
                 "another layer's or pass's value: " + detail);
    expect_first(p.ask(kAt + "attn", means(of_row)), "another layer's or pass's value: " + detail);
  }
}

TEST_F(PrefixesExplained, OwnPositionsThatBeginAtZero) {
  ASSERT_EQ(p.config().rope, Rope::half);
  expect_first(p.ask("decode.2.layer1.k_rot", p.turned("decode.2.layer1.k", 6 + 1 - kP)),
               "position off: positions are counted from the end of the prefix on");
}

TEST_F(PrefixesExplained, SlotsAreThoseBehindThePrefix) {
  const std::string id = "decode.1.layer1.k_cache";
  Planted::Value zero = p.value(id);
  ASSERT_EQ(zero.shape, (Shape{kB, 4, kK, kQ}));
  for (std::int64_t i = 0; i < kK * kQ; ++i) zero.data[at((5 * 4 + 1) * kK * kQ + i)] = 0;
  expect_first(p.ask(id, zero), "stale slot: slot 1 of row 5 holds zeros");
  // The new token's slot, as it was before the rotation.
  Planted::Value plain = p.value(id);
  const Planted::Value& k = p.value("decode.1.layer1.k");
  for (std::int64_t b = 0; b < kB; ++b)
    std::copy_n(k.data.begin() + b * kK * kQ, kK * kQ, plain.data.begin() + (b * 4 + 3) * kK * kQ);
  expect_first(p.ask(id, plain), "position off: slot 3 of row 0 holds what is not rotated");
}

}  // namespace
}  // namespace shardproof::diagnosis
