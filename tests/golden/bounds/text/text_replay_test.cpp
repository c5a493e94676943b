// What a dump's values imply for one another by the lines of a text.
#include "golden/bounds/text/text_replay.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>

#include "engine/run/case_weights.h"
#include "golden/bounds/text/text_lines.h"
#include "oracle/graph/answer.h"
#include "oracle/request/storage.h"
#include "tests/golden/text/text_case.h"
#include "weights/storage/generator.h"

namespace shardproof::bounds {
namespace {

constexpr const char* kText = R"(model of-indicators
dim E d_model
dim V vocabulary
dim X experts
number eps
small layers=2, E=4, V=8, X=3, eps=1e-5

embedding
weight table : VE
embed : BLE = store(gather(table, ids, V))
far : BLM = sub(slot, pos)
see : BLM = within(far, -inf, 0)

layer
weight wk : EX
weight w_in : XE
k : BLX = store(einsum(BLE,EX->BLX; in, wk))
k_cache : BMX = append(k, pos)
dot : BLM where see = store(einsum(BLX,BMX->BLM; k, k_cache))
max : BL = max(dot, M)
exp : BLM = exp(sub(dot, max))
denom : BL = sum(exp, M)
pick : BLX = top(k, X, 2)
part : BLXE where pick = store(mul(w_in, k))
mixed : BLE = sum(part, X)
out : BLE = store(add(in, mul(mixed, denom)))

head
weight unembed : VE
logits : BLV = store(einsum(BLE,VE->BLV; in, unembed))
)";

/// Candidates, of which those that are marked exist.
constexpr const char* kGuarded = R"(model of-candidates
dim E d_model
dim V vocabulary
dim X experts
small layers=2, E=4, V=8, X=3

embedding
weight table : VE
embed : BLE = store(gather(table, ids, V))

layer
weight wk : EX
weight w_out : XE
k : BLX = store(einsum(BLE,EX->BLX; in, wk))
pick : BLX = top(k, X, 2)
kept : BLX where pick = k
mean : BL = mean(kept, X)
most : BL = max(kept, X)
two : BLX = top(kept, X, 1)
bent : BLX = exp(kept)
total : BL = sum(kept, X)
sums : BL = add(add(mean, most), add(total, sum(bent, X)))
out : BLE = store(add(mul(in, sums), einsum(BLX,XE->BLE; two, w_out)))

head
weight unembed : VE
logits : BLV = store(einsum(BLE,VE->BLV; in, unembed))
)";

/// A run of the text, its exact values as a dump, and what they imply.
struct TextRun {
  Case source_case;
  Passes passes = source_case.passes();
  Weights weights = oracle::as_stored(generated_weights(source_case), source_case.numerics.weights);
  oracle::Answer answer = oracle::graph::answer(
      weights, {source_case.numerics,
                generate_prompt(source_case.model, source_case.seed, 2, 3, {}),
                passes,
                source_case.sampling,
                source_case.seed,
                {}});
  std::map<std::string, IntTensor> ids;
  Derivation::Dump dump;

  explicit TextRun(const char* text = kText)
      : source_case(case_with_text(parse_model_text(text), "batch=2 prompt=3")) {
    for (const std::string& pass : answer.passes) ids[pass] = answer.inputs.at(pass + ".ids");
  }
  void add(const std::string& id) { dump.emplace(id, IntervalTensor(answer.checkpoints.at(id))); }
  void add_all() {
    for (const auto& [id, tensor] : answer.checkpoints) add(id);
  }
  TextReplay replay(const DeclaredArithmetic& by = {}) const {
    return {weights, passes, ids, dump, by};
  }
};

TEST(TextReplay, HasEveryValueOfTheModel) {
  TextRun run;
  for (const bool dumped : {false, true}) {
    if (dumped) run.add_all();
    TextReplay replay = run.replay();
    for (const auto& [id, tensor] : run.answer.checkpoints) {
      const IntervalTensor expected = replay.expected(id);
      replay.make_exactly(true);
      const IntervalTensor exact = replay.expected(id);
      replay.make_exactly(false);
      for (std::size_t i = 0; i < tensor.data.size(); ++i) {
        const auto v = static_cast<double>(tensor.data[i]);
        EXPECT_TRUE(holds(values(expected.at(i), NumberFormat::f32), NumberFormat::f32, v)) << id;
        if (!dumped) {
          continue;
        }
        // The f32 value is the exact one of its operands, rounded once.
        EXPECT_LE(std::abs(exact.center[i] - v), 0x1.0001p-24 * std::abs(v) + 0x1p-149) << id;
        // A wrong number is outside.
        EXPECT_FALSE(holds(expected.at(i), NumberFormat::f64, v + 1 + std::abs(v))) << id;
        EXPECT_EQ(replay.value(id).center[i], v) << id;
      }
    }
  }
}

TEST(TextReplay, OperandsAreThoseOfTheLine) {
  using Ids = std::vector<std::string>;
  TextRun run;
  const TextReplay replay = run.replay();
  EXPECT_EQ(replay.operands("prefill.c0.layer0.k_1"), Ids{"prefill.c0.embed"});
  EXPECT_EQ(replay.operands("prefill.c0.layer1.k_1"), Ids{"prefill.c0.layer0.out"});
  EXPECT_EQ(replay.operands("decode.1.layer1.k_cache"),
            (Ids{"decode.1.layer1.k", "prefill.c0.layer1.k_cache"}));
  EXPECT_EQ(replay.operands("prefill.c0.layer1.k_cache"), Ids{"prefill.c0.layer1.k"});
  EXPECT_EQ(replay.operands("decode.1.logits_1"), Ids{"decode.1.layer1.out"});
  EXPECT_EQ(replay.operands("decode.1.far"), Ids{});
  const Ids dot = replay.operands("decode.1.layer0.dot_1");
  EXPECT_NE(std::find(dot.begin(), dot.end(), "decode.1.layer0.k_cache"), dot.end());
  for (const char* none : {"decode.1.layer2.k", "decode.9.layer0.k", "decode.1.k",
                           "decode.1.layer0.far", "decode.1.layer0.none", "decode.1.layerx.k"})
    try {
      replay.operands(none);
      FAIL() << none;
    } catch (const Error& error) {
      EXPECT_EQ(error.label(), "bounds_c1") << none;
    }
}

TEST(TextReplay, ACacheIsThatOfTheDumpInThePassesAfter) {
  TextRun run;
  run.add("prefill.c0.layer0.k_cache");
  IntervalTensor& cache = run.dump.at("prefill.c0.layer0.k_cache");
  for (double& v : cache.center) v += 1;
  TextReplay replay = run.replay();
  const IntervalTensor after = replay.expected("decode.1.layer0.k_cache");
  // [B, M, X]: the first row's first slot.
  for (std::size_t i = 0; i < 3; ++i) EXPECT_EQ(after.center[i], cache.center[i]);
}

/// Positions are integers in every engine: an indicator of them is exact whatever is rounded.
TEST(TextReplay, IndicatorsOfPositionsAreExact) {
  TextRun run;
  DeclaredArithmetic bf16;
  bf16.values = NumberFormat::bf16;
  for (const DeclaredArithmetic& by : {DeclaredArithmetic{}, bf16}) {
    TextReplay replay = run.replay(by);
    for (const char* id : {"prefill.c0.far", "prefill.c0.see", "decode.1.see"})
      for (const double radius : replay.expected(id).radius) EXPECT_EQ(radius, 0) << id;
  }
}

/// Two candidates that cannot be told apart: what exists for either is not known.
TEST(TextReplay, WhatAnOpenIndicatorGuardsIsUnknown) {
  TextRun run;
  run.add_all();
  IntervalTensor& k = run.dump.at("prefill.c0.layer0.k");
  for (std::size_t i = 0; i < 3; ++i) k.center[i] = 1, k.radius[i] = k.likely[i] = 0.1;
  run.dump.erase("prefill.c0.layer0.pick");
  run.dump.erase("prefill.c0.layer0.part");
  TextReplay replay = run.replay();
  EXPECT_GT(replay.value("prefill.c0.layer0.pick").radius[0], 0);
  EXPECT_EQ(replay.expected("prefill.c0.layer0.part").radius[0], kInfinity);
  EXPECT_EQ(replay.expected("prefill.c0.layer0.mixed").radius[0], kInfinity);
  // Another token is not touched.
  EXPECT_TRUE(std::isfinite(replay.expected("prefill.c0.layer0.mixed").radius[4]));
  const std::vector<bool> absent = replay.absent("prefill.c0.layer0.dot");
  // [B, L, M]: the first token sees slot 0 of three.
  ASSERT_EQ(absent.size(), 2U * 3 * 3);
  EXPECT_FALSE(absent[0]);
  EXPECT_TRUE(absent[1]);
  EXPECT_TRUE(replay.absent("prefill.c0.layer0.k").empty());
}

/// A dumped number where nothing may exist is 0 or a number: it does not count as one.
TEST(TextReplay, WhatMayNotExistDoesNotCount) {
  const auto with = [](bool open) {
    TextRun run(kGuarded);
    run.add_all();
    for (const char* made : {"mean", "most", "two", "bent", "total"})
      run.dump.erase(fmt::format("prefill.c0.layer0.{}", made));
    IntervalTensor& k = run.dump.at("prefill.c0.layer0.k");
    for (std::size_t i = 0; i < 3 && open; ++i) k.center[i] = 1, k.radius[i] = k.likely[i] = 0.1;
    run.dump.erase("prefill.c0.layer0.pick");
    return run;
  };
  for (const bool open : {false, true}) {
    const TextRun run = with(open);
    TextReplay replay = run.replay();
    for (const char* name : {"mean", "most", "two"})
      EXPECT_EQ(std::isinf(replay.expected(fmt::format("prefill.c0.layer0.{}", name)).radius[0]),
                open)
          << name;
    // A sum is the same without what is 0; a function is 0 or its number.
    const std::vector<double>& kept = run.dump.at("prefill.c0.layer0.kept").center;
    const double terms = std::abs(kept[0]) + std::abs(kept[1]) + std::abs(kept[2]);
    // Three additions, each rounded by 2^-24 of no more than the terms, and one for what is tiny.
    EXPECT_LE(replay.expected("prefill.c0.layer0.total").radius[0], 4 * std::ldexp(terms, -24));
    const Interval bent = replay.expected("prefill.c0.layer0.bent").at(0);
    const double own = std::exp(run.dump.at("prefill.c0.layer0.kept").center[0]);
    EXPECT_EQ(bent.low <= 0, open || own == 0);
    EXPECT_GE(bent.high, own);
  }
}

TEST(TextReplay, AnUnknownTokenMakesWhatFollowsUnknown) {
  TextRun run;
  run.ids.at("decode.1").data[1] = Derivation::kUnknownId;
  {
    TextReplay replay = run.replay();
    const IntervalTensor embed = replay.expected("decode.1.embed");
    EXPECT_LT(embed.radius[0], 1);
    EXPECT_EQ(embed.radius[4], kInfinity);
  }
  TextReplay forgotten = run.replay();
  forgotten.forget("prefill.c0");
  EXPECT_EQ(forgotten.expected("prefill.c0.embed").radius[0], kInfinity);
  EXPECT_EQ(forgotten.expected("decode.1.layer0.denom").radius[0], kInfinity);
  run.ids.at("decode.1").data[1] = 8;
  TextReplay beyond = run.replay();
  EXPECT_THROW(beyond.expected("decode.1.embed"), Error);
}

/// An exponential that the dump lacks may be of a kernel that rescales; one that it has is a
/// number.
TEST(TextReplay, AnExponentialBetweenDumpedValuesMayBeRescaled) {
  TextRun run;
  run.add_all();
  double with = 0;
  {
    TextReplay replay = run.replay();
    with = replay.expected("prefill.c0.layer0.denom").radius[3];
  }
  run.dump.erase("prefill.c0.layer0.exp");
  TextReplay replay = run.replay();
  const IntervalTensor exp = replay.value("prefill.c0.layer0.exp");
  const IntervalTensor made = replay.expected("prefill.c0.layer0.exp");
  EXPECT_GT(replay.expected("prefill.c0.layer0.denom").radius[3], with);
  // Row 0, token 0, slot 0, whose exponential is 1: 3 + 8 times (2·4 + 3)·u.
  EXPECT_GE(exp.radius[0], made.radius[0] + 11 * 11 * 0x1p-24);
}

TEST(TextReplay, ArithmeticIsThatOfTheValue) {
  TextRun run;
  run.add_all();
  const std::string k = "prefill.c0.layer0.k_1", dot = "prefill.c0.layer0.dot_1";
  const auto radius = [&](const std::string& id, const DeclaredArithmetic& common,
                          const std::string& own_id, const DeclaredArithmetic& own) {
    TextReplay replay = run.replay(common);
    replay.declare(own_id, own);
    return replay.expected(id).radius[0];
  };
  DeclaredArithmetic f32, coarse, of_matrices;
  coarse.sums = NumberFormat::bf16;
  of_matrices.matrix_sums = NumberFormat::bf16;
  EXPECT_GT(radius(k, f32, k, coarse), 100 * radius(k, f32, k, f32));
  EXPECT_EQ(radius(dot, f32, k, coarse), radius(dot, f32, k, f32));
  EXPECT_GT(radius(k, of_matrices, "", f32), 100 * radius(k, f32, "", f32));
  EXPECT_EQ(radius(dot, of_matrices, "", f32), radius(dot, f32, "", f32));
  TextReplay replay = run.replay();
  replay.assume(coarse);
  EXPECT_GT(replay.expected(dot).radius[0], 100 * radius(dot, f32, "", f32));
  // Sums of 16-bit values may be cut over all chips, and rounded on their way.
  DeclaredArithmetic bf16;
  bf16.values = NumberFormat::bf16;
  TextReplay cut = run.replay(bf16), whole = run.replay(bf16);
  cut.lay_out({}, Torus(2, 1, 2));
  EXPECT_GT(cut.expected(dot).radius[0], 2 * whole.expected(dot).radius[0]);
  // Unless the trace says that nothing is rounded there.
  DeclaredArithmetic unsent = bf16;
  unsent.wire = NumberFormat::f32;
  TextReplay cut_unsent = run.replay(unsent);
  cut_unsent.lay_out({}, Torus(2, 1, 2));
  EXPECT_EQ(cut_unsent.expected(dot).radius, whole.expected(dot).radius);
  // A kernel may have what the dump lacks as it was before it was stored.
  run.dump.erase(dot);
  run.dump.erase("prefill.c0.layer0.dot");
  TextReplay fused = run.replay(bf16);
  const IntervalTensor unrounded = fused.expected("prefill.c0.layer0.dot");
  const Interval both = fused.value("prefill.c0.layer0.dot").at(0);
  for (const double v : {unrounded.center[0], nearest(unrounded.center[0], NumberFormat::bf16)}) {
    EXPECT_LE(both.low, v);
    EXPECT_GE(both.high, v);
  }
  // In 16 bits a derived value is taken both rounded and not, unless the trace says how.
  run.dump.erase("prefill.c0.layer0.max");
  TextReplay open = run.replay(bf16);
  bf16.rounding = "spec";
  TextReplay spec = run.replay(bf16);
  EXPECT_GT(open.expected("prefill.c0.layer0.exp").radius[4],
            spec.expected("prefill.c0.layer0.exp").radius[4]);
}

/// What is declared of a value holds for the ops that are nested in its line, and for no other line
/// of a like name.
TEST(TextReplay, ArithmeticOfAValueIsThatOfItsNestedOps) {
  std::string text = kText;
  const std::string dot_line = "dot : BLM where see = store(einsum(BLX,BMX->BLM; k, k_cache))\n";
  // Its nested sum is dot_2: the name dot_1 is taken.
  text.insert(text.find(dot_line), "dot_1 : BLM where see = einsum(BLX,BMX->BLM; k, k_cache)\n");
  TextRun run(text.c_str());
  run.add_all();
  DeclaredArithmetic coarse;
  coarse.sums = NumberFormat::bf16;
  const auto widened = [&](const std::string& own) {
    TextReplay plain = run.replay(), declared = run.replay();
    declared.declare("prefill.c0.layer0." + own, coarse);
    std::string names;
    for (const char* name : {"k_1", "dot_1", "dot_2"}) {
      const std::string id = fmt::format("prefill.c0.layer0.{}", name);
      if (declared.expected(id).radius[0] > 100 * plain.expected(id).radius[0])
        names += fmt::format("{} ", name);
    }
    return names;
  };
  EXPECT_EQ(widened("k"), "k_1 ");
  EXPECT_EQ(widened("dot"), "dot_2 ");
  EXPECT_EQ(widened("dot_1"), "dot_1 ");
  EXPECT_EQ(widened("dot_2"), "dot_2 ");
  EXPECT_EQ(widened("max"), "");
}

TEST(TextReplay, AssumedValuesPrecedeDumpedOnes) {
  TextRun run;
  run.add_all();
  TextReplay replay = run.replay();
  IntervalTensor other = replay.value("prefill.c0.layer0.k");
  for (double& v : other.center) v *= 2;
  replay.assume("prefill.c0.layer0.k", other);
  EXPECT_EQ(replay.value("prefill.c0.layer0.k").center, other.center);
  EXPECT_EQ(replay.expected("prefill.c0.layer0.k_cache").center[0], other.center[0]);
  run.dump.at("prefill.c0.layer0.k").shape = {6, 3};
  TextReplay wrong = run.replay();
  EXPECT_THROW(wrong.expected("prefill.c0.layer0.k"), Error);
}

/// A term of a block's sum, which no line names, is of its layer; the head reads the last one.
TEST(TextLines, ReadOperandsInTheLayerOfTheirValue) {
  const ModelConfig config = model_config(
      std::make_shared<const TextModel>(parse_model_text(kText), TextKeys(), "m.model"));
  const TextLines lines(config);
  for (const std::int64_t layer : {0, 1})
    for (const char* name : {"dot", "a_term"})
      EXPECT_EQ(lines.id_of_operand({"decode.1", layer, name}, "k"),
                fmt::format("decode.1.layer{}.k", layer));
  EXPECT_EQ(lines.id_of_operand({"decode.1", 0, "logits"}, "in"), "decode.1.layer1.out");
}

/// Sines and cosines may be rounded to 16 bits before they are read, where `rounding` leaves it
/// open; no other weight is.
TEST(TextLines, RoundTablesOfRoPEAsDeclared) {
  const ModelConfig config = model_config(
      std::make_shared<const TextModel>(parse_model_text(kText), TextKeys(), "m.model"));
  const TextLines lines(config);
  Tensor table({2, 2});
  table.data = {0.3F, -0.7F, 0.5F, 0.1F};
  const auto stored = std::make_shared<const Tensor>(table);
  DeclaredArithmetic by;
  by.values = NumberFormat::bf16;
  for (const TextWeightKind kind :
       {TextWeightKind::by_use, TextWeightKind::cosines, TextWeightKind::sines}) {
    const bool turns = kind != TextWeightKind::by_use;
    TextWeight weight;
    weight.kind = kind;
    weight.parameters = {"half", "2", "10000"};
    const auto number = [&](const char* rounding, std::size_t i) {
      by.rounding = rounding;
      const auto value = lines.weight(stored, lines.model().sizes(), weight, "t", {2, 2}, by);
      return value.floats != nullptr ? Number{static_cast<double>((*value.floats)[i]), 0.0, 0.0}
                                     : value.data[i].number;
    };
    for (std::size_t i = 0; i < 4; ++i) {
      const auto exact = static_cast<double>(stored->data[i]);
      const double rounded = turns ? nearest(exact, NumberFormat::bf16) : exact;
      for (const auto& [rounding, once] : std::initializer_list<std::pair<const char*, double>>{
               {"spec", exact},
               {"rope:", exact},
               {"rope:products", exact},
               {"rope:tables", rounded},
               {"rope:tables+products", rounded}}) {
        EXPECT_EQ(number(rounding, i).center, once) << rounding;
        EXPECT_EQ(number(rounding, i).worst, 0.0) << rounding;
      }
      for (const char* open : {"", "norm:"}) {
        const Interval in = number(open, i).interval();
        EXPECT_LE(in.low, std::min(exact, rounded)) << open;
        EXPECT_GE(in.high, std::max(exact, rounded)) << open;
        EXPECT_LE(in.high - in.low, 1.0001 * std::abs(exact - rounded)) << open;
      }
    }
  }
}

}  // namespace
}  // namespace shardproof::bounds
