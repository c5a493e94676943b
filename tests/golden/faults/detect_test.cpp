// What each detector says of mutants, and that right runs are called right.
#include "golden/faults/detect.h"

#include <gtest/gtest.h>

#include <map>
#include <set>
#include <string>

#include "golden/faults/equivalence.h"
#include "golden/faults/study.h"
#include "tests/golden/text/text_case.h"

namespace shardproof::faults {
namespace {

/// "trefb", a letter for each detector that sees the mutant, "-" for those that do not and "." for
/// one that does not run.
std::string seen_by(const Sights& sights) {
  std::string text = "trefb";
  for (std::size_t i = 0; i < kDetectors; ++i)
    if (sights.own[i] != Sight::seen) text[i] = sights.own[i] == Sight::not_run ? '.' : '-';
  return text;
}

struct Expected {
  const char* strategy;
  const char* kind;
  const char* how;
  const char* site;
  const char* parameter;
  const char* seen;
};

TEST(FaultDetectors, SayWhatTheyAreFor) {
  const std::vector<Expected> rows{
      // A program that types refuse, and values of which copies differ.
      {"ws2d:heads", "plain", "statistic-of-own-shard", "prefill.layer.sa", "-", "trefb"},
      // A program that types refuse; every copy is equally wrong.
      {"ws2d:heads", "plain", "residual-before-reduce", "prefill.layer.out", "-", "t-efb"},
      // Inside of an op.
      {"ws2d:heads", "plain", "lose-a-part", "decode.layer.kr", "first", "--efb"},
      // A well-typed program on well-placed operands: only what is compared with the model sees it.
      {"ws2d:heads", "plain", "next-shard", "weights.layer.wq", "H", "--ef-"},
      {"ws2d:heads", "plain", "weight-of-other-layer", "weights.layer.wq", "-", "--ef-"},
      {"ws2d:batch", "plain", "weights-exchanged", "prefill.layer.k", "-", "--ef-"},
      // What rounds is nothing in a field.
      {"ws2d:heads", "plain", "parts-in-bf16", "prefill.layer.y", "-", "--e-b"},
      {"ws2d:batch", "plain", "cache-in-bf16", "decode.layer.kc", "-", "--e-b"},
      {"ws2d:heads", "plain", "bit-of-one-copy", "prefill.embed.x", "bit-0", nullptr},
      {"ws2d:batch", "plain", "rope-position", "decode.layer.qp", "from-0", "--efb"},
      {"ws2d:heads", "int8", "int8-drops-norm-scale", "weights.layer.norm", "-", "--ef-"},
      {"ws2d:batch", "base2", "base2-logits-at-natural-temperature", "prefill.sample.e", "-",
       "--e.b"},
      {"wg-x:batch", "hand-over", "hand-over-layer-off", "", "-", "--efb"},
      // Programs that are well typed each, and do not fit together.
      {"ws2d:heads", "hand-over", "hand-over-relabelled", "hand_over.hand_over.ko", "-", "t-efb"},
      {"ws2d:heads", "hand-over", "hand-over-to-other-layout", "hand_over.hand_over.ko", "B",
       "t-efb"},
      {"ws2d:heads", "hand-over", "hand-over-layout-transposed", "hand_over.hand_over.ko", "-",
       "t-efb"}};
  OracleMemo memo;
  for (const Expected& row : rows) {
    SCOPED_TRACE(row.how);
    for (const FaultCase& one : cases_of(Strategy::parse(row.strategy))) {
      if (one.kind != row.kind) continue;
      const TypedPlan typed = make_typed_plan(one.source_case);
      for (const Mutant& mutant : mutants_of(typed, one.kind)) {
        const std::string at = mutant.site.to_string();
        if (mutant.how->name != std::string_view(row.how) || mutant.parameter != row.parameter ||
            (*row.site != 0 && at != row.site && row.seen != nullptr))
          continue;
        const Sights sights = detect(typed, mutant, memo);
        if (row.seen == nullptr)
          EXPECT_EQ(seen_by(sights).substr(0, 4), "-ref") << at;
        else
          EXPECT_EQ(seen_by(sights), row.seen) << at << ": " << sights.first;
        // What came before the mutant is right.
        EXPECT_NE(sights.first.find(mutant.site.phase == "decode" ? "decode." : ""),
                  std::string::npos)
            << sights.first;
        EXPECT_FALSE(sights.first.empty());
        break;
      }
    }
  }
}

TEST(FaultDetectors, AreSilentOnTheRightProgram) {
  OracleMemo memo;
  const Operator none{
      .name = "none", .fault_class = "M1", .what = "nothing", .parameters = [](const Place&) {
        return std::vector<std::string>{"-"};
      }};
  for (const char* strategy : {"ws2d:batch", "wg-xyz:natural", "context"})
    for (const FaultCase& one : cases_of(Strategy::parse(strategy))) {
      const TypedPlan typed = make_typed_plan(one.source_case);
      const Mutant right{&none, Site::parse("prefill.embed.x"), "-"};
      const Sights sights = detect(typed, right, memo);
      EXPECT_FALSE(sights.killed()) << one.kind << ": " << sights.first;
      EXPECT_EQ(judge_exact(typed.plan, nullptr, memo), "");
      EXPECT_FALSE(false_alarms(one.source_case, memo).bounds);
      // No name for a right program: it is equivalent for none of the reasons.
      EXPECT_EQ(equivalent_by(typed, right, memo), "");
    }
}

TEST(FaultEquivalence, NeedsAReasonThatHolds) {
  OracleMemo memo;
  const Study study = plan_study(cases_of(Strategy::parse("wg-x:batch")));
  std::map<std::string, int> reasons;
  for (const Planned& one : study.mutants) {
    const std::string_view name = one.mutant.how->name;
    const bool by_positions = name == "wrong-block-sliced" && one.mutant.site.value == "ps" &&
                              reasons["equal-positions"] == 0;
    if (name != "sum-in-other-order" && !by_positions) continue;
    ++reasons[equivalent_by(study.plans[one.of_case], one.mutant, memo)];
  }
  EXPECT_GT(reasons["order-of-a-sum"], 0);
  EXPECT_GT(reasons["equal-positions"], 0);
  EXPECT_EQ(reasons[""], 0);
  // Where rows have other positions the reason does not hold.
  for (const FaultCase& one : cases_of(Strategy::parse("ws2d:batch"))) {
    if (one.kind != "ragged") continue;
    const TypedPlan typed = make_typed_plan(one.source_case);
    const Mutant sliced{&find_operator("wrong-block-sliced"), Site::parse("decode.layer.ps"), "-"};
    EXPECT_EQ(reason_of(typed, sliced), "");
    EXPECT_EQ(equivalent_by(typed, sliced, memo), "");
    EXPECT_TRUE(detect(typed, sliced, memo).killed());
  }
  // Nor for a lost part: fewer parts are no other order.
  const Mutant lost{&find_operator("lose-a-part"), Site::parse("prefill.layer.yr"), "first"};
  EXPECT_EQ(reason_of(study.plans[0], lost), "");
  EXPECT_EQ(all_reasons().size(), 2U);
}

TEST(FaultStudy, ASampleLeavesNoneOfAnyClass) {
  Study study = plan_study(cases_of(Strategy::parse("ws2d:batch")));
  draw(study, 90, 3);
  ASSERT_EQ(study.mutants.size(), 90U);
  OracleMemo memo;
  std::map<std::string_view, int> classes;
  std::array<int, kDetectors> seen{};
  std::size_t done = 0;
  for (const Result& one : judge(study, memo, 2, [&](std::size_t count) { done = count; })) {
    EXPECT_FALSE(one.survives()) << one.planned.mutant.to_string() << " " << one.error;
    ++classes[one.planned.mutant.how->fault_class];
    for (std::size_t i = 0; i < kDetectors; ++i)
      seen[i] += one.sights.own[i] == Sight::seen ? 1 : 0;
  }
  EXPECT_EQ(done, 90U);
  EXPECT_EQ(classes.size(), 15U);
  for (std::size_t i = 0; i < kDetectors; ++i) EXPECT_GT(seen[i], 0) << detector_names()[i];
}

TEST(FaultStudy, OfATextLeavesNoneOfAnyClass) {
  // gemma-2 has layers of two kinds; experts choose by top, which a field does not have.
  for (const auto& [text, least] : {std::pair("gemma-2", 13U), {"experts", 13U}}) {
    Case c = case_of_text(text, "torus=2x2x2 prefill=ws2d:batch prompt=4 chunk=2 batch=8");
    Study study = plan_study({{std::string(kOwnCase), "ws2d:batch", c}});
    EXPECT_GT(study.mutants.size(), 500U) << text;
    std::set<std::string> sites;
    for (const Planned& one : study.mutants) sites.insert(one.mutant.site.to_string());
    EXPECT_TRUE(sites.contains("weights.layer.wq")) << text;
    // Of the second kind of layer alone.
    for (const char* site : {"weights.layer.w_router", "prefill.layer.router"})
      EXPECT_EQ(sites.contains(site), std::string_view(text) == "experts") << site;
    draw(study, 26, 5);
    OracleMemo memo;
    std::set<std::string_view> classes;
    for (const Result& one : judge(study, memo, 2)) {
      EXPECT_FALSE(one.survives())
          << text << " " << one.planned.mutant.to_string() << " " << one.error;
      EXPECT_EQ(one.sights.own[static_cast<std::size_t>(Seer::field)] == Sight::not_run,
                std::string_view(text) == "experts");
      classes.insert(one.planned.mutant.how->fault_class);
    }
    EXPECT_GE(classes.size(), least) << text;
  }
}

TEST(FaultEquivalence, IsOfWhatIsMadeOfPositionsAlone) {
  OracleMemo memo;
  const Case c = case_of_text("gemma-2", "torus=2x2x2 prefill=ws2d:batch prompt=4 chunk=2 batch=8");
  const TypedPlan typed = make_typed_plan(c);
  const Operator& how = find_operator("wrong-block-sliced");
  // The cosines at the positions of all rows, which the embedding returns; not the stream.
  EXPECT_EQ(equivalent_by(typed, {&how, Site::parse("prefill.layer.cos_heres"), "-"}, memo),
            "equal-positions");
  EXPECT_EQ(reason_of(typed, {&how, Site::parse("prefill.layer.norms"), "-"}), "");
}

}  // namespace
}  // namespace shardproof::faults
