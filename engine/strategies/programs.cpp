#include "engine/strategies/programs.h"

#include "engine/strategies/norm_text.h"
#include "engine/strategies/program_text.h"

namespace shardproof {

PhasePrograms build_programs(const Strategy& strategy, const Axes& kv, const ModelConfig& config,
                             ActType act) {
  return {build_embed(strategy, act),        build_layer(strategy, kv, config, act),
          build_head(strategy, config, act), build_sample(),
          residual_layout(strategy),         cache_layout(strategy, kv)};
}

Layout residual_layout(const Strategy& strategy) {
  return Layout::parse(strategy.ffn == FfnLayout::wg_xyz ? "B_zyxLE" : "BLE_xzy");
}

Layout cache_layout(const Strategy& strategy, const Axes& kv) {
  if (strategy.attention == AttentionLayout::batch) return Layout::parse("B_zyxMKQ");
  return Layout::parse("BM" + dim('K', kv) + "Q");
}

Program build_embed(const Strategy& strategy, ActType act) {
  ProgramText p("embed", act);
  p.line("input ids : BL is input ids");
  p.line("input table : V_zyE_x is weight embed");
  p.line("e : BLE_x partialsum-yz = embed_lookup(ids, table) is raw embed");
  const std::string residual = residual_layout(strategy).to_string();
  if (strategy.ffn == FfnLayout::wg_xyz) {
    p.line("eb : B_zyLE_x = reduce_scatter(e, B, zy) is raw embed");
    p.line("er : B_zyxLE = all_to_all(eb, E->B, x) is raw embed");
  } else {
    p.line("er : BLE_xzy = reduce_scatter(e, E, zy) is raw embed");
  }
  p.line("x : {} = scale_by(er, embed_scale) is {}", residual, p.unstored("embed"));
  p.line("output {}", p.stored("x", residual, "embed"));
  return p.program();
}

Program build_head(const Strategy& strategy, const ModelConfig& config, ActType act) {
  ProgramText p("head", act);
  p.line("input x : {} is out", residual_layout(strategy).to_string());
  const NormText norm{"xg", "BE_x", Axes::parse("x"), "final_", "", true};
  norm_inputs(p, config, norm);
  p.line("input table : V_zyE_x is weight {}", config.tied ? "embed" : "unembed");
  if (strategy.ffn == FfnLayout::wg_xyz) {
    p.line("xl : B_zyxE = last(x) is last out");
    p.line("xe : B_zyE_x = all_to_all(xl, B->E, x) is last out");
    p.line("xg : BE_x = all_gather(xe, B, zy) is last out");
  } else {
    p.line("xl : BE_xzy = last(x) is last out");
    p.line("xg : BE_x = all_gather(xl, E, zy) is last out");
  }
  const std::string xn = norm_lines(p, config, norm);
  p.line("z : BV_zy partialsum-x = einsum(BE,VE->BV; {}, table) is raw logits", xn);
  p.line("zr : BV_zyx = reduce_scatter(z, V, x) is raw logits");
  p.line("logits : BV_zyx = scale_by(zr, logit_scale) is logits");
  p.line("output logits");
  return p.program();
}

Program build_sample() {
  ProgramText p("sample", ActType::f32);
  p.line("input logits : BV_zyx is logits");
  p.line("cv : BC_zyx, ci : BC_zyx = local_argmax(logits) is stat candidates, stat indices");
  p.line("gv : BC = all_gather(cv, C, zyx) is stat candidates");
  p.line("gi : BC = all_gather(ci, C, zyx) is stat indices");
  p.line("token : B = argmax(gv, gi) is token");
  p.line("output token");
  return p.program();
}

Program build_hand_over(const Layout& from, const Layout& to) {
  ProgramText p("hand_over", ActType::f32);
  const Axes all = Axes::parse("zyx");
  std::string outputs;
  for (const char* c : {"k", "v"}) {
    p.line("input {} : {} is {}_cache", c, from.to_string(), c);
    std::string name = c;
    const auto step = [&](std::string_view suffix, const std::string& layout,
                          const std::string& call) {
      const std::string next = name + std::string(suffix);
      p.line("{} : {} = {} is {}_cache", next, layout, call, c);
      name = next;
    };
    if (from == to) {
      // nothing moves
    } else if (from.axes('B').empty()) {  // heads -> batch: B takes over K's axes, then the rest
      const Axes kv = from.axes('K');
      if (!kv.empty())
        step("_a", dim('B', kv) + "MKQ",
             fmt::format("all_to_all({}, K->B, {})", name, kv.to_string()));
      const Axes missing = all.without(kv);
      if (!missing.empty())
        step("_s", "B_zyxMKQ", fmt::format("slice({}, B, {})", name, missing.to_string()));
    } else {  // batch -> heads: gather what K does not take, then give K the rest
      const Axes kv = to.axes('K');
      const Axes missing = all.without(kv);
      if (!missing.empty())
        step("_g", dim('B', kv) + "MKQ",
             fmt::format("all_gather({}, B, {})", name, missing.to_string()));
      if (!kv.empty())
        step("_a", to.to_string(), fmt::format("all_to_all({}, B->K, {})", name, kv.to_string()));
    }
    outputs += (outputs.empty() ? "" : ", ") + name;
  }
  p.line("output {}", outputs);
  return p.program();
}

}  // namespace shardproof
