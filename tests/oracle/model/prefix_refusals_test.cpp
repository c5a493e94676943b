// What the unsharded model refuses of rows that share prefixes: every way in which prefixes, the
// passes over them and those of the rows do not fit together.
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "oracle/model/oracle.h"
#include "tests/weights/expect_error.h"
#include "weights/storage/generator.h"

namespace shardproof::oracle {
namespace {

/// Rows of 5 and 4 tokens that share the first two.
struct OfOnePrefix {
  Weights weights = generate_weights(parse_model("palm-tiny,layers=1,E=8,F=8,H=2,Q=4,V=10"), 1);
  Request request;

  OfOnePrefix() {
    request.prompt = IntTensor({2, 5});
    request.prompt.data = {1, 2, 3, 4, 5,  //
                           1, 2, 6, 7, 8};
    request.passes = Passes({5, 4}, 5, 0, 2, {2, 1});
  }
};

std::string refusal(const OfOnePrefix& s) {
  return message_of([&] { run(s.weights, s.request); });
}

TEST(OracleRefuses, RowsOfOnePrefixWithOtherIds) {
  OfOnePrefix s;
  EXPECT_EQ(refusal(s), "");
  s.request.prompt.data[5 + 1] = 9;
  EXPECT_EQ(refusal(s),
            "oracle_range: prompt[1,1] is 9, and 2 in row 0, which has the same prefix");
  s.request.passes = Passes({5, 4}, 5, 0, 2, {2, 2});  // each has its own
  EXPECT_EQ(refusal(s), "");
  s.request.passes = Passes({5, 4}, 5, 0, 2, {1, 1});
  EXPECT_EQ(refusal(s), "");
}

TEST(OracleRefuses, PrefixesThatAreNotThoseOfTheRows) {
  const auto with = [](const std::function<void(std::vector<PassPlan>&)>& change) {
    OfOnePrefix s;
    std::vector<PassPlan> passes;  // prefix.c0, prefill.c0, decode.1
    for (std::int64_t i = 0; i < 3; ++i) passes.push_back(s.request.passes.at(i));
    change(passes);
    s.request.passes = Passes(passes);
    return refusal(s);
  };
  EXPECT_EQ(with([](auto&) {}), "");
  EXPECT_EQ(with([](auto& p) { p[0].rows[0].rows = 2; }),
            "oracle_range: prefix.c0: 2 rows, there are 1 prefixes");
  EXPECT_EQ(with([](auto& p) {
              p[1].prefix = p[2].prefix = {2, 3};
            }),
            "oracle_range: 3 prefixes of 2 tokens: the prompt of 2 rows has from 1 to 2 of from 1 "
            "to 4");
  EXPECT_EQ(with([](auto& p) {
              p[1].prefix = p[2].prefix = {5, 1};
            }),
            "oracle_range: 1 prefixes of 5 tokens: the prompt of 2 rows has from 1 to 2 of from 1 "
            "to 4");
  EXPECT_EQ(with([](auto& p) {
              p[1].prefix = p[2].prefix = {2, 0};
            }),
            "oracle_range: 0 prefixes of 2 tokens: the prompt of 2 rows has from 1 to 2 of from 1 "
            "to 4");
  EXPECT_EQ(with([](auto& p) {
              p[1].prefix = p[2].prefix = {0, 1};
            }),
            "oracle_range: 1 prefixes of 0 tokens: the prompt of 2 rows has from 1 to 2 of from 1 "
            "to 4");
  EXPECT_EQ(with([](auto& p) {
              p[0].prefix = {2, 1};
            }),
            "oracle_range: prefix.c0: its rows go on from prefixes \"2:1\", in this run from \"\"");
  EXPECT_EQ(
      with([](auto& p) { p[1].prefix = {}; }),
      "oracle_range: prefill.c0: its rows go on from prefixes \"\", in this run from \"2:1\"");
  EXPECT_EQ(with([](auto& p) { p[2].prefix = {}; }),
            "oracle_range: prefix.c0: it runs over prefixes, and no row goes on from one in the "
            "last pass");
  EXPECT_EQ(with([](auto& p) { p.erase(p.begin()); }),
            "oracle_range: prefill.c0: its rows go on from prefixes of 2 tokens, the passes before "
            "it have 0");
  for (const std::int64_t tokens : {1, 3})
    EXPECT_EQ(with([&](auto& p) { p[0].L = p[0].rows[0].tokens = tokens; }),
              "oracle_range: prefill.c0: its rows go on from prefixes of 2 tokens, the passes "
              "before it have " +
                  std::to_string(tokens));
  const std::string unlike =
      "oracle_range: prefix.c0: prefixes are of one length, and none of their tokens is sampled";
  EXPECT_EQ(with([](auto& p) { p[0].sample = true; }), unlike);
  EXPECT_EQ(with([](auto& p) { p[0].rows[0].tokens = 1; }), unlike);
  // Named once, and before all others.
  EXPECT_EQ(with([](auto& p) { p[1].name = "prefix.c0"; }),
            "oracle_range: two passes are called prefix.c0");
  EXPECT_EQ(with([](auto& p) {
              PassPlan late = p[0];
              late.name = "prefix.c1";
              p.insert(p.begin() + 2, late);
            }),
            "oracle_range: prefix.c1: a pass over prefixes after prefill.c0");
}

TEST(OracleRefuses, RowsThatDoNotBeginBehindTheirPrefix) {
  const auto with = [](const std::function<void(PassPlan&, PassPlan&)>& change) {
    OfOnePrefix s;
    std::vector<PassPlan> passes;
    for (std::int64_t i = 0; i < 3; ++i) passes.push_back(s.request.passes.at(i));
    change(passes[1], passes[2]);
    s.request.passes = Passes(passes);
    return refusal(s);
  };
  // Their own caches are empty then.
  EXPECT_EQ(with([](auto& prefill, auto&) { prefill.previous = "prefix.c0"; }),
            "oracle_range: prefill.c0: the pass before it is \"\", not \"prefix.c0\"");
  EXPECT_EQ(with([](auto& prefill, auto&) { prefill.cached = 2; }),
            "oracle_range: prefill.c0: 0 slots are cached before it, not 2");
  EXPECT_EQ(with([](auto&, auto& decode) { decode.cached = 5; }),
            "oracle_range: decode.1: 3 slots are cached before it, not 5");
  EXPECT_EQ(with([](auto& prefill, auto&) { prefill.rows[0].start = 1; }),
            "oracle_range: prefill.c0: 3 tokens from position 1 on in a pass of 3 over 2 cached");
  EXPECT_EQ(with([](auto& prefill, auto&) { prefill.rows[0].start = 3; }),
            "oracle_range: prefill.c0: 3 tokens from position 3 on in a pass of 3 over 2 cached");
  EXPECT_EQ(with([](auto& prefill, auto&) { prefill.rows[1].tokens = 0; }),
            "oracle_range: prefill.c0: a row begins without a token");
  EXPECT_EQ(with([](auto&, auto& decode) { decode.rows[1].start = 5; }),
            "oracle_range: decode.1: row 1 goes on at position 5, its tokens end before 4");
}

}  // namespace
}  // namespace shardproof::oracle
