// Causes that were once named where they were none: each with the one that is there, or with none.
#include <limits>

#include "tests/golden/diagnosis/planted.h"
#include "weights/base/bf16.h"

namespace shardproof::diagnosis {
namespace {

const Torus kTorus(4, 2, 3);
const std::string kGrouped =
    "model=llama,layers=2,E=32,F=64,H=8,K=4,Q=4,V=32 batch=4 prompt=6 gen=4 seed=3";

double as_bf16(double v) { return static_cast<double>(round_to_bf16(static_cast<float>(v))); }

/// Deterministic, between -1 and 1.
class Noise {
 public:
  double operator()() {
    state_ ^= state_ << 13, state_ ^= state_ >> 7, state_ ^= state_ << 17;
    return static_cast<double>(state_ >> 11) * 0x1p-52 - 1.0;
  }

 private:
  std::uint64_t state_ = 88172645463325252U;
};

double rms(const Planted::Value& v) {
  double squares = 0.0;
  for (const double e : v.data) squares += e * e;
  return std::sqrt(squares / static_cast<double>(v.data.size()));
}

template <class F>
Planted::Value each(Planted::Value v, F&& f) {
  for (std::size_t i = 0; i < v.data.size(); ++i) v.data[i] = f(v.data[i], i);
  return v;
}

void expect_unexplained(const std::vector<Hypothesis>& all, const std::string& of) {
  for (const Hypothesis& h : all)
    EXPECT_TRUE(!h.explains && h.left <= 0.1) << of << "\n" << text(all);
}

void expect_alone(const std::vector<Hypothesis>& all, const std::string& fault,
                  const std::string& detail) {
  expect_first(all, fault, "", detail);
  EXPECT_EQ(all.size(), 1U) << text(all);
}

// A fault with noise on it is not explained; the list of what comes nearest has it.
TEST(Nearest, ListsAFaultUnderNoise) {
  Planted p(std::string(kModel) + " seed=1");
  const std::string id = "prefill.c0.layer1.gate";
  const Planted::Value gate = p.value(id);
  const Torus torus(2, 1, 1);
  auto shards =
      Planted::cut(gate, Layout::parse("BLF_x"), torus, [](int chip) { return 1 - chip; });
  Noise noise;
  for (auto& shard : shards)
    for (double& e : shard) e += 0.02 * rms(gate) * noise();
  const std::vector<Hypothesis> said = p.ask(id, "BLF_x", torus, shards);
  expect_unexplained(said, id);
  ASSERT_FALSE(said.empty());
  EXPECT_EQ(said[0].fault, "chunks in another order") << text(said);
  for (std::size_t i = 1; i < said.size(); ++i)
    EXPECT_FALSE(said[i].fault == said[0].fault && said[i].axes == said[0].axes) << text(said);
}

TEST(NeverWritten, ZerosAreNotWhatElseIsZero) {
  Planted p(kGrouped + " block=serial");
  const auto zero = [](double, std::size_t) { return 0.0; };
  for (const char* layer : {"layer1", "layer0"}) {
    const std::string id = std::string("prefill.c0.") + layer + ".ffn_out";
    p.dump[id] = each(p.value(id), zero);
  }
  expect_alone(p.ask("prefill.c0.layer0.ffn_out", p.value("prefill.c0.layer0.ffn_out"), kTorus),
               "never written", "zeros");
  expect_alone(p.ask("prefill.c0.layer1.ffn_out", p.value("prefill.c0.layer1.ffn_out"), kTorus),
               "never written", "zeros");
  for (const char* id : {"decode.2.logits", "decode.1.logits"})
    p.dump[id] = each(p.value(id), zero);
  expect_alone(p.ask("decode.1.logits", p.value("decode.1.logits"), kTorus), "never written",
               "zeros");
  const std::string score = "decode.1.layer1.score";
  expect_alone(p.ask(score, each(p.value(score), zero), kTorus), "never written", "zeros");
}

TEST(NeverWritten, ABlockOrAChip) {
  Planted p(std::string(kModel) + " seed=1");
  const std::string id = "prefill.c0.layer1.gate";
  const Planted::Value gate = p.value(id);
  for (const std::size_t block : {0U, 3U})
    expect_alone(
        p.ask(id,
              each(gate, [&](double v, std::size_t i) { return i % 96 / 24 == block ? 0.0 : v; }),
              kTorus),
        "never written", fmt::format("zeros in F {} to {}", block * 24, block * 24 + 23));
  expect_alone(p.ask(id, each(gate, [](double, std::size_t) { return 0.5; }), kTorus),
               "never written", "0.5 everywhere");
  p.dump[id] = gate;
  for (const std::size_t chip : {0U, 23U}) {
    Planted::Shards shards = Planted::cut(gate, Layout::parse("BLF_xyz"), kTorus);
    std::fill(shards[chip].begin(), shards[chip].end(), 0.0);
    expect_alone(p.ask(id, "BLF_xyz", kTorus, shards), "never written",
                 fmt::format("on chips {} alone", kTorus.name(static_cast<int>(chip))));
  }
  // One number that is right in some places is the same as everywhere; a single one says nothing.
  for (const Hypothesis& h :
       p.ask(id, each(gate, [](double v, std::size_t i) { return i == 7 ? 0.0 : v; }), kTorus))
    EXPECT_NE(h.fault, "never written") << h.detail;
}

TEST(Sources, AreEarlierAndRightInTheirOwnPlace) {
  Planted p(std::string(kModel) + " seed=9");
  const std::string first = "decode.1.layer0.gate", second = "decode.1.layer1.gate";
  const Planted::Value of_first = p.value(first), of_second = p.value(second);
  expect_first(p.ask(second, of_first, kTorus), "another layer's or pass's value", "",
               "holds " + first);
  p.sound = [&](const std::string& id) { return id != first; };
  expect_unexplained(p.ask(second, of_first, kTorus), "of what is wrong itself");
  p.sound = nullptr;
  p.dump[second] = of_second;
  expect_unexplained(p.ask(first, of_second, kTorus), "of what comes later");
  p.dump[first] = of_first;
  // As an operand, too.
  const auto product = [&](const char* norm) {
    return Planted::f32(Planted::product(p.value(norm), p.weight("layer1.w_gate"), 48),
                        of_second.shape);
  };
  expect_first(p.ask(second, product("decode.1.layer0.norm"), kTorus),
               "another layer's or pass's value", "", "made of decode.1.layer0.norm");
  expect_unexplained(p.ask(second, product("decode.2.layer1.norm"), kTorus), "made of a later one");
}

class WidthRule : public testing::Test {
 protected:
  /// ffn_out with blocks of F in another order than those of hidden, in f64.
  Planted::Value with_blocks(const std::vector<std::size_t>& order) {
    Planted::Value w = p.weight("layer1.w_out");
    const Planted::Value was = w;
    const std::size_t length = 64 / order.size();
    for (std::size_t k = 0; k < 64; ++k)
      for (std::size_t c = 0; c < 32; ++c)
        w.data[k * 32 + c] = was.data[(order[k / length] * length + k % length) * 32 + c];
    return Planted::product(p.value(at + "hidden"), w, 64);
  }
  std::vector<Hypothesis> ask(Planted::Value v) {
    v.shape = p.value(at + "ffn_out").shape;
    return p.ask(at + "ffn_out", v, Torus(4, 1, 1));
  }
  Planted p{kGrouped + " block=serial"};
  const std::string at = "prefill.c0.layer1.";
};

TEST_F(WidthRule, DigitsAloneAreNoExplanation) {
  const auto bf16 = [](double v, std::size_t) { return as_bf16(v); };
  expect_unexplained(ask(each(with_blocks({0, 1, 3, 2}), bf16)), "blocks 0,1,3,2, then bf16");
  const Planted::Value right = with_blocks({0, 1, 2, 3});
  for (const double size : {0.05, 0.5}) {
    Noise noise;
    const double by = size * rms(right);
    expect_unexplained(
        ask(each(right, [&](double v, std::size_t) { return as_bf16(v + by * noise()); })),
        "noise, then bf16");
  }
  expect_first(ask(each(right, bf16)), "rounding", "", "the result is rounded to bf16");
}

TEST_F(WidthRule, NoiseInPartialSumsIsNoRounding) {
  Planted g(std::string(kModel) + " seed=29");
  const std::string id = "prefill.c0.layer1.gate";
  const Layout cut = Layout::parse("BLF_zy");
  const auto with = [&](auto&& of_number) {
    Planted::Shards shards(24);
    for (std::size_t r = 0; r < 4; ++r) {
      Planted::Value part =
          Planted::product(g.value("prefill.c0.layer1.norm"), g.weight("layer1.w_gate"), 48,
                           [r](std::size_t k) { return k / 12 == r ? 1.0 : 0.0; });
      part.shape = g.value(id).shape;
      const Planted::Shards of = Planted::cut(each(part, of_number), cut, kTorus);
      for (int chip = 0; chip < 24; ++chip)
        if (kTorus.coordinate(chip, Axis::x) == static_cast<int>(r))
          shards[static_cast<std::size_t>(chip)] = of[static_cast<std::size_t>(chip)];
    }
    return g.ask(id, "BLF_zy partialsum-x", kTorus, shards);
  };
  for (const double size : {0.01, 0.1, 0.5}) {
    Noise noise;
    const double by = size * rms(g.value(id));
    expect_unexplained(with([&](double v, std::size_t) { return v + by * noise(); }),
                       fmt::format("noise of {}", size));
  }
  const auto said = with([](double v, std::size_t) { return as_bf16(v); });
  ASSERT_FALSE(said.empty());
  EXPECT_TRUE(said[0].explains && said[0].detail.find("summands over x") != std::string::npos)
      << text(said);
}

/// Two parts of a decode step's keys, merged with the maximum left out of their weights.
TEST(WidthRuleOfBf16, AWrongMergeIsNoRounding) {
  Planted p(kGrouped + " act=bf16 weights=bf16");
  const std::string at = "decode.2.layer1.";
  const Planted::Value score = p.value(at + "score"), values = p.value(at + "v_cache");
  const std::size_t M = static_cast<std::size_t>(score.shape[3]);
  Planted::Value attn = p.value(at + "attn");
  for (std::size_t n = 0; n < attn.data.size() / 4; ++n) {
    const std::size_t b = n / 8, kv = n % 8 / 2;
    double top[2] = {-1e9, -1e9}, Z[2] = {0, 0}, sum[2][4] = {};
    for (std::size_t m = 0; m < M; ++m) top[m % 2] = std::max(top[m % 2], score.data[n * M + m]);
    for (std::size_t m = 0; m < M; ++m) {
      const double e = std::exp(score.data[n * M + m] - top[m % 2]);
      Z[m % 2] += e;
      for (std::size_t c = 0; c < 4; ++c)
        sum[m % 2][c] += e * values.data[((b * M + m) * 4 + kv) * 4 + c];
    }
    for (std::size_t c = 0; c < 4; ++c)
      attn.data[n * 4 + c] = as_bf16((sum[0][c] + sum[1][c]) / (Z[0] + Z[1]));
  }
  for (const char* name : {"q_rot", "k_rot", "k_cache", "v_cache", "score", "max", "exp", "denom"})
    for (auto it = p.dump.begin(); it != p.dump.end();)
      it = it->first.ends_with(std::string(".") + name) ? p.dump.erase(it) : std::next(it);
  expect_unexplained(p.ask(at + "attn", attn, Torus(2, 1, 1)), "merge without maxima");
}

class HeldAgainst : public testing::Test {
 protected:
  /// Rotated as if the row stood at another position.
  Planted::Value turned(const std::string& pass, const char* name, std::size_t row) {
    const auto c = p.weight("rope_cos"), s = p.weight("rope_sin");
    const std::string id = pass + ".layer1." + name;
    const Planted::Value x = p.value(id);
    return Planted::f32(each(x,
                             [&](double v, std::size_t i) {
                               const std::size_t j = i % 4 % 2, first = i - i % 4 + j;
                               const double cos = c.data[row * 2 + j], sin = s.data[row * 2 + j];
                               return i % 4 < 2 ? v * cos - x.data[first + 2] * sin
                                                : v * cos + x.data[first] * sin;
                             }),
                        x.shape);
  }
  Planted p{"model=palm-tiny,layers=2,E=24,F=24,H=6,K=2,Q=4,V=24 batch=6 prompt=12 gen=3 seed=9"};
};

TEST_F(HeldAgainst, LaterPassesRefuteRotatedTwice) {
  const std::string first = "decode.1.layer1.q_rot", second = "decode.2.layer1.q_rot";
  const Planted::Value was = p.value(second);
  p.later = {second};
  p.dump[second] = turned("decode.2", "q", 25);
  const auto said = p.ask(first, turned("decode.1", "q", 24), kTorus);
  expect_first(said, "position off", "", "position +12");
  for (const Hypothesis& h : said)
    EXPECT_TRUE(h.detail.find("twice") == std::string::npos || !h.explains) << text(said);
  // It is twice there, too: then it is that.
  p.dump[second] = turned("decode.2", "q", 26);
  expect_first(p.ask(first, turned("decode.1", "q", 24), kTorus), "position off", "",
               "rotated twice");
  // The later one is right: it is of this pass alone, whatever it is.
  p.dump[second] = was;
  const auto alone = p.ask(first, turned("decode.1", "q", 13), kTorus);
  expect_first(alone, "position off", "", "position +1; in decode.1.layer1 alone");
  // The later one is wrong in another way: nothing is explained.
  p.dump[second] = each(was, [](double v, std::size_t i) { return i % 3 == 0 ? 0.7 * v : v; });
  for (const Hypothesis& h : p.ask(first, turned("decode.1", "q", 13), kTorus)) {
    EXPECT_FALSE(h.explains) << h.detail;
    EXPECT_NE(h.detail.find("decode.2.layer1 is wrong in another way"), std::string::npos);
  }
}

/// Attention reads the cache before the new key is in it; the exponential says that it is seen.
TEST_F(HeldAgainst, ExponentialsRefuteAMask) {
  const std::string at = "decode.1.layer1.";
  Planted::Value score = p.value(at + "score"), top = p.value(at + "max"),
                 exp = p.value(at + "exp");
  const std::size_t M = static_cast<std::size_t>(score.shape[3]);
  const auto plant = [&](bool seen) {
    for (std::size_t n = 0; n < top.data.size(); ++n) {
      score.data[n * M + M - 1] = 0.0;
      top.data[n] = -1e9;
      for (std::size_t m = 0; m + (seen ? 0 : 1) < M; ++m)
        top.data[n] = std::max(top.data[n], score.data[n * M + m]);
      for (std::size_t m = 0; m < M; ++m)
        exp.data[n * M + m] =
            m + 1 < M || seen ? static_cast<float>(std::exp(score.data[n * M + m] - top.data[n]))
                              : 0;
    }
    p.dump[at + "max"] = top, p.dump[at + "exp"] = exp;
    return p.ask(at + "score", score, kTorus);
  };
  const auto said = plant(true);
  expect_first(said, "stale slot", "", "as it was before the pass");
  for (const Hypothesis& h : said) EXPECT_NE(h.fault, "mask") << text(said);
  expect_first(plant(false), "mask", "", "does not see its own key");
}

TEST(Masks, TheNewestKeyAlone) {
  Planted p(kGrouped);
  for (const char* layer : {"layer0", "layer1"}) {
    const std::string at = std::string("decode.2.") + layer + ".";
    const std::size_t M = static_cast<std::size_t>(p.value(at + "exp").shape[3]);
    p.dump[at + "exp"] = each(p.value(at + "exp"),
                              [M](double, std::size_t i) { return i % M + 1 == M ? 1.0 : 0.0; });
    for (const char* name : {"score", "max", "denom"}) p.dump.erase(at + name);
  }
  for (const char* layer : {"layer0", "layer1"}) {
    const std::string id = std::string("decode.2.") + layer + ".exp";
    p.sound = [&](const std::string& other) { return !other.ends_with(".exp"); };
    expect_first(p.ask(id, p.value(id), Torus(2, 1, 1)), "mask", "", "its own key alone");
  }
}

/// A cache whose slots are dealt to the chips one by one is all there.
TEST(RoundRobin, IsNoStaleSlot) {
  const Torus torus(4, 1, 1);
  Planted p("model=llama,layers=2,E=32,F=64,H=8,K=4,Q=4,V=32 batch=4 prompt=7 gen=3 seed=3");
  for (const char* name : {"k_cache", "v_cache"}) {
    const std::string id = std::string("decode.1.layer1.") + name;
    const Planted::Value cache = p.value(id);
    ASSERT_EQ(cache.shape[1], 8);
    const auto dealt_to = [&](const char* layout) {
      return p.ask(id, layout, torus, [&] {
        Planted::Shards shards(4);
        for (std::size_t chip = 0; chip < 4; ++chip)
          for (std::size_t i = 0; i < cache.data.size(); ++i)
            if (i / 16 % 4 == chip) shards[chip].push_back(cache.data[i]);
        return shards;
      }());
    };
    const auto said = dealt_to("BM_xKQ");
    expect_first(said, "chunks in another order", "x",
                 "M is dealt round-robin over x, 1 at a time");
    for (const Hypothesis& h : said) EXPECT_NE(h.fault, "stale slot") << text(said);
  }
}

/// Which of two orders is right, and which is the fault's.
TEST(Orders, AreToldTheRightWayRound) {
  for (const Torus& torus : {Torus(1, 2, 3), Torus(1, 2, 2), Torus(2, 3, 4)}) {
    Planted p(std::string(kModel) + " seed=2");
    const std::string id = "prefill.c0.layer1.norm";
    const Planted::Value norm = p.value(id);
    const Axes right = Axes::parse("zy"), wrong = Axes::parse("yz");
    const auto n = static_cast<std::size_t>(torus.size(right)), length = 48 / n;
    // Chunks are cut over zy, and come to lie by yz.
    const Planted::Value gathered = each(norm, [&](double, std::size_t i) {
      const std::size_t e = i % 48, place = e / length;
      int chip = 0;
      while (torus.coordinate(chip, Axis::x) != 0 ||
             torus.block(chip, wrong) != static_cast<int>(place))
        ++chip;
      return norm
          .data[i - e + static_cast<std::size_t>(torus.block(chip, right)) * length + e % length];
    });
    const bool square = torus.size(Axis::y) == torus.size(Axis::z);
    expect_first(p.ask(id, gathered, "BLE", torus), "axes in another order", "yz",
                 square ? ", or the other way round" : "gathered as E_yz; right is E_zy");
    p.layouts["prefill.c0.layer0.out"] = Layout::parse("BLE_zy");
    const auto said = p.ask(id, gathered, "BLE", torus);
    expect_first(said, "axes in another order", "yz", "gathered as E_yz; right is E_zy");
    EXPECT_EQ(said[0].detail.find("other way"), std::string::npos) << text(said);
  }
}

/// Whatever stands in masked slots, faults of scores are explained as if zeros did.
TEST(MaskedAny, FaultsOfScoresAreExplained) {
  Planted p(kGrouped);
  const std::string at = "prefill.c0.layer1.";
  const Planted::Value score = p.value(at + "score"), q = p.value(at + "q_rot"),
                       keys = p.value(at + "k_cache");
  const std::size_t M = 6;
  const auto dot = [&](std::size_t n, std::size_t m, std::size_t kv) {
    double sum = 0;
    for (std::size_t c = 0; c < 4; ++c)
      sum += q.data[n * 4 + c] * keys.data[((n / 48 * M + m) * 4 + kv) * 4 + c];
    return sum / 2;
  };
  const double inf = std::numeric_limits<double>::infinity();
  for (const std::string masked : {"zeros", "numbers", "-1e30", "-inf"}) {
    p.masked_any = masked != "zeros";
    const auto ask = [&](auto&& of) {
      return p.ask(at + "score",
                   each(score,
                        [&](double, std::size_t i) {
                          const std::size_t n = i / M, m = i % M, l = n / 8 % 6;
                          const double v = static_cast<float>(of(n, m));
                          if (m <= l || masked == "numbers") return v;
                          return masked == "zeros" ? 0.0 : masked == "-inf" ? -inf : -1e30;
                        }),
                   Torus(2, 2, 1));
    };
    const auto right = [&](std::size_t n, std::size_t m) { return dot(n, m, n % 8 / 2); };
    EXPECT_TRUE(ask(right).empty()) << masked;
    expect_first(ask([&](auto n, auto m) { return 2 * right(n, m); }), "scale missing", "",
                 "1/sqrt(Q)");
    expect_first(ask([&](auto n, auto m) { return 0.5 * right(n, m); }), "scale doubled", "",
                 "1/sqrt(Q)");
    expect_first(ask([&](auto n, auto m) { return dot(n, m, n % 4); }), "head order", "",
                 "h mod K");
    expect_first(ask([&](auto n, auto m) { return right(n / 8 * 8 + (n + 3) % 8, m); }),
                 "head order", "", "heads hold 3,4");
    expect_first(ask([&](auto n, auto m) { return right((n + 96) % 192, m); }),
                 "chunks in another order", "x");
    expect_first(ask([](auto, auto) { return 0.0; }), "never written", "", "zeros");
    const auto noisy = ask([&](auto n, auto m) { return right(n, m) + (n % 7 == m ? 0.3 : 0.0); });
    for (const Hypothesis& h : noisy) EXPECT_FALSE(h.explains) << masked << text(noisy);
  }
}

/// Rows of unequal length: what a prediction takes from padding is left open.
TEST(Ragged, FaultsThatMoveRowsAreExplained) {
  const Torus torus(4, 2, 1);
  Planted p(std::string(kModel) + " seed=9 lengths=4,2,1,3");
  for (const char* name : {"q", "gate", "out", "exp"}) {
    const std::string id = std::string("prefill.c0.layer1.") + name;
    const Planted::Value was = p.value(id);
    const std::size_t row = was.data.size() / 24;
    const bool prefill_masked = std::string(name) == "exp";
    p.masked_any = prefill_masked;
    // Rows have 3, 2, 1, 3 tokens in this pass; behind them there is whatever there is.
    const auto spoiled = [&](Planted::Value v) {
      const std::size_t tokens[] = {3, 2, 1, 3};
      return each(v, [&](double e, std::size_t i) {
        return i % row / (row / 3) < tokens[i / row % 4] ? e
                                                         : std::numeric_limits<double>::quiet_NaN();
      });
    };
    const Planted::Value given = spoiled(was);
    const auto rows_from = [&](auto&& from) {
      return p.ask(
          id,
          each(given,
               [&](double, std::size_t i) { return given.data[from(i / row) * row + i % row]; }),
          torus);
    };
    const auto expect = [&](const std::vector<Hypothesis>& all, const char* fault,
                            const char* detail) {
      ASSERT_FALSE(all.empty()) << id << fault;
      EXPECT_TRUE(all[0].explains && all[0].fault == fault &&
                  all[0].detail.find(detail) != std::string::npos)
          << id << "\n"
          << text(all);
    };
    EXPECT_TRUE(rows_from([](std::size_t b) { return b; }).empty()) << id;
    expect(rows_from([](std::size_t b) { return (b + 6) % 24; }), "chunks in another order",
           "rotated by 1");
    expect(rows_from([](std::size_t b) { return b % 6; }), "another chip's block", "");
    p.dump[id] = was;
  }
}

/// The last chip counts as the others do.
TEST(Nearest, OfAFaultThatIsWorstOnTheLastChip) {
  Planted p(std::string(kModel) + " seed=1");
  const std::string id = "prefill.c0.layer1.gate";
  const Planted::Value gate = p.value(id);
  // All chips have twice the value, and the last one something else besides, or nothing.
  for (const bool spoiled : {false, true}) {
    Planted::Shards shards = Planted::cut(
        each(gate, [](double v, std::size_t i) { return 2 * v * (1 + 1e-4 * (i % 3 == 0)); }),
        Layout::parse("BLF_xyz"), kTorus);
    if (spoiled)
      for (std::size_t i = 0; i < shards[23].size(); ++i)
        shards[23][i] += (i % 2 == 0 ? 3.0 : -3.0) * rms(gate);
    const auto said = p.ask(id, "BLF_xyz", kTorus, shards);
    expect_unexplained(said, "twice, and noise");
    EXPECT_EQ(said.empty(), spoiled) << text(said);
    if (!said.empty()) {
      EXPECT_LT(said[0].residual, 0.01) << text(said);
    }
  }
}

TEST(Nearest, EqualAxesAreListedOnce) {
  const Torus torus(2, 2, 3);
  Planted p(std::string(kModel) + " seed=1");
  const std::string id = "prefill.c0.layer1.gate";
  Noise noise;
  const Planted::Value gate = p.value(id);
  // The mean over two chips in place of the sum, nearly.
  const double by = 1e-3 * rms(gate);
  const auto said =
      p.ask(id, each(gate, [&](double v, std::size_t) { return v / 2 + by * noise(); }), torus);
  expect_unexplained(said, "half, and noise");
  ASSERT_FALSE(said.empty());
  for (std::size_t i = 0; i < said.size(); ++i)
    for (std::size_t j = 0; j < i; ++j)
      EXPECT_FALSE(said[i].fault == said[j].fault && said[i].residual == said[j].residual)
          << text(said);
  EXPECT_NE(said[0].detail.find("likewise over y"), std::string::npos) << text(said);
}

/// One chip, the first or the last, has what belongs to its neighbour along each axis.
TEST(AnotherChip, AlongEachAxis) {
  Planted p(std::string(kModel) + " seed=4");
  const std::string id = "prefill.c0.layer1.out";
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
      const auto said = p.ask(id, "BLE_xyz", kTorus,
                              Planted::cut(p.value(id), Layout::parse("BLE_xyz"), kTorus,
                                           [&](int c) { return c == chip ? other : c; }));
      expect_first(said, "another chip's block", std::string(1, to_char(axis)),
                   fmt::format("{} holds that of {}", kTorus.name(chip), kTorus.name(other)));
    }
}

}  // namespace
}  // namespace shardproof::diagnosis
