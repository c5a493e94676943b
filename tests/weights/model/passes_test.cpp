// The passes of a run, as the specification's section 2 orders them.
#include "weights/model/passes.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <utility>
#include <vector>

#include "tests/weights/expect_error.h"
#include "tests/weights/model/listed.h"

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

TEST(Passes, SayHowMuchTheyRead) {
  for (const Passes& passes : {Passes(6, 7, 3, 3), Passes(listed(Passes(6, 7, 3, 3)))}) {
    EXPECT_EQ(passes.batch(), 6);
    EXPECT_EQ(passes.prompt(), 7);
    EXPECT_EQ(passes.gen(), 3);
    EXPECT_TRUE(passes.decodes());
    EXPECT_EQ(passes.cached(), 9);
    EXPECT_EQ(passes.cached_by_prefill(), 7);
  }
  for (const Passes& passes : {Passes(1, 4, 0, 1), Passes(listed(Passes(1, 4, 0, 1)))}) {
    EXPECT_EQ(passes.gen(), 1);
    EXPECT_FALSE(passes.decodes());
    EXPECT_EQ(passes.cached(), 4);
    EXPECT_EQ(passes.cached_by_prefill(), 4);
  }
  EXPECT_EQ(Passes().batch(), 0);
  EXPECT_EQ(Passes().gen(), 0);
  EXPECT_FALSE(Passes().decodes());
  EXPECT_EQ(Passes().cached(), 0);
  // Of unequal rows the longest counts, and padding takes slots.
  std::vector<PassPlan> list = listed(Passes(3, 5, 3, 2));
  list[0].rows = {{.rows = 2, .start = 0, .tokens = 2}, {.rows = 1, .start = 0, .tokens = 3}};
  list[1].rows = {{.rows = 2, .start = 2, .tokens = 2}, {.rows = 1, .start = 3, .tokens = 1}};
  const Passes unequal(list);
  EXPECT_EQ(unequal.batch(), 3);
  EXPECT_EQ(unequal.prompt(), 4);
  EXPECT_EQ(unequal.cached_by_prefill(), 5);
  EXPECT_EQ(unequal.cached(), 6);
}

TEST(Passes, AreEqualListedOrNot) {
  const Passes passes(6, 7, 3, 3);
  EXPECT_EQ(passes, Passes(6, 7, 3, 3));
  EXPECT_EQ(passes, Passes(listed(passes)));
  EXPECT_EQ(Passes(listed(passes)), Passes(listed(passes)));
  EXPECT_EQ(Passes(1, 4, 0, 1), Passes(1, 4, 9, 1));
  for (const Passes& other :
       {Passes(5, 7, 3, 3), Passes(6, 8, 3, 3), Passes(6, 7, 4, 3), Passes(6, 7, 3, 2), Passes()}) {
    EXPECT_FALSE(passes == other);
    EXPECT_FALSE(Passes(listed(passes)) == other);
    EXPECT_FALSE(passes == Passes(listed(other)));
  }
  std::vector<PassPlan> list = listed(passes);
  list.back().rows[0].start -= 1;
  EXPECT_FALSE(passes == Passes(list));
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
    EXPECT_EQ(groups(Passes(listed(passes))), groups(passes));
  }
}

TEST(Passes, OfUnequalRowsHaveTheTokensThatEachRowHasThere) {
  const Passes passes({5, 2, 2, 1}, 6, 2, 3);
  EXPECT_FALSE(passes.full());
  EXPECT_EQ(passes.batch(), 4);
  EXPECT_EQ(passes.gen(), 3);
  EXPECT_EQ(passes.prompt(), 6);
  EXPECT_EQ(passes.cached(), 8);
  ASSERT_EQ(passes.size(), 5);
  EXPECT_EQ(passes.at(0), (PassPlan{.name = "prefill.c0",
                                    .previous = "",
                                    .phase = Phase::prefill,
                                    .L = 2,
                                    .cached = 0,
                                    .rows = {{.rows = 1, .start = 0, .tokens = 2, .last = false},
                                             {.rows = 2, .start = 0, .tokens = 2},
                                             {.rows = 1, .start = 0, .tokens = 1}},
                                    .sample = true}));
  EXPECT_EQ(passes.at(1), (PassPlan{.name = "prefill.c1",
                                    .previous = "prefill.c0",
                                    .phase = Phase::prefill,
                                    .L = 2,
                                    .cached = 2,
                                    .rows = {{.rows = 1, .start = 2, .tokens = 2},
                                             {.rows = 2, .start = 2, .tokens = 0},
                                             {.rows = 1, .start = 1, .tokens = 0}},
                                    .sample = false}));
  EXPECT_EQ(passes.at(2).rows, (std::vector<PassRows>{{.rows = 1, .start = 4, .tokens = 1},
                                                      {.rows = 2, .start = 2, .tokens = 0},
                                                      {.rows = 1, .start = 1, .tokens = 0}}));
  EXPECT_TRUE(passes.at(2).sample);
  EXPECT_EQ(passes.at(3).cached, 6);
  EXPECT_EQ(passes.at(4).rows, (std::vector<PassRows>{{.rows = 1, .start = 6, .tokens = 1},
                                                      {.rows = 2, .start = 3, .tokens = 1},
                                                      {.rows = 1, .start = 2, .tokens = 1}}));
}

TEST(Passes, OfUnequalRowsLeaveOutChunksThatNoRowReaches) {
  const Passes passes({3, 1}, 7, 2, 2);
  ASSERT_EQ(passes.size(), 3);
  EXPECT_EQ(passes.cached_by_prefill(), 4);
  EXPECT_EQ(passes.at(2).name, "decode.1");
  EXPECT_EQ(passes.at(2).cached, 4);
  EXPECT_EQ(passes.at(2).rows[0].start, 3);
}

TEST(Passes, OfRowsOfOneLengthAreThoseOfThePrompt) {
  for (const std::int64_t chunk : {0, 1, 2, 3, 7, 9}) {
    EXPECT_EQ(Passes(std::vector<std::int64_t>(4, 7), 7, chunk, 3), Passes(4, 7, chunk, 3));
    EXPECT_TRUE(Passes(4, 7, chunk, 3).full());
  }
  EXPECT_FALSE(Passes({7, 6}, 7, 2, 3) == Passes({7, 5}, 7, 2, 3));
}

RC_GTEST_PROP(Passes, OfUnequalRowsTakeEachTokenOnceInOrder, ()) {
  const auto number = [](int low, int high) {
    return static_cast<std::int64_t>(*rc::gen::inRange(low, high + 1));
  };
  const std::int64_t prompt = number(1, 9), chunk = number(0, 10), gen = number(1, 4);
  std::vector<std::int64_t> lengths;
  for (std::int64_t rows = number(1, 6); rows > 0; --rows)
    lengths.push_back(number(1, static_cast<int>(prompt)));
  const Passes lazy(lengths, prompt, chunk, gen);
  for (const Passes& passes : {lazy, Passes(listed(lazy))}) {
    RC_ASSERT(passes.gen() == gen);
    std::vector<std::int64_t> next(lengths.size(), 0), sampled(lengths.size(), 0);
    for (std::int64_t i = 0; i < passes.size(); ++i) {
      const PassPlan pass = passes.at(i);
      RC_ASSERT(pass.batch() == std::ssize(lengths));
      std::size_t b = 0;
      bool some = false, samples = false;
      for (const PassRows& group : pass.rows)
        for (std::int64_t n = 0; n < group.rows; ++n, ++b) {
          RC_ASSERT(group.start == next[b]);
          RC_ASSERT(group.tokens >= 0);
          RC_ASSERT(group.tokens <= pass.L);
          RC_ASSERT(group.end() <= pass.cached + pass.L);
          next[b] = group.end();
          some = some || group.tokens > 0;
          // Where its prompt ends, and at each token after it.
          RC_ASSERT(pass.samples(group) == (group.tokens > 0 && next[b] >= lengths[b]));
          samples = samples || pass.samples(group);
          sampled[b] += pass.samples(group) ? 1 : 0;
        }
      RC_ASSERT(some);
      RC_ASSERT(samples == pass.sample);
    }
    for (std::size_t b = 0; b < lengths.size(); ++b) {
      RC_ASSERT(next[b] == lengths[b] + gen - 1);
      RC_ASSERT(sampled[b] == gen);
    }
  }
}

TEST(Passes, RefuseWhatIsNoRun) {
  EXPECT_EQ(message_of([] { Passes(0, 1, 0, 1); }), "passes_c1: batch=0 must be at least 1");
  EXPECT_EQ(message_of([] { Passes(1, 0, 0, 1); }), "passes_c1: prompt=0 must be at least 1");
  EXPECT_EQ(message_of([] { Passes(1, 1, -1, 1); }), "passes_c1: chunk=-1 must be at least 0");
  EXPECT_EQ(message_of([] { Passes(1, 1, 0, 0); }), "passes_c1: gen=0 must be at least 1");
  EXPECT_EQ(message_of([] { Passes(std::vector<std::int64_t>(), 1, 0, 1); }),
            "passes_c1: batch=0 must be at least 1");
  EXPECT_EQ(message_of([] {
              Passes({4, 5}, 4, 0, 1);
            }),
            "passes_c1: length=5 must be from 1 to prompt=4");
  EXPECT_EQ(message_of([] {
              Passes({4, 0}, 4, 0, 1);
            }),
            "passes_c1: length=0 must be from 1 to prompt=4");
}

}  // namespace
}  // namespace shardproof
