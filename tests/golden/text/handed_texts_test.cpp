// Models that are texts: five that somebody else wrote, on three tori under three strategies, in
// each regime; and those of keys, as texts.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <array>
#include <map>
#include <string>

#include "engine/run/plan.h"
#include "golden/verify/verify.h"
#include "tests/golden/text/text_case.h"
#include "tests/sanitized.h"
#include "weights/text/writer.h"

namespace shardproof {
namespace {

constexpr const char* kHanded[] = {"llama-3", "gpt-2", "gemma-2", "cohere", "qwen3"};
constexpr const char* kTori[] = {"2x2x2", "4x2x3", "1x3x1"};
constexpr const char* kStrategies[] = {"ws1d:heads", "ws2d:batch", "wg-xyz:batch"};

template <class Texts>
void require_equal(const Texts& texts, std::string_view keys) {
  OneInN runs(11, "runs of texts");
  for (const char* text : texts)
    for (const char* torus : kTori) {
      OracleMemo memo;
      for (const char* strategy : kStrategies) {
        if (!runs()) continue;
        const Case c =
            case_of_text(text, fmt::format("torus={} prefill={} {}", torus, strategy, keys));
        const Judgement judgement = verify_case(c, memo);
        EXPECT_EQ(judgement.verdict, Verdict::equal) << c << "\n" << judgement.reason();
        EXPECT_GT(judgement.tensors, 300) << c;
      }
    }
}

TEST(HandedTexts, AreEqualInTheExactRegime) { require_equal(kHanded, "regime=exact"); }
TEST(HandedTexts, AreEqualInTheF32Regime) { require_equal(kHanded, "regime=f32"); }
TEST(HandedTexts, AreEqualInTheFieldRegime) { require_equal(kHanded, "regime=field"); }
TEST(HandedTexts, AreEqualWithActivationsAsBf16) {
  require_equal(kHanded, "act=bf16 weights=bf16 chunk=3 prompt=5");
}
TEST(HandedTexts, AreEqualInRingsWithPartialSumsAsBf16) {
  require_equal(kHanded, "regime=f32 act=bf16 schedule=ring wire=bf16 acc=bf16");
}

/// Experts by groups, a window beside causality, sums that are stored after each addend.
TEST(TextOfExperts, IsEqual) {
  for (const char* keys : {"regime=exact", "regime=f32", "act=bf16 weights=bf16 chunk=3 prompt=5",
                           "regime=f32 act=bf16 schedule=ring wire=bf16 acc=bf16",
                           "regime=f32 schedule=tree chunk=2 prompt=7"})
    require_equal(std::array{"experts"}, keys);
}

/// Its layers have other caches, each of which goes from the prefill's layout to the decode's.
TEST(TextOfExperts, HandsTheCachesOfEachLayerOver) {
  for (const char* keys : {"torus=2x2x2 prefill=ws2d:heads decode=ws2d:batch",
                           "torus=1x3x1 prefill=dp decode=ws1d:heads",
                           "torus=2x2x2 decode_torus=1x3x1 prefill=ws2d:batch decode=ws1d:heads"}) {
    OracleMemo memo;
    const Case c = case_of_text("experts", fmt::format("{} batch=24 prompt=4", keys));
    const Judgement judgement = verify_case(c, memo);
    EXPECT_EQ(judgement.verdict, Verdict::equal) << c << "\n" << judgement.reason();
    const RunPlan plan = make_plan(c);
    for (std::int64_t layer = 0; layer < c.model.layers; ++layer) {
      const std::string program = print_program(plan.hand_over_program(layer));
      for (const auto& [name, layout] : plan.decode.caches(layer))
        EXPECT_NE(program.find(name), std::string::npos) << keys << " layer " << layer << "\n"
                                                         << program;
    }
  }
}

/// The same text with marks of positions in place of top, so that its maxima of sharded dims, its
/// means and its caches of some layers are judged in the field, too.
TEST(TextOfExperts, IsEqualInTheFieldWithoutTop) {
  std::string text = print_model_text(text_model(case_of_text("experts", "").model)->text());
  for (const auto& [old_text, new_text] : std::map<std::string, std::string>{
           {"open : BLN = top(group, N, groups)", "open : BL = within(pos, 0, inf)"},
           {"chosen : BLX = top(best, X, experts)", "chosen : BL = within(pos, 0, inf)"}}) {
    ASSERT_NE(text.find(old_text), std::string::npos) << old_text;
    text.replace(text.find(old_text), old_text.size(), new_text);
  }
  for (const char* keys : {"torus=2x2x2 prefill=ws2d:batch", "torus=4x2x3 prefill=wg-xyz:batch",
                           "torus=2x1x3 prefill=ws2d:heads decode=ws1d:heads act=bf16"}) {
    OracleMemo memo;
    const Case c = case_with_text(parse_model_text(text), fmt::format("{} regime=field", keys));
    const Judgement judgement = verify_case(c, memo);
    EXPECT_EQ(judgement.verdict, Verdict::equal) << c << "\n" << judgement.reason();
  }
}

/// Experts lie over an axis where a table names their values and weights, of which no C++ knows.
TEST(TextOfExperts, AreShardedByATableThatNamesThem) {
  const Strategy strategy(parse_layouts("layouts experts\nin : BLE_xzy -> BLE_x\n"
                                        "weights : E_x F_zy H_zy\nhidden : BLF_zyx\n"
                                        "attend : BLH_zyxQ\nwe_gate : X_yE_xD_z\n"
                                        "we_up : X_yE_xD_z\nwe_out : X_yD_zE_x\n",
                                        "experts.layouts")
                              .at(0));
  for (const char* torus : {"2x2x1", "1x3x2"}) {
    OracleMemo memo;
    Case c = case_of_text("experts", fmt::format("torus={} batch=12 prompt=4", torus));
    c.prefill = c.decode = strategy;
    const Judgement judgement = verify_case(c, memo);
    EXPECT_EQ(judgement.verdict, Verdict::equal) << c << "\n" << judgement.reason();
    const std::string program = print_program(make_plan(c).decode.other_layers.at(0));
    EXPECT_NE(program.find("input we_gate : X_yE_xD_z"), std::string::npos) << program;
  }
}

TEST(TextOfExperts, HasNoMeaningInTheField) {
  const Case c = case_of_text("experts", "torus=1x2x1 prefill=ws1d:heads regime=field");
  try {
    make_plan(c);
    FAIL() << "it is not refused";
  } catch (const Error& error) {
    EXPECT_EQ(error.label(), "case_model");
    EXPECT_NE(error.message().find("regime=field is not for a text with top"), std::string::npos);
  }
  // A user's table is judged in the exact regime alone.
  OracleMemo memo;
  VerifyOptions options;
  options.also_field = true;
  const Judgement judgement =
      verify_case(case_of_text("experts", "torus=1x2x1 prefill=ws1d:heads"), memo, options);
  EXPECT_EQ(judgement.verdict, Verdict::equal);
  EXPECT_FALSE(judgement.field.has_value());
  ASSERT_FALSE(judgement.notes.empty());
  EXPECT_NE(judgement.notes.back().find("no order"), std::string::npos);
}

TEST(HandedTexts, AreEqualUnderAnotherTableInTheDecode) {
  for (const char* text : kHanded)
    for (const char* regime : {"exact", "f32", "field"}) {
      OracleMemo memo;
      const Case c = case_of_text(
          text,
          fmt::format("torus=2x2x2 prefill=wg-xyz:batch decode=ws2d:heads regime={}", regime));
      const Judgement judgement = verify_case(c, memo);
      EXPECT_EQ(judgement.verdict, Verdict::equal) << c << "\n" << judgement.reason();
    }
}

TEST(HandedTexts, SampleAtRandomByTheirOwnLogits) {
  for (const char* text : {"gpt-2", "qwen3"}) {
    OracleMemo memo;
    for (const char* keys :
         {"torus=2x2x2 prefill=ws2d:batch top_k=5", "torus=1x3x1 prefill=dp top_p=0.7",
          "torus=2x2x2 decode_torus=1x3x1 prefill=dp sample=random"}) {
      const Case c = case_of_text(text, std::string(keys) + " batch=24 prompt=5 chunk=3");
      const Judgement judgement = verify_case(c, memo);
      EXPECT_EQ(judgement.verdict, Verdict::equal) << c << "\n" << judgement.reason();
    }
  }
}

/// Rows continue shared prefixes: of a table that divides their number and of one that does not,
/// cut over the batch or not, in chunks, of unequal length, on to another torus.
TEST(HandedTexts, ContinueSharedPrefixes) {
  const char* const settings[] = {
      "torus=4x2x3 prefill=wg-xyz:batch decode=ws2d:batch batch=24 prompt=5 prefix=2:5",
      "torus=1x3x1 prefill=ws2d:batch decode=ws2d:heads batch=6 prompt=6 prefix=3:3 chunk=2",
      "torus=2x2x1 decode_torus=1x1x3 prefill=dp batch=12 prompt=6 prefix=2:1 lengths=ragged",
      "torus=1x1x1 prefill=dp batch=3 prompt=3 prefix=2:3"};
  std::size_t next = 0;  // each text under three of these, each regime under all
  for (const char* text : kHanded)
    for (const char* regime : {"exact", "f32 schedule=ring", "field"}) {
      OracleMemo memo;
      const Case c = case_of_text(
          text, fmt::format("{} regime={}", settings[next++ % std::size(settings)], regime));
      const Judgement judgement = verify_case(c, memo);
      EXPECT_EQ(judgement.verdict, Verdict::equal) << c << "\n" << judgement.reason();
    }
}

/// A table says over which axes prefixes are cut.
TEST(HandedTexts, ContinuePrefixesThatATableCuts) {
  const auto under = [](const std::string& prefix) {
    Case c = case_of_text("llama-3", "torus=1x2x3 batch=12 prompt=4 prefix=2:6");
    c.prefill = c.decode =
        Strategy(parse_layouts("layouts cut\nin : BLE_xyz -> BLE_x\nweights : E_x F_yz H_yz\n"
                               "hidden : BLF_yz\nattend : B_zyLHQ\nprefix : " +
                                   prefix + "\n",
                               "cut.layouts")
                     .at(0));
    return c;
  };
  OracleMemo memo;
  for (const char* prefix : {"NTKQ", "N_zTKQ", "N_zyTKQ"}) {
    const Case c = under(prefix);
    const Judgement judgement = verify_case(c, memo);
    EXPECT_EQ(judgement.verdict, Verdict::equal) << c << "\n" << judgement.reason();
    EXPECT_NE(print_program(make_plan(c).decode.layer).find(prefix), std::string::npos);
  }
  EXPECT_THROW(make_plan(under("N_yTKQ")), Error);
}

TEST(HandedTexts, RefusePrefixesBesideTheirOwnLetters) {
  const auto refused = [](const Case& c) {
    try {
      make_plan(c);
      return std::string("none");
    } catch (const Error& error) {
      return std::string(error.what());
    }
  };
  const char* keys = "torus=1x2x1 prefill=ws1d:heads batch=2 prompt=4 prefix=1:2";
  const std::string why = refused(case_of_text("experts", keys));
  EXPECT_TRUE(why.starts_with("case_model: ")) << why;
  EXPECT_NE(why.find("a dim N of its own"), std::string::npos) << why;
  std::string text = print_model_text(text_model(case_of_text("llama-3", "").model)->text());
  std::replace(text.begin(), text.end(), 'Q', 'T');
  EXPECT_NE(refused(case_with_text(parse_model_text(text), keys)).find("a dim T of its own"),
            std::string::npos);
}

/// The text of a model of keys is a model like any other.
RC_GTEST_PROP(TextsOfKeys, AreEqual, ()) {
  const auto model = *rc::gen::element<std::string>(
      "palm-tiny", "llama,layers=2,E=48,F=96,H=24,K=6,Q=4,V=48",
      "gptj,layers=2,E=48,F=96,H=24,K=24,Q=8,V=48", "falcon,layers=2,E=48,F=96,H=24,Q=4,V=48",
      "palm-tiny,softmax=base2", "palm-tiny,rope=alibi,unembed_bias=true,ffn=geglu,bias=all",
      "palm-tiny,block=serial,norm=layernorm,bias=all,K=6,embed_scale=2");
  const auto strategy = *rc::gen::element<std::string>("ws1d:heads", "ws1d:batch", "ws2d:heads",
                                                       "ws2d:batch", "wg-xyz:batch", "dp");
  const auto torus = *rc::gen::element<std::string>("2x2x2", "1x3x1", "4x1x3", "1x1x1");
  const auto regime = *rc::gen::element<std::string>("exact", "f32", "field");
  const auto act = *rc::gen::element<std::string>("f32", "bf16");
  const ModelText text = parse_model_text(text_of_model(parse_model(model)));
  const Case c = case_with_text(text, fmt::format("torus={} prefill={} regime={} act={} batch=24",
                                                  torus, strategy, regime, act));
  RC_LOG() << model << " " << torus << " " << strategy << " " << regime << " " << act << "\n";
  OracleMemo memo;
  const Judgement judgement = verify_case(c, memo);
  RC_LOG() << judgement.reason() << "\n";
  RC_ASSERT(judgement.verdict == Verdict::equal);
}

}  // namespace
}  // namespace shardproof
