// What `verify` writes for a browser, for CI, and for a GitHub workflow.
#include <gtest/gtest.h>

#include <cstdio>
#include <fstream>
#include <memory>
#include <sstream>
#include <string>

#include "tests/tools/runner/small_cases.h"
#include "tests/tools/xml.h"
#include "tests/weights/expect_error.h"
#include "tests/weights/folder.h"
#include "tools/runner/annotation_report.h"
#include "tools/runner/junit_report.h"
#include "tools/runner/page_report.h"
#include "tools/runner/report_list.h"
#include "tools/runner/verification.h"

namespace shardproof::tools {
namespace {

std::string text_of(std::FILE* file) {
  std::string all;
  std::rewind(file);
  for (int c = std::fgetc(file); c != EOF; c = std::fgetc(file)) all += static_cast<char>(c);
  return all;
}

/// The three reports of one run.
struct Written {
  Folder folder;
  std::FILE* printed = std::tmpfile();
  std::string html = folder.path() / "v.html", junit = folder.path() / "v.xml";
  CaseSource source;
  Verification verification;

  explicit Written(std::int64_t cases) : verification(source, cases, reports(), printed) {}
  Written(const Written&) = delete;
  Written& operator=(const Written&) = delete;
  ~Written() { std::fclose(printed); }

  std::unique_ptr<Report> reports() {
    auto all = std::make_unique<ReportList>();
    all->add(std::make_unique<PageReport>(source, html));
    all->add(std::make_unique<JunitReport>(source, junit));
    all->add(std::make_unique<AnnotationReport>(source));
    return all;
  }
  static std::string read(const std::string& path) {
    std::ostringstream text;
    text << std::ifstream(path).rdbuf();
    return text.str();
  }
};

TEST(FileReports, OfEqualCasesFailNowhere) {
  Written run(2);
  run.verification.run({.cases = {small("1x1x1"), small("2x1x3")}}, {}, 2);
  EXPECT_FALSE(std::ifstream(run.html).good()) << "written before the end";
  EXPECT_TRUE(run.verification.finish({"ws1d on 5x1x1: <no>"}));
  const Xml page(Written::read(run.html)), junit(Written::read(run.junit));
  EXPECT_EQ(page.text("//p[@id='sentence' and contains(@class,'right')]"),
            "✓ All 2 cases are equal.");
  EXPECT_EQ(page.count("//table[@id='cases']/tr"), 3U);
  EXPECT_EQ(page.count("//span[@class='wrong' or @class='weak']"), 0U);
  EXPECT_EQ(page.text("//p[@class='none']"), "skipped: ws1d on 5x1x1: <no>");
  EXPECT_EQ(junit.count("//testcase"), 3U);
  EXPECT_EQ(junit.count("//failure"), 0U);
  EXPECT_EQ(junit.count("//skipped"), 1U);
  EXPECT_EQ(text_of(run.printed), "");
}

TEST(FileReports, NameTheFirstDifferenceAndItsCommand) {
  Written run(2);
  run.verification.run({.cases = {small("2x1x1")}}, {}, 1);
  run.verification.run({.cases = {small("1x2x1")}}, with_a_fault(), 1);
  EXPECT_FALSE(run.verification.finish());
  const std::string again = run.source.command(small("1x2x1"));
  const Xml page(Written::read(run.html)), junit(Written::read(run.junit));
  const std::string sentence = page.text("//p[@id='sentence' and contains(@class,'wrong')]");
  EXPECT_TRUE(sentence.starts_with("✗ step decode.1.layer0.a = swiglu")) << sentence;
  EXPECT_EQ(page.count("//h2/span[@class='wrong']"), 1U);
  EXPECT_NE(page.text("//pre").find("reproduce: " + again), std::string::npos);
  EXPECT_NE(page.text("//pre").find("wrong: 1 of 72 elements, on 1 of 2 chips"), std::string::npos)
      << page.text("//pre");
  EXPECT_EQ(page.count("//table[@id='cases']//span[@class='wrong']"), 1U);
  EXPECT_EQ(junit.count("//failure"), 1U);
  EXPECT_TRUE(std::string(junit.document.select_node("//failure/@message").attribute().value())
                  .starts_with("different: step decode.1.layer0.a = swiglu"));
  EXPECT_EQ(junit.text("//failure"), "reproduce: " + again);
  const std::string printed = text_of(run.printed);
  EXPECT_TRUE(printed.starts_with("::error title=shardproof verify%3A different::step decode.1."))
      << printed;
  EXPECT_NE(printed.find(again), std::string::npos);
}

TEST(FileReports, OfACaseThatIsNotJudgedOrRefusedFail) {
  for (const Verdict verdict : {Verdict::not_judged, Verdict::refused, Verdict::different}) {
    Folder folder;
    const std::string html = folder.path() / "v.html", junit = folder.path() / "v.xml";
    PageReport page({}, html);
    JunitReport tests({}, junit);
    AnnotationReport notes({});
    CaseAnswer answer;
    answer.judgement.verdict = verdict;
    answer.judgement.missing = "too few <values>";
    Tally tally;
    tally.add(small("1x1x1"), answer.judgement);
    for (Report* report : std::initializer_list<Report*>{&page, &tests})
      EXPECT_EQ(report->answered(small("1x1x1"), answer, tally), "");
    EXPECT_NE(notes.answered(small("1x1x1"), answer, tally), "");
    for (Report* report : std::initializer_list<Report*>{&page, &tests, &notes})
      EXPECT_EQ(report->end({tally, 1.0}), "");
    EXPECT_EQ(Xml(Written::read(html)).count("//p[@id='sentence' and contains(@class,'wrong')]"),
              1U);
    EXPECT_EQ(Xml(Written::read(junit)).count("//failure"), 1U);
  }
}

TEST(FileReports, AreWrittenWhereARunIsInterrupted) {
  Written run(2);
  run.verification.run({.cases = {small("1x1x1")}}, {}, 1);
  run.verification.interrupted(2);
  const Xml page(Written::read(run.html)), junit(Written::read(run.junit));
  EXPECT_EQ(page.text("//p[@id='sentence' and contains(@class,'wrong')]"),
            "? Interrupted by SIGINT. ");
  EXPECT_EQ(page.count("//table[@id='cases']/tr"), 2U);
  EXPECT_EQ(junit.count("//testcase[@name='interrupted']/failure[@message='SIGINT']"), 1U);
  EXPECT_EQ(text_of(run.printed), "::error title=shardproof verify::interrupted by SIGINT\n");
}

TEST(FileReports, OfRandomCasesSayWhatTheyShouldHaveCovered) {
  Folder folder;
  const std::string html = folder.path() / "v.html", junit = folder.path() / "v.xml";
  PageReport page({}, html);
  JunitReport tests({}, junit);
  AnnotationReport notes({});
  cases::Coverage coverage;
  for (std::int64_t i = 0; i < cases::Coverage::kLeastCases; ++i) coverage.add(small("1x1x1"));
  const std::string missing = coverage.shortfall();
  ASSERT_NE(missing, "");
  const Tally tally;
  EXPECT_EQ(page.end({tally, 1.0, &coverage}), "");
  EXPECT_EQ(tests.end({tally, 1.0, &coverage}), "");
  EXPECT_TRUE(
      notes.end({tally, 1.0, &coverage}).starts_with("::error title=shardproof verify%3A "));
  EXPECT_EQ(Xml(Written::read(html)).text("//p[@id='sentence']"), "✗ " + missing);
  EXPECT_EQ(Xml(Written::read(junit)).count("//testcase[@name='coverage']/failure"), 1U);
}

TEST(FileReports, AreRefusedWhereTheyCannotBeWritten) {
  const Folder folder;
  const std::string nowhere = folder.path() / "none" / "a";
  EXPECT_EQ(label_of([&] { PageReport({}, nowhere); }), "file_write");
  EXPECT_EQ(label_of([&] { JunitReport({}, nowhere); }), "file_write");
}

}  // namespace
}  // namespace shardproof::tools
