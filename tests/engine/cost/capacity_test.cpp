#include "engine/cost/capacity.h"

#include <gtest/gtest.h>

#include <string>

#include "engine/cost/published.h"

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
  for (const ContextRow& row : table_1()) {
    const bool multihead = row.layout == CacheLayout::multihead;
    const std::string model = "palm-540b,Q=" + std::to_string(row.Q) + (multihead ? ",K=48" : "");
    const char* strategy =
        row.layout == CacheLayout::multiquery_batch ? "ws2d:batch" : "ws2d:heads";
    for (const auto& [batch, printed] :
         {std::pair{128, row.batch_128}, std::pair{512, row.batch_512}}) {
      const auto found = longest_contexts(request(model, strategy, batch), 0.3);
      ASSERT_EQ(found.size(), 1U) << row.variant;
      EXPECT_NEAR(static_cast<double>(found[0].context) / printed.value(), 1.0, 0.02)
          << row.variant << " batch " << batch;
      EXPECT_EQ(found[0].heads, row.layout == CacheLayout::multiquery_batch ? 48 : 64);
    }
  }
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
        r.chip.hbm = 1e15;
        const double caches = make_plan(r).choices.at(0).main().memory.caches;
        return caches <= *share * find_chip("tpu-v4").hbm;
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

}  // namespace
}  // namespace shardproof::cost
