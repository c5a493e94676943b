// The runner as a library, without a command line.
#include "tools/runner/verification.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "golden/cases/cases.h"
#include "tests/tools/runner/small_cases.h"
#include "tests/weights/expect_error.h"
#include "tools/runner/json_report.h"
#include "tools/runner/smallest_failure.h"
#include "tools/runner/text_report.h"

namespace shardproof::tools {
namespace {

/// What a report was told, a line each.
class Told : public Report {
 public:
  explicit Told(std::vector<std::string>& lines) : lines_(lines) {}

  std::string begin() override { return "begin\n"; }
  std::string answered(const Case& c, const CaseAnswer& answered, const Tally& tally) override {
    lines_.push_back(std::to_string(tally.cases()) + " " + c.torus.to_string() + " " +
                     std::string(shardproof::to_string(answered.judgement.verdict)));
    return lines_.back() + "\n";
  }
  std::string end(const Ending& ending) override {
    lines_.push_back(ending.tally.to_string());
    lines_.push_back(ending.passed() ? "held" : "failed: " + ending.least);
    drawn = ending.coverage != nullptr;
    return "end\n";
  }
  std::string interrupted(const Ending& so_far, int signal) override {
    lines_.push_back(signal_name(signal) + " after " + std::to_string(so_far.tally.cases()));
    return "interrupted\n";
  }

  static inline bool drawn = false;

 private:
  std::vector<std::string>& lines_;
};

/// A file of its own for what is printed.
struct Output {
  std::FILE* file = std::tmpfile();
  Output() = default;
  Output(const Output&) = delete;
  Output& operator=(const Output&) = delete;
  ~Output() { std::fclose(file); }
  std::string text() const {
    std::string all;
    std::rewind(file);
    for (int c = std::fgetc(file); c != EOF; c = std::fgetc(file)) all += static_cast<char>(c);
    return all;
  }
};

struct Reported {
  std::vector<std::string> lines;
  Output output;
  CaseSource source;
  std::unique_ptr<Verification> verification;

  explicit Reported(std::int64_t cases) {
    verification =
        std::make_unique<Verification>(source, cases, std::make_unique<Told>(lines), output.file);
  }
};

TEST(Verification, ReportsEachCaseInOrderAndTheEnd) {
  Reported run(3);
  std::vector<Verdict> verdicts;
  run.verification->run({.cases = {small("1x1x1"), small("2x1x3"), small("1x2x1")}}, {}, 2,
                        [&](const Judgement& j) { verdicts.push_back(j.verdict); });
  EXPECT_TRUE(run.verification->finish());
  EXPECT_EQ(run.lines,
            (std::vector<std::string>{"1 1x1x1 equal", "2 2x1x3 equal", "3 1x2x1 equal",
                                      "3 equal, 0 different, 0 not judged, 0 refused", "held"}));
  EXPECT_EQ(verdicts, std::vector<Verdict>(3, Verdict::equal));
  EXPECT_EQ(run.output.text(), "begin\n1 1x1x1 equal\n2 2x1x3 equal\n3 1x2x1 equal\nend\n");
  EXPECT_GT(run.verification->tally().tensors, 0);
}

TEST(Verification, FailsWhereACaseIsNotEqual) {
  Reported run(2);
  run.verification->run({.cases = {small("2x1x1")}}, {}, 1);
  run.verification->run({.cases = {small("1x2x1")}}, with_a_fault(), 1);
  EXPECT_FALSE(run.verification->finish());
  ASSERT_EQ(run.lines.size(), 4U);
  EXPECT_EQ(run.lines[1], "2 1x2x1 different");
  EXPECT_EQ(run.lines[3], "failed: " + run.source.command(small("1x2x1")));
  EXPECT_EQ(run.verification->tally().first_failure->c, small("1x2x1"));
}

TEST(Verification, OfOneCaseThrowsTheCallersMistakeAndOfManyRefusesIt) {
  Case illegal = small("1x1x1");
  illegal.torus = Torus(5, 1, 1);
  Reported one(1);
  EXPECT_EQ(label_of([&] { one.verification->run({.cases = {illegal}}, {}, 1); }), "strategy_c3");
  Reported two(2);
  two.verification->run({.cases = {illegal, small("1x1x1")}}, {}, 2);
  EXPECT_FALSE(two.verification->finish());
  EXPECT_EQ(two.lines[0], "1 5x1x1 refused");
  EXPECT_EQ(two.lines[1], "2 1x1x1 equal");
}

TEST(Verification, OnceInterruptedSaysNoMore) {
  Reported run(2);
  run.verification->run({.cases = {small("1x1x1")}}, {}, 1);
  run.verification->interrupted(2);
  run.verification->run({.cases = {small("2x1x1")}}, {}, 1);
  EXPECT_FALSE(run.verification->finish());
  EXPECT_EQ(run.lines, (std::vector<std::string>{"1 1x1x1 equal", "SIGINT after 1"}));
  EXPECT_EQ(run.output.text(), "begin\n1 1x1x1 equal\ninterrupted\n");
}

TEST(Verification, DrawsRandomCasesAndCountsWhatTheyCover) {
  Reported run(3);
  EXPECT_TRUE(run.verification->run_random(7, 2));
  EXPECT_TRUE(Told::drawn);
  ASSERT_EQ(run.lines.size(), 5U);
  for (std::uint64_t i = 0; i < 3; ++i)
    EXPECT_NE(run.lines[i].find(cases::draw(7, i).torus.to_string()), std::string::npos);
}

Case of_seven_rows(const std::string& line) {
  return parse_case(line + " model=palm-tiny batch=7 prompt=1");
}
Case on_three_primes(const std::string& line) {
  Case c = parse_case(line);
  c.torus = Torus(7, 11, 13);
  return c;
}

TEST(Selection, OfAModelIsEveryLegalStrategyAndWhyTheOthersAreNot) {
  const Selection all =
      every_strategy([](const std::string& line) { return parse_case(line + " model=palm-tiny"); });
  EXPECT_GT(all.cases.size(), 50U);
  EXPECT_EQ(all.cases.size() + all.skipped.size(), 6 * all_strategies().size());
  for (const Case& c : all.cases) EXPECT_NO_THROW(make_plan(c));
  for (const std::string& why : all.skipped)
    EXPECT_EQ(why.find("the nearest legal"), std::string::npos) << why;
  EXPECT_EQ(label_of([] { every_strategy(of_seven_rows); }), "")
      << "on one chip any batch is legal";
  EXPECT_EQ(label_of([] { every_strategy(on_three_primes); }), "verify_c1");
}

TEST(RandomCase, HasThePlanThatDrawingItMade) {
  for (std::uint64_t i = 2; i < 5; ++i) {
    const ToRun drawn = random_case(7, i);
    const Case c = cases::draw(7, i);
    EXPECT_EQ(drawn.c, c);
    EXPECT_EQ(drawn.plan->plan.source_case, c);
    EXPECT_TRUE(drawn.plan->types);
    EXPECT_EQ(print_program(drawn.plan->plan.decode.layer),
              print_program(make_plan(c).decode.layer));
  }
}

TEST(SmallestFailure, IsTheSimplestCaseOfTheSameVerdict) {
  const Case found = cases::draw(3, 1);
  const Case least = smallest_failure({found, Verdict::equal}, {});
  EXPECT_TRUE(cases::simpler(least).empty()) << print_case(least);
}

CaseAnswer different() {
  CaseAnswer answered;
  answered.seconds = 0.5;
  Judgement& j = answered.judgement;
  j.verdict = Verdict::different;
  j.tensors = 12;
  j.elements = 345;
  j.findings = {{.pass = "decode.1",
                 .step = "decode.1.layer0.hr",
                 .op = "reduce_scatter(h, F, x)",
                 .checkpoint = "decode.1.layer0.gate",
                 .chip = "(1,0,2)",
                 .index = {0, 3},
                 .expected = "1",
                 .actual = "2"}};
  return answered;
}

TEST(TextReport, IsRowsUnderTheirHeadAndTotals) {
  TextReport report({}, 2, false);
  EXPECT_TRUE(report.begin().starts_with("case torus  prefill"));
  Tally tally;
  const Case c = small("2x1x3");
  tally.add(c, different().judgement);
  const std::string first = report.answered(c, different(), tally);
  EXPECT_TRUE(first.starts_with("     palm-tiny,")) << first;
  EXPECT_NE(first.find("\n   1 2x1x3  ws2d:heads "), std::string::npos) << first;
  EXPECT_NE(first.find("\n     step decode.1.layer0.hr = reduce_scatter(h, F, x): "),
            std::string::npos);
  EXPECT_NE(first.find("\n     reproduce: shardproof verify --case \"torus=2x1x3 "),
            std::string::npos);
  CaseAnswer equal;
  equal.judgement.verdict = Verdict::equal;
  tally.add(c, equal.judgement);
  EXPECT_TRUE(report.answered(c, equal, tally).starts_with("   2 2x1x3  ")) << "the head stands";
  EXPECT_EQ(report.end({.tally = tally, .seconds = 1.25}),
            "2 cases: 1 equal, 1 different, 0 not judged, 0 refused\n"
            "12 values, 345 elements judged in 1.2 s\n");
  EXPECT_EQ(report.interrupted({.tally = tally, .seconds = 1.0}, 15),
            "interrupted by SIGTERM after 2 of 2 cases: 1 equal, 1 different, 0 not judged, 0 "
            "refused\n12 values, 345 elements judged in 1.0 s\n");
  TextReport quiet({}, 2, true);
  EXPECT_EQ(quiet.begin(), "");
  EXPECT_EQ(quiet.answered(c, equal, tally), "");
  EXPECT_NE(quiet.answered(c, different(), tally), "");
}

TEST(TextReport, SaysHowMuchBoundsLeave) {
  const Case c = small("2x1x3");
  CaseAnswer f32;
  f32.judgement.verdict = Verdict::equal;
  f32.judgement.bounds.emplace();
  using bounds::Kind;
  const bounds::Extent narrow{.worst = 0.001, .likely = 0.001, .scale = 1.0};
  const bounds::Extent wide{.worst = 0.5, .likely = 0.5, .found = 0.1, .scale = 1.0};
  f32.judgement.bounds->add("decode.1.layer0.q", Kind::running, narrow, 4.5);
  f32.judgement.bounds->add("decode.1.layer0.k", Kind::running, wide, 8.0);
  f32.judgement.bounds->add("decode.1.layer0.v", Kind::running, narrow, 9.0);
  f32.judgement.bounds->add("decode.1.layer0.norm", Kind::formula, narrow, 1.0);
  f32.judgement.bounds->add("decode.1.token", Kind::one_value, {}, 0.0);
  Tally tally;
  tally.add(c, f32.judgement);
  TextReport one({}, 1, false);
  EXPECT_EQ(one.end({.tally = tally, .seconds = 1.0}),
            "1 case: 1 equal, 0 different, 0 not judged, 0 refused\n"
            "0 values, 0 elements judged in 1.0 s\n"
            "bounds: 4 values within (sums: 2, functions: 1, of one right value: 1), 0 near,\n"
            "1 loose; slack of sums: least 4.50 at decode.1.layer0.q, median 8.0\n");
  tally.add(c, f32.judgement);
  TextReport two({}, 2, true);
  const std::string said = two.end({.tally = tally, .seconds = 1.0});
  EXPECT_NE(said.find("\n2 f32 cases, bounds: 8 values within (sums: 4, functions: 2, of one"),
            std::string::npos)
      << said;
  std::istringstream lines(said);
  for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 80U) << line;
}

/// With a finding of each detector besides the first.
CaseAnswer of_each_detector() {
  CaseAnswer answered = different();
  std::vector<Finding>& findings = answered.judgement.findings;
  findings.push_back({.detector = Detector::types, .label = "norm_c1", .message = "a type"});
  findings.push_back(
      {.detector = Detector::replicas, .label = "hazard_replicas", .message = "two"});
  findings.push_back(findings[0]);
  findings.back().step = "decode.1.layer1.hr";
  findings.push_back({.detector = Detector::run, .label = "engine_finite", .message = "inf"});
  return answered;
}

TEST(Reports, TellEachOfAllFindingsOnce) {
  const Case c = small("2x1x3");
  const CaseAnswer answered = of_each_detector();
  const std::vector<Finding>& findings = answered.judgement.findings;
  TextReport text({}, 1, false);
  const std::string said = text.answered(c, answered, {});
  std::size_t at = 0;
  for (const Finding& finding : findings) {
    const std::string line = "\n     " + finding.to_string() + "\n";
    const std::size_t found = said.find(line);
    EXPECT_GT(found, at) << "in their order: " << line << said;
    EXPECT_EQ(said.find(line, found + 1), std::string::npos) << line << said;
    at = found;
  }
  JsonReport json({});
  json.answered(c, answered, {});
  const Tally tally;
  const auto shown =
      nlohmann::json::parse(json.end({.tally = tally, .seconds = 1.0}))["cases"][0]["findings"];
  ASSERT_EQ(shown.size(), findings.size());
  for (std::size_t i = 0; i < findings.size(); ++i) {
    EXPECT_EQ(shown[i]["detector"], to_string(findings[i].detector));
    EXPECT_EQ(shown[i]["said"], findings[i].to_string());
  }
}

/// Reports nothing, but counts what was found.
class Counts : public Report {
 public:
  explicit Counts(std::vector<std::size_t>& findings) : findings_(findings) {}
  std::string begin() override { return ""; }
  std::string answered(const Case&, const CaseAnswer& answered, const Tally&) override {
    findings_.push_back(answered.judgement.findings.size());
    return "";
  }
  std::string end(const Ending&) override { return ""; }
  std::string interrupted(const Ending&, int) override { return ""; }

 private:
  std::vector<std::size_t>& findings_;
};

TEST(Verification, OfRandomCasesIsUntilTheFirstFindingOrAll) {
  const auto counted = [](Findings::Until until) {
    std::vector<std::size_t> findings;
    Output output;
    VerifyOptions common;
    common.until = until;
    // In every pass, so that there are several.
    common.faults.result = [](const Scope&, const Program& program, const Op&,
                              const ValueDecl& declared, Sharded& value) {
      if (program.name != "layer" || declared.layout.is_partial()) return;
      if (std::holds_alternative<ChipArrays<float>>(value.data())) value.f32_of(0)[0] += 1.0F;
      if (value.holds_field()) value.field_of(0)[0].lane[0] ^= 1;
    };
    Verification verification({}, 4, std::make_unique<Counts>(findings), output.file);
    EXPECT_FALSE(verification.run_random(7, 2, common));
    return findings;
  };
  EXPECT_EQ(counted(Findings::Until::first), std::vector<std::size_t>(4, 1));
  for (const std::size_t found : counted(Findings::Until::all)) EXPECT_GT(found, 1U);
}

TEST(JsonReport, IsOneObjectAtTheEnd) {
  CaseSource source;
  source.files.layouts = "my own.layouts";
  JsonReport report(source);
  Tally tally;
  const Case c = small("2x1x3");
  tally.add(c, different().judgement);
  EXPECT_EQ(report.begin() + report.answered(c, different(), tally), "");
  const auto json = nlohmann::json::parse(
      report.end({.tally = tally, .seconds = 2.0, .skipped = {"why"}, .least = "run it"}));
  EXPECT_EQ(json["held"], false);
  EXPECT_EQ(json["reproduce"], "run it");
  EXPECT_EQ(json["skipped"][0], "why");
  EXPECT_EQ(json["totals"]["different"], 1);
  EXPECT_EQ(json["totals"]["seconds"], 2.0);
  const auto& shown = json["cases"][0];
  EXPECT_EQ(shown["verdict"], "different");
  EXPECT_EQ(shown["layouts"], "my own.layouts");
  EXPECT_EQ(shown["difference"]["index"], (std::vector<int>{0, 3}));
  EXPECT_EQ(shown["reproduce"], source.command(c));
  EXPECT_TRUE(source.command(c).starts_with("shardproof verify --layouts 'my own.layouts' --case"));
  source.alone = true;
  EXPECT_TRUE(source.command(c).starts_with(
      "shardproof verify --layouts 'my own.layouts' --hazards full --case"));
}

}  // namespace
}  // namespace shardproof::tools
