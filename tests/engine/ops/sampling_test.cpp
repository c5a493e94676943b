// Random sampling op by op, by eye.
#include "engine/ops/sampling.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <set>
#include <vector>

#include "tests/engine/written_values.h"

namespace shardproof {
namespace {

/// Two rows on each of two chips of x, four words on each of two chips of y.
const Torus kTorus(2, 2, 1);

/// Draws tokens of probabilities [4, 8], to be gathered over y before.
TokenDraw drawn(const std::vector<float>& e, const Draws& draws) {
  const Sharded cut = values("B_xV_y", {4, 8}, e, kTorus);
  const Sharded sums = run_op("all_gather(m, C, y)", masses(cut, one()));
  return draw(cut, sums, draws, one());
}

TEST(Draw, FallsOnTheOneTokenThatHasAnyMass) {
  std::vector<float> e(32, 0.0F);
  const std::vector<std::int32_t> token{0, 3, 4, 7};
  for (std::size_t b = 0; b < 4; ++b) e[b * 8 + static_cast<std::size_t>(token[b])] = 0.5F;
  for (std::uint64_t seed = 1; seed < 9; ++seed) {
    const TokenDraw of = drawn(e, {.sampling = {}, .seed = seed, .rows = {}});
    // Rows 0, 1 on x = 0 and 2, 3 on x = 1; elsewhere stands the block's first token.
    EXPECT_EQ(of.hit.f32(), (Chips{{1, 1}, {0, 0}, {0, 0}, {1, 1}}));
    EXPECT_EQ(of.index.i32(), (Ints{{0, 3}, {4, 4}, {0, 0}, {4, 7}}));
    EXPECT_EQ(of.hit.layout(), Layout::parse("B_xC_y"));
    EXPECT_EQ(of.hit.shape(), (Shape{4, 2}));
  }
}

// Each row draws by its own number and its own count of tokens, wherever it stands.
TEST(Draw, GoesByTheRowsOwnNumber) {
  const std::vector<float> e(32, 0.125F);
  const auto tokens = [&](const std::vector<Draw>& rows) {
    const TokenDraw of = drawn(e, {.sampling = {}, .seed = 3, .rows = rows});
    const Tensor hit = assemble(of.hit);
    const IntTensor index = assemble_int(of.index);
    std::vector<std::int32_t> found;
    for (std::size_t b = 0; b < 4; ++b) {
      EXPECT_EQ(hit.data[2 * b] + hit.data[2 * b + 1], 1.0F) << b;
      found.push_back(index.data[2 * b + (hit.data[2 * b] == 1.0F ? 0 : 1)]);
    }
    return found;
  };
  const auto first = tokens({{0, 0}, {1, 0}, {2, 0}, {3, 0}});
  EXPECT_EQ(tokens({}), first);
  const auto turned = tokens({{3, 0}, {2, 0}, {1, 0}, {0, 0}});
  EXPECT_EQ(turned, (std::vector<std::int32_t>{first[3], first[2], first[1], first[0]}));
  std::set<std::vector<std::int32_t>> different;
  for (std::int64_t t = 0; t < 8; ++t) different.insert(tokens({{0, t}, {1, t}, {2, t}, {3, t}}));
  EXPECT_GT(different.size(), 6U);
}

}  // namespace
}  // namespace shardproof
