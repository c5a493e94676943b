// The rules of attention over a prefix's cache and the row's own.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/engine/program/typing/broken_program.h"
#include "tests/weights/expect_error.h"

namespace shardproof {
namespace {

const std::string kCaches = "input kc : BMK_zyQ is k_cache\ninput vc : BMK_zyQ is v_cache\n";
const std::string kAttention =
    "s : BLH_zyxM, m : BLH_zyx, e : BLH_zyxM, d : BLH_zyx, o : BLH_zyxQ = ";
const std::string kRoles = " is score, max, exp, denom, attn\n";
const std::string kPrefixes =
    "input pk : NTK_zyQ is prefix k_cache\ninput pv : NTK_zyQ is prefix v_cache\n";
/// With a prefix: of keys of the row's own, of its prefix, of positions.
std::string going_on(const std::string& q, const std::string& kc, const std::string& pk,
                     const std::string& pos) {
  return input("q", q, "q") + input("kc", kc, "k_cache") + input("pk", pk, "prefix k_cache") +
         input("pos", pos, "input pos") + kAttention + "attend_prefix(q, kc, kc, pk, pk, pos)" +
         kRoles;
}
/// Of operands that fit, but for those that the call leaves out.
std::string going_on(const std::string& more, const std::string& call) {
  return kQ + kCaches + kPrefixes + kPos + more + kAttention + call + kRoles;
}

const std::vector<BrokenProgram> kRows{
    {"attend_prefix_c1",
     going_on("BLHQ partialsum-x", "BMKQ", "NTKQ", "BL"),
     {"s: ", "operand q is BLHQ partialsum-x"}},
    {"attend_prefix_c1",
     going_on("BLHQ", "BMKQ partialsum-x", "NTKQ", "BL"),
     {"s: ", "operand kc is BMKQ partialsum-x"}},
    {"attend_prefix_c1",
     going_on("BLHQ", "BMKQ", "NTKQ partialsum-x", "BL"),
     {"s: ", "operand pk is NTKQ partialsum-x"}},
    {"attend_prefix_c1",
     going_on("BLHQ", "BMKQ", "NTKQ", "BL partialsum-x"),
     {"s: ", "operand pos is BL partialsum-x"}},
    {"attend_prefix_c1",
     going_on("input bad : BMK_zyQ partialsum-x is v_cache\n",
              "attend_prefix(q, kc, bad, pk, pv, pos)"),
     {"s: ", "operand bad is BMK_zyQ partialsum-x"}},
    {"attend_prefix_c1",
     going_on("input bad : NTK_zyQ partialsum-x is prefix v_cache\n",
              "attend_prefix(q, kc, vc, pk, bad, pos)"),
     {"s: ", "operand bad is NTK_zyQ partialsum-x"}},
    {"attend_prefix_c1",
     going_on("input g : H partialsum-x is weight alibi_slopes\n",
              "attend_prefix(q, kc, vc, pk, pv, pos, g)"),
     {"s: ", "operand g is H partialsum-x"}},
    {"attend_prefix_c1",
     going_on("", "attend_prefix(pos, kc, vc, pk, pv, pos)"),
     {"s: ", "operand pos is int32 BL"}},
    {"attend_prefix_c1",
     going_on("", "attend_prefix(q, pos, vc, pk, pv, pos)"),
     {"s: ", "operand pos is int32 BL"}},
    {"attend_prefix_c1",
     going_on("", "attend_prefix(q, kc, pos, pk, pv, pos)"),
     {"s: ", "operand pos is int32 BL"}},
    {"attend_prefix_c1",
     going_on("", "attend_prefix(q, kc, vc, pos, pv, pos)"),
     {"s: ", "operand pos is int32 BL"}},
    {"attend_prefix_c1",
     going_on("", "attend_prefix(q, kc, vc, pk, pos, pos)"),
     {"s: ", "operand pos is int32 BL"}},
    {"attend_prefix_c1",
     going_on("", "attend_prefix(q, kc, vc, pk, pv, pos, pos)"),
     {"s: ", "operand pos is int32 BL"}},
    {"attend_prefix_c2",
     going_on("", "attend_prefix(kc, kc, vc, pk, pv, pos)"),
     {"s: ", "operand kc is BMK_zyQ", "BLHQ are expected"}},
    {"attend_prefix_c2",
     going_on("", "attend_prefix(q, pk, pv, pk, pv, pos)"),
     {"s: ", "operand pk is NTK_zyQ", "BMKQ are expected"}},
    {"attend_prefix_c2",  // the two caches one for the other
     going_on("", "attend_prefix(q, kc, vc, kc, vc, pos)"),
     {"s: ", "operand kc is BMK_zyQ", "NTKQ are expected"}},
    {"attend_prefix_c2",
     going_on(kArgmax, "attend_prefix(q, kc, vc, pk, pv, gi)"),
     {"s: ", "operand gi is BC", "BL are expected"}},
    {"attend_prefix_c2",
     going_on("input s0 : BL is stat ss\n", "attend_prefix(q, kc, vc, pk, pv, s0)"),
     {"s: ", "int32 BL, not f32 BL"}},
    {"attend_prefix_c2",
     going_on("input g : E_zyx is weight norm\n", "attend_prefix(q, kc, vc, pk, pv, pos, g)"),
     {"s: ", "operand g is E_zyx", "dims H are expected"}},
    {"attend_prefix_c3",
     going_on("input vz : BMK_zQ is v_cache\n", "attend_prefix(q, kc, vz, pk, pv, pos)"),
     {"s: ", "the caches differ: BMK_zyQ and BMK_zQ"}},
    {.label = "attend_prefix_c3",
     .program = going_on("", "attend_prefix(q, kc, vc, pk, pv, pos)"),
     .words = {"s: ", "the caches differ"},
     .shapes = {{"vc", {12, 8, 12, 4}}}},
    {"attend_prefix_c3",
     going_on("input vz : N_xTK_zyQ is prefix v_cache\n", "attend_prefix(q, kc, vc, pk, vz, pos)"),
     {"s: ", "the prefixes' caches differ: NTK_zyQ and N_xTK_zyQ"}},
    {.label = "attend_prefix_c3",
     .program = going_on("", "attend_prefix(q, kc, vc, pk, pv, pos)"),
     .words = {"s: ", "the prefixes' caches differ"},
     .shapes = {{"pv", {12, 4, 12, 4}}}},
    {"attend_prefix_c4",
     going_on("BLHQ_x", "BMKQ_x", "NTKQ_x", "BL"),
     {"s: ", "dim Q of BLHQ_x must not be sharded"}},
    {"attend_prefix_c4",
     going_on("BLHQ", "BM_yKQ", "NTKQ", "BL"),
     {"s: ", "dim M of BM_yKQ must not be sharded"}},
    {"attend_prefix_c4",
     going_on("BLHQ", "BMKQ_x", "NTKQ", "BL"),
     {"s: ", "dim Q of BMKQ_x must not be sharded"}},
    {"attend_prefix_c4",
     going_on("BLHQ", "BMKQ", "NT_zKQ", "BL"),
     {"s: ", "dim T of NT_zKQ must not be sharded"}},
    {"attend_prefix_c4",
     going_on("BLHQ", "BMKQ", "NTKQ_x", "BL"),
     {"s: ", "dim Q of NTKQ_x must not be sharded"}},
    {"attend_prefix_c5",
     going_on("BLHQ", "B_xMKQ", "NTKQ", "BL"),
     {"s: ", "BLHQ has B where B_xMKQ has B_x"}},
    {.label = "attend_prefix_c5",
     .program = going_on("BLHQ", "BMKQ", "NTKQ", "BL"),
     .words = {"s: ", "BLHQ has Q=4 where BMKQ has Q=8"},
     .shapes = {{"kc", {12, 4, 12, 8}}, {"pk", {12, 3, 12, 8}}}},
    {"attend_prefix_c5",
     going_on("BLHQ", "BMKQ", "NTKQ", "B_xL"),
     {"s: ", "BLHQ has B where B_xL has B_x"}},
    {"attend_prefix_c5",
     going_on("BL_xHQ", "BMKQ", "NTKQ", "BL"),
     {"s: ", "BL_xHQ has L_x where BL has L"}},
    {.label = "attend_prefix_c5",
     .program = going_on("BLHQ", "BMKQ", "NTKQ", "BL"),
     .words = {"s: ", "BLHQ has L=2 where BL has L=1"},
     .shapes = {{"pos", {12, 1}}}},
    {"attend_prefix_c5",
     going_on("BLH_zyQ", "BMK_zyQ", "NTK_zQ", "BL"),
     {"s: ", "BMK_zyQ has K_zy where NTK_zQ has K_z"}},
    {.label = "attend_prefix_c5",
     .program = going_on("BLHQ", "BMKQ", "NTKQ", "BL"),
     .words = {"s: ", "BMKQ has K=12 where NTKQ has K=6"},
     .shapes = {{"pk", {12, 3, 6, 4}}}},
    {.label = "attend_prefix_c5",
     .program = going_on("BLHQ", "BMKQ", "NTKQ", "BL"),
     .words = {"s: ", "BMKQ has Q=4 where NTKQ has Q=2"},
     .shapes = {{"pk", {12, 3, 12, 2}}}},
    {"attend_prefix_c5",
     going_on("input g : H is weight alibi_slopes\n", "attend_prefix(q, kc, vc, pk, pv, pos, g)"),
     {"s: ", "BLH_zyxQ has H_zyx where H has H"}},
    {"attend_prefix_c6",
     going_on("BLH_zyxQ", "BMK_yQ", "NTK_yQ", "BL"),
     {"s: ", "BMK_yQ", "not a prefix of the heads' of BLH_zyxQ"}},
    {"attend_prefix_c6",
     going_on("BLH_zQ", "BMK_zyQ", "NTK_zyQ", "BL"),
     {"s: ", "BMK_zyQ", "not a prefix of the heads' of BLH_zQ"}},
    {.label = "attend_prefix_c7",
     .program = going_on("BLHQ", "BMKQ", "NTKQ", "BL"),
     .words = {"s: ", "H=12 is not divisible by K=18"},
     .shapes = {{"kc", {12, 4, 18, 4}}, {"pk", {12, 3, 18, 4}}}},
    {"attend_prefix_c8",
     going_on("BLHQ", "BMKQ", "N_zTKQ", "BL"),
     {"s: ", "the prefixes' subscript of N_zTKQ is not a prefix of the batch's of BLHQ"}},
    {"attend_prefix_c8",  // the minor-most of B's axes
     going_on("B_zyLHQ", "B_zyMKQ", "N_yTKQ", "B_zyL"),
     {"s: ", "N_yTKQ is not a prefix of the batch's of B_zyLHQ"}},
    {"attend_prefix_c8",  // all of them, in another order
     going_on("B_zyLHQ", "B_zyMKQ", "N_yzTKQ", "B_zyL"),
     {"s: ", "N_yzTKQ is not a prefix of the batch's of B_zyLHQ"}},
    {"attend_prefix_c8",  // more
     going_on("B_zyLHQ", "B_zyMKQ", "N_zyxTKQ", "B_zyL"),
     {"s: ", "N_zyxTKQ is not a prefix of the batch's of B_zyLHQ"}},
    {.label = "attend_prefix_c9",
     .program = going_on("BLHQ", "BMKQ", "NTKQ", "BL"),
     .words = {"s: ", "N=13 prefixes for B=12 rows"},
     .shapes = {{"pk", {13, 3, 12, 4}}}},
    {.label = "attend_prefix_c9",
     .program = going_on("BLHQ", "BMKQ", "NTKQ", "BL"),
     .words = {"s: ", "N=0 prefixes for B=12 rows"},
     .shapes = {{"pk", {0, 3, 12, 4}}}},
};

INSTANTIATE_TEST_SUITE_P(AttendPrefix, TypingRule, ::testing::ValuesIn(kRows),
                         named_by_label(kRows));

/// Prefixes lie on every chip, or with the rows that go on from them; keys are theirs and the
/// rows'.
TEST(TypingByHand, AttendPrefixTakesPrefixesThatLieWithTheirRowsOrEverywhere) {
  for (const char* prefixes : {"NTK_xQ", "N_zTK_xQ", "N_zyTK_xQ"}) {
    const Program program = parse_program(
        "test", input("q", "B_zyLH_xQ", "q") + input("kc", "B_zyMK_xQ", "k_cache") +
                    input("pk", prefixes, "prefix k_cache") + input("pos", "B_zyL", "input pos") +
                    "s : B_zyLH_xM, m : B_zyLH_x, e : B_zyLH_xM, d : B_zyLH_x, o : B_zyLH_xQ = "
                    "attend_prefix(q, kc, kc, pk, pk, pos)" +
                    kRoles);
    const auto types =
        check(program,
              {{"q", {12, 2, 4, 4}}, {"kc", {12, 3, 2, 4}}, {"pk", {6, 5, 2, 4}}, {"pos", {12, 2}}},
              Torus(2, 2, 3));
    EXPECT_EQ(types.at("s").shape, (Shape{12, 2, 4, 5 + 3})) << prefixes;
    EXPECT_EQ(types.at("m").shape, (Shape{12, 2, 4}));
    EXPECT_EQ(types.at("o").shape, (Shape{12, 2, 4, 4}));
  }
}

/// What is said to be the cache of a prefix has dims of its own, and is a cache.
TEST(TypingByHand, ACacheOfPrefixesHasTheDimsOfOne) {
  const auto said = [](const std::string& layout, const std::string& role) {
    return message_of([&] { parse_and_check({"", input("pk", layout, role), {}}); });
  };
  EXPECT_EQ(said("NTKQ", "prefix k_cache"), "");
  EXPECT_EQ(said("N_zTK_yQ", "prefix v_cache"), "");
  EXPECT_EQ(said("BMKQ", "prefix k_cache"),
            "program_c5: pk is BMKQ, but prefix k_cache has dims NTKQ");
  EXPECT_EQ(said("NTKQ", "previous k_cache"),
            "program_c5: pk is NTKQ, but previous k_cache has dims BMKQ");
  EXPECT_EQ(said("BLHQ", "prefix q"), "program_c5: pk: there is no value 'prefix q'");
  EXPECT_EQ(said("NTKQ", "prefix last k_cache"),
            "program_c5: pk: there is no value 'prefix last k_cache'");
}

}  // namespace
}  // namespace shardproof
