// Faults of matrices, functions, positions, masks, heads, caches, statistics and rounding.
#include "tests/golden/diagnosis/planted.h"
#include "weights/base/bf16.h"

namespace shardproof::diagnosis {
namespace {

const Torus kTorus(4, 2, 3);

class Others : public testing::Test {
 protected:
  /// The fault is in one value; the dump is then as before.
  std::vector<Hypothesis> ask(const std::string& id, const Planted::Value& v) {
    const Planted::Value was = p.value(id);
    auto all = p.ask(id, Planted::f32(v, was.shape), kTorus);
    p.dump[id] = was;
    return all;
  }
  template <class F>
  Planted::Value each(Planted::Value v, F&& f) {
    for (std::size_t i = 0; i < v.data.size(); ++i) v.data[i] = f(v.data[i], i);
    return v;
  }
  Planted p{std::string(kModel) + " seed=9"};
  const std::string at = "decode.1.layer1.";
};

TEST_F(Others, Matrices) {
  const auto& norm = p.value(at + "norm");
  expect_first(ask(at + "k", Planted::product(norm, p.weight("layer1.wv"), 48)),
               "another layer's weight", "", "wv in place");
  expect_first(ask(at + "q", Planted::product(norm, p.weight("layer0.wq"), 48)),
               "another layer's weight", "", "layer0.wq");
  expect_first(ask(at + "gate", Planted::product(norm, p.weight("layer1.w_up"), 48)),
               "gate and up swapped");
  auto w = p.weight("layer1.wq");
  const auto was = w;
  for (std::size_t k = 0; k < 48; ++k)
    for (std::size_t c = 0; c < 96; ++c) w.data[k * 96 + c] = was.data[k * 96 + c % 4 * 24 + c / 4];
  EXPECT_EQ(ask(at + "q", Planted::product(norm, w, 48)).at(0).explains, true);
  expect_first(ask(at + "gate", p.value("decode.1.layer0.gate")), "another layer's or pass's value",
               "", "decode.1.layer0.gate");
  const auto second = p.value("decode.2.layer1.gate");
  expect_first(ask("decode.2.layer1.gate", p.value(at + "gate")), "another layer's or pass's value",
               "", "decode.1");
  // What comes later in the run is no source of it.
  for (const Hypothesis& h : ask(at + "gate", second)) EXPECT_FALSE(h.explains) << h.detail;
}

TEST_F(Others, Functions) {
  const auto& g = p.value(at + "gate");
  const auto& u = p.value(at + "up");
  const auto swish = [](double x) {
    return static_cast<double>(static_cast<float>(x / (1 + std::exp(-x))));
  };
  expect_first(
      ask(at + "hidden", each(g, [&](double v, std::size_t i) { return swish(u.data[i]) * v; })),
      "gate and up swapped", "", "act(up)");
  expect_first(ask(at + "hidden", each(g, [&](double v, std::size_t i) { return u.data[i] * v; })),
               "gate and up swapped", "", "activation is missing");
}

TEST(OthersOfBaseTwo, FormulasOfBaseE) {
  std::string line = kModel;
  Planted p(line.insert(line.find(" batch"), ",softmax=base2") + " seed=9");
  const std::string at = "decode.1.layer1.";
  const Planted::Value gate = p.value(at + "gate"), up = p.value(at + "up");
  Planted::Value hidden = p.value(at + "hidden");
  const Shape shape = hidden.shape;
  for (std::size_t i = 0; i < hidden.data.size(); ++i) {
    const double g = gate.data[i];
    hidden.data[i] = static_cast<double>(static_cast<float>(g / (1 + std::exp(-g)))) * up.data[i];
  }
  expect_first(p.ask(at + "hidden", Planted::f32(hidden, shape), kTorus), "scale missing", "",
               "swish of g in place of 2g");
}

TEST_F(Others, Positions) {
  const auto c = p.weight("rope_cos"), s = p.weight("rope_sin");
  const auto& q = p.value(at + "q");
  const auto turned = [&](std::size_t row) {
    return each(q, [&](double v, std::size_t i) {
      const std::size_t j = i % 4 % 2, first = i - i % 4 + j;
      const double cos = c.data[row * 2 + j], sin = s.data[row * 2 + j];
      return i % 4 < 2 ? v * cos - q.data[first + 2] * sin : v * cos + q.data[first] * sin;
    });
  };
  ASSERT_TRUE(ask(at + "q_rot", turned(4)).empty());
  expect_first(ask(at + "q_rot", turned(5)), "position off", "", "position +1");
  expect_first(ask(at + "q_rot", turned(1)), "position off", "", "position -3");
  expect_first(ask(at + "q_rot", q), "position off");
}

TEST_F(Others, ScalesAndConventions) {
  const auto times = [&](const char* id, double by) {
    return each(p.value(at + id), [by](double v, std::size_t) { return v * by; });
  };
  expect_first(ask(at + "score", times("score", 2.0)), "scale missing", "", "sqrt");
  expect_first(ask(at + "score", times("score", 0.5)), "scale doubled", "", "sqrt");
  const auto table = p.weight("embed");
  const auto embed = each(p.value("decode.1.embed"), [&](double v, std::size_t i) {
    for (std::size_t k = i % 48; k < table.data.size(); k += 48)
      if (static_cast<float>(table.data[k] * static_cast<double>(1.7F)) == static_cast<float>(v))
        return table.data[k];
    return 0.0;
  });
  expect_first(ask("decode.1.embed", embed), "scale missing", "", "embed_scale");
  const auto logits = each(p.value("decode.1.logits"),
                           [](double v, std::size_t) { return v * 1.4426950408889634; });
  expect_first(ask("decode.1.logits", logits), "convention", "", "declare logits_base=2");
}

TEST_F(Others, MasksAndHeads) {
  const std::string id = "prefill.c0.layer1.";
  auto exp = p.value(id + "exp");
  const auto M = static_cast<std::size_t>(exp.shape[3]);
  const auto& top = p.value(id + "max");
  // Nothing is masked; masked scores are 0.
  const auto& score = p.value(id + "score");
  const auto open = each(exp, [&](double, std::size_t i) {
    return std::exp(static_cast<double>(static_cast<float>(score.data[i] - top.data[i / M])));
  });
  expect_first(ask(id + "exp", open), "mask", "", "no mask");
  auto q = p.value(at + "q");
  const auto was = q;
  for (std::size_t i = 0; i < q.data.size(); ++i) {
    const std::size_t h = i / 4 % 24, from = (h * 5) % 24;
    q.data[i] = was.data[i + from * 4 - h * 4];
  }
  expect_first(ask(at + "q", q), "head order", "", "0,5,10");
}

/// Of 24 query heads and 2 kv heads: h mod 2 in place of h·2/24.
TEST_F(Others, KvHeadsTiledInPlaceOfRepeated) {
  const auto& q = p.value(at + "q_rot");
  const auto &keys = p.value(at + "k_cache"), &values = p.value(at + "v_cache");
  const auto &exp = p.value(at + "exp"), &denom = p.value(at + "denom");
  const auto M = static_cast<std::size_t>(keys.shape[1]);
  const auto cached = [&](const Planted::Value& of, std::size_t b, std::size_t m, std::size_t h,
                          std::size_t c) { return of.data[((b * M + m) * 2 + h % 2) * 4 + c]; };
  // A decode step: one token a row, and no key is masked.
  const auto score = each(p.value(at + "score"), [&](double, std::size_t i) {
    const std::size_t n = i / M;
    double sum = 0;
    for (std::size_t c = 0; c < 4; ++c)
      sum += q.data[n * 4 + c] * cached(keys, n / 24, i % M, n % 24, c);
    return sum / 2;
  });
  expect_first(ask(at + "score", score), "head order", "", "h mod K");
  const auto attn = each(p.value(at + "attn"), [&](double, std::size_t i) {
    const std::size_t n = i / 4;
    double sum = 0;
    for (std::size_t m = 0; m < M; ++m)
      sum += exp.data[n * M + m] * cached(values, n / 24, m, n % 24, i % 4);
    return sum / denom.data[n];
  });
  expect_first(ask(at + "attn", attn), "head order", "", "h mod K");
}

TEST_F(Others, AGarbageSlotIsNotExplained) {
  const auto cache = each(p.value(at + "k_cache"), [&](double v, std::size_t i) {
    return i / 8 % static_cast<std::size_t>(p.value(at + "k_cache").shape[1]) == 3
               ? std::sin(static_cast<double>(i))
               : v;
  });
  for (const Hypothesis& h : ask(at + "k_cache", cache)) EXPECT_FALSE(h.explains) << h.detail;
}

TEST_F(Others, Slots) {
  auto cache = p.value(at + "k_cache");
  const auto M = static_cast<std::size_t>(cache.shape[1]);
  auto zero = cache, shifted = cache;
  for (std::size_t i = 0; i < cache.data.size(); ++i) {
    const std::size_t m = i / 8 % M;
    if (m == M - 1) zero.data[i] = 0, shifted.data[i] = cache.data[i - 8];
  }
  expect_first(ask(at + "k_cache", zero), "stale slot", "", "not written");
  expect_first(ask(at + "k_cache", shifted), "stale slot", "", "what belongs in slot 3");
}

TEST_F(Others, LocalStatistics) {
  const auto& x = p.value("decode.1.layer0.out");
  const auto g = p.weight("layer1.norm");
  for (const char* axes : {"x", "y", "zyx"}) {
    const auto n = static_cast<std::size_t>(kTorus.size(Axes::parse(axes)));
    const std::size_t length = 48 / n;
    const auto local = each(x, [&](double v, std::size_t i) {
      double ss = 0;
      const std::size_t begin = i / length * length;
      for (std::size_t k = begin; k < begin + length; ++k) ss += x.data[k] * x.data[k];
      return v / std::sqrt(ss / static_cast<double>(length) + 1e-6) * g.data[i % 48];
    });
    const Planted::Value was = p.value(at + "norm");
    const auto all =
        p.ask(at + "norm", Planted::f32(local, x.shape), std::string("BLE_") + axes, kTorus);
    p.dump[at + "norm"] = was;
    expect_first(all, "local statistics", Axes::parse(axes).sorted().to_string());
  }
}

TEST_F(Others, Rounding) {
  const auto bf16 = [](double v) {
    return static_cast<double>(round_to_bf16(static_cast<float>(v)));
  };
  const auto w = p.weight("layer1.w_gate");
  const auto x = each(p.value(at + "norm"), [&](double v, std::size_t) { return bf16(v); });
  expect_first(ask(at + "gate", Planted::product(x, w, 48)), "rounding", "", "the operand");
  expect_first(
      ask(at + "gate", each(p.value(at + "gate"), [&](double v, std::size_t) { return bf16(v); })),
      "rounding", "", "the result");
}

}  // namespace
}  // namespace shardproof::diagnosis
