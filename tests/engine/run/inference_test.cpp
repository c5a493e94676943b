// A run's tokens, pass by pass.
#include "engine/run/inference.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <set>
#include <vector>

#include "engine/run/plan.h"
#include "weights/storage/generator.h"

namespace shardproof {
namespace {

IntTensor generated(const Case& c, const std::optional<Stop>& stop = {}) {
  Threads threads(1);
  return run_inference(make_plan(c), generate_weights(c.model, c.seed),
                       generate_prompt(c.model, c.seed, c.batch, c.prompt), threads, nullptr, {},
                       {}, nullptr, nullptr, stop);
}

// A row ends with the stop token; those that go on have the tokens that they have without it.
TEST(RunInference, EndsEachRowAtItsStopToken) {
  const Case c = parse_case(
      "torus=2x1x3 prefill=wg-xyz:batch decode=ws2d:batch "
      "model=palm-tiny,layers=1,E=12,F=12,H=6,Q=2,V=12 batch=6 prompt=2 gen=5 seed=2");
  const IntTensor whole = generated(c);
  const std::set<std::int32_t> tokens(whole.data.begin(), whole.data.end());
  ASSERT_GT(tokens.size(), 3U);
  for (const std::int32_t stop : tokens) {
    std::vector<std::int32_t> expected = whole.data;
    for (auto row = expected.begin(); row != expected.end(); row += 5)
      if (const auto end = std::find(row, row + 5, stop); end != row + 5)
        std::fill(end + 1, row + 5, kNoToken);
    EXPECT_EQ(generated(c, Stop{stop}).data, expected) << stop;
  }
}

}  // namespace
}  // namespace shardproof
