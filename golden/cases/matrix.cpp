// The cases that `verify` runs without arguments.
#include <fmt/format.h>

#include <array>

#include "golden/cases/cases.h"
#include "golden/cases/strata.h"

namespace shardproof::cases {
namespace {

/// The strategies that are combined with every torus, pair and regime.
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
  // The other members of the model family, in every strategy.
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
    // A strategy without a decode hands over to one without constraints on the batch.
    const auto L = static_cast<int>(smallest_length(s, Torus::parse(torus)));
    add(torus, model, s, Strategy::parse("ws2d:heads"), 2, L, 3, block);
  };
  for (const char* model : {"palm-tiny", "palm-tiny,K=6", "palm-tiny,K=24"})
    for (const char* torus : {"4x2x3", "2x2x2", "3x2x2", "1x4x2"})
      for (const Strategy& s : all_strategies()) add_table(torus, model, s, 24, 4);
  for (const Strategy& s : all_strategies()) add_table("4x4x4", "palm-mini", s, 64, 2);
  // Every table with int8 weights: for all kinds of heads, with biases after the scale, with bf16
  // activations, and under each schedule of the f32 regime.
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
  // The other models of the family: in the exact regime, and in f32 with weights and activations in
  // turn.
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
        numerics.wire = FloatType::bf16;  // which does not affect exact sums
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
  // Loops: every table under each loop, in f32, where the order shows; all types of weights,
  // activations, sums and wire, both kinds of blocks and every schedule in turn.
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
  // Random sampling: every table, in the exact regime and in f32, with each way to cut off unlikely
  // ids; also on one chip, and with the vocabulary sharded over a single axis.
  turn = 0;
  const auto random = [&](const char* torus, const Strategy& s) {
    add_table(torus, std::array{"palm-tiny", "palm-tiny,K=24"}[turn % 2], s, 24, 4);
    Case& c = all.back();
    c.sampling.sample = Sample::random;
    c.sampling.temperature = std::array{1.0, 0.1, 0.02}[turn % 3];
    c.sampling.top_k = std::array<std::int64_t, 4>{0, 20, 1, 5}[turn / 2 % 4];
    c.sampling.top_p = std::array{0.9, 1.0, 0.5, 0.9, 1e-9}[turn % 5];
    if (turn++ % 2 == 0) return;
    c.numerics.regime = Regime::f32;
    c.numerics.schedule = std::array{Schedule::ring, Schedule::tree, Schedule::group}[turn % 3];
  };
  for (const Strategy& s : all_strategies()) random("4x2x3", s);
  for (const Strategy& s : first_strategies())
    for (const char* torus : {"1x1x1", "3x2x2", "1x4x2", "1x2x1"}) random(torus, s);
  // The field regime: every table on every torus; heads, types, loops, blocks and the family in
  // turn.
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
  // Rows of unequal length: every table, chunked if possible; regimes, weights and activations in
  // turn.
  turn = 0;
  for (const char* torus : {"4x2x3", "3x1x2"})
    for (const Strategy& s : all_strategies()) {
      add_table(torus, std::array{"palm-tiny", "palm-tiny,K=6", "falcon"}[turn % 3], s, 24, 7);
      Case& c = all.back();
      const std::int64_t L = smallest_length(s, c.torus);
      if (L > 1) c.prompt = 3 * L;
      c.chunk = std::array{3 * L, L, 2 * L}[turn % 3];
      if (L == 1) c.chunk = std::array{7, 2, 3}[turn % 3];
      c.lengths =
          turn % 2 == 0
              ? RowLengths{true, {}}
              : RowLengths{false, c.batch < 4 ? std::vector<std::int64_t>{c.prompt, 1}
                                              : std::vector<std::int64_t>{c.prompt, 3, 1, 2}};
      c.numerics.regime =
          std::array{Regime::exact, Regime::f32, Regime::field, Regime::exact}[turn % 4];
      c.numerics.act = std::array{ActType::f32, ActType::bf16}[turn / 2 % 2];
      c.numerics.weights =
          std::array{WeightType::f32, WeightType::int8, WeightType::bf16}[turn / 3 % 3];
      if (c.numerics.regime == Regime::f32)
        c.numerics.schedule =
            std::array{Schedule::ring, Schedule::tree, Schedule::group}[turn / 4 % 3];
      if (turn++ % 5 < 2 && strata::runs(s, Block::serial)) c.model.block = Block::serial;
    }
  // Constants folded into the weights: the family in base 2, in every regime, with weights and
  // activations in turn; with the paper's rounding; and int8 through the hand-over of caches.
  turn = 0;
  for (const char* model :
       {"palm-tiny,K=6", "llama", "gptj", "falcon", "palm-tiny,K=6,bias=all,unembed_bias=true",
        "palm-tiny,K=24,rope=alibi,unembed_bias=true,tied=false"})
    for (Regime regime : {Regime::exact, Regime::f32, Regime::field}) {
      add_table(turn % 2 == 0 ? "4x2x3" : "3x2x2", model, first_strategies()[turn % 5], 24, 4);
      Case& c = all.back();
      c.model.softmax = Softmax::base2;
      c.numerics.weights =
          std::array{WeightType::f32, WeightType::int8, WeightType::bf16}[(turn + turn / 3) % 3];
      c.numerics.act = std::array{ActType::f32, ActType::bf16}[turn / 2 % 2];
      c.numerics.regime = regime;
      if (regime == Regime::f32)
        c.numerics.schedule =
            std::array{Schedule::ring, Schedule::tree, Schedule::biring}[turn / 3 % 3];
      ++turn;
    }
  all.push_back(
      parse_case("torus=4x2x3 model=palm-tiny,softmax=base2 prefill=ws2d:batch numerics=released "
                 "batch=24 prompt=4 gen=3"));
  all.push_back(
      parse_case("torus=4x2x3 model=palm-tiny,softmax=base2 prefill=wg-xyz decode=ws2d:batch "
                 "weights=int8 batch=24 prompt=7 chunk=2 gen=4 seed=5"));
  // Padded heads and ids: every table on two tori, with all kinds of heads, models of both blocks,
  // and every regime, weights, activations and sums in turn. With 250 ids padded to 264 on 24
  // chips, the last block is only padding.
  turn = 0;
  for (const char* torus : {"4x2x3", "3x2x2"})
    for (const Strategy& s : all_strategies()) {
      const char* const model = std::array{"palm-tiny,H=20,K=5,V=250", "palm-tiny,H=22,K=1,V=250",
                                           "palm-tiny,H=21,K=21,V=262,bias=all,tied=false",
                                           "palm-tiny,H=20,K=10,V=241,rope=alibi,unembed_bias=true",
                                           "llama,H=20,K=5,V=250"}[turn % 5];
      add_table(torus, model, s, 24, 4);
      Case& c = all.back();
      c.pad_heads = 24, c.pad_vocab = 264;
      if (turn % 3 == 1 && strata::runs(s, Block::serial)) c.model.block = Block::serial;
      Numerics& numerics = c.numerics;
      numerics.weights =
          std::array{WeightType::f32, WeightType::int8, WeightType::bf16}[turn / 2 % 3];
      numerics.act = std::array{ActType::f32, ActType::bf16}[turn / 3 % 2];
      numerics.regime =
          std::array{Regime::exact, Regime::f32, Regime::field, Regime::exact}[turn % 4];
      if (numerics.regime == Regime::f32) {
        numerics.schedule =
            std::array{Schedule::ring, Schedule::group, Schedule::tree}[turn / 4 % 3];
        numerics.wire = std::array{FloatType::f32, FloatType::bf16}[turn / 4 % 2];
        numerics.loop = std::array{Loop::none, Loop::both_half}[turn / 4 % 2];
      }
      ++turn;
    }
  // Rows that share prefixes: every table with 12 prefixes or one for each row, which 4x2x3 shards
  // wherever the table requires it; heads, chunks, lengths, regimes, weights and activations in
  // turn. On another torus one prefix, as many as rows, and 5, which divides neither the torus nor
  // the batch.
  turn = 0;
  const auto shares = [&](const char* torus, const Strategy& s, std::int64_t prefixes) {
    const char* const model =
        std::array{"palm-tiny", "palm-tiny,K=6,rope=alibi", "palm-tiny,K=24,cache=bf16", "llama",
                   "palm-tiny,K=6,softmax=base2"}[turn % 5];
    add_table(torus, model, s, 24, 7);
    Case& c = all.back();
    const std::int64_t L = smallest_length(s, c.torus);
    if (L > 1) c.prompt = 3 * L;
    c.prefix = {L > 1 ? L * std::array{1, 2}[turn % 2] : std::array{5, 1, 3}[turn % 3],
                std::min(prefixes, c.batch)};
    c.chunk = L > 1 ? L * std::array{3, 1}[turn / 2 % 2] : std::array{7, 2, 3, 7}[turn % 4];
    if (turn % 4 == 1) c.lengths = {true, {}};
    if (turn % 4 == 3) c.lengths = {false, {c.prompt, c.prefix.length + 1}};
    Numerics& numerics = c.numerics;
    numerics.regime =
        std::array{Regime::exact, Regime::f32, Regime::field, Regime::f32}[turn / 2 % 4];
    numerics.weights =
        std::array{WeightType::f32, WeightType::int8, WeightType::bf16}[turn / 3 % 3];
    numerics.act = std::array{ActType::f32, ActType::bf16}[turn / 4 % 2];
    if (numerics.regime == Regime::f32)
      numerics.schedule =
          std::array{Schedule::ring, Schedule::tree, Schedule::biring}[turn / 5 % 3];
    if (turn++ % 5 < 2 && strata::runs(s, Block::serial)) c.model.block = Block::serial;
  };
  for (const Strategy& s : all_strategies()) shares("4x2x3", s, std::array{12, 24}[turn % 2]);
  for (const Strategy& s : first_strategies())
    for (const int prefixes : {1, 24, 5}) shares("3x1x2", s, prefixes);
  // Hand-overs in chips' blocks and whole, and of one for another.
  for (const char* phases :
       {"prefill=ws2d:heads decode=ws2d:batch", "prefill=wg-xyz:batch decode=ws1d:heads",
        "prefill=wg-xyz decode=ws2d:batch", "prefill=ws1d:batch decode=wg-xyz:batch"})
    for (const char* others : {"prefix=5:3", "prefix=5:24 lengths=ragged chunk=2"})
      all.push_back(parse_case(fmt::format(
          "torus=4x2x3 model=palm-tiny {} batch=24 prompt=9 {} gen=3 seed=6", phases, others)));
  return all;
}

}  // namespace shardproof::cases
