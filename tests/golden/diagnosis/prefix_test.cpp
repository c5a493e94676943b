// Rows that go on from shared prefixes: whose prefix a row read, and where its own positions begin.
#include <fmt/format.h>

#include <functional>

#include "tests/golden/diagnosis/planted.h"

namespace shardproof::diagnosis {
namespace {

const Torus kTorus(4, 2, 3);
constexpr std::int64_t kP = 3, kN = 4, kB = 24, kH = 24, kK = 2, kQ = 4;
const std::string kPrefixes =
    "model=palm-tiny,layers=2,E=48,F=96,H=24,K=2,Q=4,V=48 batch=24 prompt=6 chunk=3 gen=3 seed=9 "
    "prefix=3:4";

class PrefixesExplained : public testing::Test {
 protected:
  using Mapping = std::function<std::int64_t(std::int64_t row)>;

  static std::size_t at(std::int64_t i) { return static_cast<std::size_t>(i); }

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
    const Planted::Value &q = p.value(of + "q_rot"), &own = p.value(of + "k_cache"),
                         &prefix = p.value("prefix.c0.layer1.k_cache");
    Planted::Value s(p.value(of + "score").shape);
    each_seen([&](std::int64_t b, std::int64_t n, std::int64_t m, std::int64_t kv) {
      const double* const key = head(prefix, own, of_row, b, m, kv);
      double sum = 0.0;
      for (std::int64_t c = 0; c < kQ; ++c) sum += q.data[at(n * kQ + c)] * key[c];
      s.data[at(n * (kP + 3) + m)] = sum / 2.0;
    });
    return Planted::f32(s, s.shape);
  }
  Planted::Value means(const Mapping& of_row) const {
    const Planted::Value &e = p.value(of + "exp"), &Z = p.value(of + "denom"),
                         &own = p.value(of + "v_cache"),
                         &prefix = p.value("prefix.c0.layer1.v_cache");
    Planted::Value a(p.value(of + "attn").shape);
    each_seen([&](std::int64_t b, std::int64_t n, std::int64_t m, std::int64_t kv) {
      const double* const value = head(prefix, own, of_row, b, m, kv);
      for (std::int64_t c = 0; c < kQ; ++c)
        a.data[at(n * kQ + c)] += e.data[at(n * (kP + 3) + m)] * value[c] / Z.data[at(n)];
    });
    return Planted::f32(a, a.shape);
  }
  /// Calls see(row, query's head among all, key, kv head).
  template <class See>
  void each_seen(See&& see) const {
    for (std::int64_t n = 0; n < kB * 3 * kH; ++n)
      for (std::int64_t m = 0; m <= kP + n / kH % 3; ++m) see(n / kH / 3, n, m, n % kH * kK / kH);
  }

  std::vector<Hypothesis> ask(const std::string& id, const Planted::Value& v) {
    const Planted::Value was = p.value(id);
    auto all = p.ask(id, v, kTorus);
    p.dump[id] = was;
    return all;
  }

  Planted p{kPrefixes};
  const std::string of = "prefill.c0.layer1.";
};

TEST_F(PrefixesExplained, WhatIsRightIsNoFault) {
  for (const auto& [id, value] : std::map<std::string, Planted::Value>(p.dump))
    if (id.starts_with(of) || id.starts_with("prefix.c0.layer1.") ||
        id.starts_with("decode.2.layer0.")) {
      EXPECT_TRUE(ask(id, value).empty()) << id << "\n" << text(ask(id, value));
    }
  const Mapping right = [](std::int64_t b) { return b * kN / kB; };
  EXPECT_TRUE(ask(of + "score", scores(right)).empty());
  EXPECT_TRUE(ask(of + "attn", means(right)).empty());
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
    expect_first(ask(of + "score", scores(of_row)), "another layer's or pass's value", "", detail);
    expect_first(ask(of + "attn", means(of_row)), "another layer's or pass's value", "", detail);
  }
}

TEST_F(PrefixesExplained, OwnPositionsThatBeginAtZero) {
  ASSERT_EQ(p.config().rope, Rope::half);
  const std::string id = "decode.2.layer1.k_rot";
  const Planted::Value &k = p.value("decode.2.layer1.k"), cos = p.weight("rope_cos"),
                       sin = p.weight("rope_sin");
  const std::int64_t pairs = cos.shape[1], row = 6 + 1 - kP;
  Planted::Value turned = k;
  for (std::int64_t n = 0; n < kB * kK; ++n)
    for (std::int64_t j = 0; j < pairs; ++j) {
      const std::size_t a = at(n * kQ + j), b = at(n * kQ + j + pairs);
      const double c = cos.data[at(row * pairs + j)], s = sin.data[at(row * pairs + j)];
      turned.data[a] = k.data[a] * c - k.data[b] * s;
      turned.data[b] = k.data[b] * c + k.data[a] * s;
    }
  expect_first(ask(id, Planted::f32(turned, p.value(id).shape)), "position off", "",
               "positions are counted from the end of the prefix on");
}

TEST_F(PrefixesExplained, SlotsAreThoseBehindThePrefix) {
  const std::string id = "decode.1.layer1.k_cache";
  Planted::Value zero = p.value(id);
  ASSERT_EQ(zero.shape, (Shape{kB, 4, kK, kQ}));
  for (std::int64_t i = 0; i < kK * kQ; ++i) zero.data[at((5 * 4 + 1) * kK * kQ + i)] = 0;
  expect_first(ask(id, zero), "stale slot", "", "slot 1 of row 5 holds zeros");
  // The new token's slot, as it was before the rotation.
  Planted::Value plain = p.value(id);
  const Planted::Value& k = p.value("decode.1.layer1.k");
  for (std::int64_t b = 0; b < kB; ++b)
    std::copy_n(k.data.begin() + b * kK * kQ, kK * kQ, plain.data.begin() + (b * 4 + 3) * kK * kQ);
  expect_first(ask(id, plain), "position off", "", "slot 3 of row 0 holds what is not rotated");
}

}  // namespace
}  // namespace shardproof::diagnosis
