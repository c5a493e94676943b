// The passes of a run, as the specification's section 2 orders them.
#include "weights/passes.h"

#include <gtest/gtest.h>

#include "tests/weights/expect_error.h"

namespace shardproof {
namespace {

TEST(Passes, ThePromptInChunksThenAStepForEachToken) {
  const Passes passes(6, 7, 3, 3);
  ASSERT_EQ(passes.size(), 5);
  EXPECT_EQ(passes.at(0), (PassPlan{.name = "prefill.c0",
                                    .previous = "",
                                    .phase = Phase::prefill,
                                    .L = 3,
                                    .cached = 0,
                                    .rows = {{.rows = 6, .start = 0, .tokens = 3}},
                                    .sample = false}));
  EXPECT_EQ(passes.at(2), (PassPlan{.name = "prefill.c2",
                                    .previous = "prefill.c1",
                                    .phase = Phase::prefill,
                                    .L = 1,
                                    .cached = 6,
                                    .rows = {{.rows = 6, .start = 6, .tokens = 1}},
                                    .sample = true}));
  EXPECT_EQ(passes.at(3), (PassPlan{.name = "decode.1",
                                    .previous = "prefill.c2",
                                    .phase = Phase::decode,
                                    .L = 1,
                                    .cached = 7,
                                    .rows = {{.rows = 6, .start = 7, .tokens = 1}},
                                    .sample = true}));
  EXPECT_EQ(passes.at(4).name, "decode.2");
  EXPECT_EQ(passes.at(4).cached, 8);
}

TEST(Passes, AChunkOfZeroOrMoreThanThePromptIsTheWholePrompt) {
  for (const std::int64_t chunk : {0, 4, 5}) {
    const Passes passes(1, 4, chunk, 1);
    ASSERT_EQ(passes.size(), 1);
    EXPECT_EQ(passes.at(0).L, 4);
    EXPECT_TRUE(passes.at(0).sample);
  }
}

TEST(Passes, AListIsKeptAsItIs) {
  PassPlan pass;
  pass.name = "prefill.c0";
  pass.rows = {{.rows = 2, .start = 0, .tokens = 3}, {.rows = 1, .start = 0, .tokens = 2}};
  EXPECT_EQ(pass.batch(), 3);
  const Passes passes({pass});
  ASSERT_EQ(passes.size(), 1);
  EXPECT_EQ(passes.at(0), pass);
  EXPECT_EQ(Passes().size(), 0);
}

TEST(Passes, AreAlikeInPhaseAndLength) {
  const auto groups = [](const Passes& passes) {
    std::vector<std::pair<std::int64_t, std::int64_t>> found;
    for (const Passes::Group& group : passes.groups()) found.emplace_back(group.first, group.last);
    return found;
  };
  using Groups = std::vector<std::pair<std::int64_t, std::int64_t>>;
  EXPECT_EQ(groups(Passes(1, 4, 0, 1)), (Groups{{0, 0}}));
  EXPECT_EQ(groups(Passes(1, 7, 3, 1)), (Groups{{0, 1}, {2, 2}}));
  EXPECT_EQ(groups(Passes(1, 7, 3, 5)), (Groups{{0, 1}, {2, 2}, {3, 6}}));
  EXPECT_EQ(groups(Passes(1, 1, 1, 3)), (Groups{{0, 0}, {1, 2}}));
  EXPECT_EQ(groups(Passes()), Groups{});
  // The list says the same of the same passes.
  for (const Passes& passes : {Passes(2, 7, 3, 5), Passes(2, 6, 2, 1), Passes(1, 1, 1, 3)}) {
    std::vector<PassPlan> list;
    for (std::int64_t i = 0; i < passes.size(); ++i) list.push_back(passes.at(i));
    EXPECT_EQ(groups(Passes(list)), groups(passes));
  }
}

TEST(Passes, RefuseWhatIsNoRun) {
  EXPECT_EQ(message_of([] { Passes(0, 1, 0, 1); }), "passes_c1: batch=0 must be at least 1");
  EXPECT_EQ(message_of([] { Passes(1, 0, 0, 1); }), "passes_c1: prompt=0 must be at least 1");
  EXPECT_EQ(message_of([] { Passes(1, 1, -1, 1); }), "passes_c1: chunk=-1 must be at least 0");
  EXPECT_EQ(message_of([] { Passes(1, 1, 0, 0); }), "passes_c1: gen=0 must be at least 1");
}

}  // namespace
}  // namespace shardproof
