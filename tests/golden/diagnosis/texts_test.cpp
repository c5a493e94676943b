// Causes in values of a text of its own, with names and letters that no keys have.
#include <gtest/gtest.h>

#include <cmath>

#include "engine/run/case_weights.h"
#include "golden/bounds/text/text_replay.h"
#include "oracle/graph/answer.h"
#include "oracle/request/storage.h"
#include "tests/golden/diagnosis/planted.h"
#include "weights/storage/generator.h"

namespace shardproof::diagnosis {
namespace {

constexpr const char* kText = R"(model own
dim E d_model
dim N heads
dim C channels
dim R rank
dim V vocabulary
number eps
number damp = 1 / sqrt(C)
small layers=2, E=24, N=6, C=4, R=12, V=16, eps=1e-5

embedding
weight table : VE
embed : BLE = store(gather(table, ids, V))
far : BLM = sub(slot, pos)
see : BLM = within(far, -2, 0)

layer
weight g : E is gain
weight wa : ENC
weight wb : ENC
weight wd : NCE
weight bd : E is bias
weight we : ER
weight wf : RE
square : BL = mean(mul(in, in), E)
even : BLE = store(mul(div(in, sqrt(add(square, eps))), g))
asks : BLNC = store(einsum(BLE,ENC->BLNC; even, wa))
keys : BLNC = store(einsum(BLE,ENC->BLNC; even, wb))
kept : BMNC = append(keys, pos)
dots : BLNM where see = mul(einsum(BLNC,BMNC->BLNM; asks, kept), damp)
most : BLN = max(dots, M)
shares : BLNM = exp(sub(dots, most))
total : BLN = sum(shares, M)
mix : BLNC = store(div(einsum(BLNM,BMNC->BLNC; shares, kept), total))
back : BLE = store(add(einsum(BLNC,NCE->BLE; mix, wd), bd))
half : BLE = store(add(in, back))
bent : BLR = store(relu(einsum(BLE,ER->BLR; half, we)))
out : BLE = store(add(half, einsum(BLR,RE->BLE; bent, wf)))

head
weight unembed : VE
logits : BLV = store(einsum(BLE,VE->BLV; in, unembed))
)";

/// An answer of a text as somebody's dump.
class TextAnswer {
 public:
  using Value = Planted::Value;

  explicit TextAnswer(const std::string& text, std::int64_t batch = 4)
      : source_case(case_of_text(text, batch)) {
    for (const std::string& pass : answer.passes) ids[pass] = answer.inputs.at(pass + ".ids");
    for (const auto& [id, tensor] : answer.checkpoints) {
      dump[id] = Value(tensor.shape);
      dump[id].data.assign(tensor.data.begin(), tensor.data.end());
    }
  }

  const Value& value(const std::string& name) const { return dump.at(of + name); }
  const Tensor& weight(const std::string& name) const { return *weights.at("layer1." + name); }
  Planted::Said ask(const std::string& name, const std::string& layout, Planted::Shards shards) {
    const bounds::Derivation::Dump given(dump.begin(), dump.end());
    bounds::TextReplay replay(weights, passes, ids, given, bounds::DeclaredArithmetic());
    Wrong wrong{of + name, torus, Layout::parse(layout), std::move(shards)};
    return diagnose(replay, wrong);
  }
  Planted::Said ask(const std::string& name, const std::string& layout, const Value& v) {
    return ask(name, layout, Planted::cut(Planted::f32(v, value(name).shape), layout, torus));
  }
  /// x [rows, K] times w [K, columns], of those k alone for which `counts` is true.
  template <class Counts>
  static Value product(const Value& x, const Tensor& w, std::size_t K, Counts&& counts) {
    const std::size_t columns = w.data.size() / K;
    Value y(Shape{std::ssize(x.data) / static_cast<std::int64_t>(K),
                  static_cast<std::int64_t>(columns)});
    for (std::size_t i = 0; i < y.data.size(); ++i)
      for (std::size_t k = 0; k < K; ++k)
        if (counts(k))
          y.data[i] +=
              x.data[i / columns * K + k] * static_cast<double>(w.data[k * columns + i % columns]);
    return y;
  }

  static Case case_of_text(const std::string& text, std::int64_t batch) {
    Case c = parse_case(fmt::format("batch={} prompt=4 gen=3", batch));
    c.model = model_config(
        std::make_shared<const TextModel>(parse_model_text(text), TextKeys(), "own.model"));
    return c;
  }

  Case source_case;
  Passes passes = source_case.passes();
  Weights weights = oracle::as_stored(generated_weights(source_case), source_case.numerics.weights);
  oracle::Answer answer = oracle::graph::answer(
      weights, {source_case.numerics,
                generate_prompt(source_case.model, source_case.seed, source_case.batch, 4, {}),
                passes,
                source_case.sampling,
                source_case.seed,
                {}});
  std::map<std::string, IntTensor> ids;
  std::map<std::string, Value> dump;
  std::string of = "prefill.c0.layer1.";
  const Torus torus{3, 2, 1};
};

class TextsExplained : public testing::Test, protected TextAnswer {
 protected:
  TextsExplained() : TextAnswer(kText) {}
};

TEST_F(TextsExplained, RightValuesHaveNone) {
  for (const char* name : {"even", "asks", "mix", "back", "half", "bent", "out"})
    expect_right(ask(name,
                     name == std::string("asks") || name == std::string("mix") ? "BLNC"
                     : name == std::string("bent")                             ? "BLR"
                                                                               : "BLE",
                     value(name)),
                 name);
}

TEST_F(TextsExplained, BlocksAndSums) {
  const auto chip = [](int c) { return (2 - c / 2) * 2 + c % 2; };
  expect_first(ask("asks", "BLN_xC", Planted::cut(value("asks"), "BLN_xC", torus, chip)),
               "chunks in another order [x]: the blocks over x are reversed");
  const auto half = product(value("even"), weight("wa"), 24, [](auto k) { return k >= 8; });
  expect_first(ask("asks_1", "BLNC", half),
               "partial sum missing [x]: block 0 of 3 over x is left out, of E_x");
  const auto twice = product(value("mix"), weight("wd"), 24, [](auto) { return true; });
  expect_first(ask("back_1", "BLE", scaled(twice, 2)), "reduction twice [y]");
  expect_first(ask("half", "BLE_x", value("back")), "addend not added once: out is added 0 times");
  const auto& bias = weight("bd").data;
  expect_first(
      ask("back", "BLE",
          each(value("back"),
               [&](double v, std::size_t i) { return v + 2 * static_cast<double>(bias[i % 24]); })),
      "addend not added once [x]: bd is added 3 times, not 1");
}

TEST_F(TextsExplained, WeightsAndConstants) {
  const auto all = [](std::size_t) { return true; };
  expect_first(ask("asks_1", "BLNC", product(value("even"), weight("wb"), 24, all)),
               "another layer's weight: wb in place of layer1.wa");
  expect_first(ask("even", "BLE",
                   each(value("even"),
                        [&](double v, std::size_t i) {
                          return v / static_cast<double>(weight("g").data[i % 24]);
                        })),
               "scale missing: the gain");
  expect_first(ask("dots", "BLNM", scaled(value("dots"), 2)), "scale missing: 1/sqrt(C)");
  expect_first(ask("dots", "BLNM", scaled(value("dots"), 0.5)), "scale doubled: 1/sqrt(C)");
}

TEST_F(TextsExplained, Attention) {
  const std::size_t M = 4;
  const auto& shares = value("shares");
  expect_first(ask("mix", "BLNC", value("mix_1")), "scale missing: not divided by the denominator");
  const auto& dots = value("dots");
  const auto& most = value("most");
  expect_first(ask("shares", "BLNM",
                   each(shares,
                        [&](double v, std::size_t i) {
                          return v == 0 ? 0 : std::exp2(dots.data[i] - most.data[i / M]);
                        })),
               "scale missing: log2(e): 2^x in place of e^x");
  expect_first(
      ask("kept", "BMNC",
          each(value("kept"), [&](double v, std::size_t i) { return i / 24 == 2 ? 0.0 : v; })),
      "stale slot: slot 2 of row 0 holds zeros: it is not written");
  expect_first(ask("bent", "BLR", value("bent_1")),
               "gate and up swapped: the activation is missing");
  // A query sees all keys, where its window has three.
  for (const char* name : {"shares", "total", "most", "dots_1"}) dump.erase(of + name);
  const auto &asks = value("asks"), &kept = value("kept");
  expect_first(
      ask("dots", "BLNM",
          each(value("dots"),
               [&](double, std::size_t i) {
                 const std::size_t n = i / M % 6, b = i / M / 24, m = i % M, l = i / M / 6 % 4;
                 if (m > l + 1 || m + 1 < l) return 0.0;
                 double sum = 0;
                 for (std::size_t c = 0; c < 4; ++c)
                   sum += asks.data[i / M * 4 + c] * kept.data[((b * M + m) * 6 + n) * 4 + c];
                 return sum / 2;
               })),
      "mask: each query also sees the key behind its own");
}

/// Scores of which the dump lacks the products: a window one key too short is not one key further.
constexpr const char* kWindowText = R"(model window
dim E d_model
dim C channels
dim V vocabulary
small layers=2, E=8, C=4, V=16

embedding
weight table : VE
embed : BLE = store(gather(table, ids, V))
far : BLM = sub(slot, pos)
see : BLM = within(far, -2, 0)

layer
weight wa : EC
weight wb : EC
weight wd : CE
asks : BLC = store(einsum(BLE,EC->BLC; in, wa))
keys : BLC = store(einsum(BLE,EC->BLC; in, wb))
kept : BMC = append(keys, pos)
dot : BLM where see = store(einsum(BLC,BMC->BLM; asks, kept))
score : BLM = store(mul(dot, 0.5))
mix : BLC = store(einsum(BLM,BMC->BLC; score, kept))
out : BLE = store(add(in, einsum(BLC,CE->BLE; mix, wd)))

head
weight unembed : VE
logits : BLV = store(einsum(BLE,VE->BLV; in, unembed))
)";

TEST(MasksOfWhatIsNotDumped, AreTakenFromItsOperands) {
  TextAnswer text(kWindowText);
  const auto &asks = text.value("asks"), &kept = text.value("kept");
  std::erase_if(text.dump, [](const auto& value) {
    return value.first.find(".dot") != std::string::npos ||
           value.first.find(".see") != std::string::npos;
  });
  // Of keys from l + first to l + last.
  const auto seen = [&](int first, int last) {
    return each(text.value("score"), [&](double, std::size_t i) {
      const auto m = static_cast<int>(i % 4), l = static_cast<int>(i / 4 % 4);
      double sum = 0;
      for (std::size_t c = 0; c < 4 && m >= l + first && m <= l + last; ++c)
        sum += asks.data[i / 4 * 4 + c] * kept.data[(i / 16 * 4 + i % 4) * 4 + c];
      return sum / 2;
    });
  };
  expect_right(text.ask("score", "BLM", seen(-2, 0)), "score");
  expect_first(text.ask("score", "BLM", seen(-1, 1)),
               "mask: each query also sees the key behind its own");
  for (const Hypothesis& said : text.ask("score", "BLM", seen(-1, 0)))
    EXPECT_EQ(said.detail.find("also sees the key behind"), std::string::npos) << said.detail;
}

/// Faults of weights explain no sum of products of two values: not even where a weight's name in
/// files is that of such a value, or where the value has as many numbers as a weight would have.
TEST(SumsOfTwoValues, AreNotExplainedByAWeight) {
  std::string named = kWindowText;
  named.replace(named.find("weight wb : EC"), 14, "weight wb : EC from kept");
  for (const std::int64_t batch : {1, 4}) {
    TextAnswer text(named, batch);
    std::erase_if(text.dump, [](const auto& value) { return value.first.ends_with("_1"); });
    const auto &score = text.value("score"), &kept = text.value("kept");
    // Channel c adds up the slots m of its query's scores, each with number place(m, c) of the row.
    const auto ask = [&](auto&& place) {
      return text.ask("mix", "BLC", each(text.value("mix"), [&](double, std::size_t i) {
                        double sum = 0;
                        for (std::size_t m = 0; m < 4; ++m)
                          sum +=
                              score.data[i / 4 * 4 + m] * kept.data[i / 16 * 16 + place(m, i % 4)];
                        return sum;
                      }));
    };
    const std::string rows = fmt::format("{} rows", batch);
    expect_right(ask([](std::size_t m, std::size_t c) { return m * 4 + c; }), rows);
    expect_unexplained(ask([](std::size_t m, std::size_t c) { return (m + 2) % 4 * 4 + c; }), rows);
    expect_unexplained(ask([](std::size_t m, std::size_t c) { return c * 4 + m; }), rows);
  }
}

/// A norm of rows of a table, which no value names; and products of functions of several forms.
constexpr const char* kNormedText = R"(model normed
dim E d_model
dim F d_ff
dim V vocabulary
number eps
small layers=2, E=24, F=12, V=16, eps=1e-5

embedding
weight table : VE
weight ge : E is gain
row : BLE = gather(table, ids, V)
embed : BLE = store(mul(div(row, sqrt(add(mean(mul(row, row), E), eps))), ge))

layer
weight wg : EF
weight wu : EF
weight wd : FE
gate : BLF = store(einsum(BLE,EF->BLF; in, wg))
up : BLF = store(einsum(BLE,EF->BLF; in, wu))
twice : BLF = store(mul(silu(mul(2, gate)), up))
bent : BLF = store(mul(twice, relu(sub(0.5, gate))))
out : BLE = store(add(in, einsum(BLF,FE->BLE; bent, wd)))

head
weight unembed : VE
logits : BLV = store(einsum(BLE,VE->BLV; in, unembed))
)";

TEST(ValuesWithoutOperands, AreExplainedByTheirWeights) {
  TextAnswer text(kNormedText);
  text.of = "prefill.c0.";
  std::erase_if(text.dump, [](const auto& value) {
    return value.first.find("row") != std::string::npos ||
           value.first.find("embed_") != std::string::npos;
  });
  const Tensor& gain = *text.weights.at("ge");
  expect_first(text.ask("embed", "BLE",
                        each(text.value("embed"),
                             [&](double v, std::size_t i) {
                               return v / static_cast<double>(gain.data[i % 24]);
                             })),
               "scale missing: the gain");
  Noise noise;
  expect_unexplained(text.ask("embed", "BLE", noise.on(text.value("embed"), 0.1)), "embed");
}

TEST(FunctionsOfFormulas, AreExplainedByTheirOperand) {
  TextAnswer text(kNormedText);
  const auto &gate = text.value("gate"), &up = text.value("up");
  const auto silu = [](double v) { return v / (1 + std::exp(-v)); };
  expect_first(
      text.ask("twice", "BLF",
               each(gate, [&](double v, std::size_t i) { return v * silu(2 * up.data[i]); })),
      "gate and up swapped: twice is act(up)·gate");
  expect_first(
      text.ask("twice", "BLF", each(gate, [&](double v, std::size_t) { return silu(2 * v); })),
      "gate and up swapped: the product with up is missing");
  Noise noise;
  for (const char* name : {"twice", "bent"})
    expect_unexplained(text.ask(name, "BLF", noise.on(text.value(name), 0.1)), name);
}

TEST_F(TextsExplained, NoiseIsNot) {
  Noise noise;
  for (const char* name : {"asks", "back", "half", "even"})
    expect_unexplained(
        ask(name, name == std::string("asks") ? "BLNC" : "BLE", noise.on(value(name), 0.1)), name);
}

}  // namespace
}  // namespace shardproof::diagnosis
