#include "weights/model/model_config.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cmath>
#include <sstream>

#include "tests/weights/expect_error.h"
#include "tests/weights/random_model.h"
#include "weights/base/tensor.h"
#include "weights/model/numerics.h"

namespace shardproof {
namespace {

TEST(ModelConfig, PresetsAreThoseOfTheSpecification) {
  const ModelConfig tiny = parse_model("palm-tiny");
  ModelConfig expected;
  expected.logit_scale = static_cast<float>(1.0 / std::sqrt(96.0));
  EXPECT_EQ(tiny, expected);

  const ModelConfig mini = parse_model("palm-mini");
  EXPECT_EQ((Shape{mini.layers, mini.E, mini.F, mini.H, mini.K, mini.Q, mini.V}),
            (Shape{2, 256, 1024, 64, 1, 16, 320}));
  EXPECT_EQ(mini.logit_scale, 0.0625F);
  const ModelConfig wide = parse_model("palm-wide");
  EXPECT_EQ((Shape{wide.layers, wide.E, wide.F, wide.H, wide.K, wide.Q, wide.V}),
            (Shape{1, 512, 2048, 512, 1, 4, 512}));
}

TEST(ModelConfig, PrintsOnlyWhatDiffersInOneOrder) {
  EXPECT_EQ(print_model(parse_model("palm-tiny,K=24")), "palm-tiny,K=24");
  EXPECT_EQ(print_model(parse_model("palm-tiny,K=1,E=96")), "palm-tiny");
  EXPECT_EQ(print_model(parse_model("palm-mini,logit_scale=0.0625")), "palm-mini");
  EXPECT_EQ(print_model(parse_model("palm-mini,E=64,logit_scale=0.0625")),
            "palm-mini,E=64,logit_scale=0.0625");
  EXPECT_EQ(print_model(parse_model(
                "palm-tiny,softmax=base2,positions=9,logit_scale=1,embed_scale=2,eps=1e-5,"
                "tied=false,theta=5e5,rotary=0.5,rope=interleaved,bias=all,"
                "norm=layernorm,ffn=gelu-erf,block=serial,V=7,Q=4,K=2,H=6,F=3,"
                "E=5,layers=1")),
            "palm-tiny,layers=1,E=5,F=3,H=6,K=2,Q=4,V=7,block=serial,ffn=gelu-erf,norm=layernorm,"
            "bias=all,rope=interleaved,rotary=0.5,theta=5e+05,tied=false,eps=1e-05,embed_scale=2,"
            "logit_scale=1,softmax=base2,positions=9");
}

TEST(ModelConfig, RecomputesLogitScaleFromTheFinalE) {
  EXPECT_EQ(parse_model("palm-tiny,E=64").logit_scale, 0.125F);
  EXPECT_EQ(parse_model("palm-tiny,logit_scale=0.5,E=64").logit_scale, 0.5F);
}

RC_GTEST_PROP(ModelConfig, ParseIsTheInverseOfPrint, ()) {
  const ModelConfig config = draw_model(3000);
  const std::string text = print_model(config);
  RC_ASSERT(parse_model(text) == config);
  RC_ASSERT(print_model(parse_model(text)) == text);
}

RC_GTEST_PROP(ModelConfig, AnyTextIsReadOrRefusedInOneLine, ()) {
  const std::string noise = *rc::gen::container<std::string>(
      rc::gen::elementOf(std::string("=,.-+0123456789eEFHKQVnaif \n\tpalm_tinylogscrbkd")));
  const std::string label = label_of([&] { parse_model("palm-tiny," + noise); });
  RC_ASSERT(label == "" || label == "model_key" || label == "model_value");
}

TEST(ModelConfig, RefusesUnknownNames) {
  const auto label = [](const std::string& text) { return label_of([&] { parse_model(text); }); };
  EXPECT_EQ(label(""), "model_preset");
  EXPECT_EQ(label("palm-tyni"), "model_preset");
  for (const char* bad : {"k=3", "E=3,E=3", "E", "", "=3", "E=3,", " E=3", "vocab=3"}) {
    EXPECT_EQ(label(std::string("palm-tiny,") + bad), "model_key") << bad;
  }
  EXPECT_NE(message_of([] { parse_model("palm-tyni"); }).find("did you mean palm-tiny?"),
            std::string::npos);
  EXPECT_NE(message_of([] { parse_model("palm-tiny,layer=2"); }).find("did you mean layers?"),
            std::string::npos);
}

TEST(ModelConfig, RefusesValuesThatBreakARule) {
  for (const char* bad : {"E=",
                          "E=0",
                          "E=-1",
                          "E=+1",
                          "E=1.5",
                          "E=1 ",
                          "E=0x10",
                          "E=nan",
                          "E=1e400",
                          "E=2147483648",
                          "E=99999999999999999999",
                          "layers=4097",
                          "positions=0",
                          "K=7",
                          "Q=7",
                          "rotary=0",
                          "rotary=1.5",
                          "rotary=-0.5",
                          "rotary=nan",
                          "rotary=0.3",
                          "rotary=0.1",
                          "theta=0",
                          "theta=-1",
                          "theta=inf",
                          "rope=none,rotary=0.5",
                          "rotary=1,rope=none",
                          "rope=none,theta=100",
                          "theta=10000,rope=none",
                          "rope=alibi,rotary=1",
                          "theta=100,rope=alibi",
                          "unembed_bias=1",
                          "eps=nan",
                          "eps=-0",
                          "eps=1e400",
                          "eps=1e-400",
                          "eps=1e-6x",
                          "embed_scale=1e39",
                          "embed_scale=0",
                          "logit_scale=nan",
                          "tied=1",
                          "tied=True",
                          "ffn=relu",
                          "softmax=2",
                          "softmax=base2,logit_scale=3e38",
                          "softmax=base2,eps=1e308,logit_scale=1e5",
                          "softmax=base2,eps=1e-320,logit_scale=1e-5",
                          "bias=norm",
                          "block=parallell",
                          "E=2147483647,F=2147483647",
                          "E=2147483647,H=2147483647,K=2147483647"}) {
    EXPECT_EQ(label_of([&] { parse_model(std::string("palm-tiny,") + bad); }), "model_value")
        << bad;
  }
}

TEST(ModelConfig, RefusesAConfigMadeByHand) {
  ModelConfig config = parse_model("palm-tiny");
  config.H = 0;
  EXPECT_EQ(label_of([&] { validate(config); }), "model_value");
  config = ModelConfig{};  // logit_scale not set
  EXPECT_EQ(label_of([&] { validate(config); }), "model_value");
  config =
      parse_model("palm-tiny,rope=none,positions=9");  // which bound prompt and gen all the same
  validate(config);
  config.rotary = 0.5;
  EXPECT_EQ(label_of([&] { validate(config); }), "model_value");
  config = parse_model("palm-tiny,rope=none");
  config.theta = 100.0;
  EXPECT_EQ(label_of([&] { validate(config); }), "model_value");
  config = parse_model("palm-tiny");
  config.cache = NumberFormat::f16;
  EXPECT_EQ(label_of([&] { validate(config); }), "model_value");
}

TEST(ModelConfig, EveryKeyIsListedWithValuesThatAreLegal) {
  std::string all = "palm-tiny";
  for (const ModelKey& key : model_keys()) {
    EXPECT_NE(key.values, "") << key.name;
    if (key.default_value.empty() || key.name == "logit_scale" || key.name == "cache") continue;
    EXPECT_EQ(print_model(parse_model("palm-tiny," + key.name + "=" + key.default_value)),
              "palm-tiny");
    // Words, one by one; norm biases need a layernorm.
    if (key.values.find("1 to") == 0 || key.values.find(';') != std::string::npos ||
        key.values.starts_with("f"))
      continue;
    std::istringstream words(key.values);
    for (std::string word; words >> word;) {
      if (word.back() == ',') word.pop_back();
      const std::string text = key.name + "=" + word;
      EXPECT_EQ(label_of([&] {
                  parse_model("palm-tiny," +
                              std::string(text == "bias=norm" ? "norm=layernorm," : "") + text);
                }),
                "")
          << text;
    }
  }
  EXPECT_EQ(model_keys().size(), 22U);
}

TEST(ModelConfig, CachesAreAsActUnlessTheModelSaysOtherwise) {
  EXPECT_EQ(parse_model("palm-tiny").cache, std::nullopt);
  EXPECT_EQ(print_model(parse_model("palm-tiny")), "palm-tiny");
  for (const char* word : {"f32", "bf16"}) {
    const std::string text = std::string("palm-tiny,cache=") + word;
    EXPECT_EQ(print_model(parse_model(text)), text);
    EXPECT_EQ(to_string(parse_model(text).cache.value()), word);
  }
  for (const char* bad : {"", "act", "as act", "int8"})
    EXPECT_EQ(label_of([&] { parse_model(std::string("palm-tiny,cache=") + bad); }), "model_value");
}

TEST(ModelConfig, NearestIsForMisspellingsOnly) {
  const std::vector<std::string> legal{"layers", "E", "K", "theta"};
  EXPECT_EQ(nearest("layer", legal), "layers");
  EXPECT_EQ(nearest("k", legal), "K");
  EXPECT_EQ(nearest("thtea", legal), "theta");
  EXPECT_EQ(nearest("thing", legal), "");
  EXPECT_EQ(nearest("teta", legal), "theta");
  EXPECT_EQ(nearest("X", legal), "");
  EXPECT_EQ(nearest("", legal), "");
}

TEST(Numerics, ParsesWhatItPrints) {
  for (NumberFormat t : {NumberFormat::f32, NumberFormat::bf16, NumberFormat::int8}) {
    EXPECT_EQ(parse_weight_format(to_string(t)), t);
  }
  for (NumberFormat t : {NumberFormat::f32, NumberFormat::bf16})
    EXPECT_EQ(parse_act_format(to_string(t)), t);
  for (Regime r : {Regime::exact, Regime::f32}) EXPECT_EQ(parse_regime(to_string(r)), r);
  for (Block b : {Block::parallel, Block::serial}) EXPECT_EQ(parse_block(to_string(b)), b);
  for (Schedule s : {Schedule::group, Schedule::ring, Schedule::tree})
    EXPECT_EQ(parse_schedule(to_string(s)), s);
  EXPECT_EQ(label_of([] { parse_schedule("rings"); }), "case_numerics");
  EXPECT_EQ(label_of([] { parse_weight_format("fp32"); }), "case_numerics");
  EXPECT_EQ(label_of([] { parse_act_format("int8"); }), "case_numerics");
  EXPECT_EQ(label_of([] { parse_regime(""); }), "case_numerics");
  EXPECT_EQ(label_of([] { parse_block("Serial"); }), "case_block");
}

TEST(Numerics, EveryKeySetsAFieldOfItsOwnToEachOfItsWords) {
  for (const NumericsKey& key : numerics_keys()) {
    std::istringstream words{std::string(key.words)};
    int legal = 0;
    for (std::string word; words >> word; ++legal) {
      if (word.back() == ',') word.pop_back();
      Numerics numerics;
      key.set(key.name, numerics, word);
      EXPECT_EQ(key.get(numerics), word) << key.name;
      EXPECT_EQ(numerics == Numerics(), legal == 0) << key.name << ": the first is the default";
      for (const NumericsKey& other : numerics_keys())
        EXPECT_TRUE(other.name == key.name || other.get(numerics) == other.get(Numerics()))
            << key.name << " " << other.name;
    }
    EXPECT_GE(legal, 2) << key.name;
  }
}

TEST(Numerics, AnOrderAndRoundedSumsNeedTheF32Regime) {
  const auto label = [](const Numerics& numerics) { return label_of([&] { validate(numerics); }); };
  EXPECT_EQ(label({}), "");
  EXPECT_EQ(label({.wire = NumberFormat::bf16}), "") << "the ledger counts it";
  EXPECT_EQ(label({.acc = NumberFormat::bf16}), "case_numerics");
  EXPECT_EQ(label({.schedule = Schedule::tree}), "case_numerics");
  EXPECT_EQ(label(kReleasedNumerics), "");
}

/// The fields could hold any number format.
TEST(Numerics, RefusesFormatsThatAKeyDoesNotTake) {
  const auto refused = [](NumberFormat Numerics::*field, NumberFormat format) {
    Numerics numerics{.regime = Regime::f32};
    numerics.*field = format;
    return label_of([&] { validate(numerics); });
  };
  for (const NumberFormatRow& row : kNumberFormats) {
    const bool is_float = row.word == "f32" || row.word == "bf16";
    for (const auto field : {&Numerics::act, &Numerics::acc, &Numerics::wire})
      EXPECT_EQ(refused(field, row.format), is_float ? "" : "case_numerics") << row.word;
    EXPECT_EQ(refused(&Numerics::weights, row.format),
              is_float || row.word == "int8" ? "" : "case_numerics")
        << row.word;
  }
}

}  // namespace
}  // namespace shardproof
