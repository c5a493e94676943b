// The cases that `verify` runs without arguments.
#include <fmt/format.h>

#include <array>

#include "golden/cases.h"
#include "golden/strata.h"

namespace shardproof::cases {
namespace {

/// Those that every torus, pair and regime is tried on.
const std::vector<Strategy>& first_strategies() {
  static const std::vector<Strategy> all = [] {
    std::vector<Strategy> strategies;
    for (const char* name :
         {"ws1d:heads", "ws1d:batch", "ws2d:heads", "ws2d:batch", "wg-xyz:batch"})
      strategies.push_back(Strategy::parse(name));
    return strategies;
  }();
  return all;
}

}  // namespace

std::vector<Case> standard_matrix() {
  std::vector<Case> all;
  const auto add = [&](const char* torus, const char* model, const Strategy& prefill,
                       const Strategy& decode, int batch, int prompt, int gen,
                       const char* block = "parallel") {
    all.push_back(parse_case(fmt::format(
        "torus={} model={} prefill={} decode={} block={} batch={} prompt={} gen={} seed=1", torus,
        model, prefill.to_string(), decode.to_string(), block, batch, prompt, gen)));
  };
  for (const char* torus : {"1x1x1", "2x2x2", "4x2x3", "3x2x2", "2x3x1", "1x4x2"})
    for (const char* model : {"palm-tiny", "palm-tiny,K=24"})
      for (const Strategy& s : first_strategies()) add(torus, model, s, s, 24, 7, 4);
  for (const char* model : {"palm-tiny", "palm-tiny,K=24"})
    for (const Strategy& prefill : first_strategies())
      for (const Strategy& decode : first_strategies())
        if (!(prefill == decode)) add("4x2x3", model, prefill, decode, 24, 7, 4);
  for (const Strategy& s : first_strategies()) add("4x4x4", "palm-mini", s, s, 64, 3, 3);
  // Every strategy in the f32 regime, under each schedule on one of three tori.
  std::size_t schedule = 0;
  for (const char* torus : {"4x2x3", "3x2x2", "1x5x2"})
    for (const Strategy& s : first_strategies()) {
      const int chips = Torus::parse(torus).chips();
      add(torus, chips == 10 ? "palm-tiny,E=80,F=160,H=20,V=40" : "palm-tiny", s, s,
          chips == 10 ? 10 : 24, 3, 3);
      all.back().numerics.regime = Regime::f32;
      all.back().numerics.schedule =
          std::array{Schedule::ring, Schedule::tree, Schedule::group}[schedule++ % 3];
    }
  const char* const everything =
      "palm-tiny,ffn=geglu,norm=layernorm,bias=all,rope=interleaved,tied=false";
  for (const Strategy& s : first_strategies())
    for (bool bf16 : {false, true}) {
      if (bf16)
        add("3x2x2", "palm-tiny,K=6", s, s, 24, 3, 3);
      else
        add("4x2x3", everything, s, s, 24, 3, 3, "serial");
      if (bf16) all.back().numerics.act = ActType::bf16;
      all.back().numerics.regime = Regime::f32;
      all.back().numerics.schedule =
          std::array{Schedule::ring, Schedule::tree, Schedule::group}[schedule++ % 3];
    }
  // The rest of the model family, in every strategy.
  for (const Strategy& s : first_strategies()) {
    for (const char* torus : {"1x1x1", "2x2x2", "4x2x3", "3x2x2", "2x3x1", "1x4x2"})
      add(torus, "palm-tiny", s, s, 24, 7, 4, "serial");
    add("4x2x3", "palm-tiny,K=24", s, s, 24, 7, 4, "serial");
    for (const char* block : {"parallel", "serial"})
      for (const char* torus : {"4x2x3", "3x2x2"}) add(torus, everything, s, s, 24, 5, 3, block);
    add("4x2x3", "palm-tiny,ffn=gelu,rope=none", s, s, 24, 5, 3);
    add("3x2x2", "palm-tiny,ffn=gelu-erf,norm=layernorm,bias=qkv", s, s, 24, 5, 3, "serial");
  }
  // Every table of layouts, for multiquery, grouped and multihead heads.
  const auto add_table = [&](const char* torus, const char* model, const Strategy& s, int batch,
                             int prompt) {
    Block own = parse_model(model).block;
    if (!strata::runs(s, own)) own = own == Block::serial ? Block::parallel : Block::serial;
    const char* const block = own == Block::serial ? "serial" : "parallel";
    if (decodes(s)) return add(torus, model, s, s, batch, prompt, 3, block);
    // A prefill alone hands over to a strategy that asks nothing of the batch.
    const auto L = static_cast<int>(smallest_length(s, Torus::parse(torus)));
    add(torus, model, s, Strategy::parse("ws2d:heads"), 2, L, 3, block);
  };
  for (const char* model : {"palm-tiny", "palm-tiny,K=6", "palm-tiny,K=24"})
    for (const char* torus : {"4x2x3", "2x2x2", "3x2x2", "1x4x2"})
      for (const Strategy& s : all_strategies()) add_table(torus, model, s, 24, 4);
  for (const Strategy& s : all_strategies()) add_table("4x4x4", "palm-mini", s, 64, 2);
  // And with int8 weights: for all heads, with biases after the scale, with bf16 activations, and
  // under each schedule of the f32 regime.
  for (const char* model : {"palm-tiny", "palm-tiny,K=6,bias=all,norm=layernorm", "palm-tiny,K=24"})
    for (const char* torus : {"4x2x3", "3x2x2"})
      for (const Strategy& s : all_strategies()) {
        add_table(torus, model, s, 24, 4);
        Numerics& numerics = all.back().numerics;
        if (schedule % 4 == 1 && strata::runs(s, Block::serial))
          all.back().model.block = Block::serial;
        numerics.weights = WeightType::int8;
        numerics.act = std::array{ActType::f32, ActType::bf16}[schedule % 2];
        if (schedule++ % 3 != 0) continue;
        numerics.regime = Regime::f32;
        numerics.schedule =
            std::array{Schedule::ring, Schedule::tree, Schedule::group}[schedule / 3 % 3];
      }
  // The other models of the family: in the exact regime, and in f32 with other weights and
  // activations by turns.
  for (const char* model :
       {"llama", "gptj", "falcon", "palm-tiny,K=6,rope=alibi,unembed_bias=true"})
    for (const Strategy& s : all_strategies()) {
      add_table("4x2x3", model, s, 24, 4);
      add_table("3x2x2", model, s, 24, 4);
      Numerics& numerics = all.back().numerics;
      numerics.regime = Regime::f32;
      numerics.schedule = std::array{Schedule::ring, Schedule::tree, Schedule::group}[schedule % 3];
      numerics.act = std::array{ActType::f32, ActType::bf16}[schedule % 2];
      numerics.weights =
          std::array{WeightType::int8, WeightType::f32, WeightType::bf16}[schedule++ / 2 % 3];
    }
  // bf16 as it is used: sums, wire and caches, each alone and all together, under each schedule.
  const auto add_bf16 = [&](const char* torus, const char* model, const Strategy& s, int batch) {
    add(torus, model, s, s, batch, 4, 3, schedule % 2 == 0 ? "parallel" : "serial");
    Numerics& numerics = all.back().numerics;
    switch (schedule++ % 5) {
      case 0:
        numerics = kReleasedNumerics;
        all.back().model.cache = CacheType::bf16;
        return;
      case 1:
        all.back().model.cache = CacheType::bf16;
        return;
      case 2:
        numerics.act = ActType::bf16;
        numerics.wire = FloatType::bf16;  // of which exact sums take no notice
        all.back().model.cache = CacheType::f32;
        return;
      case 3:
        numerics.acc = FloatType::bf16;
        break;
      default:
        numerics.wire = FloatType::bf16;
    }
    numerics.regime = Regime::f32;
    numerics.schedule =
        std::array{Schedule::ring, Schedule::tree, Schedule::group}[schedule / 5 % 3];
  };
  for (const Strategy& s : all_strategies())
    if (decodes(s) && strata::runs(s, Block::parallel)) add_bf16("4x2x3", "palm-tiny,K=6", s, 24);
  for (const Strategy& s : first_strategies())
    add_bf16("1x5x2", "palm-tiny,E=80,F=160,H=20,V=40", s, 10);
  // Looped: every table under each loop, in f32, where the order shows; weights, activations, sums
  // and wire of all types, blocks of both kinds and every schedule by turns.
  const auto looped = [&](Case& c, Loop loop, std::size_t turn) {
    Numerics& numerics = c.numerics;
    numerics = {
        .weights = std::array{WeightType::f32, WeightType::int8, WeightType::bf16}[turn % 3],
        .act = std::array{ActType::f32, ActType::bf16}[turn / 2 % 2],
        .regime = Regime::f32,
        .schedule =
            std::array{Schedule::group, Schedule::biring, Schedule::ring, Schedule::tree}[turn % 4],
        .loop = loop,
        .acc = std::array{FloatType::f32, FloatType::bf16}[turn / 3 % 2],
        .wire = std::array{FloatType::f32, FloatType::bf16}[turn / 4 % 2]};
    if (turn % 5 < 2 && strata::runs(c.prefill, Block::serial)) c.model.block = Block::serial;
  };
  std::size_t turn = 0;
  for (Loop loop : {Loop::one_way, Loop::both_full, Loop::both_half}) {
    for (const Strategy& s : all_strategies()) {
      const char* const torus = std::array{"4x2x3", "3x2x2", "4x1x2"}[turn % 3];
      add_table(torus, turn % 2 == 0 ? "palm-tiny,K=6" : "palm-tiny,K=24", s, 24, 4);
      looped(all.back(), loop, turn++);
    }
    // Rings of five, and of thirty.
    for (const Strategy& s : first_strategies()) {
      add("5x2x3", "palm-tiny,E=60,F=120,H=30,V=60", s, s, 30, 3, 3);
      looped(all.back(), loop, turn++);
    }
  }
  // For all inputs: every table on every torus in the field regime; heads, weights, activations,
  // loops, blocks and the family by turns.
  turn = 0;
  for (const char* torus : {"4x2x3", "2x2x2", "3x2x2", "1x4x2", "4x1x2"})
    for (const Strategy& s : all_strategies()) {
      const char* const model = std::array{"palm-tiny",
                                           "llama",
                                           "palm-tiny,K=24,bias=all,norm=layernorm",
                                           "gptj",
                                           "palm-tiny,K=6,rope=alibi,unembed_bias=true",
                                           "falcon",
                                           "palm-tiny,K=6,ffn=geglu,tied=false"}[turn % 7];
      add_table(torus, model, s, 24, 4);
      Case& c = all.back();
      c.numerics = {
          .weights = std::array{WeightType::f32, WeightType::int8}[turn % 2],
          .act = std::array{ActType::f32, ActType::f32, ActType::bf16}[turn % 3],
          .regime = Regime::field,
          .schedule = Schedule::group,
          .loop = std::array{Loop::none, Loop::one_way, Loop::both_full, Loop::both_half}[turn % 4],
          .acc = FloatType::f32,
          .wire = FloatType::f32};
      if (turn++ % 5 < 2 && strata::runs(s, Block::serial)) c.model.block = Block::serial;
    }
  return all;
}

}  // namespace shardproof::cases
