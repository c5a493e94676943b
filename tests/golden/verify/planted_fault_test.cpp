// A planted fault is found, and shrunk to one line.
#include <regex>
#include <string>

#include "golden/verify/verify.h"
#include "tests/golden/case_gen.h"
#include "tests/golden/faults.h"

namespace shardproof {
namespace {

TEST(PlantedFault, ShrinksToOneLine) {
  OracleMemo memo;
  VerifyOptions planted;
  planted.faults = local_statistics();
  const auto fails = [&](const Case& c) {
    return verify_case(c, memo, planted).verdict == Verdict::different;
  };
  std::uint64_t i = 0;
  while (!fails(cases::draw(5, i))) ++i;
  const Case found = cases::draw(5, i);
  const Case least = cases::shrink(found, fails);
  EXPECT_TRUE(fails(least));
  EXPECT_EQ(verify_case(least, memo).verdict, Verdict::equal);  // the fault's, not the engine's
  EXPECT_EQ(parse_case(print_case(least)), least);
  // Two chips along x are the fewest that show it, in one layer and one prefill token.
  EXPECT_EQ(least.torus, Torus(2, 1, 1)) << print_case(least);
  EXPECT_EQ(least.model.layers, 1);
  EXPECT_EQ(least.prompt, 1);
  EXPECT_EQ(least.model.E, 2) << print_case(least);
  const Judgement j = verify_case(least, memo, planted);
  EXPECT_EQ(j.difference()->step, "prefill.c0.layer0.sa");
}

TEST(PlantedFault, IsFoundByTheProperty) {
  // The same fault under RapidCheck's own search and shrinking.
  OracleMemo memo;
  const auto result = rc::detail::checkTestable(
      [&] {
        const Case c = *any_case();
        RC_ASSERT(verify_case(c, memo, {.faults = local_statistics()}).verdict == Verdict::equal);
      },
      rc::detail::TestMetadata(), rc::detail::TestParams());
  rc::detail::FailureResult failure;
  ASSERT_TRUE(result.match(failure));
  ASSERT_EQ(failure.counterExample.size(), 1U);
  // Two chips that share a sum, along one axis or another.
  const std::string& least = failure.counterExample[0].second;
  EXPECT_TRUE(std::regex_search(
      least, std::regex("^shardproof verify --case \"torus=(2x1x1|1x2x1|1x1x2) ")))
      << least;
}

}  // namespace
}  // namespace shardproof
