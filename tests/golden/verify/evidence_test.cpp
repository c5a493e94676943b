#include "golden/verify/evidence.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "engine/ops/int8_weights.h"
#include "golden/verify/verify.h"
#include "tests/engine/strategy_sample.h"
#include "tests/sanitized.h"
#include "weights/model/registry.h"
#include "weights/storage/generator.h"

namespace shardproof {
namespace {

/// A serial model with every kind of weight, untied, small, that many tori divide.
Case any_weights(const std::string& torus, const Strategy& strategy) {
  return parse_case(
      fmt::format("torus={0} prefill={1} prompt=3 gen=2 seed=9 "
                  "model=palm-tiny,layers=2,E=24,F=24,H=24,K=12,Q=6,V=24,norm=layernorm,bias=all,"
                  "tied=false block=serial",
                  torus, strategy.to_string()));
}

/// The case judged with its generated weights, of which `name` is changed by `change`.
template <class Change>
Judgement judged_with(const Case& c, const std::string& name, Change&& change) {
  const Weights made = generate_weights(c.model, c.seed);
  std::map<std::string, Tensor> tensors = made.tensors();
  change(tensors.at(name));
  const Weights given(c.model, std::move(tensors));
  OracleMemo memo;
  return verify_case(c, memo, {.weights = &given});
}

void make_constant(Tensor& tensor) { std::fill(tensor.data.begin(), tensor.data.end(), 0.0625F); }

/// The weights that the prefill's programs hold in a cut layout, as its inputs.
std::map<std::string, Layout> cut_weights(const Case& c) {
  std::map<std::string, Layout> cut;
  const PhasePrograms phase = make_plan(c).prefill;
  for (const Program* p : {&phase.embed, &phase.layer, &phase.head})
    for (const ValueDecl& input : p->inputs) {
      if (input.role.kind != Role::Kind::weight) continue;
      int blocks = 1;
      for (const Layout::Dim& dim : input.layout.dims()) blocks *= c.torus.size(dim.axes);
      if (blocks > 1) cut.emplace(input.role.name, input.layout);
    }
  return cut;
}

TEST(Evidence, AConstantMatrixIsNotJudgedAndAConstantVectorANote) {
  int matrices = 0;
  int vectors = 0;
  OneInN chosen(5, "weights");
  for (const char* torus : {"4x2x3", "1x3x1", "2x1x2"})
    // One strategy for each way in which weights rest, nothing else enters; on the small tori those
    // that shard a dim by other axes than ws2d does, and ws2d.
    for (const char* name : {"ws1d:heads", "ws2d:batch", "ws2d:few-heads", "ws2d:norm-first-kv",
                             "dp", "fsdp", "mixed:1d-2d"}) {
      const bool cut_most = std::string_view(name) == "ws2d:batch" ||
                            std::string_view(name) == "fsdp" ||
                            std::string_view(name) == "ws2d:norm-first-kv";
      if (std::string_view(torus) != "4x2x3" && !cut_most) continue;
      const Case c = any_weights(torus, Strategy::parse(name));
      const auto cut = cut_weights(c);
      for (const WeightSpec& spec : weight_specs(c.model)) {
        if (spec.name.starts_with("layer0.") || spec.name.starts_with("rope_")) continue;
        if (!chosen()) continue;
        const auto dot = spec.name.find('.');  // layer1, the last
        const std::string in_program =
            dot == std::string::npos ? spec.name : spec.name.substr(dot + 1);
        const Judgement j = judged_with(c, spec.name, make_constant);
        SCOPED_TRACE(spec.name + " " + print_case(c) + " " + j.explanation());
        if (!cut.contains(in_program)) {
          EXPECT_EQ(j.verdict, Verdict::equal);
        } else if (spec.matrix) {
          ++matrices;
          EXPECT_EQ(j.verdict, Verdict::not_judged);
          EXPECT_TRUE(j.reason().starts_with("weight " + spec.name + ": all ")) << j.reason();
          EXPECT_NE(j.reason().find(cut.at(in_program).to_string()), std::string::npos);
        } else {
          ++vectors;
          EXPECT_EQ(j.verdict, Verdict::equal);
          ASSERT_EQ(j.notes.size(), 1U);
          EXPECT_NE(j.notes[0].find(spec.name), std::string::npos) << j.notes[0];
        }
      }
    }
  EXPECT_GT(matrices, chosen.all() ? 100 : 0);
  EXPECT_GT(vectors, chosen.all() ? 50 : 0);
}

TEST(Evidence, OneOtherBlockIsEnough) {
  const Case c = any_weights("4x2x3", Strategy::parse("ws2d:batch"));
  for (const char* name :
       {"embed", "unembed", "layer0.wq", "layer1.wo", "layer0.w_gate", "layer1.w_out"}) {
    // The very last element belongs to one block alone; so does a zero of another sign.
    EXPECT_EQ(
        judged_with(c, name, [](Tensor& t) { make_constant(t), t.data.back() = 0.125F; }).verdict,
        Verdict::equal)
        << name;
    EXPECT_EQ(judged_with(c, name,
                          [](Tensor& t) {
                            std::fill(t.data.begin(), t.data.end(), 0.0F);
                            t.data.back() = -0.0F;
                          })
                  .verdict,
              Verdict::equal)
        << name;
  }
}

TEST(Evidence, BlocksThatRepeatAreAlikeThoughNotConstant) {
  // Each block of wq on 2x1x1, E_xHQ, holds the same numbers: the halves of E are copies.
  const Case c = any_weights("2x1x1", Strategy::parse("ws2d:heads"));
  const Judgement j = judged_with(c, "layer0.wq", [](Tensor& t) {
    std::copy_n(t.data.begin(), t.data.size() / 2,
                t.data.begin() + static_cast<std::ptrdiff_t>(t.data.size() / 2));
  });
  EXPECT_EQ(j.verdict, Verdict::not_judged) << j.explanation();
  EXPECT_EQ(j.reason(),
            "weight layer0.wq: all 2 blocks of E_xH_zyQ hold the same bits, so a chip with "
            "another's block would not show");
}

TEST(Evidence, OfOneChipNothingIsMissing) {
  const Case c = any_weights("1x1x1", Strategy::parse("ws1d:heads"));
  for (const char* name : {"embed", "layer0.wq", "layer0.w_out"})
    EXPECT_EQ(judged_with(c, name, make_constant).verdict, Verdict::equal) << name;
}

TEST(Evidence, InBothRegimesAndAsStored) {
  // As f32 the two halves differ by less than bf16 keeps.
  Case c = any_weights("2x1x1", Strategy::parse("ws2d:heads"));
  const auto nearly = [](Tensor& t) {
    make_constant(t);
    t.data.back() = std::nextafter(0.0625F, 1.0F);
  };
  EXPECT_EQ(judged_with(c, "layer0.wq", nearly).verdict, Verdict::equal);
  c.numerics.weights = NumberFormat::bf16;
  EXPECT_EQ(judged_with(c, "layer0.wq", nearly).verdict, Verdict::not_judged);
  c.numerics.regime = Regime::f32;
  EXPECT_EQ(judged_with(c, "layer0.wq", nearly).verdict, Verdict::not_judged);
}

// ---- int8 weights

/// Every code of the matrix is 127, of channels that have scales of their own.
void make_codes_constant(Tensor& tensor, std::size_t channels) {
  for (std::size_t i = 0; i < tensor.data.size(); ++i)
    tensor.data[i] = 0x1p-10F * static_cast<float>(1 + i % channels);
}

TEST(Evidence, ConstantCodesAreNotJudgedWhateverTheirScales) {
  Case c = any_weights("4x2x3", Strategy::parse("ws2d:batch"));
  for (const WeightSpec& spec : weight_specs(c.model)) {
    if (!spec.int8) continue;
    const WeightRow& scale = *scale_of(c.model, spec.name.substr(spec.name.find('.') + 1));
    const auto channels = static_cast<std::size_t>(element_count(shape_of(scale.dims, c.model)));
    const auto constant = [&](Tensor& t) { make_codes_constant(t, channels); };
    SCOPED_TRACE(spec.name);
    c.numerics.weights = NumberFormat::f32;
    EXPECT_EQ(judged_with(c, spec.name, constant).verdict, Verdict::equal);
    c.numerics.weights = NumberFormat::int8;
    const Judgement j = judged_with(c, spec.name, constant);
    EXPECT_EQ(j.verdict, Verdict::not_judged) << j.explanation();
    EXPECT_TRUE(j.reason().starts_with("weight " + spec.name + ": all ")) << j.reason();
    // One other code is enough.
    EXPECT_EQ(judged_with(c, spec.name,
                          [&](Tensor& t) {
                            constant(t);
                            t.data.back() = -t.data.back();
                          })
                  .verdict,
              Verdict::equal);
    // Nearly alike: codes keep less than f32.
    EXPECT_EQ(judged_with(c, spec.name,
                          [&](Tensor& t) {
                            constant(t);
                            t.data.back() = std::nextafter(t.data.back(), 0.0F);
                          })
                  .verdict,
              Verdict::not_judged);
  }
}

TEST(Evidence, ConstantScalesAreANote) {
  Case c = any_weights("4x2x3", Strategy::parse("ws2d:batch"));
  c.numerics.weights = NumberFormat::int8;
  for (const WeightSpec& spec : weight_specs(c.model)) {
    if (!spec.int8) continue;
    const std::string scale =
        spec.name.substr(0, spec.name.find('.') + 1) +
        std::string(scale_of(c.model, spec.name.substr(spec.name.find('.') + 1))->name);
    // The first of each channel is the largest.
    const Judgement j = judged_with(c, spec.name, [&](Tensor& t) {
      const auto channels = static_cast<std::size_t>(
          element_count(shape_of(weight_row(scale.substr(scale.find('.') + 1))->dims, c.model)));
      for (std::size_t i = 0; i < channels; ++i) t.data[i] = 4.0F;
    });
    EXPECT_EQ(j.verdict, Verdict::equal) << j.explanation();
    ASSERT_EQ(j.notes.size(), 1U) << spec.name;
    EXPECT_TRUE(j.notes[0].starts_with("all blocks of " + scale + " hold the same bits"))
        << j.notes[0];
  }
}

TEST(Evidence, OfAFileOfInt8Weights) {
  Case c = any_weights("4x2x3", Strategy::parse("ws2d:batch"));
  c.numerics.weights = NumberFormat::int8;
  const Weights made = int8_weights(generate_weights(c.model, c.seed));
  const auto judged = [&](const std::string& name, float value) {
    std::map<std::string, Tensor> tensors = made.tensors();
    std::vector<float>& data = tensors.at(name).data;
    std::fill(data.begin(), data.end(), value);
    const Weights given(c.model, std::move(tensors), NumberFormat::int8);
    OracleMemo memo;
    return verify_case(c, memo, {.weights = &given});
  };
  for (const float code : {0.0F, 5.0F, -127.0F})
    EXPECT_TRUE(judged("layer1.w_up", code).reason().starts_with("weight layer1.w_up: all 24 blo"));
  const Judgement scale = judged("layer1.w_up_scale", 0x1p-8F);
  EXPECT_EQ(scale.verdict, Verdict::equal);
  EXPECT_EQ(scale.notes.size(), 1U);
}

TEST(Evidence, OfAUsersLayerAsDecode) {
  struct Run {
    int prompt, chunk, gen;
    std::string missing;
  };
  const std::string nothing_cached =
      "not judged as decode: no pass reads a filled cache (gen=1, the prompt is one chunk)";
  const std::vector<Run> runs{{4, 4, 3, ""},
                              {1, 1, 2, ""},
                              {4, 2, 1, ""},
                              {2, 1, 1, ""},
                              {4, 4, 1, nothing_cached},
                              {1, 1, 1, nothing_cached + ", no position is above 0 (prompt=1)"}};
  for (const Run& run : runs) {
    Case c =
        parse_case(fmt::format("torus=2x1x3 prompt={} chunk={} gen={} batch=6 "
                               "model=palm-tiny,layers=1,E=24,F=24,H=24,Q=2,V=24",
                               run.prompt, run.chunk, run.gen));
    EXPECT_EQ(missing_of_decode(make_plan(c)), "") << "no layer of a user's";
    for (const Strategy& strategy : decoding(sample_strategies())) {
      c.model.block = serial_only(strategy) ? Block::serial : Block::parallel;
      const Program layer = parse_program(
          "layer", print_program(partitioned(c, strategy, Phase::prefill).layer), "p.txt");
      const Strategy own(layer);
      const auto with = [&](const Strategy& prefill, const Strategy& decode) {
        Case given = c;
        given.prefill = prefill;
        given.decode = decode;
        return given;
      };
      EXPECT_EQ(missing_of_decode(make_plan(with(own, own))), run.missing);
      // As the decode alone it is run by decode steps only.
      EXPECT_EQ(missing_of_decode(make_plan(with(c.prefill, own))),
                run.gen > 1 ? "" : "not judged as decode: no pass runs it (gen=1)");
      EXPECT_EQ(missing_of_decode(make_plan(with(own, c.decode))), "");
      OracleMemo memo;
      const Judgement j = verify_case(with(own, own), memo);
      EXPECT_EQ(j.verdict, run.missing.empty() ? Verdict::equal : Verdict::not_judged)
          << j.explanation();
      EXPECT_EQ(j.reason(), run.missing);
    }
  }
}

TEST(Evidence, RowsThatBeginAnewReadNoFilledCache) {
  // Two chunks, listed: the second goes on after the first, or its rows begin anew.
  const Case c = parse_case(
      "torus=2x1x3 prompt=4 chunk=2 gen=1 batch=6 model=palm-tiny,layers=1,E=24,F=24,H=24,Q=2,"
      "V=24");
  const Program layer = parse_program(
      "layer", print_program(partitioned(c, c.prefill, Phase::prefill).layer), "p.txt");
  Case own = c;
  own.prefill = own.decode = Strategy(layer);
  RunPlan plan = make_plan(own);
  EXPECT_EQ(missing_of_decode(plan), "");
  std::vector<PassPlan> passes{plan.passes.at(0), plan.passes.at(1)};
  const auto missing = [&] {
    plan.passes = Passes(passes);
    return missing_of_decode(plan);
  };
  EXPECT_EQ(missing(), "");
  passes[1].rows[0].start = 0;
  EXPECT_NE(missing().find("no pass reads a filled cache"), std::string::npos);
  EXPECT_EQ(missing().find("no position is above 0"), std::string::npos);
  passes[1].rows = {{.rows = 5, .start = 0, .tokens = 2}, {.rows = 1, .start = 2, .tokens = 2}};
  EXPECT_EQ(missing(), "") << "one row is enough";
  for (PassPlan& pass : passes) pass.rows = {{.rows = 6, .start = 0, .tokens = 1}};
  EXPECT_NE(missing().find("no position is above 0"), std::string::npos);
}

TEST(Evidence, SwappedCachesNeedAPassThatReadsThem) {
  // One cache taken for the other: while both are empty, nobody can tell.
  Case c =
      parse_case("torus=4x2x3 prompt=4 batch=24 model=palm-tiny,layers=1,E=24,F=24,H=24,Q=2,V=24");
  std::string text =
      print_program(partitioned(c, Strategy::parse("ws2d:batch"), Phase::prefill).layer);
  for (const auto& [from, to] : {std::pair<std::string, std::string>{"append(k_old", "append(TMP"},
                                 {"append(v_old", "append(k_old"},
                                 {"append(TMP", "append(v_old"}}) {
    ASSERT_NE(text.find(from), std::string::npos);
    text.replace(text.find(from), from.size(), to);
  }
  const Program layer = parse_program("layer", text, "p.txt");
  c.prefill = c.decode = Strategy(layer);
  OracleMemo memo;
  for (const auto& [gen, chunk, verdict] : {std::tuple{1, 4, Verdict::not_judged},
                                            {1, 3, Verdict::different},
                                            {2, 4, Verdict::different},
                                            {3, 4, Verdict::different}}) {
    c.gen = gen;
    c.chunk = chunk;
    EXPECT_EQ(verify_case(c, memo).verdict, verdict) << gen << " " << chunk;
  }
}

}  // namespace
}  // namespace shardproof
