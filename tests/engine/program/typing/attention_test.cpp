// The rules of the cache and of attention.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/engine/program/typing/broken_program.h"
#include "tests/weights/expect_error.h"

namespace shardproof {
namespace {

const std::string kCache = "input c : BMK_zQ is previous k_cache\ninput k : BLK_zQ is k_rot\n";
const std::string kCaches = "input kc : BMK_zyQ is k_cache\ninput vc : BMK_zyQ is v_cache\n";
const std::string kAttention =
    "s : BLH_zyxM, m : BLH_zyx, e : BLH_zyxM, d : BLH_zyx, o : BLH_zyxQ = ";
const std::string kRoles = " is score, max, exp, denom, attn\n";

std::string grown(const std::string& c, const std::string& k, const std::string& pos) {
  return input("c", c, "previous k_cache") + input("k", k, "k_rot") +
         input("pos", pos, "input pos");
}
std::string attending(const std::string& q, const std::string& kc, const std::string& pos) {
  return input("q", q, "q") + input("kc", kc, "k_cache") + input("pos", pos, "input pos");
}

const std::vector<BrokenProgram> kRows{
    {"append_c1",
     "input c : BMKQ is previous k_cache\ninput k : BLKQ partialsum-x is raw k\n" + kPos +
         "y : BMKQ = append(c, k, pos) is k_cache",
     {"y: ", "operand k is BLKQ partialsum-x"}},
    {"append_c1",
     grown("BMKQ partialsum-x", "BLKQ", "BL") + "y : BMK_zQ = append(c, k, pos) is k_cache",
     {"y: ", "operand c is BMKQ partialsum-x"}},
    {"append_c1",
     grown("BMKQ", "BLKQ", "BL partialsum-x") + "y : BMK_zQ = append(c, k, pos) is k_cache",
     {"y: ", "operand pos is BL partialsum-x"}},
    {"append_c1",
     kCache + kPos + "y : BMK_zQ = append(pos, k, pos) is k_cache",
     {"y: ", "operand pos is int32 BL"}},
    {"append_c1",
     kCache + kPos + "y : BMK_zQ = append(c, pos, pos) is k_cache",
     {"y: ", "operand pos is int32 BL"}},
    {"append_c2",
     kCache + kPos + "y : BMK_zQ = append(k, c, pos) is k_cache",
     {"y: ", "operand k is BLK_zQ", "BMKQ are expected"}},
    {"append_c2",
     kCache + kPos + "y : BMK_zQ = append(c, c, pos) is k_cache",
     {"y: ", "operand c is BMK_zQ", "BLKQ are expected"}},
    {"append_c2",
     kCache + kArgmax + "y : BMK_zQ = append(c, k, gi) is k_cache",
     {"y: ", "operand gi is BC", "BL are expected"}},
    {"append_c2",
     kCache + "input s : BL is stat ss\n"
              "y : BMK_zQ = append(c, k, s) is k_cache",
     {"y: ", "int32 BL, not f32 BL"}},
    {"append_c3",
     "input c : BM_xKQ is previous k_cache\ninput k : BLKQ is k_rot\n" + kPos +
         "y : BM_xKQ = append(c, k, pos) is k_cache",
     {"y: ", "dim M of BM_xKQ must not be sharded"}},
    {"append_c3",
     grown("BMKQ", "BL_xKQ", "BL_x") + "y : BMKQ = append(c, k, pos) is k_cache",
     {"y: ", "dim L of BL_xKQ must not be sharded"}},
    {"append_c4",
     "input c : BMK_zQ is previous k_cache\ninput k : BLKQ is k_rot\n" + kPos +
         "y : BMK_zQ = append(c, k, pos) is k_cache",
     {"y: ", "BMK_zQ has K_z where BLKQ has K"}},
    {.label = "append_c4",
     .program = kCache + kPos + "y : BMK_zQ = append(c, k, pos) is k_cache",
     .words = {"y: ", "BMK_zQ has K=12 where BLK_zQ has K=6"},
     .shapes = {{"k", {12, 2, 6, 4}}}},
    {"append_c4",
     grown("BMKQ", "BLKQ_x", "BL") + "y : BMK_zQ = append(c, k, pos) is k_cache",
     {"y: ", "BMKQ has Q where BLKQ_x has Q_x"}},
    {"append_c4",
     grown("BMKQ", "BLKQ", "B_xL") + "y : BMKQ = append(c, k, pos) is k_cache",
     {"y: ", "BLKQ has B where B_xL has B_x"}},
    {.label = "append_c4",
     .program = kCache + kPos + "y : BMK_zQ = append(c, k, pos) is k_cache",
     .words = {"y: ", "BLK_zQ has L=2 where BL has L=1"},
     .shapes = {{"pos", {12, 1}}}},
    {"attend_c1",
     "input q : BLH_zyxQ is q_rot\ninput kc : BMK_zyQ partialsum-x is k_cache\n" + kPos +
         kAttention + "attend(q, kc, kc, pos)" + kRoles,
     {"s: ", "operand kc is BMK_zyQ partialsum-x"}},
    {"attend_c1",
     attending("BLHQ partialsum-x", "BMKQ", "BL") + kAttention + "attend(q, kc, kc, pos)" + kRoles,
     {"s: ", "operand q is BLHQ partialsum-x"}},
    {"attend_c1",
     kQ + "input kc : BMK_zyQ is k_cache\ninput vc : BMK_zyQ partialsum-x is v_cache\n" + kPos +
         kAttention + "attend(q, kc, vc, pos)" + kRoles,
     {"s: ", "operand vc is BMK_zyQ partialsum-x"}},
    {"attend_c1",
     attending("BLHQ", "BMKQ", "BL partialsum-x") + kAttention + "attend(q, kc, kc, pos)" + kRoles,
     {"s: ", "operand pos is BL partialsum-x"}},
    {"attend_c1",
     kQ + kCaches + kPos + kAttention + "attend(pos, kc, vc, pos)" + kRoles,
     {"s: ", "operand pos is int32 BL"}},
    {"attend_c1",
     kQ + kCaches + kPos + kAttention + "attend(q, pos, vc, pos)" + kRoles,
     {"s: ", "operand pos is int32 BL"}},
    {"attend_c1",
     kQ + kCaches + kPos + kAttention + "attend(q, kc, pos, pos)" + kRoles,
     {"s: ", "operand pos is int32 BL"}},
    {"attend_c2",
     kQ + "input k : BLK_zyQ is k_rot\n" + kPos + kAttention + "attend(q, k, k, pos)" + kRoles,
     {"s: ", "operand k is BLK_zyQ", "BMKQ are expected"}},
    {"attend_c2",
     kQ + kCaches + kPos + kAttention + "attend(kc, kc, vc, pos)" + kRoles,
     {"s: ", "operand kc is BMK_zyQ", "BLHQ are expected"}},
    {"attend_c2",
     kQ + kCaches + kArgmax + kAttention + "attend(q, kc, vc, gi)" + kRoles,
     {"s: ", "operand gi is BC", "BL are expected"}},
    {"attend_c2",
     kQ + kCaches + "input s0 : BL is stat ss\n" + kAttention + "attend(q, kc, vc, s0)" + kRoles,
     {"s: ", "int32 BL, not f32 BL"}},
    {"attend_c1",
     kQ + kCaches + kPos + "input g : H partialsum-x is weight alibi_slopes\n" + kAttention +
         "attend(q, kc, vc, pos, g)" + kRoles,
     {"s: ", "operand g is H partialsum-x"}},
    {"attend_c2",
     kQ + kCaches + kPos + "input g : E_zyx is weight norm\n" + kAttention +
         "attend(q, kc, vc, pos, g)" + kRoles,
     {"s: ", "operand g is E_zyx", "dims H are expected"}},
    {"attend_c5",
     kQ + kCaches + kPos + "input g : H is weight alibi_slopes\n" + kAttention +
         "attend(q, kc, vc, pos, g)" + kRoles,
     {"s: ", "BLH_zyxQ has H_zyx where H has H"}},
    {"attend_c5",
     kQ + kCaches + kPos + "input g : H_xyz is weight alibi_slopes\n" + kAttention +
         "attend(q, kc, vc, pos, g)" + kRoles,
     {"s: ", "BLH_zyxQ has H_zyx where H_xyz has H_xyz"}},
    {"attend_c3",
     kQ + "input kc : BMK_zyQ is k_cache\ninput vc : BMK_zQ is v_cache\n" + kPos + kAttention +
         "attend(q, kc, vc, pos)" + kRoles,
     {"s: ", "BMK_zyQ and BMK_zQ"}},
    {.label = "attend_c3",
     .program = kQ + kCaches + kPos + kAttention + "attend(q, kc, vc, pos)" + kRoles,
     .words = {"s: ", "the caches differ"},
     .shapes = {{"vc", {12, 8, 12, 4}}}},
    {"attend_c3",
     kQ + kCaches + kPos + kAttention + "attend(q, kc, q, pos)" + kRoles,
     {"s: ", "BMK_zyQ and BLH_zyxQ"}},
    {"attend_c4",
     kQ + "input kc : BM_yKQ is k_cache\n" + kPos + kAttention + "attend(q, kc, kc, pos)" + kRoles,
     {"s: ", "dim M of BM_yKQ must not be sharded"}},
    {"attend_c4",
     attending("BL_xHQ", "BM_xKQ", "BL_x") + kAttention + "attend(q, kc, kc, pos)" + kRoles,
     {"s: ", "dim M of BM_xKQ must not be sharded"}},
    {"attend_c4",
     attending("BLHQ_x", "BMKQ_x", "BL") + kAttention + "attend(q, kc, kc, pos)" + kRoles,
     {"s: ", "dim Q of BLHQ_x must not be sharded"}},
    {"attend_c4",
     attending("BLHQ", "BMKQ_x", "BL") + kAttention + "attend(q, kc, kc, pos)" + kRoles,
     {"s: ", "dim Q of BMKQ_x must not be sharded"}},
    {"attend_c5",
     kQ + "input kc : B_xMKQ is k_cache\n" + kPos + kAttention + "attend(q, kc, kc, pos)" + kRoles,
     {"s: ", "BLH_zyxQ has B where B_xMKQ has B_x"}},
    {.label = "attend_c5",
     .program = kQ + kCaches + kPos + kAttention + "attend(q, kc, vc, pos)" + kRoles,
     .words = {"s: ", "BLH_zyxQ has Q=4 where BMK_zyQ has Q=8"},
     .shapes = {{"kc", {12, 4, 12, 8}}, {"vc", {12, 4, 12, 8}}}},
    {"attend_c5",
     attending("BLHQ", "BMKQ", "B_xL") + kAttention + "attend(q, kc, kc, pos)" + kRoles,
     {"s: ", "BLHQ has B where B_xL has B_x"}},
    {"attend_c5",
     attending("BLHQ", "BMKQ", "BL_x") + kAttention + "attend(q, kc, kc, pos)" + kRoles,
     {"s: ", "BLHQ has L where BL_x has L_x"}},
    {"attend_c5",
     attending("BL_xHQ", "BMKQ", "BL") + kAttention + "attend(q, kc, kc, pos)" + kRoles,
     {"s: ", "BL_xHQ has L_x where BL has L"}},
    {.label = "attend_c5",
     .program = kQ + kCaches + kPos + kAttention + "attend(q, kc, vc, pos)" + kRoles,
     .words = {"s: ", "BLH_zyxQ has L=2 where BL has L=1"},
     .shapes = {{"pos", {12, 1}}}},
    {"attend_c6",
     kQ + "input kc : BMK_yQ is k_cache\n" + kPos + kAttention + "attend(q, kc, kc, pos)" + kRoles,
     {"s: ", "BMK_yQ", "not a prefix", "BLH_zyxQ"}},
    {"attend_c6",
     attending("BLH_zQ", "BMK_zyQ", "BL") + kAttention + "attend(q, kc, kc, pos)" + kRoles,
     {"s: ", "BMK_zyQ", "not a prefix", "BLH_zQ"}},
    {.label = "attend_c7",
     .program = kQ + kCaches + kPos + kAttention + "attend(q, kc, vc, pos)" + kRoles,
     .words = {"s: ", "H=12 is not divisible by K=18"},
     .shapes = {{"kc", {12, 4, 18, 4}}, {"vc", {12, 4, 18, 4}}}},
};

INSTANTIATE_TEST_SUITE_P(Attention, TypingRule, ::testing::ValuesIn(kRows), named_by_label(kRows));

/// Queries may be sharded over their positions: every chip has all keys. Then pos is sharded
/// as the queries are.
TEST(TypingByHand, AttendTakesQueriesShardedOverL) {
  const std::string inputs = attending("BL_xH_zyQ", "BMK_zQ", "BL_x");
  const std::string results =
      "s : BL_xH_zyM, m : BL_xH_zy, e : BL_xH_zyM, d : BL_xH_zy, o : BL_xH_zyQ = ";
  const BrokenProgram legal{
      .label = "", .program = inputs + results + "attend(q, kc, kc, pos)" + kRoles, .words = {}};
  EXPECT_EQ(message_of([&] { parse_and_check(legal); }), "");
  const BrokenProgram uncut{
      .label = "", .program = inputs + kAttention + "attend(q, kc, kc, pos)" + kRoles, .words = {}};
  EXPECT_NE(message_of([&] { parse_and_check(uncut); }).find("program_c3: s: "), std::string::npos);
}

}  // namespace
}  // namespace shardproof
