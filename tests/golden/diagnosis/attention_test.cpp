// Attention in parts that are merged wrongly, that reads other contents of its caches, or of scores
// times another factor; the dump shows queries, caches and the result alone.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>
#include <string>
#include <vector>

#include "tests/golden/diagnosis/planted.h"

namespace shardproof::diagnosis {
namespace {

using Numbers = std::vector<double>;

const std::string kSmall =
    "model=palm-tiny,layers=2,E=16,F=24,H=4,K=2,Q=4,V=48 batch=3 prompt=4 chunk=3 gen=3";

Numbers softmax(const Numbers& scores) {
  Numbers e;
  for (const double s : scores) e.push_back(std::exp(s));
  const double sum = std::accumulate(e.begin(), e.end(), 0.0);
  for (double& v : e) v /= sum;
  return e;
}

/// Attention of these caches whose weights of keys are shares(scores, query's position).
template <class Shares>
Planted::Value attention_of(const Planted& p, const std::string& at, const Planted::Value& k,
                            const Planted::Value& v, Shares&& shares) {
  const Planted::Value& q = p.value(at + "q_rot");
  const auto B = static_cast<std::size_t>(q.shape[0]), L = static_cast<std::size_t>(q.shape[1]),
             M = static_cast<std::size_t>(k.shape[1]);
  const std::size_t H = 4, K = 2, Q = 4;
  Planted::Value attn(q.shape);
  for (std::size_t i = 0; i < B * L * H; ++i) {
    const std::size_t b = i / H / L, l = i / H % L, group = i % H * K / H;
    const auto key = [&](std::size_t m) { return ((b * M + m) * K + group) * Q; };
    Numbers scores(M - L + l + 1);
    for (std::size_t m = 0; m < scores.size(); ++m)
      for (std::size_t c = 0; c < Q; ++c) scores[m] += q.data[i * Q + c] * k.data[key(m) + c] / 2;
    const Numbers share = shares(scores);
    for (std::size_t m = 0; m < scores.size(); ++m)
      for (std::size_t c = 0; c < Q; ++c) attn.data[i * Q + c] += share[m] * v.data[key(m) + c];
  }
  return attn;
}

class FusedAttention : public testing::Test {
 protected:
  FusedAttention() {
    for (const char* name : {"score", "max", "exp", "denom"})
      std::erase_if(p.dump, [&](const auto& value) {
        return value.first.ends_with("." + std::string(name));
      });
    p.texts = 0;
  }

  const Planted::Value& cache(const std::string& name, const std::string& at = kAttended) const {
    return p.value(at + name);
  }

  template <class Shares>
  Planted::Value attention(const Planted::Value& k, const Planted::Value& v, Shares&& shares,
                           const std::string& at = kAttended) const {
    return attention_of(p, at, k, v, shares);
  }
  template <class Shares>
  Planted::Said with(Shares&& shares, const std::string& at = kAttended) {
    return p.ask(at + "attn", attention(cache("k_cache", at), cache("v_cache", at), shares, at));
  }
  /// Of caches in which each number is to(number, row, slot, place).
  template <class To>
  Planted::Said of(To&& to, bool keys = true, bool values = true) {
    const auto changed = [&](const char* name, bool change) {
      const Planted::Value& own = cache(name);
      const auto M = static_cast<std::size_t>(own.shape[1]);
      return change ? each(own, [&](double v,
                                    std::size_t i) { return to(own, v, i / 8 / M, i / 8 % M, i); })
                    : own;
    };
    return p.ask(kAttended + "attn",
                 attention(changed("k_cache", keys), changed("v_cache", values), softmax));
  }

  /// Softmax of each part alone, then weighed by weight(maxima, sums)[part].
  static Numbers merged(
      const Numbers& scores, std::size_t parts, const std::function<std::size_t(std::size_t)>& part,
      const std::function<double(const Numbers&, const Numbers&, std::size_t)>& weight) {
    Numbers top(parts, -1e300), sum(parts), shares(scores.size());
    for (std::size_t m = 0; m < scores.size(); ++m)
      top[part(m)] = std::max(top[part(m)], scores[m]);
    for (std::size_t m = 0; m < scores.size(); ++m)
      sum[part(m)] += std::exp(scores[m] - top[part(m)]);
    double all = 0.0;
    for (std::size_t r = 0; r < parts; ++r) all += weight(top, sum, r);
    for (std::size_t m = 0; m < scores.size(); ++m)
      shares[m] =
          std::exp(scores[m] - top[part(m)]) / sum[part(m)] * weight(top, sum, part(m)) / all;
    return shares;
  }

  static inline const std::string kAttended = "decode.2.layer1.";
  Planted p{kSmall + " seed=37"};
};

double lse(const Numbers& top, const Numbers& sum, std::size_t r) {
  return top[r] + std::log(sum[r]);
}

TEST_F(FusedAttention, MergesOfParts) {
  struct Wrong {
    const char* words;
    std::function<double(const Numbers&, const Numbers&, std::size_t)> weight;
    bool of_more;
  };
  const std::vector<Wrong> all{
      {"of base e, are taken for those of base 2",
       [](const auto& t, const auto& z, std::size_t r) { return std::exp2(lse(t, z, r)); }, false},
      {"of base 2, are taken for those of base e",
       [](const auto& t, const auto& z, std::size_t r) {
         return std::exp(lse(t, z, r) / std::log(2.0));
       },
       false},
      {"each has the log-sum-exp of the next one",
       [](const auto& t, const auto& z, std::size_t r) {
         return std::exp(lse(t, z, (r + 1) % z.size()));
       },
       false},
      {"each has the log-sum-exp of the one before",
       [](const auto& t, const auto& z, std::size_t r) {
         return std::exp(lse(t, z, (r + z.size() - 1) % z.size()));
       },
       true},
      {"in the opposite order",
       [](const auto& t, const auto& z, std::size_t r) {
         return std::exp(lse(t, z, z.size() - 1 - r));
       },
       true},
      {"all weigh the same", [](const auto&, const auto&, std::size_t) { return 1.0; }, false},
      {"by their sums, without their maxima",
       [](const auto&, const auto& z, std::size_t r) { return z[r]; }, false},
      {"by their maxima, without their sums",
       [](const auto& t, const auto&, std::size_t r) { return std::exp(t[r]); }, false}};
  expect_right(with(softmax));
  expect_right(with([](const Numbers& s) {
    return merged(
        s, 2, [](std::size_t m) { return m % 2; },
        [](const auto& t, const auto& z, std::size_t r) { return std::exp(lse(t, z, r)); });
  }));
  for (const Wrong& wrong : all)
    for (const std::size_t n : {2U, 3U}) {
      if (wrong.of_more && n == 2) continue;
      const auto parts = [&](auto&& part) {
        return with([&](const Numbers& s) { return merged(s, n, part, wrong.weight); });
      };
      expect_first(parts([n](std::size_t m) { return m % n; }),
                   fmt::format("merge of parts: {} parts, slot m in part m mod {}: ", n, n));
      EXPECT_NE(parts([n](std::size_t m) { return m % n; })[0].detail.find(wrong.words),
                std::string::npos)
          << wrong.words;
      // Six slots.
      expect_first(parts([n](std::size_t m) { return m / (6 / n); }),
                   fmt::format("merge of parts: {} parts of {} slots: ", n, 6 / n));
    }
}

// Of six slots 4 in equal ranges would be 3: each partition is tried once.
TEST_F(FusedAttention, MergesOfEachPartitionAreTriedOnce) {
  const auto all = with([](const Numbers& s) {
    return merged(
        s, 3, [](std::size_t m) { return m / 2; },
        [](const auto&, const auto&, std::size_t) { return 1.0; });
  });
  std::size_t merges = 0;
  for (const Hypothesis& h : all)
    merges += h.detail.find("parts of 2 slots") != std::string::npos ? 1U : 0U;
  EXPECT_EQ(merges, 1U) << text(all);
}

// The slots before the pass's own are a part, as of a chunk that attends to what was before it.
TEST_F(FusedAttention, MergesOfWhatWasBeforeAndOwn) {
  expect_first(with([](const Numbers& s) {
                 return merged(
                     s, 2, [&](std::size_t m) { return m < 5 ? 0U : 1U; },
                     [](const auto&, const auto&, std::size_t) { return 1.0; });
               }),
               "merge of parts: slots 0 to 4 and the others: all weigh the same");
}

TEST_F(FusedAttention, ReadsOtherContentsOfItsCaches) {
  expect_first(of([](const auto&, double v, std::size_t, std::size_t m, std::size_t) {
                 return m < 5 ? 0.0 : v;
               }),
               "stale slot: attention reads zeros before the pass's own slots of k_cache and "
               "v_cache");
  for (const std::size_t first : {0U, 2U, 5U}) {
    const auto in = [first](std::size_t m) { return m >= first && m < first + 2; };
    const std::string slots =
        first == 5 ? "slot 5" : fmt::format("slots {} to {}", first, first + 1);
    expect_first(of([&](const auto&, double v, std::size_t, std::size_t m, std::size_t) {
                   return in(m) ? 0.0 : v;
                 }),
                 fmt::format("stale slot: attention reads zeros in {} of k_cache and", slots));
    expect_first(of([&](const Planted::Value& own, double v, std::size_t b, std::size_t m,
                        std::size_t i) { return in(m) ? own.data[i % 48 + (b + 2) % 3 * 48] : v; }),
                 fmt::format("stale slot: attention reads row (b + 2) mod 3 in place of row b in "
                             "{} of k_cache and v_cache",
                             slots));
  }
  const auto zeros = [](const auto&, double v, std::size_t, std::size_t m, std::size_t) {
    return m == 1 ? 0.0 : v;
  };
  for (const bool keys : {true, false}) {
    const Planted::Said said = of(zeros, keys, !keys);
    ASSERT_FALSE(said.empty());
    EXPECT_EQ(said[0].detail,
              fmt::format("attention reads zeros in slot 1 of {}_cache", keys ? "k" : "v"))
        << text(said);
  }
  expect_first(p.ask(kAttended + "attn", attention(cache("k_cache", "decode.2.layer0."),
                                                   cache("v_cache", "decode.2.layer0."), softmax)),
               "stale slot: attention reads layer0's contents of k_cache and v_cache");
}

// Two rows hold the same in a slot: whether it is read of the other one shows in another layer.
TEST_F(FusedAttention, ReadsAreThoseOfAllLayers) {
  const std::string below = "decode.2.layer0.", id = below + "attn", later = kAttended + "attn";
  for (const char* name : {"k_cache", "v_cache"}) {
    Planted::Value& own = p.dump.at(below + name);
    for (std::size_t i = 48; i < own.data.size(); ++i)
      if (i / 8 % 6 == 3) own.data[i] = own.data[i % 48];
  }
  for (const std::size_t end : {3U, 4U}) {  // of slots 1 to end - 1
    const auto read = [&](const std::string& at) {
      const auto of_other = [&](const char* name) {
        const Planted::Value& own = cache(name, at);
        return each(own, [&, end](double v, std::size_t i) {
          const bool there = i / 8 % 6 >= 1 && i / 8 % 6 < end;
          return there ? own.data[i % 48 + (i / 48 + 2) % 3 * 48] : v;
        });
      };
      return attention(of_other("k_cache"), of_other("v_cache"), softmax, at);
    };
    p.dump.at(later) = Planted::f32(read(kAttended), p.value(later).shape);
    p.later = {later};
    expect_first(p.ask(id, read(below)),
                 fmt::format("stale slot: attention reads row (b + 2) mod 3 in place of row b in "
                             "slots 1 to {} of k_cache and v_cache",
                             end - 1));
  }
}

TEST_F(FusedAttention, ScoresTimesAFactor) {
  const auto times = [&](double by) {
    return with([by](const Numbers& s) {
      Numbers other = s;
      for (double& v : other) v *= by;
      return softmax(other);
    });
  };
  for (const auto& [by, words] : {std::pair{std::sqrt(0.5), "times 1/sqrt(2)"},
                                  {std::sqrt(3.0), "times sqrt(3)"},
                                  {1.0 / 3, "times 1/3"},
                                  {5.0, "times 5"},
                                  {0.8391, "times 0.8391"}}) {
    const Planted::Said said = times(by);
    ASSERT_FALSE(said.empty()) << by;
    expect_first(said, fmt::format("another factor: {}", words));
    EXPECT_TRUE(said[0].detail.ends_with(", which the dump lacks")) << said[0].detail;
  }
  expect_right(times(1.0));
}

/// In 16 bits what lies between scores and attention is rounded, too, so that bounds are wide.
TEST(Factors, OfScoresInBf16) {
  Planted p(kSmall + " seed=37 act=bf16 weights=bf16");
  p.texts = 0;
  for (const char* name : {"score", "max", "exp", "denom"})
    std::erase_if(
        p.dump, [&](const auto& value) { return value.first.ends_with("." + std::string(name)); });
  for (const std::string at : {"prefill.c0.layer1.", "decode.2.layer1."})
    for (const auto& [by, words] :
         {std::pair{std::sqrt(0.5), "times 1/sqrt(2)"}, {3.0, "times 3"}, {0.25, "times 1/4"}}) {
      const Planted::Value attn = attention_of(p, at, p.value(at + "k_cache"),
                                               p.value(at + "v_cache"), [factor = by](Numbers s) {
                                                 for (double& v : s) v *= factor;
                                                 return softmax(s);
                                               });
      expect_first(p.ask(at + "attn", in_bf16(attn)), fmt::format("another factor: {}", words));
    }
}

TEST_F(FusedAttention, OfAnythingElseIsNotExplained) {
  Noise noise;
  for (int k = 0; k < 20; ++k) {
    expect_unexplained(with([&](const Numbers& s) {
                         Numbers other = s;
                         for (double& v : other) v += noise();
                         return softmax(other);
                       }),
                       "noise on scores");
    expect_unexplained(with([&](const Numbers& s) {
                         return merged(
                             s, 2, [](std::size_t m) { return m * m % 5 % 2; },
                             [](const auto&, const auto& z, std::size_t) { return 1 + z[0]; });
                       }),
                       "other parts");
  }
}

TEST(Factors, OfAValueThatTheDumpHas) {
  Planted p(kSmall + " seed=38");
  for (const auto& [by, words] :
       {std::pair{std::sqrt(2.0), "times sqrt(2)"}, {1.5, "times 1.5"}, {-1.0, "times -1"}})
    expect_first(p.ask(kAt + "attn", scaled(p.value(kAt + "attn"), by)),
                 fmt::format("another factor: {}", words));
}

}  // namespace
}  // namespace shardproof::diagnosis
