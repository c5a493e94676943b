// What the oracle refuses, by label, and what it says.
#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <string>

#include "oracle/model/oracle.h"
#include "weights/base/error.h"
#include "weights/storage/generator.h"

namespace shardproof::oracle {
namespace {

struct Small {
  ModelConfig config = parse_model("palm-tiny,layers=1,E=8,F=8,H=2,Q=4,V=10,positions=8");
  Weights weights = generate_weights(config, 1);
  Request request;

  Small() {
    request.prompt = generate_prompt(config, 1, 2, 5);
    request.passes = Passes(2, 5, 0, 2);
  }
};

std::string refusal(const std::function<void()>& act) {
  try {
    act();
  } catch (const Error& e) {
    return e.what();
  }
  return "accepted";
}

std::string refusal(const Small& small) {
  return refusal([&] { run(small.weights, small.request); });
}

TEST(OracleRefuses, NothingOfAGoodRequest) { EXPECT_EQ(refusal(Small()), "accepted"); }

TEST(OracleRefuses, AnotherRegime) {
  Small s;
  s.request.numerics.regime = Regime::f32;
  EXPECT_TRUE(refusal(s).starts_with("oracle_regime: "));
}

TEST(OracleRefuses, ATokenOutsideTheVocabulary) {
  Small s;
  s.request.prompt.data[7] = 10;
  EXPECT_EQ(refusal(s), "oracle_range: prompt[1,2] is 10, a token id must be in [0, 10)");
  s.request.prompt.data[7] = -1;
  EXPECT_TRUE(refusal(s).starts_with("oracle_range: prompt[1,2] is -1"));
}

TEST(OracleRefuses, MorePositionsThanTheTableHas) {
  Small s;
  s.request.passes = Passes(2, 5, 0, 4);  // positions 0 ... 7
  EXPECT_EQ(refusal(s), "accepted");
  s.request.passes = Passes(2, 5, 0, 5);
  EXPECT_EQ(refusal(s), "oracle_range: decode.4: needs 9 positions, the RoPE table has 8");
}

TEST(OracleRefuses, AnEmptyRun) {
  Small s;
  s.request.passes = {};
  EXPECT_EQ(refusal(s), "oracle_range: there is no pass to run");
  s = Small();
  s.request.prompt = IntTensor({2, 0});
  EXPECT_TRUE(refusal(s).starts_with("oracle_range: "));
}

TEST(OracleRefuses, APassThatIsNotOfThePrompt) {
  const auto with = [](const std::function<void(std::vector<PassPlan>&)>& change) {
    Small s;
    std::vector<PassPlan> passes{s.request.passes.at(0), s.request.passes.at(1)};
    change(passes);
    s.request.passes = Passes(passes);
    return refusal(s);
  };
  EXPECT_EQ(with([](auto&) {}), "accepted");
  EXPECT_EQ(with([](auto& p) { p[0].rows[0].rows = 3; }),
            "oracle_range: prefill.c0: 3 rows, the prompt has 2");
  EXPECT_EQ(with([](auto& p) { p[0].L = p[0].rows[0].tokens = 6; }),
            "oracle_range: prefill.c0: reads to position 6, the prompt has 5");
  EXPECT_EQ(with([](auto& p) { p[0].rows[0].tokens = 0; }),
            "oracle_range: prefill.c0: it has no token of any row");
  EXPECT_EQ(
      with([](auto& p) {
        p[0].rows = {{.rows = 1, .start = 0, .tokens = 5}, {.rows = 1, .start = 0, .tokens = 0}};
      }),
      "oracle_range: prefill.c0: a row begins without a token");
  EXPECT_EQ(with([](auto& p) {
              p[0].rows = {{.rows = 1, .start = 0, .tokens = 5},
                           {.rows = 1, .start = 0, .tokens = 5, .last = false}};
            }),
            "oracle_range: decode.1: no pass before it sampled a token of row 1");
  EXPECT_EQ(with([](auto& p) { p[0].rows[0].tokens = 6; }),
            "oracle_range: prefill.c0: 6 tokens from position 0 on in a pass of 5 over 0 cached");
  EXPECT_EQ(with([](auto& p) { p[1].rows[0].start = 6; }),
            "oracle_range: decode.1: 1 tokens from position 6 on in a pass of 1 over 5 cached");
  // Row 1 has four tokens and a padding: a key that no query may see.
  EXPECT_EQ(
      with([](auto& p) {
        p[0].rows = {{.rows = 1, .start = 0, .tokens = 5}, {.rows = 1, .start = 0, .tokens = 4}};
      }),
      "oracle_range: decode.1: row 1 goes on at position 5, its tokens end before 4");
  EXPECT_EQ(
      with([](auto& p) {
        p[0].rows = {{.rows = 1, .start = 0, .tokens = 5}, {.rows = 1, .start = 0, .tokens = 4}};
        p[1].rows = {{.rows = 1, .start = 5, .tokens = 1}, {.rows = 1, .start = 4, .tokens = 1}};
      }),
      "accepted");
  EXPECT_EQ(with([](auto& p) { p[1].rows[0].start = 4; }), "accepted") << "over its last token";
  EXPECT_EQ(with([](auto& p) { p[1].rows[0].start = -1; }),
            "oracle_range: decode.1: 1 tokens from position -1 on in a pass of 1 over 5 cached");
  EXPECT_EQ(with([](auto& p) { p[1].L = 2; }),
            "oracle_range: decode.1: a decode step has one token a row, not 2");
  EXPECT_EQ(with([](auto& p) { p[1].cached = 6; }),
            "oracle_range: decode.1: 5 slots are cached before it, not 6");
  EXPECT_EQ(with([](auto& p) { p[0].sample = false; }),
            "oracle_range: decode.1: no pass before it sampled a token of row 0");
  // Ids begin with a pass's name, and a cache is looked up by the name of the pass before.
  EXPECT_EQ(with([](auto& p) { p[1].name = p[0].name; }),
            "oracle_range: two passes are called prefill.c0");
  EXPECT_EQ(with([](auto& p) { p[1].previous = ""; }),
            "oracle_range: decode.1: the pass before it is \"prefill.c0\", not \"\"");
  EXPECT_EQ(with([](auto& p) { p[0].previous = "decode.1"; }),
            "oracle_range: prefill.c0: the pass before it is \"\", not \"decode.1\"");
  EXPECT_EQ(with([](auto& p) {
              p.push_back({.name = "prefill.c1",
                           .previous = "decode.1",
                           .phase = Phase::prefill,
                           .L = 1,
                           .cached = 6,
                           .rows = {{.rows = 2, .start = 0, .tokens = 1}}});
            }),
            "oracle_range: prefill.c1: a prefill pass after decode.1, a decode step");
}

TEST(OracleRefuses, ANonFiniteCheckpointNamingIdAndIndex) {
  Small s;
  std::map<std::string, Tensor> tensors = s.weights.tensors();
  tensors.at("layer0.norm").data[3] = 1e3F;
  Tensor& gate = tensors.at("layer0.w_gate");
  gate.data[3 * 8 + 5] = 3e38F;  // [3, 5]
  s.weights = Weights(s.config, tensors);
  const std::string said = refusal(s);
  EXPECT_TRUE(said.starts_with("oracle_finite: prefill.c0.layer0.gate[0,0,5] is ")) << said;
}

/// A tiny serial model with every bias, small but for what `plant` makes of its weights.
std::string planted(const std::string& keys,
                    const std::function<void(std::map<std::string, Tensor>&)>& plant) {
  Small s;
  s.config = parse_model("palm-tiny,layers=1,E=8,F=8,H=2,Q=4,V=10,positions=8,bias=all" + keys);
  const Weights made = generate_weights(s.config, 1);
  std::map<std::string, Tensor> tensors = made.tensors();
  plant(tensors);
  s.weights = Weights(s.config, std::move(tensors));
  return refusal(s);
}

/// A weight that holds the same values over and over.
struct Filled {
  std::string weight;
  std::vector<float> values;
  void operator()(std::map<std::string, Tensor>& tensors) const {
    Tensor& t = tensors.at(weight);
    for (std::size_t i = 0; i < t.data.size(); ++i) t.data[i] = values[i % values.size()];
  }
};

struct Planted {
  const char* keys;
  Filled fault;
  const char* says;
};

TEST(OracleRefuses, ANonFiniteStatisticOfEveryNorm) {
  const std::vector<float> large{1e25F, -1e25F};                         // squares overflow
  const std::vector<float> largest{3e38F};                               // sums overflow
  const std::vector<float> apart{3.4e38F, -3.4e38F, -3.4e38F, -3.4e38F,  // sum -6.8e38 of a half
                                 3.4e38F, 3.4e38F,  3.4e38F,  -3.4e38F};
  const std::vector<Planted> faults{
      {.keys = "",
       .fault = {"embed", large},
       .says = "oracle_finite: stat prefill.c0.layer0.ss[0,0] is inf"},
      {.keys = ",block=serial",
       .fault = {"layer0.bo", large},
       .says = "oracle_finite: stat prefill.c0.layer0.ss2[0,0] is inf"},
      {.keys = ",block=serial",
       .fault = {"layer0.b_out", large},
       .says = "oracle_finite: stat prefill.c0.final_ss[0,0] is inf"},
      {.keys = "",
       .fault = {"layer0.b_out", large},
       .says = "oracle_finite: stat prefill.c0.final_ss[0,0] is inf"},
      {.keys = ",norm=layernorm",
       .fault = {"embed", large},
       .says = "oracle_finite: stat prefill.c0.layer0.ss[0,0] is inf"},
  };
  for (const Planted& p : faults)
    EXPECT_EQ(planted(p.keys, p.fault).substr(0, std::string(p.says).size()), p.says) << p.keys;
  // Of a layernorm the sum overflows first; whatever is filed first is named.
  for (const auto& [keys, weight, pass] :
       {std::tuple{",norm=layernorm", "embed", "prefill.c0.layer0."},
        {",norm=layernorm,block=serial", "layer0.bo", "prefill.c0.layer0."},
        {",norm=layernorm", "layer0.b_out", "prefill.c0.final_"}}) {
    const std::string said = planted(keys, Filled{weight, largest});
    EXPECT_TRUE(said.starts_with(std::string("oracle_finite: stat ") + pass)) << said;
  }
  EXPECT_TRUE(
      planted(",norm=layernorm", Filled{"embed", apart}).starts_with("oracle_finite: stat "));
}

TEST(OracleRefuses, IdsItHasNotGot) {
  const Small s;
  const Answer answer = run(s.weights, s.request);
  EXPECT_EQ(answer.raw_of("decode.1.layer0.denom").shape, (Shape{2, 1, 2}));
  EXPECT_EQ(answer.unstored_of("decode.1.layer0.hidden").shape, (Shape{2, 1, 8}));
  for (const char* id : {"decode.1.layer0.hidden", "decode.2.layer0.gate", "gate", ""})
    EXPECT_TRUE(refusal([&] { answer.raw_of(id); }).starts_with("oracle_id: ")) << id;
  EXPECT_TRUE(refusal([&] { answer.unstored_of("decode.9.embed"); }).starts_with("oracle_id: "));
}

TEST(OracleRefuses, AScaleWhereNoneIs) {
  Small s;
  const std::string gate = "decode.1.layer0.gate";
  for (const NumberFormat type : {NumberFormat::f32, NumberFormat::bf16}) {
    s.request.numerics.weights = type;
    EXPECT_EQ(refusal([&] { run(s.weights, s.request).scaled_of(gate); }),
              "oracle_id: \"decode.1.layer0.gate\" names no contraction that this run scales");
  }
  s.request.numerics.weights = NumberFormat::int8;
  const Answer answer = run(s.weights, s.request);
  for (const char* name : {"q", "k", "v", "gate", "up", "block_out"}) {
    const std::string id = std::string("decode.1.layer0.") + name;
    EXPECT_EQ(&answer.scaled_of(id), &answer.unstored_of(id)) << id;
    EXPECT_NE(answer.scaled_of(id).data, answer.raw_of(id).data) << id;
  }
  // Other contractions, other checkpoints, other passes.
  for (const char* id :
       {"decode.1.layer0.score", "decode.1.layer0.denom", "decode.1.layer0.attn", "decode.1.embed",
        "decode.1.logits", "decode.1.layer0.norm", "decode.1.layer0.out", "decode.2.layer0.gate",
        "decode.1.layer0.attn_out", "gate", ""})
    EXPECT_TRUE(refusal([&] { answer.scaled_of(id); }).starts_with("oracle_id: ")) << id;
  EXPECT_EQ(answer.with_scale.size(), 2U * 6U);
}

TEST(OracleRefuses, ScaledIsBeforeTheBiases) {
  Small s;
  s.config = parse_model("palm-tiny,layers=1,E=8,F=8,H=2,Q=4,V=10,positions=8,bias=qkv");
  s.weights = generate_weights(s.config, 1);
  s.request.numerics.weights = NumberFormat::int8;
  const Answer answer = run(s.weights, s.request);
  EXPECT_NE(answer.scaled_of("decode.1.layer0.q").data, answer.raw_of("decode.1.layer0.q").data);
  EXPECT_NE(answer.scaled_of("decode.1.layer0.q").data,
            answer.unstored_of("decode.1.layer0.q").data);
  EXPECT_EQ(answer.scaled_of("decode.1.layer0.gate").data,
            answer.unstored_of("decode.1.layer0.gate").data);
}

}  // namespace
}  // namespace shardproof::oracle
