// The rules of both rotations.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/engine/program/typing/broken_program.h"

namespace shardproof {
namespace {

const std::string kTables =
    "input cos : PJ is weight rope_cos\ninput sin : PJ is weight rope_sin\n";
const std::string kHeads = "input q : BLHQ is q\n";

std::string tables(const std::string& cos, const std::string& sin) {
  return input("cos", cos, "weight rope_cos") + input("sin", sin, "weight rope_sin");
}

const std::vector<BrokenProgram> kRows{
    {"rope_c1",
     "input q : BLHQ partialsum-x is raw q\n" + kPos + kTables +
         "y : BLHQ = rope(q, pos, cos, sin) is q_rot",
     {"y: ", "operand q is BLHQ partialsum-x"}},
    {"rope_c1",
     kHeads + "input i : BL partialsum-x is input pos\n" + kTables +
         "y : BLHQ = rope(q, i, cos, sin) is q_rot",
     {"y: ", "operand i is BL partialsum-x"}},
    {"rope_c1",
     kHeads + kPos + kTables + "y : BLHQ = rope(pos, pos, cos, sin) is q_rot",
     {"y: ", "operand pos is int32 BL"}},
    {"rope_c1",
     kHeads + kPos + kTables + "y : BLHQ = rope(q, pos, pos, sin) is q_rot",
     {"y: ", "operand pos is int32 BL"}},
    {"rope_c1",
     kHeads + kPos + kTables + "y : BLHQ = rope(q, pos, cos, pos) is q_rot",
     {"y: ", "operand pos is int32 BL"}},
    {"rope_c2",
     kX + kPos + kTables + "y : BLE_zy = rope(x, pos, cos, sin) is in",
     {"y: ", "BLE_zy is neither BLHQ nor BLKQ"}},
    {"rope_c2",
     kHeads + "input s : BL is stat ss\n" + kTables + "y : BLHQ = rope(q, s, cos, sin) is q_rot",
     {"y: ", "int32 BL, not f32 BL"}},
    {"rope_c2",
     kHeads + kTables + kArgmax + "y : BLHQ = rope(q, gi, cos, sin) is q_rot",
     {"y: ", "operand gi is BC", "BL are expected"}},
    {"rope_c2",
     kHeads + kPos + kTables + "y : BLHQ = rope(q, pos, q, sin) is q_rot",
     {"y: ", "operand q is BLHQ", "PJ are expected"}},
    {"rope_c2",
     kHeads + kPos + kTables + "y : BLHQ = rope(q, pos, cos, q) is q_rot",
     {"y: ", "operand q is BLHQ", "PJ are expected"}},
    {"rope_c3",
     "input q : BLHQ_x is q\n" + kPos + kTables + "y : BLHQ_x = rope(q, pos, cos, sin) is q_rot",
     {"y: ", "dim Q of BLHQ_x must not be sharded"}},
    {"rope_c3",
     kHeads + kPos + tables("P_zJ", "PJ") + "y : BLHQ = rope(q, pos, cos, sin) is q_rot",
     {"y: ", "dim P of P_zJ must not be sharded"}},
    {"rope_c3",
     kHeads + kPos + tables("PJ_x", "PJ") + "y : BLHQ = rope(q, pos, cos, sin) is q_rot",
     {"y: ", "dim J of PJ_x must not be sharded"}},
    {"rope_c3",
     kHeads + kPos + tables("PJ", "P_zJ") + "y : BLHQ = rope(q, pos, cos, sin) is q_rot",
     {"y: ", "dim P of P_zJ must not be sharded"}},
    {"rope_c3",
     kHeads + kPos + tables("PJ", "PJ_x") + "y : BLHQ = rope(q, pos, cos, sin) is q_rot",
     {"y: ", "dim J of PJ_x must not be sharded"}},
    {"rope_c4",
     "input q : B_zLHQ is q\n" + kPos + kTables + "y : B_zLHQ = rope(q, pos, cos, sin) is q_rot",
     {"y: ", "B_zLHQ has B_z where BL has B"}},
    {"rope_c4",
     "input q : BL_xHQ is q\n" + kPos + kTables + "y : BL_xHQ = rope(q, pos, cos, sin) is q_rot",
     {"y: ", "BL_xHQ has L_x where BL has L"}},
    {.label = "rope_c4",
     .program = kHeads + kPos + kTables + "y : BLHQ = rope(q, pos, cos, sin) is q_rot",
     .words = {"y: ", "BLHQ has L=2 where BL has L=1"},
     .shapes = {{"pos", {12, 1}}}},
    {.label = "rope_c4",
     .program = kHeads + kPos + kTables + "y : BLHQ = rope(q, pos, cos, sin) is q_rot",
     .words = {"y: ", "rotates 6 channels of Q=4"},
     .shapes = {{"cos", {9, 3}}, {"sin", {9, 2}}}},
    {.label = "rope_c4",
     .program = kHeads + kPos + kTables + "y : BLHQ = rope(q, pos, cos, sin) is q_rot",
     .words = {"y: ", "rotates 6 channels of Q=4"},
     .shapes = {{"cos", {9, 2}}, {"sin", {9, 3}}}},
    {.label = "rope_c4",
     .program = kHeads + kPos + kTables + "y : BLHQ = rope(q, pos, cos, sin) is q_rot",
     .words = {"y: ", "cos and sin differ", "P=9 J=2", "P=9 J=1"},
     .shapes = {{"sin", {9, 1}}}},
    {.label = "rope_c4",
     .program = kHeads + kPos + kTables + "y : BLHQ = rope(q, pos, cos, sin) is q_rot",
     .words = {"y: ", "cos and sin differ", "P=9 J=2", "P=8 J=2"},
     .shapes = {{"sin", {8, 2}}}},
};

/// Every rule of rope holds of the interleaved one too.
const std::vector<BrokenProgram> kRotations = [] {
  std::vector<BrokenProgram> all = kRows;
  for (BrokenProgram interleaved : kRows) {
    interleaved.label.replace(0, 4, "rope_interleaved");
    interleaved.program.replace(interleaved.program.find("= rope("), 7, "= rope_interleaved(");
    all.push_back(interleaved);
  }
  return all;
}();

INSTANTIATE_TEST_SUITE_P(Rope, TypingRule, ::testing::ValuesIn(kRotations),
                         named_by_label(kRotations));

}  // namespace
}  // namespace shardproof
