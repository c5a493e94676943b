#include "golden/zoo/faults.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <string>

#include "tests/golden/corpus/refusal.h"

namespace shardproof::zoo {
namespace {

const std::string kOne =
    "# of a test\n"
    "\n"
    "fault 1\n"
    "says every query sees all keys\n"
    "met  serving engine, long prompts\n"
    "report owner/repository#7\n"
    "report owner/repository#8\n"
    "dump a/no-mask.full\n"
    "case torus=1x1x1\n"
    "first prefill.c0.layer0.score\n"
    "cause mask\n"
    "dump a/no-mask.hooks\n"
    "case torus=1x1x1\n"
    "first prefill.c0.layer0.attn\n"
    "cause seen by nobody\n"
    "named not yet\n"
    "fault 2\n"
    "says nothing is wrong\n"
    "met nowhere\n";

std::string refused(const std::string& text) {
  return corpus::refusal([&] { parse_faults(text); });
}
/// kOne with another text in the place of this one.
std::string changed(const std::string& from, const std::string& to) {
  std::string text = kOne;
  return text.replace(text.find(from), from.size(), to);
}

TEST(ParseFaults, ReadsRecords) {
  const std::vector<Fault> faults = parse_faults(kOne);
  ASSERT_EQ(faults.size(), 2U);
  EXPECT_EQ(faults[0].says, "every query sees all keys");
  EXPECT_EQ(faults[0].met, "serving engine, long prompts");
  EXPECT_EQ(faults[0].reports,
            (std::vector<std::string>{"owner/repository#7", "owner/repository#8"}));
  ASSERT_EQ(faults[0].dumps.size(), 2U);
  EXPECT_EQ(faults[0].dumps[0].id, "a/no-mask.full");
  EXPECT_EQ(faults[0].dumps[0].line, "torus=1x1x1");
  EXPECT_EQ(faults[0].dumps[0].first, "prefill.c0.layer0.score");
  EXPECT_EQ(faults[0].dumps[0].cause, "mask");
  EXPECT_TRUE(faults[0].dumps[0].named);
  EXPECT_FALSE(faults[0].dumps[1].named) << "its cause may be of any words";
  EXPECT_TRUE(faults[1].dumps.empty());
}

TEST(ParseFaults, RefusesWithLineAndReason) {
  for (const char* text : {"", "\n", "# nothing\n"})
    EXPECT_EQ(refused(text), "zoo_faults: no fault is listed");
  EXPECT_EQ(refused("says a"), "zoo_faults: line 1: \"says a\": before the first fault");
  EXPECT_EQ(refused("fault 2"), "zoo_faults: line 1: \"fault 2\": the next fault is 1");
  EXPECT_EQ(refused(changed("cause mask", "cause")),
            "zoo_faults: line 11: \"cause\": a key without a text");
  EXPECT_EQ(refused(changed("met  serving engine, long prompts\n", "color red\n")),
            "zoo_faults: line 5: \"color red\": a fault has says, met, any number of report, then "
            "dumps");
  const std::string of_dump =
      ": a dump has case, first, cause and perhaps \"named not yet\", each "
      "once";
  EXPECT_EQ(refused(changed("cause mask", "color red")),
            "zoo_faults: line 11: \"color red\"" + of_dump);
  EXPECT_EQ(refused(changed("cause mask", "says again")),
            "zoo_faults: line 11: \"says again\"" + of_dump);
  EXPECT_EQ(refused(changed("named not yet", "named soon")),
            "zoo_faults: line 16: \"named soon\"" + of_dump);
  EXPECT_EQ(refused(changed("named not yet", "named not yet\nnamed not yet")),
            "zoo_faults: line 17: \"named not yet\"" + of_dump);
  EXPECT_EQ(refused(changed("cause mask", "first b")),
            "zoo_faults: line 11: \"first b\": a key that occurs twice");
  EXPECT_EQ(refused(changed("cause mask\n", "")),
            "zoo_faults: line 11: \"dump a/no-mask.hooks\": dump a/no-mask.full has no cause");
  EXPECT_EQ(refused(changed("cause mask", "cause masks")),
            "zoo_faults: line 12: \"dump a/no-mask.hooks\": dump a/no-mask.full: the diagnosis "
            "names no cause \"masks\"");
  EXPECT_EQ(refused(changed("dump a/no-mask.hooks", "dump a/no-mask.full")),
            "zoo_faults: line 12: \"dump a/no-mask.full\": an id that occurs twice");
  EXPECT_EQ(refused(changed("dump a/no-mask.hooks", "dump ../a")),
            "zoo_faults: line 12: \"dump ../a\": an id has small letters, digits, '-', '.' and "
            "'/'");
  EXPECT_EQ(refused(changed("met nowhere\n", "")),
            "zoo_faults: line 18: \"says nothing is wrong\": fault 2 has no met");
}

/// Lines in any order, left out or repeated: records, or a refusal.
RC_GTEST_PROP(ParseFaults, TakesOrRefusesAnyLines, ()) {
  const std::vector<std::string> lines{
      "fault 1", "fault 2", "says a",     "met b",   "report c",      "dump d", "dump e",
      "case f",  "first g", "cause mask", "cause h", "named not yet", "named",  "case torus=1x1x1"};
  std::string text;
  for (const auto& line : *rc::gen::container<std::vector<std::string>>(rc::gen::elementOf(lines)))
    text += line + "\n";
  const std::string said = refused(text);
  RC_ASSERT(said == "nothing" || said.starts_with("zoo_faults: "));
  if (said != "nothing") return;
  for (const Fault& fault : parse_faults(text)) {
    RC_ASSERT(fault.says == "a" && fault.met == "b");
    for (const Specimen& specimen : fault.dumps)
      RC_ASSERT(!specimen.line.empty() && specimen.first == "g" &&
                (specimen.cause == "mask" || (specimen.cause == "h" && !specimen.named)));
  }
}

}  // namespace
}  // namespace shardproof::zoo
