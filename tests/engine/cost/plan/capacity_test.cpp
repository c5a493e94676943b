#include "engine/cost/plan/capacity.h"

#include <gtest/gtest.h>

#include <string>

#include "engine/cost/paper/published.h"
#include "tests/weights/expect_error.h"

namespace shardproof::cost {
namespace {

PlanRequest request(const std::string& model, const char* strategy, std::int64_t batch) {
  PlanRequest r;
  r.model = parse_model(model);
  r.chip = find_chip("tpu-v4");
  r.tori = {Torus::parse("4x4x4")};
  r.batches = {batch};
  r.strategies = {Strategy::parse(strategy)};
  return r;
}

/// The paper's Table 1 within 2 %, from the engine's own programs.
TEST(Capacity, IsThePapersTable1) {
  const PublishedSection& table_1 = published_sections().front();
  ASSERT_EQ(table_1.name, "table-1");
  int compared = 0;
  for (const PublishedRow& row : table_1.rows) {
    if (row.verdict != "within 2 %") continue;
    const Settings& of = row.ours.settings;
    const bool multihead = of.text("cache") == "multihead";
    const bool by_rows = of.text("cache") == "multiquery_batch";
    const auto found =
        longest_contexts(request("palm-540b,Q=" + of.text("Q") + (multihead ? ",K=48" : ""),
                                 by_rows ? "ws2d:batch" : "ws2d:heads", of.count("B", 0)),
                         0.3);
    ASSERT_EQ(found.size(), 1U) << row.what;
    EXPECT_NEAR(static_cast<double>(found[0].context) / Printed{row.published}.value(), 1.0, 0.02)
        << row.what;
    EXPECT_EQ(found[0].heads, by_rows ? 48 : 64);
    ++compared;
  }
  EXPECT_EQ(compared, 6);
}

/// One position more does not fit, by either limit.
TEST(Capacity, IsTheLongest) {
  for (const std::optional<double> share : {std::optional<double>(), std::optional<double>(0.3)})
    for (const char* strategy : {"ws2d:heads", "ws2d:batch", "dp-z:1d"}) {
      PlanRequest r = request("palm-62b", strategy, 64);
      const Capacity longest = longest_contexts(r, share).at(0);
      const auto fits = [&](std::int64_t context) {
        r.context = context;
        r.gen = 1;
        r.phase = PlanPhase::decode;
        if (!share) return !make_plan(r).choices.empty();
        const Plan plan = make_plan(r);
        return !plan.choices.empty() && plan.choices[0].main().memory.caches <= *share * r.chip.hbm;
      };
      EXPECT_TRUE(fits(longest.context)) << strategy;
      EXPECT_FALSE(fits(longest.context + 1)) << strategy;
    }
}

TEST(Capacity, LeavesOutWhatHasNoRoomAtAll) {
  PlanRequest r = request("palm-540b", "ws2d:batch", 64);
  r.chip.hbm = 1e9;
  EXPECT_TRUE(longest_contexts(r, std::nullopt).empty());
  r.strategies = {Strategy::parse("context"), Strategy::parse("mixed:1d-2d")};
  EXPECT_TRUE(longest_contexts(r, 0.3).empty()) << "no decode, no program of a parallel block";
}

/// A share is of what caches have; weights and all else must fit beside them.
TEST(Capacity, WithAShareWeightsFitAsWell) {
  PlanRequest r = request("palm-540b", "ws2d:batch", 1);
  r.tori = {Torus::parse("1x1x1")};
  EXPECT_TRUE(longest_contexts(r, 0.3).empty());
  r = request("palm-540b", "ws2d:batch", 128);
  const auto shared = longest_contexts(r, 1.0), left = longest_contexts(r, std::nullopt);
  ASSERT_EQ(shared.size(), 1U);
  ASSERT_EQ(left.size(), 1U);
  EXPECT_EQ(shared[0].context, left[0].context);
  EXPECT_LT(longest_contexts(r, 0.3).at(0).context, left[0].context);
}

TEST(Capacity, RefusesAndNamesTheNearest) {
  const auto said = [](const PlanRequest& r, std::optional<double> share) {
    return message_of([&] { require_capacity(longest_contexts(r, share), r, share); });
  };
  PlanRequest r = request("palm-540b", "ws2d:batch", 64);
  EXPECT_EQ(said(r, 0.3), "");
  const std::string scarce = said(r, 1e-7), enough = "--cache-share ";
  ASSERT_NE(scarce.find(enough), std::string::npos) << scarce;
  EXPECT_TRUE(scarce.starts_with("plan_c1: with a context of 1: the caches of 64 rows")) << scarce;
  EXPECT_EQ(said(r, std::stod(scarce.substr(scarce.find(enough) + enough.size()))), "");
  r.tori = {Torus::parse("2x2x1"), Torus::parse("2x2x2")};
  const std::string small = said(r, 0.3);
  EXPECT_TRUE(small.starts_with("plan_c1: with a context of 1: nothing fits")) << small;
  EXPECT_NE(small.find("; 32 chips hold it"), std::string::npos) << small;
  r.batches = {3};
  EXPECT_TRUE(said(r, 0.3).starts_with("plan_c3: with a context of 1: no strategy divides"))
      << said(r, 0.3);
}

}  // namespace
}  // namespace shardproof::cost
