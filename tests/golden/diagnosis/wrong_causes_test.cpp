// Causes that were once named where they were none: each with the one that is there, or with none.
#include <limits>

#include "tests/golden/diagnosis/planted.h"

namespace shardproof::diagnosis {
namespace {

const std::string kGrouped =
    "model=llama,layers=2,E=32,F=64,H=8,K=4,Q=4,V=32 batch=4 prompt=6 gen=4 seed=3";

double zero(double, std::size_t) { return 0.0; }

class Nearest : public testing::Test {
 protected:
  Planted p{kModel + " seed=1"};
  const Planted::Value gate = p.value(kGate);
};
using NeverWrittenGate = Nearest;

// A fault with noise on it is not explained; the list of what comes nearest has it.
TEST_F(Nearest, ListsAFaultUnderNoise) {
  const Torus torus(2, 1, 1);
  auto shards = Planted::cut(gate, "BLF_x", torus, [](int chip) { return 1 - chip; });
  Noise noise;
  for (auto& shard : shards)
    for (double& e : shard) e += 0.02 * rms(gate) * noise();
  const auto said = p.ask(kGate, "BLF_x", torus, shards);
  expect_unexplained(said, kGate);
  ASSERT_FALSE(said.empty());
  EXPECT_EQ(said[0].fault, "chunks in another order") << text(said);
  for (std::size_t i = 1; i < said.size(); ++i)
    EXPECT_FALSE(said[i].fault == said[0].fault && said[i].axes == said[0].axes) << text(said);
}

/// The last chip counts as the others do.
TEST_F(Nearest, OfAFaultThatIsWorstOnTheLastChip) {
  // All chips have twice the value, and the last one something else besides, or nothing: in places
  // that are no probes.
  for (const bool spoiled : {false, true}) {
    Planted::Shards shards = Planted::cut(
        each(gate, [](double v, std::size_t i) { return 2 * v * (1 + 1e-4 * (i % 3 == 0)); }),
        "BLF_xyz", kTorus);
    if (spoiled)
      for (std::size_t i = 5; i < 50; ++i) shards[23][i] += (i % 2 == 0 ? 3.0 : -3.0) * rms(gate);
    const auto said = p.ask(kGate, "BLF_xyz", kTorus, shards);
    expect_unexplained(said, "twice, and noise");
    EXPECT_EQ(said.empty(), spoiled) << text(said);
    if (!said.empty()) {
      EXPECT_LT(said[0].residual, 0.01) << text(said);
    }
  }
}

TEST_F(Nearest, EqualAxesAreListedOnce) {
  // The mean over two chips in place of the sum, nearly.
  const auto said = p.ask(kGate, Noise().on(scaled(gate, 0.5), 1e-3 * rms(gate)), Torus(2, 2, 3));
  expect_unexplained(said, "half, and noise");
  ASSERT_FALSE(said.empty());
  for (std::size_t i = 0; i < said.size(); ++i)
    for (std::size_t j = 0; j < i; ++j)
      EXPECT_FALSE(said[i].fault == said[j].fault && said[i].residual == said[j].residual)
          << text(said);
  EXPECT_NE(said[0].detail.find("likewise over y"), std::string::npos) << text(said);
}

TEST(NeverWritten, ZerosAreNotWhatElseIsZero) {
  Planted p(kGrouped + " block=serial");
  const std::string ids[]{"prefill.c0.layer0.ffn_out", "prefill.c0.layer1.ffn_out",
                          "decode.1.logits", "decode.2.logits"};
  for (const std::string& id : ids) p.dump[id] = each(p.value(id), zero);
  for (const std::string& id : ids) expect_alone(p.ask(id), "never written: zeros");
  const std::string score = "decode.1.layer1.score";
  expect_alone(p.ask(score, each(p.value(score), zero)), "never written: zeros");
}

TEST_F(NeverWrittenGate, ABlockOrAChip) {
  for (const std::size_t block : {0U, 3U})
    expect_alone(
        p.ask(kGate,
              each(gate, [&](double v, std::size_t i) { return i % 96 / 24 == block ? 0.0 : v; })),
        fmt::format("never written: zeros in F {} to {}", block * 24, block * 24 + 23));
  expect_alone(p.ask(kGate, each(gate, [](double, std::size_t) { return 0.5; })),
               "never written: 0.5 everywhere");
  for (const std::size_t chip : {0U, 23U}) {
    Planted::Shards shards = Planted::cut(gate, "BLF_xyz", kTorus);
    std::fill(shards[chip].begin(), shards[chip].end(), 0.0);
    expect_alone(p.ask(kGate, "BLF_xyz", kTorus, shards),
                 fmt::format("never written: zeros; on chips {} alone",
                             kTorus.name(static_cast<int>(chip))));
  }
  // One number that is right in some places is the same as everywhere; a single one says nothing.
  expect_none(p.ask(kGate, each(gate, [](double v, std::size_t i) { return i == 7 ? 0.0 : v; })),
              "never written");
}

TEST(Sources, AreEarlierAndRightInTheirOwnPlace) {
  Planted p(kModel + " seed=9");
  const std::string first = "decode.1.layer0.gate", second = "decode.1.layer1.gate";
  const std::string fault = "another layer's or pass's value: ";
  expect_first(p.ask(second, p.value(first)), fault + "holds " + first);
  p.sound = [&](const std::string& id) { return id != first; };
  expect_unexplained(p.ask(second, p.value(first)), "of what is wrong itself");
  p.sound = nullptr;
  expect_unexplained(p.ask(first, p.value(second)), "of what comes later");
  // As an operand, too.
  expect_first(p.ask(second, p.product("decode.1.layer0.norm", "layer1.w_gate")),
               fault + "made of decode.1.layer0.norm");
  expect_unexplained(p.ask(second, p.product("decode.2.layer1.norm", "layer1.w_gate")),
                     "made of a later one");
}

TEST(WidthRule, DigitsAloneAreNoExplanation) {
  Planted p(kGrouped + " block=serial");
  const auto ask = [&](const Planted::Value& v) {
    return p.ask(kAt + "ffn_out", in_bf16(v), Torus(4, 1, 1));
  };
  Planted::Value w = p.weight("layer1.w_out");
  // Blocks of F in another order than those of hidden.
  const auto crossed = p.product_with(kAt + "hidden", "layer1.w_out", moved(w, [](std::size_t i) {
                                        const std::size_t order[] = {0, 1, 3, 2}, block = 16 * 32;
                                        return order[i / block] * block + i % block;
                                      }));
  expect_unexplained(ask(crossed), "blocks 0,1,3,2, then bf16");
  const auto right = p.product(kAt + "hidden", "layer1.w_out");
  for (const double size : {0.05, 0.5})
    expect_unexplained(ask(Noise().on(right, size * rms(right))), "noise, then bf16");
  expect_first(ask(right), "rounding: the result is rounded to bf16");
}

TEST(WidthRule, NoiseInPartialSumsIsNoRounding) {
  Planted p(kModel + " seed=29");
  const auto with = [&](auto&& of) {
    auto parts = p.parts(kAt + "norm", "layer1.w_gate", 4);
    for (Planted::Value& part : parts) part = of(part);
    return p.ask(kGate, "BLF_zy partialsum-x", kTorus,
                 p.counted(kGate, parts, "BLF_zy", kTorus, [](int c, int r) {
                   return kTorus.coordinate(c, Axis::x) == r ? 1 : 0;
                 }));
  };
  for (const double size : {0.01, 0.1, 0.5}) {
    Noise noise;
    expect_unexplained(with([&](const auto& v) { return noise.on(v, size * rms(p.value(kGate))); }),
                       fmt::format("noise of {}", size));
  }
  const auto said = with([](const auto& v) { return in_bf16(v); });
  ASSERT_FALSE(said.empty());
  EXPECT_TRUE(said[0].explains && said[0].detail.find("partial sums over x") != std::string::npos)
      << text(said);
}

/// Two parts of a decode step's keys, merged with the maximum left out of their weights.
TEST(WidthRule, AWrongMergeIsNoRoundingOfBf16) {
  Planted p(kGrouped + " act=bf16 weights=bf16");
  const std::string of = "decode.2.layer1.";
  const Planted::Value score = p.value(of + "score"), values = p.value(of + "v_cache");
  const std::size_t M = at(score.shape[3]);
  const auto attn = each(p.value(of + "attn"), [&](double, std::size_t i) {
    const std::size_t n = i / 4, b = n / 8, kv = n % 8 / 2;
    double top[2] = {-1e9, -1e9}, Z = 0, sum = 0;
    for (std::size_t m = 0; m < M; ++m) top[m % 2] = std::max(top[m % 2], score.data[n * M + m]);
    for (std::size_t m = 0; m < M; ++m) {
      const double e = std::exp(score.data[n * M + m] - top[m % 2]);
      Z += e;
      sum += e * values.data[((b * M + m) * 4 + kv) * 4 + i % 4];
    }
    return sum / Z;
  });
  std::erase_if(p.dump, [](const auto& named) {
    for (const char* name :
         {".q_rot", ".k_rot", ".k_cache", ".v_cache", ".score", ".max", ".exp", ".denom"})
      if (named.first.ends_with(name)) return true;
    return false;
  });
  p.texts = 0;  // of a text's score more is open, so that nothing explains it
  const Planted::Said said = p.ask(of + "attn", in_bf16(attn), Torus(2, 1, 1));
  for (const Hypothesis& h : said)
    EXPECT_TRUE(!h.explains || h.fault == "merge of parts") << text(said);
}

class HeldAgainst : public testing::Test {
 protected:
  Planted p{"model=palm-tiny,layers=2,E=24,F=24,H=6,K=2,Q=4,V=24 batch=6 prompt=12 gen=3 seed=9"};
};

TEST_F(HeldAgainst, LaterPassesRefuteRotatedTwice) {
  const std::string first = "decode.1.layer1.q_rot", second = "decode.2.layer1.q_rot";
  const auto ask = [&](std::size_t row) {
    return p.ask(first, p.turned("decode.1.layer1.q", row));
  };
  const Planted::Value was = p.value(second);
  p.later = {second};
  p.dump[second] = Planted::f32(p.turned("decode.2.layer1.q", 25), was.shape);
  const auto said = ask(24);
  expect_first(said, "position off: position +12");
  for (const Hypothesis& h : said)
    EXPECT_TRUE(h.detail.find("twice") == std::string::npos || !h.explains) << text(said);
  // It is twice there, too: then it is that.
  p.dump[second] = Planted::f32(p.turned("decode.2.layer1.q", 26), was.shape);
  expect_first(ask(24), "position off: rotated twice");
  // The later one is right: it is of this pass alone, whatever it is.
  p.dump[second] = was;
  expect_first(ask(13), "position off: position +1; in decode.1.layer1 alone");
  // The later one is wrong in another way: nothing is explained.
  p.dump[second] = each(was, [](double v, std::size_t i) { return i % 3 == 0 ? 0.7 * v : v; });
  for (const Hypothesis& h : ask(13)) {
    EXPECT_FALSE(h.explains) << h.detail;
    EXPECT_NE(h.detail.find("decode.2.layer1 is wrong in another way"), std::string::npos);
  }
}

/// Attention reads the cache before the new key is in it; the exponential says that it is seen.
TEST_F(HeldAgainst, ExponentialsRefuteAMask) {
  const std::string of = "decode.1.layer1.";
  const std::size_t M = at(p.value(of + "score").shape[3]);
  const auto score = each(p.value(of + "score"),
                          [M](double v, std::size_t i) { return i % M + 1 == M ? 0.0 : v; });
  const auto plant = [&](bool seen) {
    const std::size_t keys = M - (seen ? 0 : 1);
    const auto top = each(p.value(of + "max"), [&](double, std::size_t n) {
      const auto begin = score.data.begin() + static_cast<std::ptrdiff_t>(n * M);
      return *std::max_element(begin, begin + static_cast<std::ptrdiff_t>(keys));
    });
    p.dump[of + "max"] = top;
    p.dump[of + "exp"] = each(score, [&](double v, std::size_t i) -> double {
      return i % M < keys ? static_cast<float>(std::exp(v - top.data[i / M])) : 0.0F;
    });
    return p.ask(of + "score", score);
  };
  const auto said = plant(true);
  expect_first(said, fmt::format("stale slot: reads {}k_cache as it was before the pass", of));
  expect_none(said, "mask");
  expect_first(plant(false), "mask: a query does not see its own key");
  // Nor are zeros read where an exponential is 0.
  p.without = "mask";
  expect_none(plant(false), "stale slot");
}

TEST(Masks, TheNewestKeyAlone) {
  Planted p(kGrouped);
  p.sound = [&](const std::string& other) { return !other.ends_with(".exp"); };
  const std::string layers[]{"decode.2.layer0.", "decode.2.layer1."};
  for (const std::string& of : layers) {
    Planted::Value& exp = p.dump[of + "exp"];
    const std::size_t M = at(exp.shape[3]);
    exp = each(exp, [M](double, std::size_t i) { return i % M + 1 == M ? 1.0 : 0.0; });
    for (const char* name : {"score", "max", "denom"}) p.dump.erase(of + name);
  }
  for (const std::string& of : layers)
    expect_first(p.ask(of + "exp", Planted::Value(p.value(of + "exp")), Torus(2, 1, 1)),
                 "mask: a query sees its own key alone");
}

/// A cache whose slots are dealt to the chips one by one is all there.
TEST(RoundRobin, IsNoStaleSlot) {
  Planted p("model=llama,layers=2,E=32,F=64,H=8,K=4,Q=4,V=32 batch=4 prompt=7 gen=3 seed=3");
  for (const char* name : {"k_cache", "v_cache"}) {
    const std::string id = std::string("decode.1.layer1.") + name;
    const Planted::Value& cache = p.value(id);
    ASSERT_EQ(cache.shape[1], 8);
    Planted::Shards dealt(4);
    for (std::size_t i = 0; i < cache.data.size(); ++i) dealt[i / 16 % 4].push_back(cache.data[i]);
    const auto said = p.ask(id, "BM_xKQ", Torus(4, 1, 1), dealt);
    expect_first(said, "chunks in another order [x]: M is dealt round-robin over x, 1 at a time");
    expect_none(said, "stale slot");
  }
}

/// Which of two orders is right, and which is the fault's.
TEST(Orders, AreToldTheRightWayRound) {
  for (const Torus& torus : {Torus(1, 2, 3), Torus(1, 2, 2), Torus(2, 3, 4)}) {
    Planted p(kModel + " seed=2");
    const std::string id = kAt + "norm";
    const Axes right = Axes::parse("zy"), wrong = Axes::parse("yz");
    const std::size_t length = 48 / at(torus.size(right));
    // Chunks are cut over zy, and come to lie by yz.
    const auto gathered = moved(p.value(id), [&](std::size_t i) {
      const std::size_t e = i % 48;
      int chip = 0;
      while (torus.coordinate(chip, Axis::x) != 0 || at(torus.block(chip, wrong)) != e / length)
        ++chip;
      return i - e + at(torus.block(chip, right)) * length + e % length;
    });
    const bool square = torus.size(Axis::y) == torus.size(Axis::z);
    expect_first(p.ask(id, gathered, torus, "BLE"),
                 square ? "axes in another order [yz]: , or the other way round"
                        : "axes in another order [yz]: gathered as E_yz; right is E_zy");
    p.layouts["prefill.c0.layer0.out"] = Layout::parse("BLE_zy");
    const auto said = p.ask(id, gathered, torus, "BLE");
    expect_first(said, "axes in another order [yz]: gathered as E_yz; right is E_zy");
    EXPECT_EQ(said[0].detail.find("other way"), std::string::npos) << text(said);
  }
}

/// Whatever stands in masked slots, faults of scores are explained as if zeros did.
TEST(MaskedAny, FaultsOfScoresAreExplained) {
  Planted p(kGrouped);
  const Planted::Value q = p.value(kAt + "q_rot"), keys = p.value(kAt + "k_cache");
  const std::size_t M = 6;
  const auto dot = [&](std::size_t n, std::size_t m, std::size_t kv) {
    double sum = 0;
    for (std::size_t c = 0; c < 4; ++c)
      sum += q.data[n * 4 + c] * keys.data[((n / 48 * M + m) * 4 + kv) * 4 + c];
    return sum / 2;
  };
  for (const std::string masked : {"zeros", "numbers", "-1e30", "-inf"}) {
    p.masked_any = masked != "zeros";
    const auto ask = [&](auto&& of) {
      const auto score = each(p.value(kAt + "score"), [&](double, std::size_t i) {
        const std::size_t n = i / M, m = i % M, l = n / 8 % 6;
        if (m <= l || masked == "numbers") return static_cast<double>(of(n, m));
        return masked == "zeros" ? 0.0 : masked == "-inf" ? -HUGE_VAL : -1e30;
      });
      return p.ask(kAt + "score", score, Torus(2, 2, 1));
    };
    const auto right = [&](std::size_t n, std::size_t m) { return dot(n, m, n % 8 / 2); };
    expect_right(ask(right), masked);
    expect_first(ask([&](auto n, auto m) { return 2 * right(n, m); }), "scale missing: 1/sqrt(Q)");
    expect_first(ask([&](auto n, auto m) { return 0.5 * right(n, m); }),
                 "scale doubled: 1/sqrt(Q)");
    expect_first(ask([&](auto n, auto m) { return dot(n, m, n % 4); }),
                 "head order: query head h reads kv head h mod K");
    expect_first(ask([&](auto n, auto m) { return right(n / 8 * 8 + (n + 3) % 8, m); }),
                 "head order: heads hold 3,4");
    expect_first(ask([&](auto n, auto m) { return right((n + 96) % 192, m); }),
                 "chunks in another order [x]");
    expect_first(ask([](auto, auto) { return 0.0; }), "never written: zeros");
    expect_unexplained(ask([&](auto n, auto m) { return right(n, m) + (n % 7 == m ? 0.3 : 0.0); }),
                       masked);
  }
}

/// One chip, the first or the last, has what belongs to its neighbour along each axis.
TEST(AnotherChip, AlongEachAxis) {
  Planted p(kModel + " seed=4");
  const std::string id = kAt + "out";
  for (const Axis axis : {Axis::x, Axis::y, Axis::z})
    for (const int chip : {0, 23}) {
      int other = 0;
      const auto apart = [&](int c) {
        int n = 0;
        for (const Axis a : {Axis::x, Axis::y, Axis::z})
          if (kTorus.coordinate(c, a) != kTorus.coordinate(chip, a)) n += a == axis ? 1 : 9;
        return n;
      };
      while (apart(other) != 1) ++other;
      expect_first(p.ask(id, "BLE_xyz", kTorus,
                         Planted::cut(p.value(id), "BLE_xyz", kTorus,
                                      [&](int c) { return c == chip ? other : c; })),
                   fmt::format("another chip's block [{}]: {} holds that of {}", to_char(axis),
                               kTorus.name(chip), kTorus.name(other)));
    }
}

}  // namespace
}  // namespace shardproof::diagnosis
