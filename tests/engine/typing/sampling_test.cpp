// The rules of the choice of a token.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/engine/typing/broken_program.h"

namespace shardproof {
namespace {

const std::string kCandidates = "input cv : BC is stat candidates\n";

const std::vector<BrokenProgram> kRows{
    {"local_argmax_c1",
     "input z : BV partialsum-x is raw logits\n"
     "v : BC, i : BC = local_argmax(z) is stat candidates, stat indices",
     {"v: ", "operand z is BV partialsum-x"}},
    {"local_argmax_c1",
     kPos + "v : BC, i : BC = local_argmax(pos) is stat candidates, stat indices",
     {"v: ", "operand pos is int32 BL"}},
    {"local_argmax_c2",
     kX + "v : BC, i : BC = local_argmax(x) is stat candidates, stat indices",
     {"v: ", "operand x is BLE_zy", "BV are expected"}},
    {"argmax_c1", kArgmax + "t : B = argmax(gi, gi) is token", {"t: ", "operand gi is int32 BC"}},
    {"argmax_c1",
     kArgmax + "input w : BC partialsum-x is stat candidates\n"
               "t : B = argmax(w, gi) is token",
     {"t: ", "operand w is BC partialsum-x"}},
    {"argmax_c1",
     kArgmax + "input w : BC partialsum-x is stat indices\n"
               "t : B = argmax(gv, w) is token",
     {"t: ", "operand w is BC partialsum-x"}},
    {"argmax_c2", kCandidates + "t : B = argmax(cv, cv) is token", {"t: ", "int32 BC, not f32 BC"}},
    {"argmax_c2",
     kArgmax + kX + "t : B = argmax(x, gi) is token",
     {"t: ", "operand x is BLE_zy", "BC are expected"}},
    {"argmax_c2",
     kArgmax + kPos + "t : B = argmax(gv, pos) is token",
     {"t: ", "operand pos is BL", "BC are expected"}},
    {"argmax_c3",
     kArgmax + "t : B = argmax(cv, ci) is token",
     {"t: ", "dim C of BC_zyx must not be sharded"}},
    {"argmax_c4",
     kArgmax + "input wide : B_xC is stat candidates\nt : B_x = argmax(wide, gi) is token",
     {"t: ", "B_xC has B_x where BC has B"}},
    {"argmax_c4",
     kArgmax + "t : B = argmax(gv, ci) is token",
     {"t: ", "BC has C where BC_zyx has C_zyx"}},
    {.label = "argmax_c4",
     .program = kArgmax + "input w : BC is stat candidates\n"
                          "t : B = argmax(w, gi) is token",
     .words = {"t: ", "BC has C=24 where BC has C=12"},
     .shapes = {{"w", {12, 24}}}},
};

INSTANTIATE_TEST_SUITE_P(Sampling, TypingRule, ::testing::ValuesIn(kRows), named_by_label(kRows));

}  // namespace
}  // namespace shardproof
