// Tables of faults, and the file that holds what was seen of each mutant.
#include "tools/faults/tables.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "tools/faults/outcomes.h"
#include "tools/text/json_text.h"

namespace shardproof::tools {
namespace {

namespace fs = std::filesystem;

std::string content(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

const faults::Study& small_study() {
  static const faults::Study study = [] {
    faults::Study made = faults::plan_study(faults::cases_of(Strategy::parse("ws1d:heads")));
    faults::keep_one_each(made);
    return made;
  }();
  return study;
}

/// Results as they might be: of mutant i the detectors and checks whose bits i has.
std::vector<faults::Result> some_results() {
  std::vector<faults::Result> all;
  for (std::size_t i = 0; i < small_study().mutants.size(); ++i) {
    faults::Result one;
    one.planned = small_study().mutants[i];
    for (std::size_t d = 0; d < faults::kDetectors; ++d)
      one.sights.own[d] = (i + 1) >> d & 1U ? faults::Sight::seen : faults::Sight::silent;
    for (std::size_t c = 0; c < faults::kOtherChecks; ++c)
      one.sights.others.per_value[c] = i >> c & 1U;
    if (!one.sights.killed()) one.reason = "order-of-a-sum";
    all.push_back(one);
  }
  return all;
}

TEST(FaultOutcomes, AreReadAsWritten) {
  for (int own = 0; own < 32; ++own)
    for (int bits = 0; bits < (1 << 14); bits += 37)
      for (const bool equivalent : {false, true}) {
        faults::Sights sights;
        for (std::size_t i = 0; i < faults::kDetectors; ++i)
          sights.own[i] = own >> i & 1 ? faults::Sight::seen : faults::Sight::silent;
        if (!(own >> 3 & 1) && bits % 2 == 1) sights.own[3] = faults::Sight::not_run;
        for (std::size_t i = 0; i < faults::kOtherChecks; ++i) {
          sights.others.end_to_end[i] = bits >> i & 1;
          sights.others.per_value[i] = bits >> (7 + i) & 1;
        }
        bool read = !equivalent;
        const std::string code = code_of(sights, equivalent);
        EXPECT_EQ(code.size(), kNotJudged.size());
        const faults::Sights again = sights_of(code, read);
        EXPECT_EQ(code_of(again, read), code);
        EXPECT_EQ(read, equivalent);
      }
}

TEST(FaultOutcomes, OfAFileGiveItsMatrixAgain) {
  const faults::Study& study = small_study();
  const std::vector<faults::Result> results = some_results();
  faults::Matrix matrix = faults::matrix_of(study, results);
  matrix.right_runs = 7;
  matrix.end_to_end_alarms[2] = 5;
  const fs::path path = fs::path(testing::TempDir()) / "faults_outcomes.json";
  std::ofstream(path) << json_text(faults_json(study, results, matrix, {}));
  const KnownOutcomes known = read_outcomes(path, study);
  EXPECT_EQ(matrix_markdown(matrix_of(known, study)), matrix_markdown(matrix));
  EXPECT_TRUE(differences(known, results).empty());
  std::vector<faults::Result> other = results;
  other[3].sights.own[2] = faults::Sight::silent;
  other[4].sights.others.per_value[0] = !other[4].sights.others.per_value[0];
  EXPECT_EQ(differences(known, other).size(), 2U);
  // Of other cases, or none at all.
  const faults::Study another = faults::plan_study(faults::cases_of(Strategy::parse("ws1d:batch")));
  EXPECT_THROW(read_outcomes(path, another), Error);
  std::ofstream(path) << "{\"cases\": 3}";
  EXPECT_THROW(read_outcomes(path, study), Error);
  fs::remove(path);
  EXPECT_THROW(read_outcomes(path, study), Error);
}

TEST(FaultTables, FitATerminalAndAPage) {
  const faults::Matrix matrix = faults::matrix_of(small_study(), some_results());
  for (const FaultTable& table : tables_of(matrix)) {
    std::istringstream lines(as_text(table));
    for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 80U) << line;
    for (const auto& row : table.rows) EXPECT_EQ(row.size(), table.head.size()) << table.title;
  }
  const std::string page = faults_page(matrix, {"shardproof faults --only \"a < b\""});
  EXPECT_NE(page.find("a &lt; b"), std::string::npos);
  EXPECT_EQ(matrix.all.killed + matrix.all.equivalent + matrix.all.survivors, matrix.all.mutants);
}

TEST(FaultTables, AreWrittenBetweenMarks) {
  const std::string document = "a\n<!-- matrix -->\nold\n<!-- end of matrix -->\nb\n";
  const std::string now = with_part(document, "matrix", "new\n");
  EXPECT_EQ(now, "a\n<!-- matrix -->\n\nnew\n\n<!-- end of matrix -->\nb\n");
  EXPECT_EQ(with_part(now, "matrix", "new\n"), now);
  EXPECT_THROW(with_part("a\n", "matrix", "new\n"), Error);
  EXPECT_THROW(with_part(document, "smallest", "new\n"), Error);
}

TEST(FaultTables, OfThePageAreThoseOfItsFile) {
  // docs/faults.json is what --all --json wrote; the page's tables are made of it.
  const fs::path docs = fs::path(SHARDPROOF_SOURCE) / "docs";
  const faults::Study study = faults::plan_study(faults::all_cases());
  const KnownOutcomes known = read_outcomes(docs / "faults.json", study);
  const std::string page = content(docs / "faults.md");
  const faults::Matrix matrix = matrix_of(known, study);
  EXPECT_EQ(page, with_part(page, "matrix", matrix_markdown(matrix)));
  EXPECT_EQ(matrix.all.mutants, std::ssize(study.mutants));
  EXPECT_EQ(matrix.all.survivors, 0);
  EXPECT_LE(10 * matrix.all.equivalent, matrix.all.mutants);
  EXPECT_EQ(matrix.bounds_alarms, 0);
}

}  // namespace
}  // namespace shardproof::tools
