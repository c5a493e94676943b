// Rows with prompts of their own lengths, by the keys of a case; rows that end at a token.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <vector>

#include "engine/run/inference.h"
#include "tests/golden/equal_cases.h"
#include "weights/storage/generator.h"

namespace shardproof {
namespace {

Case of_lengths(const std::string& strategies, const std::string& more) {
  return parse_case(
      "torus=2x1x3 model=palm-tiny,layers=2,E=12,F=12,H=6,K=3,Q=4,V=12 batch=6 "
      "seed=4 " +
      strategies + " " + more);
}

IntTensor generated(const Case& c, const std::optional<Stop>& stop = {}) {
  const RunPlan plan = make_plan(c);
  Threads threads(1);
  return run_inference(plan, generate_weights(c.model, c.seed),
                       generate_prompt(c.model, c.seed, c.batch, c.prompt), threads, nullptr, {},
                       {}, nullptr, nullptr, stop);
}

TEST(RaggedRows, AreEqualInEveryRegimeAndChunk) {
  expect_equal_cases("ragged rows", [](const Case& c, const Judgement& j) {
    if (j.drift) {
      EXPECT_EQ(j.drift->tokens, 3 * 6) << print_case(c);
    }
  });
}

/// Each row alone, with its own prompt.
TEST(RaggedRows, GenerateWhatEachGeneratesAlone) {
  const std::vector<std::int64_t> lengths{6, 2, 3, 1, 6, 5};
  const Case one = of_lengths("prefill=ws2d:heads decode=ws2d:heads", "prompt=6 gen=4");
  const Weights weights = generate_weights(one.model, one.seed);
  const IntTensor prompt = generate_prompt(one.model, one.seed, 6, 6);
  std::vector<std::int32_t> alone;
  for (std::size_t b = 0; b < lengths.size(); ++b) {
    Case c = one;
    c.torus = Torus(1, 1, 1), c.batch = 1, c.prompt = c.chunk = lengths[b];
    IntTensor own({1, lengths[b]});
    std::copy_n(prompt.data.begin() + static_cast<std::ptrdiff_t>(6 * b), lengths[b],
                own.data.begin());
    Threads threads(1);
    const IntTensor tokens = run_inference(make_plan(c), weights, own, threads);
    alone.insert(alone.end(), tokens.data.begin(), tokens.data.end());
  }
  for (const char* strategies :
       {"prefill=ws2d:heads", "prefill=ws2d:batch", "prefill=ws1d:heads decode=ws2d:batch",
        "prefill=wg-xyz:batch decode=ws2d:bfirst-xyz"})
    for (int chunk = 1; chunk <= 6; ++chunk)
      EXPECT_EQ(
          generated(of_lengths(strategies,
                               fmt::format("prompt=6 gen=4 chunk={} lengths=6,2,3,1,6,5", chunk)))
              .data,
          alone)
          << strategies << " chunk=" << chunk;
}

TEST(RaggedRows, EndAtAStopToken) {
  for (const char* more : {"prompt=6 chunk=2 gen=6 lengths=6,2,3,1,6,5", "prompt=4 gen=6"}) {
    const Case c = of_lengths("prefill=wg-xyz:batch decode=ws2d:batch", more);
    const IntTensor whole = generated(c);
    for (std::int32_t stop = 0; stop < 12; ++stop) {
      IntTensor want = whole;
      for (std::size_t b = 0; b < 6; ++b) {
        const auto begin = want.data.begin() + static_cast<std::ptrdiff_t>(6 * b);
        const auto at = std::find(begin, begin + 6, stop);
        if (at != begin + 6) std::fill(at + 1, begin + 6, kNoToken);
      }
      EXPECT_EQ(generated(c, Stop{stop}).data, want.data) << stop;
    }
  }
}

/// A run ends with the last of the rows that count: the others then have what they have come to.
TEST(RaggedRows, ThatDoNotCountDoNotKeepARunGoing) {
  const Case c = of_lengths("prefill=ws2d:heads", "prompt=6 gen=6 lengths=6,2,3,1,6,5");
  const IntTensor whole = generated(c);
  for (std::size_t row = 0; row < 6; ++row) {
    const std::int32_t stop = whole.data[6 * row + 1];
    const auto passes_of = [&](std::size_t b) {
      const auto begin = whole.data.begin() + static_cast<std::ptrdiff_t>(6 * b);
      return std::min<std::ptrdiff_t>(6, std::find(begin, begin + 6, stop) - begin + 1);
    };
    for (std::size_t counting = 1; counting <= 6; ++counting) {
      std::ptrdiff_t most = 0;
      for (std::size_t b = 0; b < counting; ++b) most = std::max(most, passes_of(b));
      std::vector<std::int32_t> want(36, kNoToken);
      for (std::size_t b = 0; b < 6; ++b)
        std::copy_n(whole.data.begin() + static_cast<std::ptrdiff_t>(6 * b),
                    std::min(most, passes_of(b)),
                    want.begin() + static_cast<std::ptrdiff_t>(6 * b));
      EXPECT_EQ(generated(c, Stop{stop, static_cast<std::int64_t>(counting)}).data, want)
          << stop << " " << counting;
    }
  }
}

/// After its end a row is padding: nothing is written for it.
TEST(RaggedRows, ThatWereStoppedLeaveTheirSlotsUnwritten) {
  const Case c = of_lengths("prefill=ws2d:heads decode=ws2d:heads", "prompt=4 gen=5");
  const IntTensor whole = generated(c);
  const std::int32_t stop = whole.data[1];  // the second token of row 0
  class Slots : public Observer {
   public:
    void observe(const Scope& scope, const Program&, const Op* op, const ValueDecl& declared,
                 const Sharded& value) override {
      if (op == nullptr || declared.role.to_string() != "k_cache" || scope.layer != 1) return;
      const Tensor cache = assemble(value);
      const std::size_t slot = cache.data.size() / 6 / static_cast<std::size_t>(cache.shape[1]);
      written.clear();
      for (std::size_t m = 0; m < static_cast<std::size_t>(cache.shape[1]); ++m)
        written.push_back(!std::isnan(cache.data[m * slot]));
    }
    std::vector<bool> written;  // of row 0, by slot
  } slots;
  Threads threads(1);
  const IntTensor tokens = run_inference(make_plan(c), generate_weights(c.model, c.seed),
                                         generate_prompt(c.model, c.seed, c.batch, c.prompt),
                                         threads, &slots, {}, {}, nullptr, nullptr, Stop{stop});
  const auto own = static_cast<std::size_t>(
      std::find(tokens.data.begin(), tokens.data.begin() + 5, stop) - tokens.data.begin());
  for (std::size_t m = 0; m < slots.written.size(); ++m)
    EXPECT_EQ(slots.written[m], m < 4 + own) << m;
}

}  // namespace
}  // namespace shardproof
