// What a trace says of a run and of values that no case of the library makes.
#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

#include "engine/program/program.h"
#include "golden/trace/write/trace.h"
#include "tests/golden/trace/write/reader.h"
#include "tests/golden/trace/write/traced_run.h"
#include "tests/weights/folder.h"

namespace shardproof {
namespace {

TEST(Trace, OfAGivenLayerNamesNoStrategy) {
  const Folder folder;
  const Case c = parse_case(kCase);
  OracleMemo memo;
  const Program layer = partitioned(c, Strategy::parse("ws2d:batch"), Phase::prefill).layer;
  Case given = c;
  given.prefill = given.decode = Strategy(layer);
  Trace trace(make_typed_plan(given), folder / "t.h5");
  trace.write("complete");
  const TraceReader file(folder / "t.h5");
  EXPECT_EQ(file.text("/", "case").find("prefill="), std::string::npos);
  EXPECT_EQ(file.text("/", "case").find("decode="), std::string::npos);
  EXPECT_NE(file.text("/", "case").find("torus=2x1x3 "), std::string::npos);
  EXPECT_EQ(file.text("/", "program"), print_program(layer));
}

/// Shows a trace one value, made by hand.
void show(Trace& trace, const Sharded& value, const Layout& declared) {
  const Program program = parse_program("layer", "input h : F_x is raw gate\n");
  Op op;
  op.kind = OpKind::store;
  op.args = {"h"};
  op.results = {{.name = "made", .layout = declared, .role = Role::parse("raw gate")}};
  trace.observe({.pass = "decode.1", .previous = "", .layer = 0}, program, &op, op.results[0],
                value);
}

TEST(Trace, SaysOfCachesWhatTheModelSaysNotAct) {
  const Folder folder;
  for (const char* act : {"f32", "bf16"})
    for (const char* cache : {"", ",cache=f32", ",cache=bf16"}) {
      std::string line = std::string(kCase) + " act=" + act;
      line.replace(line.find(",V=12"), 5, std::string(",V=12") + cache);
      trace_case(parse_case(line), folder / "t.h5");
      const TraceReader file(folder / "t.h5");
      const auto dtype = [&](const char* name) {
        return file.text(std::string("/decode.1.layer0.") + name, "dtype");
      };
      const std::string said = *cache == '\0' ? act : std::string(cache).substr(7);
      EXPECT_EQ(dtype("kc"), said) << line;
      EXPECT_EQ(dtype("vc"), said) << line;
    }
}

TEST(Trace, OfPartialsOfTheF32RegimeHasTheShardsOnly) {
  const Folder folder;
  const Case c = parse_case("torus=2x1x1 prefill=ws1d");
  Trace trace(make_typed_plan(c), folder / "t.h5");
  const Layout layout = Layout::parse("F partialsum-x");
  show(trace, {c.torus, layout, {3}, ChipArrays<float>{{1, 2, 3}, {10, 20, 30}}}, layout);
  trace.write("complete");
  const TraceReader file(folder / "t.h5");
  EXPECT_EQ(file.names("/"), std::set<std::string>{"chips"});
  EXPECT_EQ(file.text("chips/1_0_0/decode.1.layer0.made", "dtype"), "f32 partial");
  EXPECT_EQ(file.data("chips/1_0_0/decode.1.layer0.made"),
            as_bytes(std::vector<float>{10, 20, 30}));
}

TEST(Trace, OfCopiesThatDifferHasTheShards) {
  const Folder folder;
  const Case c = parse_case("torus=2x1x1 prefill=ws1d");
  const Layout layout = Layout::parse("F");
  Trace trace(make_typed_plan(c), folder / "t.h5");
  show(trace, {c.torus, layout, {3}, ChipArrays<float>{{1, 2, 3}, {1, 2, 4}}}, layout);
  trace.write("complete");
  const TraceReader file(folder / "t.h5");
  EXPECT_EQ(file.names("/"), std::set<std::string>{"chips"});
  EXPECT_EQ(file.data("chips/0_0_0/decode.1.layer0.made"), as_bytes(std::vector<float>{1, 2, 3}));
  EXPECT_EQ(file.data("chips/1_0_0/decode.1.layer0.made"), as_bytes(std::vector<float>{1, 2, 4}));
  EXPECT_EQ(file.text("chips/0_0_0/decode.1.layer0.made", "replicas"), "none");
}

TEST(Trace, OfSummandsHasEqualCopiesOnce) {
  const Folder folder;
  const Case c = parse_case("torus=2x2x1 prefill=ws1d");
  const Layout layout = Layout::parse("F partialsum-y");
  for (const float other : {3.0F, 4.0F}) {
    Trace trace(make_typed_plan(c), folder / "t.h5");
    show(trace, {c.torus, layout, {1}, ChipArrays<float>{{2}, {3}, {2}, {other}}}, layout);
    trace.write("complete");
    const TraceReader file(folder / "t.h5");
    const bool same = other == 3.0F;
    for (const char* chip : {"0_0_0", "0_1_0", "1_0_0", "1_1_0"})
      EXPECT_EQ(file.has("chips/" + std::string(chip) + "/decode.1.layer0.made"),
                !same || chip[0] == '0');
    EXPECT_EQ(file.text("chips/0_1_0/decode.1.layer0.made", "replicas"),
              same ? "identical" : "none");
  }
}

TEST(Trace, OfShardsThatTheirLayoutDoesNotFitIsFlat) {
  // Without the type check a step may yield what its declaration cannot be.
  const Folder folder;
  const Case c = parse_case("torus=2x1x1 prefill=ws1d");
  Trace trace(make_typed_plan(c), folder / "t.h5");
  const Sharded value{c.torus, Layout::parse("F"), {3}, ChipArrays<float>{{1, 2, 3}, {1, 2, 3}}};
  show(trace, value, Layout::parse("F_x"));
  trace.write("complete");
  const TraceReader file(folder / "t.h5");
  EXPECT_EQ(file.names("/"), std::set<std::string>{"chips"});
  EXPECT_EQ(file.text("chips/0_0_0/decode.1.layer0.made", "layout"), "F_x");
  EXPECT_EQ(file.data("chips/0_0_0/decode.1.layer0.made"), as_bytes(std::vector<float>{1, 2, 3}));
}

}  // namespace
}  // namespace shardproof
