// What a trace says of a run and of values that no case of the library makes.
#include <gtest/gtest.h>

#include <optional>
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

constexpr const char* kMade = "decode.1.layer0.made";

/// The trace of one value, made by hand.
struct Shown {
  Shown(const std::string& torus, const Layout& held, const Shape& shape,
        const ChipArrays<float>& chips, const Layout& declared) {
    const Case c = parse_case("torus=" + torus + " prefill=ws1d");
    Trace trace(make_typed_plan(c), folder / "t.h5");
    const Program program = parse_program("layer", "input h : F_x is raw gate\n");
    Op op;
    op.kind = OpKind::store;
    op.args = {"h"};
    op.results = {{.name = "made", .layout = declared, .role = Role::parse("raw gate")}};
    trace.observe({.pass = "decode.1", .previous = "", .layer = 0}, program, &op, op.results[0],
                  {c.torus, held, shape, chips});
    trace.write("complete");
    file.emplace(folder / "t.h5");
  }
  std::string text(const std::string& chip, const char* attribute) const {
    return file->text("chips/" + chip + "/" + kMade, attribute);
  }
  /// Whether chips alone are in the file, and this one has these.
  void expect(const std::string& chip, const std::vector<float>& numbers) const {
    EXPECT_EQ(file->names("/"), std::set<std::string>{"chips"});
    EXPECT_EQ(file->data("chips/" + chip + "/" + kMade), as_bytes(numbers));
  }

  Folder folder;
  std::optional<TraceReader> file;
};

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

/// Partial sums of bf16 are sent in the f32 regime alone.
TEST(Trace, SaysHowOftenThePartialSumsOfTheF32RegimeAreRounded) {
  const Folder folder;
  const auto wire = [&](const std::string& numerics) {
    const Case c = parse_case("torus=2x1x4 prefill=ws2d:heads batch=8 " + numerics);
    Trace(make_typed_plan(c), folder / "t.h5").write("complete");
    return TraceReader(folder / "t.h5").number("/", "wire");
  };
  constexpr int kNotSaid = -1;
  EXPECT_EQ(wire("regime=f32 wire=bf16 schedule=ring"), 3) << "hops of a ring of four";
  EXPECT_EQ(wire("regime=f32 wire=bf16"), 2) << "sent once in an all_reduce, and gathered";
  EXPECT_EQ(wire("regime=f32"), kNotSaid);
  EXPECT_EQ(wire("wire=bf16"), kNotSaid);
}

TEST(Trace, OfPartialsOfTheF32RegimeHasTheShardsOnly) {
  const Layout layout = Layout::parse("F partialsum-x");
  const Shown trace("2x1x1", layout, {3}, {{1, 2, 3}, {10, 20, 30}}, layout);
  EXPECT_EQ(trace.text("1_0_0", "dtype"), "f32 partial");
  trace.expect("1_0_0", {10, 20, 30});
}

TEST(Trace, OfCopiesThatDifferHasTheShards) {
  const Layout layout = Layout::parse("F");
  const Shown trace("2x1x1", layout, {3}, {{1, 2, 3}, {1, 2, 4}}, layout);
  trace.expect("0_0_0", {1, 2, 3});
  trace.expect("1_0_0", {1, 2, 4});
  EXPECT_EQ(trace.text("0_0_0", "replicas"), "none");
}

TEST(Trace, OfPartialSumsHasEqualCopiesOnce) {
  const Layout layout = Layout::parse("F partialsum-y");
  for (const bool same : {true, false}) {
    const Shown trace("2x2x1", layout, {1}, {{2}, {3}, {2}, {same ? 3.0F : 4.0F}}, layout);
    for (const char* chip : {"0_0_0", "0_1_0", "1_0_0", "1_1_0"})
      EXPECT_EQ(trace.file->has("chips/" + std::string(chip) + "/" + kMade),
                !same || chip[0] == '0');
    EXPECT_EQ(trace.text("0_1_0", "replicas"), same ? "identical" : "none");
  }
}

/// Without the type check a step may yield what its declaration cannot be.
TEST(Trace, OfShardsThatTheirLayoutDoesNotFitIsFlat) {
  const Shown trace("2x1x1", Layout::parse("F"), {3}, {{1, 2, 3}, {1, 2, 3}}, Layout::parse("F_x"));
  EXPECT_EQ(trace.text("0_0_0", "layout"), "F_x");
  trace.expect("0_0_0", {1, 2, 3});
}

}  // namespace
}  // namespace shardproof
