// The passes of a run whose rows share prefixes, as the specification's section 2.11 orders them.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <utility>
#include <vector>

#include "tests/weights/expect_error.h"
#include "tests/weights/model/listed.h"
#include "weights/model/passes.h"

namespace shardproof {
namespace {

using Groups = std::vector<std::pair<std::int64_t, std::int64_t>>;

Groups groups(const Passes& passes) {
  Groups found;
  for (const Passes::Group& group : passes.groups()) found.emplace_back(group.first, group.last);
  return found;
}

TEST(Passes, OfSharedPrefixesComeFirstAndTheRowsBeginBehindThem) {
  const SharedPrefix prefix{.length = 3, .rows = 2};
  const Passes lazy({7, 5, 4}, 7, 2, 3, prefix);
  EXPECT_EQ(lazy, Passes(listed(lazy)));
  for (const Passes& passes : {lazy, Passes(listed(lazy))}) {
    EXPECT_EQ(passes.batch(), 3);
    EXPECT_EQ(passes.prefix(), prefix);
    EXPECT_EQ(passes.prompt(), 7);
    EXPECT_EQ(passes.gen(), 3);
    EXPECT_FALSE(passes.full());
    EXPECT_TRUE(passes.decodes());
    EXPECT_EQ(passes.cached_by_prefill(), 4);  // own slots
    EXPECT_EQ(passes.cached(), 6);
    ASSERT_EQ(passes.size(), 6);
    EXPECT_EQ(passes.at(0), (PassPlan{.name = "prefix.c0",
                                      .previous = "",
                                      .phase = Phase::prefix,
                                      .L = 2,
                                      .cached = 0,
                                      .rows = {{.rows = 2, .start = 0, .tokens = 2}},
                                      .sample = false}));
    EXPECT_EQ(passes.at(1), (PassPlan{.name = "prefix.c1",
                                      .previous = "prefix.c0",
                                      .phase = Phase::prefix,
                                      .L = 1,
                                      .cached = 2,
                                      .rows = {{.rows = 2, .start = 2, .tokens = 1}},
                                      .sample = false}));
    EXPECT_EQ(passes.at(2), (PassPlan{.name = "prefill.c0",
                                      .previous = "",
                                      .phase = Phase::prefill,
                                      .L = 2,
                                      .cached = 0,
                                      .rows = {{.rows = 1, .start = 3, .tokens = 2, .last = false},
                                               {.rows = 1, .start = 3, .tokens = 2},
                                               {.rows = 1, .start = 3, .tokens = 1}},
                                      .sample = true,
                                      .prefix = prefix}));
    EXPECT_EQ(passes.at(3), (PassPlan{.name = "prefill.c1",
                                      .previous = "prefill.c0",
                                      .phase = Phase::prefill,
                                      .L = 2,
                                      .cached = 2,
                                      .rows = {{.rows = 1, .start = 5, .tokens = 2},
                                               {.rows = 1, .start = 5, .tokens = 0},
                                               {.rows = 1, .start = 4, .tokens = 0}},
                                      .sample = true,
                                      .prefix = prefix}));
    EXPECT_EQ(passes.at(4), (PassPlan{.name = "decode.1",
                                      .previous = "prefill.c1",
                                      .phase = Phase::decode,
                                      .L = 1,
                                      .cached = 4,
                                      .rows = {{.rows = 1, .start = 7, .tokens = 1},
                                               {.rows = 1, .start = 5, .tokens = 1},
                                               {.rows = 1, .start = 4, .tokens = 1}},
                                      .sample = true,
                                      .prefix = prefix}));
    EXPECT_EQ(passes.at(5).previous, "decode.1");
    EXPECT_EQ(passes.at(5).cached, 5);
  }
}

TEST(Passes, OfOtherPrefixesAreOthers) {
  // Their own rows and chunks are the same.
  const Passes one({5, 5}, 5, 2, 1, {1, 1});
  for (const Passes& other : {Passes({5, 5}, 5, 2, 1, {2, 1}), Passes({5, 5}, 5, 2, 1, {1, 2}),
                              Passes({5, 5}, 5, 2, 1)}) {
    EXPECT_FALSE(one == other);
    EXPECT_FALSE(Passes(listed(one)) == other);
  }
  EXPECT_EQ(one, Passes({5, 5}, 5, 2, 1, {1, 1}));
  EXPECT_TRUE(one.full());
}

TEST(Passes, OverPrefixesAreGroupsOfTheirOwn) {
  // Prefixes of 3 and 4 tokens, and 5 behind them.
  EXPECT_EQ(groups(Passes(std::vector<std::int64_t>{8}, 8, 2, 4, {3, 1})),
            (Groups{{0, 0}, {1, 1}, {2, 3}, {4, 4}, {5, 7}}));
  EXPECT_EQ(groups(Passes(std::vector<std::int64_t>{9}, 9, 2, 1, {4, 1})),
            (Groups{{0, 1}, {2, 3}, {4, 4}}));
  EXPECT_EQ(groups(Passes(std::vector<std::int64_t>{9}, 9, 0, 2, {4, 1})),
            (Groups{{0, 0}, {1, 1}, {2, 2}}));
}

RC_GTEST_PROP(Passes, WithPrefixesAreThoseOverThemAndThoseOfShorterRows, ()) {
  const auto number = [](std::int64_t low, std::int64_t high) {
    return *rc::gen::inRange(low, high + 1);
  };
  const std::int64_t prompt = number(2, 9), chunk = number(0, 10), gen = number(1, 4);
  const std::int64_t batch = number(1, 5);
  const SharedPrefix prefix{number(1, prompt - 1), number(1, batch)};
  std::vector<std::int64_t> lengths, shorter;
  for (std::int64_t b = 0; b < batch; ++b) {
    lengths.push_back(number(prefix.length + 1, prompt));
    shorter.push_back(lengths.back() - prefix.length);
  }
  const Passes all(lengths, prompt, chunk, gen, prefix);
  const Passes over(prefix.rows, prefix.length, chunk, 1);
  const Passes own(shorter, prompt - prefix.length, chunk, gen);
  RC_ASSERT(all.size() == over.size() + own.size());
  RC_ASSERT(all.cached() == own.cached());
  RC_ASSERT(all.cached_by_prefill() == own.cached_by_prefill());
  RC_ASSERT(all.prompt() == prefix.length + own.prompt());
  RC_ASSERT(all.full() == own.full());
  for (std::int64_t i = 0; i < all.size(); ++i) {
    PassPlan expected = i < over.size() ? over.at(i) : own.at(i - over.size());
    if (i < over.size()) {
      expected.phase = Phase::prefix;
      expected.name = prefix_pass(i);
      expected.previous = i > 0 ? prefix_pass(i - 1) : "";
      expected.sample = false;
    } else {
      expected.prefix = prefix;
      for (PassRows& group : expected.rows) group.start += prefix.length;
    }
    RC_ASSERT(all.at(i) == expected);
  }
  RC_ASSERT(groups(Passes(listed(all))) == groups(all));
  RC_ASSERT(Passes(listed(all)) == all);
}

TEST(Passes, RefusePrefixesThatAreNotOfTheRows) {
  EXPECT_EQ(label_of([] { Passes({4, 3}, 4, 0, 1, {3, 1}); }), "case_prefix");
  EXPECT_EQ(label_of([] { Passes({4, 3}, 4, 0, 1, {2, 3}); }), "case_prefix");
}

}  // namespace
}  // namespace shardproof
