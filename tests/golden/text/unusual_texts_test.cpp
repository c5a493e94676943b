// Texts of what the handed ones lack: values that exist in places only, maxima of zeros, slots that
// are not a cache's second dim.
#include <gtest/gtest.h>

#include <map>
#include <string>

#include "engine/run/plan_types.h"
#include "golden/verify/verify.h"
#include "tests/golden/text/text_case.h"
#include "tests/weights/expect_error.h"

namespace shardproof {
namespace {

/// GPT-2 with other lines in place of some, each of which is there once.
ModelText gpt_with(const std::map<std::string, std::string>& lines) {
  std::string text = print_model_text(text_model(case_of_text("gpt-2", "").model)->text());
  for (const auto& [old_line, new_line] : lines) {
    const auto at = text.find("\n" + old_line + "\n");
    EXPECT_NE(at, std::string::npos) << old_line;
    if (at != std::string::npos) text.replace(at + 1, old_line.size(), new_line);
  }
  return parse_model_text(text);
}

/// Requires equal verdicts; in the field only if the text has a meaning there.
void require_equal(const ModelText& text, const std::string& keys = "") {
  for (const char* regime : {"exact", "f32", "field"})
    for (const char* strategy : {"ws2d:heads", "wg-xyz:batch"}) {
      OracleMemo memo;
      const Case c = case_with_text(
          text,
          fmt::format("torus=2x2x2 prefill={} decode=ws2d:batch batch=8 prompt=4 {} regime={}",
                      strategy, keys, regime));
      if (c.numerics.regime == Regime::field && !has_meaning_in_field(c.model)) continue;
      const Judgement judgement = verify_case(c, memo);
      EXPECT_EQ(judgement.verdict, Verdict::equal) << c << "\n" << judgement.reason();
    }
}

constexpr const char* kSee = "see : BLM = within(far, -inf, 0)";
constexpr const char* kDot = "dot : BLHM where see = store(einsum(BLHQ,BMHQ->BLHM; q, k_cache))";
constexpr const char* kOut = "out : BLE = store(add(mid, ffn_out))";

/// A bias that is made once, and exists where a query sees the slot.
TEST(IndicatorsOfTexts, OfTheEmbeddingReachLayers) {
  require_equal(
      gpt_with({{kSee, std::string(kSee) + "\nbias : BLM where see = add(mul(far, 0.5), -3)"},
                {kDot, "dot : BLHM = store(einsum(BLHQ,BMHQ->BLHM; q, k_cache))"},
                {"score : BLHM = store(div(dot, store(width)))",
                 "score : BLHM = add(store(div(dot, store(width))), bias)"}}));
}

TEST(IndicatorsOfTexts, OfTheEmbeddingReachTheHead) {
  require_equal(
      gpt_with({{kSee, std::string(kSee) + "\nbias : BLM where see = add(mul(far, 0.5), -3)"},
                {"logits : BLV = store(einsum(BLE,VE->BLV; final_norm, table))",
                 "least : BL = mean(bias, M)\n"
                 "logits : BLV = store(einsum(BLE,VE->BLV; mul(final_norm, least), table))"}}));
}

/// A layer's own indicator ends with it: the next layer, and the head, read zeros.
TEST(IndicatorsOfTexts, OfALayerEndWithIt) {
  require_equal(gpt_with({{kOut,
                           "some : BLE = within(ffn_out, 0, inf)\n"
                           "out : BLE where some = store(add(mid, ffn_out))"}}));
}

/// Whole pairs of channels, or one channel of each pair, exist; also where what is turned is +0.
TEST(IndicatorsOfTexts, OfTurnedChannels) {
  const std::string v = "v : BLHQ = store(add(einsum(BLE,EHQ->BLHQ; norm, wv), bv))";
  for (const char* some :
       {"some : BLHQ = within(q, 0, inf)", "some : BLH = within(max(q, Q), 0, 1)"})
    require_equal(gpt_with(
        {{v,
          fmt::format("{}\nsome_q : BLHQ where some = q\nturned : BLHQ = turn(some_q, Q, half 4)\n"
                      "plus : BLHQ = add(turned, 1)\n"
                      "v : BLHQ = store(add(plus, add(einsum(BLE,EHQ->BLHQ; norm, wv), bv)))",
                      some)}}));
}

/// Sharded channels are zeros of either sign.
TEST(MaximaOfTexts, OfZerosHaveOneSign) {
  require_equal(gpt_with({{kOut,
                           "code : BLE = round(div(clamp(norm, -1, 0), 4))\n"
                           "most : BL = max(code, E)\n"
                           "out : BLE = store(add(mid, mul(ffn_out, most)))"}}));
}

/// A cache has its slots where its text says; before the first pass it has none.
TEST(CachesOfTexts, HaveTheirSlotsInAnyDim) {
  for (const auto& [fresh, cache] :
       std::map<std::string, std::string>{{"BHQL", "BHQM"}, {"HBLQ", "HBMQ"}, {"LBHQ", "MBHQ"}})
    require_equal(gpt_with(
        {{"k_cache : BMHQ = append(k, pos)",
          fmt::format("k_moved : {} = k\nk_cache : {} = append(k_moved, pos)", fresh, cache)},
         {kDot, fmt::format("dot : BLHM where see = store(einsum(BLHQ,{}->BLHM; "
                            "q, k_cache))",
                            cache)}}));
}

/// What is contracted with a cache goes to where caches are.
TEST(CachesOfTexts, AreContractedWithTheStream) {
  require_equal(gpt_with({{kOut,
                           "c : BME = append(norm, pos)\n"
                           "d : BLM where see = einsum(BLE,BME->BLM; norm, c)\n"
                           "h : BMF = append(hidden, pos)\n"
                           "e : BLM where see = einsum(BLF,BMF->BLM; hidden, h)\n"
                           "out : BLE = store(add(add(mid, ffn_out), max(add(d, e), M)))"}}));
}

constexpr std::string_view kWithoutHeads = R"(model mlp
dim E d_model
dim F d_ff
dim V vocabulary
number eps
small layers=2, E=24, F=48, V=48, eps=1e-5

embedding
weight table : VE
embed : BLE = store(gather(table, ids, V))
far : BLM = sub(slot, pos)
see : BLM = within(far, -inf, 0)

layer
weight g : E is gain
weight w_up : EF
weight w_out : FE
norm : BLE = store(mul(div(in, sqrt(add(mean(mul(in, in), E), eps))), g))
c : BME = append(norm, pos)
near : BLM where see = einsum(BLE,BME->BLM; norm, c)
hidden : BLF = store(silu(einsum(BLE,EF->BLF; norm, w_up)))
ffn_out : BLE = store(einsum(BLF,FE->BLE; hidden, w_out))
out : BLE = store(add(add(in, ffn_out), max(near, M)))

head
weight unembed : VE
logits : BLV = store(einsum(BLE,VE->BLV; in, unembed))
)";

/// A layer that has no heads needs no line `attend`; its caches have the stream's rows.
TEST(TextWithoutHeads, IsShardedByATableWithoutAttend) {
  const Strategy strategy(parse_layouts("layouts rows\nin : B_yLE_xz\nweights : E_x F_z\n"
                                        "hidden : B_yLF_z\n",
                                        "rows.layouts")
                              .at(0));
  for (const char* torus : {"2x2x2", "3x1x4", "1x3x1"}) {
    OracleMemo memo;
    Case c = case_with_text(parse_model_text(kWithoutHeads),
                            fmt::format("torus={} batch=6 prompt=4", torus));
    c.prefill = c.decode = strategy;
    const Judgement judgement = verify_case(c, memo);
    EXPECT_EQ(judgement.verdict, Verdict::equal) << c << "\n" << judgement.reason();
    const RunPlan plan = make_plan(c);
    EXPECT_EQ(plan.decode.caches(0).at(0).second, Layout::parse("B_yME")) << torus;
  }
}

/// A text with heads needs it.
TEST(TextWithHeads, NeedsALineAttend) {
  Case c = case_with_text(gpt_with({}), "torus=2x2x2 batch=8 prompt=4");
  c.prefill = c.decode = Strategy(
      parse_layouts("layouts rows\nin : B_yLE_xz\nweights : E_x F_z H_z\n", "rows.layouts").at(0));
  EXPECT_EQ(label_of([&] { make_plan(c); }), "layouts_c5");
}

constexpr const char* kPart =
    "weight w_part : EP\npart : BLP = store(einsum(BLE,EP->BLP; norm, w_part))";

/// What no step computes is refused before a run, by the rule that its program breaks.
TEST(ContractionsOfTexts, OverALetterOfOneOperandAreRefused) {
  for (const auto& [line, label] : std::map<std::string, std::string>{
           {"lone : BL = einsum(BLF,BLE->BL; hidden, norm)", "einsum_c4"},
           {"lone : BLE = einsum(BLF,FE->BLE + BLF,BLE->BLE; hidden, w_out; gate, norm)",
            "layouts_c7"},
           // Nothing says of the letter how it is cut.
           {"lone : BLE = einsum(BLF,FE->BLE + BLP,BLE->BLE; hidden, w_out; part, norm)",
            "layouts_c7"},
           {"lone : BLE = einsum(BLF,FE->BLE + BLE,BLP->BLE; hidden, w_out; norm, part)",
            "layouts_c7"}}) {
    const Case c = case_with_text(gpt_with({{kOut, fmt::format("{}\n{}\n{}", kPart, line, kOut)}}),
                                  "torus=2x2x2 prefill=ws2d:batch batch=8 prompt=4");
    try {
      make_typed_plan(c);
      ADD_FAILURE() << line << " is not refused";
    } catch (const Error& error) {
      EXPECT_EQ(error.label(), label) << error.what();
    }
  }
}

}  // namespace
}  // namespace shardproof
