// Which tokens the passes of a trace had: its own ids, its own tokens, or those of the case.
#include "golden/trace/reference/token_ids.h"

#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

#include "tests/golden/trace/written.h"

namespace shardproof::dump {
namespace {

class TokenIdsOf : public testing::Test {
 protected:
  /// The ids of a trace of the run's values that have one of these names.
  TokenIds ids(const std::set<std::string>& names, const Attributes& more = {}) const {
    std::vector<Written> kept;
    for (const Written& w : run.values())
      if (names.contains(w.name)) kept.push_back(w);
    Dump d = run.trace(kept, "f32");
    for (const auto& [name, text] : more) d.attributes[name] = text;
    const Claim claim = read_claim(d.attributes, std::nullopt);
    const Values values = read_values(d, claim, run.weights());
    TokenIds of(values, claim, run.passes);
    of.decode(values, run.answer());
    return of;
  }
  /// The ids of a pass in the run.
  const std::vector<std::int32_t>& own(const std::string& pass) const {
    return run.answer().inputs.at(pass + ".ids").data;
  }
  /// A prompt of two chunks, and two decode steps.
  const ExactRun run{kLine};
  const std::vector<std::string> passes{"prefill.c0", "prefill.c1", "decode.1", "decode.2"};
};

TEST_F(TokenIdsOf, OfATraceWithoutIdsAreTheCasesOwn) {
  const TokenIds of = ids({"decode.1.layer0.gate"});
  for (const std::string& pass : passes) {
    EXPECT_EQ(of.all().at(pass).data, own(pass)) << pass;
    EXPECT_TRUE(of.same(pass)) << pass;
    EXPECT_EQ(of.unknown(pass), "") << pass;
  }
}

// A trace with ids of one pass has a prompt of its own, of which the others are not known.
TEST_F(TokenIdsOf, SomePassesLeaveTheOthersUnknown) {
  const TokenIds of = ids({"prefill.c0.ids"});
  EXPECT_EQ(of.all().at("prefill.c0").data, own("prefill.c0"));
  EXPECT_EQ(of.unknown("prefill.c0"), "");
  EXPECT_TRUE(of.same("prefill.c0"));
  for (std::size_t p = 1; p < passes.size(); ++p) {
    for (const std::int32_t id : of.all().at(passes[p]).data)
      EXPECT_EQ(id, bounds::Derivation::kUnknownId) << passes[p];
    EXPECT_FALSE(of.same(passes[p]));
    EXPECT_EQ(of.unknown(passes[p]),
              "the trace has no ids of prefill.c1" + (p > 1 ? " to " + passes[p] : std::string()));
  }
}

// Given values may come from another model: its tokens follow from the prompt no more.
TEST_F(TokenIdsOf, AfterGivenValuesOnlyTheTracesOwnTokensAreKnown) {
  const Attributes given{{"given", "gate"}};
  const TokenIds of = ids({"decode.1.layer0.gate"}, given);
  for (const char* known : {"prefill.c0", "prefill.c1"}) {
    EXPECT_EQ(of.all().at(known).data, own(known)) << known;
    EXPECT_EQ(of.unknown(known), "") << known;
  }
  EXPECT_EQ(of.unknown("decode.2"), "the trace has no ids of decode.1 to decode.2");
  const TokenIds with = ids({"decode.1.layer0.gate", "prefill.c1.token"}, given);
  EXPECT_EQ(with.all().at("decode.1").data, own("decode.1"));
  EXPECT_EQ(with.unknown("decode.2"), "the trace has no ids of decode.2");
}

}  // namespace
}  // namespace shardproof::dump
