// Programs of a model's text: by eye, and what is refused.
#include "engine/layouts/text_programs.h"

#include <gtest/gtest.h>

#include "engine/strategies/strategy.h"
#include "tests/weights/text/plain_model.h"
#include "weights/text/model_file.h"
#include "weights/text/text_model.h"

namespace shardproof {
namespace {

ModelConfig config_of(const ModelText& text, const TextKeys& keys = {}) {
  return model_config(std::make_shared<const TextModel>(text, keys, "m.model"));
}

PhasePrograms programs(const ModelConfig& config, const LayoutTable& table,
                       const std::string& torus = "2x2x2") {
  const Torus on = Torus::parse(torus);
  return text_programs(table, config, extents_of(config, 24, 4), on, Sampling{});
}

const ModelText& handed(const std::string& name) {
  static std::map<std::string, ModelText> texts;
  const auto [at, fresh] = texts.try_emplace(name);
  if (fresh)
    at->second =
        load_model_text(std::string(SHARDPROOF_SOURCE "/tests/data/models/") + name + ".model");
  return at->second;
}

void expect_lines(const Program& program, const std::vector<std::string>& lines) {
  const std::string text = print_program(program);
  for (const std::string& line : lines)
    EXPECT_NE(text.find(line + "\n"), std::string::npos) << line << "\n" << text;
}

TEST(TextPrograms, OfLlamaInTwoDims) {
  const PhasePrograms p =
      programs(config_of(handed("llama-3")), Strategy::parse("ws2d:batch").table());
  EXPECT_EQ(p.residual.to_string(), "BLE_xzy");
  expect_lines(p.embed, {"embed_1 : BLE_x partialsum-yz = embed_lookup(ids, table) is embed_1",
                         "far : B_zyxLM = map(sub(slot, poss) as BLM) is far",
                         "output embed, see, cos_here, sin_here"});
  expect_lines(
      p.layer,
      {"input x : BLE_xzy is in", "input see : B_zyxLM is see", "input wq : E_xH_zyQ is weight wq",
       "input k_cache_old : B_zyxMKQ is previous k_cache",
       // `in : BLE_xzy -> BLE_x`, where the norm is
       "norm_1 : BLE_x = map(mul(xg, xg)) is norm_1",
       "norm_2 : BL partialsum-x = sum(norm_1, E) is "
       "norm_2",
       "norm_2a : BL = all_reduce(norm_2, x) is norm_2",
       "q_1 : BLH_zyQ partialsum-x = einsum(BLE,EHQ->BLHQ; norm, wq) is q_1",
       // stored where it is complete, and moved in the stored type
       "q : BLH_zyxQ = map(store(q_1r)) is q", "qt : B_zyxLHQ = all_to_all(q, H->B, zyx) is q",
       // rows that would be sliced from the product are sliced from its operand
       "norms : B_yLE_x = slice(norm, B, y) is norm",
       "k_1 : B_yLK_zQ partialsum-x = einsum(BLE,EKQ->BLKQ; norms, wk) is k_1",
       "q_group : B_zyxLKGQ = split_dim(q_rot, H->KG, 6) is q_group",
       "dot : B_zyxLKGM = map(store(dot_1) where see) is dot",
       "exp : B_zyxLKGM = map(exp(sub(score, max)) where see) is exp",
       "max : B_zyxLKG = max(score where see, M) is max",
       "k_cache : B_zyxMKQ = append(k_cache_old, k_rot, poss zeros) is k_cache",
       "hidden : BLF_zyx = map(store(mul(act, up))) is hidden", "output out, k_cache, v_cache"});
  expect_lines(p.head, {"input x : BLE_xzy is out", "xg : BLE_x = all_gather(x, E, zy) is out",
                        "logits_1 : BLV_zy partialsum-x = einsum(BLE,VE->BLV; final_norm, unembed) "
                        "is logits_1",
                        "last_logits : BV_zyx = last(logits) is last "
                        "logits"});
  EXPECT_EQ(print_program(p.sample).substr(0, 44), "input logits : BV_zyx is last logits\ncv : BC");
  EXPECT_TRUE(p.other_layers.empty());
}

TEST(TextPrograms, CutHeadsWhereAViewOfThemAllows) {
  // Six key heads on eight chips: z has three of them, the others share these.
  const PhasePrograms p =
      programs(config_of(handed("llama-3")), Strategy::parse("ws1d:heads").table());
  expect_lines(p.layer, {"q_rotg : BLH_zQ = all_gather(q_rot, H, yx) is q_rot",
                         "q_group : BLK_zGQ = split_dim(q_rotg, H->K_zG, 6) is q_group",
                         "q_groups : BLK_zG_yxQ = slice(q_group, G, yx) is q_group",
                         "k_cache : BMK_zQ = append(k_cache_old, k_rot, pos zeros) is k_cache"});
}

TEST(TextPrograms, OfLayersThatDifferInAFlag) {
  const auto table = Strategy::parse("ws2d:batch").table();
  const PhasePrograms two =
      programs(config_of(handed("gemma-2"), {{"layers", "4"}, {"local", "1001"}}), table);
  EXPECT_EQ(two.layer_programs, (std::vector<std::size_t>{0, 1, 1, 0}));
  ASSERT_EQ(two.other_layers.size(), 1U);
  expect_lines(two.layer_program(3), {"input see_near : B_zyxLM is see_near"});
  EXPECT_EQ(print_program(two.layer_program(1)).find("see_near"), std::string::npos);
  const PhasePrograms one = programs(config_of(handed("gemma-2"), {{"local", "0"}}), table);
  EXPECT_TRUE(one.other_layers.empty() && one.layer_programs.empty());
  EXPECT_EQ(&one.layer_program(1), &one.layer);
}

/// What a text, changed in one place, is refused for under a table; "none" if it is not.
std::string refusal(const std::string& name, const std::string& old_text,
                    const std::string& new_text, const std::string& table) {
  std::string text = print_model_text(handed(name));
  const auto at = text.find(old_text);
  EXPECT_NE(at, std::string::npos) << old_text;
  text.replace(at, old_text.size(), new_text);
  try {
    programs(config_of(parse_model_text(text, "m.model")),
             parse_layouts("layouts t\n" + table, "t.layouts")[0]);
  } catch (const Error& error) {
    return error.what();
  }
  return "none";
}

constexpr const char* kPlainTable =
    "in : BLE_xzy -> BLE_x\nweights : E_x F_zy H_zy\n"
    "hidden : BLF_zyx\nattend : B_zyxLHQ\n";

TEST(TextPrograms, RefuseTablesOfWhatTheTextLacks) {
  const auto with = [](const std::string& more) {
    return refusal("gpt-2", "model gpt-2", "model gpt-2", kPlainTable + more);
  };
  EXPECT_EQ(with(""), "none");
  EXPECT_EQ(with("norm2 : BLE_x\n"), "none");
  EXPECT_EQ(with("prefix : N_zyxTKQ\n"), "none");
  EXPECT_EQ(with("up : BLF_zyx\n"),
            "layouts_c11: t.layouts line 6: the model gpt-2 has no value or weight up, to which t "
            "gives layouts (docs/layouts.md)");
  EXPECT_EQ(
      with("w_up : EF_zyx\n"),
      "layouts_c11: t.layouts line 6: the model gpt-2 has no value or weight w_up, to which t "
      "gives layouts (docs/layouts.md)");
  EXPECT_EQ(
      with("k : BLK_zQ\n"),
      "layouts_c11: t.layouts line 6: the model gpt-2 has no k : BLKQ, but k : BLHQ, to which "
      "t gives layouts (docs/layouts.md)");
  EXPECT_EQ(refusal("gpt-2", "model gpt-2", "model gpt-2", "in : BLE\nattend : BLHQ\n"),
            "layouts_c5: t.layouts line 1: t gives wq no layout: write 'weights : ...' "
            "(docs/layouts.md)");
  EXPECT_EQ(refusal("gpt-2", "model gpt-2", "model gpt-2", "attend : BLHQ\n"),
            "layouts_c5: t.layouts line 1: t has no line 'in : LAYOUT' (docs/layouts.md)");
  EXPECT_EQ(
      refusal("gpt-2", "model gpt-2", "model gpt-2",
              "in : BLE\nweights : E F H\nattend : BL_xHQ\n"),
      "layouts_c12: t.layouts line 4: attend is BL_xHQ: the attention of a model's text is not "
      "sharded over L (docs/layouts.md)");
  EXPECT_EQ(refusal("gpt-2", "F=384", "F=6", kPlainTable).substr(0, 11), "layouts_c4:");
  EXPECT_EQ(refusal("gpt-2", "model gpt-2", "model gpt-2",
                    "in : BLE_x\nweights : E_x F_x H\nattend : BLHQ\n")
                .substr(0, 11),
            "layouts_c6:");
}

TEST(TextPrograms, RefuseLinesWithoutSteps) {
  const auto with = [](const std::string& line, const std::string& name = "llama-3") {
    const std::string old_line = "mid : BLE = store(add(in, attn_out))";
    return refusal(name, old_line, line, kPlainTable);
  };
  EXPECT_EQ(
      with("mid : BLE = store(add(in, before(attn_out)))"),
      "layouts_c12: m.model line 54: mid_1: before is an op, for which programs have no step");
  EXPECT_EQ(
      with("mid : BLE = add(in, mul(attn_out, einsum(BL,BL->B; pos, pos)))"),
      "layouts_c12: m.model line 54: mid_1: it contracts int32 numbers, for which programs have "
      "no step");
  EXPECT_EQ(
      with("mid : BLE = add(in, mul(attn_out, sum(pos, L)))"),
      "layouts_c12: m.model line 54: mid_1: it takes int32 pos, for which programs have no step");
  EXPECT_EQ(refusal("experts", "left : BLNY = mul(wanted, open) unless dense",
                    "left : BLNY where open = wanted unless dense", kPlainTable),
            "layouts_c12: m.model line 84: best: its operand exists where open, which has N, for "
            "which programs have no step");
}

/// What the embedding makes in places only comes with its indicator, also where no line reads that.
TEST(TextPrograms, OfIndicatorsOfTheEmbedding) {
  std::string text = print_model_text(handed("gpt-2"));
  for (const auto& [old_text, new_text] : std::map<std::string, std::string>{
           {"\n\nlayer",
            "\nnear : BLM = within(far, -2, 0)\nbias : BLM where near = mul(far, 0.5)\n\nlayer"},
           {"out : BLE = store(add(mid", "slope : BL = mean(bias, M)\nout : BLE = store(add(mid"}})
    text.replace(text.find(old_text), old_text.size(), new_text);
  const PhasePrograms p =
      programs(config_of(parse_model_text(text, "m.model")), Strategy::parse("ws2d:batch").table());
  expect_lines(p.embed, {"output embed, see, bias, near"});
  expect_lines(p.layer, {"input bias : B_zyxLM is bias", "input near : B_zyxLM is near",
                         "slope : B_zyxL = mean(bias where near, M) is slope"});
}

TEST(TextPrograms, OfMaximaOverShardedDimsAndCachesOfSomeLayers) {
  const PhasePrograms p =
      programs(config_of(handed("experts")), Strategy::parse("ws2d:batch").table());
  expect_lines(p.layer_program(1),
               {"norm2_scale_2 : BL partialmax-x = max(norm2_scale_1, E) is norm2_scale_2",
                "norm2_scale_2a : BL = all_reduce(norm2_scale_2, x by max) is norm2_scale_2",
                "output outs, k_cache, v_cache, load_cache"});
  expect_lines(p.layer, {"output out, k_cache, v_cache"});
  const auto names = [&](std::int64_t layer) {
    std::vector<std::string> all;
    for (const auto& [name, layout] : p.caches(layer)) all.push_back(name);
    return all;
  };
  EXPECT_EQ(names(0), (std::vector<std::string>{"k_cache", "v_cache"}));
  EXPECT_EQ(names(1), (std::vector<std::string>{"k_cache", "v_cache", "load_cache"}));
}

TEST(TextPrograms, OfViewsOfThreeDims) {
  std::string text = print_model_text(handed("llama-3"));
  const auto put = [&](const std::string& old_text, const std::string& new_text) {
    const auto at = text.find(old_text);
    ASSERT_NE(at, std::string::npos) << old_text;
    text.replace(at, old_text.size(), new_text);
  };
  put("dim G = H // K", "dim G = H // K\ndim A halves of groups\ndim C = H // (A * K)");
  put("q_group : BLKGQ = split_dim(q_rot, H->KG)",
      "q_parts : BLKACQ = split_dim(q_rot, H->KAC)\nq_back : BLHQ = merge_dim(q_parts, KAC->H)\n"
      "q_group : BLKGQ = split_dim(q_back, H->KG)");
  const PhasePrograms p = programs(config_of(parse_model_text(text, "m.model"), {{"A", "2"}}),
                                   Strategy::parse("ws1d:heads").table());
  expect_lines(p.layer, {"q_parts : BLK_zACQ = split_dim(q_rotg, H->K_zAC, 6 2) is q_parts",
                         "q_partss2 : BLK_zA_yC_xQ = slice(q_partss, A, y) is q_parts"});
}

TEST(TextPrograms, OfTwoTermsThatArePartialAlike) {
  std::string text = print_model_text(handed("llama-3"));
  const auto put = [&](const std::string& old_text, const std::string& new_text) {
    const auto at = text.find(old_text);
    ASSERT_NE(at, std::string::npos) << old_text;
    text.replace(at, old_text.size(), new_text);
  };
  put("dim P positions", "dim P positions\ndim R rank");
  put("weight wq : EHQ", "weight wq : EHQ\nweight wq_down : ER\nweight wq_up : RHQ");
  put("q : BLHQ = store(einsum(BLE,EHQ->BLHQ; norm, wq))",
      "low : BLR = store(einsum(BLE,ER->BLR; norm, wq_down))\n"
      "q : BLHQ = store(einsum(BLE,EHQ->BLHQ + BLR,RHQ->BLHQ; norm, wq; low, wq_up))");
  const PhasePrograms p = programs(config_of(parse_model_text(text, "m.model"), {{"R", "4"}}),
                                   Strategy::parse("ws2d:batch").table());
  expect_lines(p.layer, {"lows : BLR_x = slice(low, R, x) is low",
                         "wq_up_s : R_xH_zyQ = slice(wq_up, R, x) is weight wq_up",
                         "q_1 : BLH_zyQ partialsum-x = einsum(BLE,EHQ->BLHQ + BLR,RHQ->BLHQ; norm, "
                         "wq; lows, wq_up_s) is q_1"});
}

TEST(TextPrograms, OfWhatExistsInPlaces) {
  const PhasePrograms p =
      programs(config_of(handed("experts")), Strategy::parse("ws2d:batch").table());
  ASSERT_EQ(p.other_layers.size(), 1U);
  expect_lines(p.layer,
               {"score : B_zyxLKGM = map(store(mul(dot, scale)) where near and see; scale = "
                "0.35355339059327373 [Q=8]) is score",
                "max : B_zyxLKG = max(score where near and see, M) is max",
                "middle : B_zyxLKG = mean(score where near and see, M) is middle"});
  expect_lines(
      p.layer_program(1),
      {"open : BLN = top(group, N, 2) is open", "chosen : BLX = top(best, X, 3) is chosen",
       "picked : B_zyxLX = map(probs where chosens) is picked",
       "typical : B_zyxL = mean(picked where chosens, X) is typical",
       "e_gate : BLXD partialsum-x = einsum(BLE,XED->BLXD; norm2, we_gate where chosen) is e_gate",
       "e_gatea : BLXD = all_reduce(e_gate, x) is e_gate"});
  const auto table = Strategy::parse("ws1d:heads").table();
  const ModelText text = parse_model_text(
      "model m\ndim E one\ndim F two\ndim H three\ndim Q four\ndim V five\nsmall E=24, F=24, H=24, "
      "Q=4, V=24\nembedding\nweight table : VE\nweight slopes : H\n"
      "embed : BLE = gather(table, ids, V)\nramp : HM = einsum(H,M->HM; slopes, slot)\n"
      "last : BL = within(pos, 3, 4)\nlayer\nweight g : E is gain\nweight wk : EQ\nweight wq : "
      "EHQ\nweight w : EF\n"
      "k : BLQ = einsum(BLE,EQ->BLQ; in, wk)\nk_cache : BMQ = append(k, pos)\n"
      "q : BLHQ = einsum(BLE,EHQ->BLHQ; in, wq)\n"
      "score : BLHM = add(einsum(BLHQ,BMQ->BLHM; q, k_cache), ramp)\n"
      "gain : BL = einsum(E,BLE->BL; g, in)\n"
      "most : BL where last = max(score, HM)\nout : BLE = mul(mul(in, most), gain)\n"
      "head\nlogits : BLV = einsum(BLE,VE->BLV; in, table)\n");
  const PhasePrograms of_heads = programs(config_of(text), table);
  expect_lines(of_heads.layer,
               {"input g : E is weight g", "gain : BL = einsum(E,BLE->BL; g, xg) is gain"});
  expect_lines(of_heads.embed, {"ramp : H_zyxM = map(add(mul(slopes, slot), 0)) is ramp"});
}

}  // namespace
}  // namespace shardproof
