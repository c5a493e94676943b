// Whole runs that sample at random: they are equal, and what must not change a token.
#include <cmath>
#include <string>
#include <vector>

#include "engine/run/inference.h"
#include "tests/golden/equal_cases.h"
#include "tests/weights/expect_error.h"
#include "weights/storage/generator.h"

namespace shardproof {
namespace {

constexpr const char* kModel = "model=palm-tiny,layers=1,E=12,F=12,H=12,Q=2,V=24 ";

TEST(RandomSampling, IsEqualInBothRegimesAndWithEveryCut) { expect_equal_cases("random sampling"); }

TEST(RandomSampling, OfRowsOfUnequalLengthCountsTheTokensOfEachRow) {
  expect_equal_cases("random sampling of rows of unequal length");
}

TEST(RandomSampling, ShowsALostTransferOfASearch) {
  OracleMemo memo;
  for (const OpKind kind : {OpKind::top_k, OpKind::top_p}) {
    VerifyOptions options;
    options.faults.plan = [kind](const Scope&, const Program&, const Op& op, Moves& moves) {
      if (op.kind == kind) moves.pieces.back().pop_back();
    };
    const Judgement j = verify_case(
        parse_case(std::string("torus=2x1x3 prefill=ws2d:heads batch=6 prompt=2 gen=2 top_k=9 "
                               "top_p=0.8 ") +
                   kModel),
        memo, options);
    ASSERT_NE(j.difference(), nullptr) << j.explanation();
    EXPECT_NE(j.difference()->op.find(to_string(kind)), std::string::npos) << j.difference()->op;
  }
}

TEST(RandomSampling, ThatOverflowsIsRefused) {
  OracleMemo memo;
  const Judgement j = verify_case(
      parse_case(std::string("torus=2x1x3 prefill=ws1d temperature=1e-300 ") + kModel), memo);
  EXPECT_EQ(j.verdict, Verdict::refused);
  EXPECT_NE(j.explanation().find("oracle_finite: the logit"), std::string::npos) << j.explanation();
}

TEST(RandomSampling, IsLeftOutOfTheField) {
  EXPECT_EQ(label_of([] { make_plan(parse_case("regime=field top_p=0.9")); }), "case_sampling");
  OracleMemo memo;
  const Judgement j = verify_case(
      parse_case(std::string("torus=2x1x3 prefill=ws1d batch=6 prompt=2 gen=2 top_p=0.8 ") +
                 kModel),
      memo, {.also_field = true});
  EXPECT_EQ(j.verdict, Verdict::equal) << j.explanation();
  EXPECT_TRUE(j.field.has_value());
}

/// The tokens of these rows of a prompt, each drawn by its own number.
std::vector<std::vector<std::int32_t>> tokens(const std::string& line,
                                              const std::vector<std::int64_t>& rows, int pool = 1) {
  RunPlan plan =
      make_plan(parse_case(std::string("gen=6 seed=3 batch=12 prompt=5 ") + kModel + line));
  const Case& c = plan.source_case;
  const IntTensor all = generate_prompt(c.model, 3, 12, 5);
  plan.row_ids = rows;
  plan.row_ids.resize(12, -1);
  IntTensor prompt({12, 5});
  for (std::size_t r = 0; r < rows.size(); ++r)
    std::copy_n(all.data.begin() + rows[r] * 5, 5,
                prompt.data.begin() + static_cast<std::ptrdiff_t>(r) * 5);
  Threads of_run(pool);
  const IntTensor made = run_inference(plan, generate_weights(c.model, 3), prompt, of_run);
  std::vector<std::vector<std::int32_t>> found;
  for (std::size_t r = 0; r < rows.size(); ++r)
    found.emplace_back(made.data.begin() + static_cast<std::ptrdiff_t>(r) * 6,
                       made.data.begin() + static_cast<std::ptrdiff_t>(r + 1) * 6);
  return found;
}

TEST(RandomSampling, DependsOnNeitherLayoutNorChunksNorThreadsNorThePlaceOfARow) {
  const std::vector<std::int64_t> all{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11};
  for (const char* cut : {" top_p=0.9", " temperature=0.2 top_k=6"}) {
    const auto known = tokens(std::string("torus=1x1x1 prefill=ws1d:heads") + cut, all);
    // Greedy rows repeat themselves; these do not, and rows differ.
    EXPECT_NE(known[0], known[1]);
    EXPECT_NE(known, tokens("torus=1x1x1 prefill=ws1d:heads", all));
    for (const char* layout :
         {"torus=2x2x3 prefill=ws1d:heads", "torus=2x1x3 prefill=ws2d:batch",
          "torus=2x2x3 prefill=ws2d:bfirst-xyz", "torus=3x2x2 prefill=wg-xyz decode=ws2d:batch"}) {
      EXPECT_EQ(tokens(std::string(layout) + cut, all), known) << layout;
      for (int chunk = 1; chunk < 5; ++chunk)
        EXPECT_EQ(tokens(std::string(layout) + cut + " chunk=" + std::to_string(chunk), all), known)
            << layout << " " << chunk;
      EXPECT_EQ(tokens(std::string(layout) + cut, all, 7), known) << layout;
      const std::vector<std::int64_t> some{3, 0, 7};
      const auto few = tokens(std::string(layout) + cut, some);
      for (std::size_t r = 0; r < some.size(); ++r)
        EXPECT_EQ(few[r], known[static_cast<std::size_t>(some[r])]) << layout << " row " << some[r];
    }
  }
}

}  // namespace
}  // namespace shardproof
