// The caches by definition: what is appended of k_rot and v, slot by slot.
#include <array>
#include <bit>
#include <optional>

#include "tests/oracle/random_case.h"
#include "weights/base/bf16.h"
#include "weights/model/registry.h"

namespace shardproof::oracle {
namespace {

/// k_cache or v_cache after the last pass is what every pass appended, as `kept` makes it.
bool holds(const Drawn& d, const Answer& answer, float (*kept)(float)) {
  const std::int64_t row = d.config.K * d.config.Q;
  const std::string& last = answer.passes.back();
  for (int layer = 0; layer < d.config.layers; ++layer)
    for (const auto& [name, of] :
         {std::pair(std::string("k_cache"), rotates(d.config) ? "k_rot" : "k"),
          std::pair(std::string("v_cache"), "v")}) {
      const Tensor& cache = answer.checkpoints.at(checkpoint_id(last, layer, name));
      std::int64_t start = 0;
      for (const std::string& pass : answer.passes) {
        const Tensor& added = answer.checkpoints.at(checkpoint_id(pass, layer, of));
        const std::int64_t B = added.shape[0], L = added.shape[1], M = cache.shape[1];
        for (std::int64_t i = 0; i < B * L * row; ++i) {
          const std::int64_t b = i / row / L, p = start + i / row % L;
          const float in = added.data[static_cast<std::size_t>(i)];
          const float held = cache.data[static_cast<std::size_t>((b * M + p) * row + i % row)];
          if (std::bit_cast<std::uint32_t>(held) != std::bit_cast<std::uint32_t>(kept(in)))
            return false;
        }
        start += L;
      }
    }
  return true;
}

float as_it_is(float v) { return v; }

RC_GTEST_PROP(Cache, IsWhatWasAppendedRoundedIfTheModelSaysBf16, ()) {
  Drawn d = draw_case();
  for (const std::optional<NumberFormat> cache : std::array<std::optional<NumberFormat>, 3>{
           std::nullopt, NumberFormat::f32, NumberFormat::bf16}) {
    d.config.cache = cache;
    const Answer answer = d.answer();
    RC_ASSERT(holds(d, answer, cache == NumberFormat::bf16 ? round_to_bf16 : as_it_is));
    // Of act=bf16 all three are the same; of act=f32 a cache that is not rounded shows.
    if (d.request.numerics.act == NumberFormat::bf16) RC_ASSERT(holds(d, answer, round_to_bf16));
  }
}

TEST(Cache, ARoundingThatIsLeftOutShows) {
  Drawn d;
  d.config = parse_model("palm-tiny,layers=1,E=8,F=8,H=2,Q=4,V=8,cache=bf16");
  d.request.prompt = generate_prompt(d.config, 1, 2, 3);
  d.chunk = 2;
  d.gen = 2;
  EXPECT_TRUE(holds(d, d.answer(), round_to_bf16));
  EXPECT_FALSE(holds(d, d.answer(), as_it_is));
  d.config.cache = NumberFormat::f32;
  EXPECT_TRUE(holds(d, d.answer(), as_it_is));
  EXPECT_FALSE(holds(d, d.answer(), round_to_bf16));
}

}  // namespace
}  // namespace shardproof::oracle
