// Where the trace of a run that is wrong ends.
#include <gtest/gtest.h>

#include <set>
#include <string>

#include "golden/trace/read/dump.h"
#include "tests/golden/faults.h"
#include "tests/golden/trace/write/reader.h"
#include "tests/golden/trace/write/traced_run.h"
#include "tests/weights/folder.h"

namespace shardproof {
namespace {

TEST(Trace, OfAWrongRunEndsAtTheFirstWrongStep) {
  const Folder folder;
  const Case c = parse_case(kCase);
  const Traced traced = trace_case(c, folder / "t.h5", false, lost_transfer("hr", "decode"));
  ASSERT_EQ(traced.judgement.verdict, Verdict::different);
  EXPECT_EQ(traced.judgement.difference()->step, "decode.1.layer0.hr");
  const TraceReader file(folder / "t.h5");
  EXPECT_EQ(file.text("/", "ended"), traced.judgement.explanation());
  // The keeper comes after the trace and before the judge: both saw the wrong step last.
  EXPECT_EQ(traced.keeper.order.back(), "decode.1.layer0.hr");
  for (const std::string& id : traced.keeper.order)
    EXPECT_NE(file.has(id), file.has("chips/0_0_0/" + id)) << id;
  EXPECT_FALSE(file.has("decode.1.layer0.ur"));
  // It is what the chips held, wrong as they are: blocks of a tensor, of which there are no copies.
  const Sharded& wrong = traced.keeper.kept.at("decode.1.layer0.hr").value;
  EXPECT_EQ(file.data("decode.1.layer0.hr"), bytes_of_whole(wrong));
}

TEST(Trace, OfAWrongRunHasWhatShouldHaveBeen) {
  const Folder folder;
  const Case c = parse_case(kCase);
  for (const char* step : {"hr", "h", "ag"}) {
    const Traced traced = trace_case(c, folder / "t.h5", true, lost_transfer(step, "decode"));
    if (traced.judgement.verdict == Verdict::equal) continue;  // not moved by a collective
    const std::string& wrong = traced.judgement.difference()->step;
    // It is not a value of the trace. (A reader must not have the file open in this process.)
    EXPECT_EQ(dump::read_dump(folder / "t.h5").ignored, std::vector<std::string>{"expected"});
    const TraceReader file(folder / "t.h5");
    EXPECT_EQ(file.names("/expected"), std::set<std::string>{wrong});
    EXPECT_EQ(file.data("/expected/" + wrong),
              as_bytes(OracleMemo()
                           .get(c)
                           ->answer.checkpoints.at(traced.judgement.difference()->checkpoint)
                           .data));
    EXPECT_EQ(file.text("/expected/" + wrong, "dtype"), "f32");
  }
  trace_case(c, folder / "t.h5");
  EXPECT_FALSE(TraceReader(folder / "t.h5").has("expected"));
}

TEST(Trace, OfAWrongRunHasCopiesThatDiffer) {
  // What a chip did not get of a gather is another chip's.
  const Folder folder;
  const Case c = parse_case(kCase);
  const Traced traced = trace_case(c, folder / "t.h5", false, lost_transfer("ag", "decode"));
  ASSERT_EQ(traced.judgement.verdict, Verdict::different);
  const TraceReader file(folder / "t.h5");
  EXPECT_FALSE(file.has("decode.1.layer0.ag"));
  const Sharded& wrong = traced.keeper.kept.at("decode.1.layer0.ag").value;
  for (int chip = 0; chip < c.torus.chips(); ++chip)
    EXPECT_EQ(file.data(group_of(c.torus, chip) + "/decode.1.layer0.ag"),
              as_bytes(wrong.f32()[static_cast<std::size_t>(chip)]));
}

TEST(Trace, OfAllFindingsGoesOnBehindTheFirstWrongStep) {
  const Folder folder;
  const Case c = parse_case(kCase);
  const Traced right = trace_case(c, folder / "right.h5");
  const Traced traced =
      trace_case(c, folder / "t.h5", false, lost_transfer("hr", "decode"), Findings::Until::all);
  EXPECT_GT(traced.judgement.findings.size(), 1U);
  const TraceReader file(folder / "t.h5");
  // To the end, and why the run is wrong stands in it still.
  EXPECT_EQ(traced.keeper.order, right.keeper.order);
  for (const std::string& id : right.keeper.order)
    EXPECT_NE(file.has(id), file.has("chips/0_0_0/" + id)) << id;
  EXPECT_EQ(file.text("/", "ended"), traced.judgement.explanation());
  EXPECT_EQ(traced.judgement.difference()->step, "decode.1.layer0.hr");
}

/// Its last step cannot be carried out: some piece is of a chip that there is not.
struct BrokenAt {
  std::string step;
  void operator()(const Scope& scope, const Program& program, const Op& op, Moves& plan) const {
    lost_transfer("hr", "decode").plan(scope, program, op, plan);
    if (scope.step(program, op.results[0].name) == step) plan.pieces[0][0].from_chip = 99;
  }
};

TEST(Trace, OfAllFindingsEndsWhereTheRunCannotGoOn) {
  const Folder folder;
  FaultHooks faults;
  faults.plan = BrokenAt{"decode.1.layer0.ur"};
  const Traced traced =
      trace_case(parse_case(kCase), folder / "t.h5", false, faults, Findings::Until::all);
  EXPECT_EQ(traced.judgement.verdict, Verdict::different);
  EXPECT_EQ(traced.judgement.findings.back().step, "decode.1.layer0.ur");
  EXPECT_EQ(traced.keeper.order.back(), "decode.1.layer0.u");
}

TEST(Trace, OfTheF32RegimeEndsThereWithAllFindingsToo) {
  const Folder folder;
  const Case c = parse_case(std::string(kCase) + " regime=f32 schedule=ring");
  const Traced traced =
      trace_case(c, folder / "t.h5", false, lost_transfer("hr", "decode"), Findings::Until::all);
  EXPECT_GT(traced.judgement.findings.size(), 1U);
  EXPECT_EQ(traced.keeper.order.back(), traced.judgement.difference()->step);
}

TEST(Trace, OfTheF32RegimeEndsWithTheStepThatTheExactOneShowedWrong) {
  const Folder folder;
  const Case c = parse_case(std::string(kCase) + " regime=f32 schedule=ring");
  const Traced traced = trace_case(c, folder / "t.h5", false, lost_transfer("hr", "decode"));
  ASSERT_EQ(traced.judgement.verdict, Verdict::different);
  EXPECT_EQ(traced.keeper.order.back(), traced.judgement.difference()->step);
  const TraceReader file(folder / "t.h5");
  EXPECT_EQ(file.text("/", "ended"), traced.judgement.explanation());
  EXPECT_EQ(file.text("chips/0_0_0/decode.1.layer0.h", "dtype"), "f32 partial");
}

}  // namespace
}  // namespace shardproof
