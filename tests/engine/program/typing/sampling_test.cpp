// The rules of the choice of a token.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/engine/program/typing/broken_program.h"

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

const std::string kChances = "input e : BV_zyx is stat chances\n";
const std::string kCounts = " is stat top_k_counts, stat top_k_floor, stat top_k_chances";
const std::string kSums = " is stat top_p_sums, stat top_p_floor, stat top_p_chances";
const std::string kMasses =
    kChances +
    "m : BC_zyxW = masses(e) is stat masses\ng : BCW = all_gather(m, C, zyx) is stat masses\n";

const std::vector<BrokenProgram> kRandom{
    {"weigh_c1",
     kArgmax + "y : BV_zyx = weigh(z, gi) is stat chances",
     {"y: ", "operand gi is int32 BC"}},
    {"weigh_c1",
     kCandidates + "input z : BV partialsum-x is raw logits\ny : BV = weigh(z, cv) is stat chances",
     {"y: ", "operand z is BV partialsum-x"}},
    {"weigh_c2",
     kCandidates + kX + "y : BV = weigh(x, cv) is stat chances",
     {"y: ", "operand x is BLE_zy", "BV are expected"}},
    {"weigh_c2",
     kArgmax + "y : BV_zyx = weigh(z, z) is stat chances",
     {"y: ", "operand z is BV_zyx", "BC are expected"}},
    {"weigh_c3",
     kArgmax + "y : BV_zyx = weigh(z, cv) is stat chances",
     {"y: ", "dim C of BC_zyx must not be sharded"}},
    {"weigh_c4",
     "input z : B_xV is logits\n" + kCandidates + "y : B_xV = weigh(z, cv) is stat chances",
     {"y: ", "B_xV has B_x where BC has B"}},
    {"top_k_c1",
     "input e : BV partialsum-x is stat chances\nw : BW, f : B, y : BV = top_k(e, x)" + kCounts,
     {"w: ", "operand e is BV partialsum-x"}},
    {"top_k_c2",
     kX + "w : BW, f : B, y : BV = top_k(x, x)" + kCounts,
     {"w: ", "operand x is BLE_zy"}},
    {"top_k_c3",
     kChances + "w : BW, f : B, y : BV_zyx = top_k(e, xyz)" + kCounts,
     {"w: ", "the axes are xyz, those of V in BV_zyx are expected"}},
    {"top_k_c3",
     "input e : BV is stat chances\nw : BW, f : B, y : BV = top_k(e, x)" + kCounts,
     {"w: ", "the axes are x, those of V in BV are expected"}},
    {"top_p_c1",
     "input e : BV partialsum-x is stat chances\nw : BW, f : B, y : BV = top_p(e, x)" + kSums,
     {"w: ", "operand e is BV partialsum-x"}},
    {"top_p_c2",
     kX + "w : BW, f : B, y : BV = top_p(x, x)" + kSums,
     {"w: ", "operand x is BLE_zy"}},
    {"top_p_c3",
     kChances + "w : BW, f : B, y : BV_zyx = top_p(e, zy)" + kSums,
     {"w: ", "the axes are zy, those of V in BV_zyx are expected"}},
    {"masses_c1",
     "input e : BV partialsum-x is stat chances\nm : BCW = masses(e) is stat masses",
     {"m: ", "operand e is BV partialsum-x"}},
    {"masses_c2", kX + "m : BCW = masses(x) is stat masses", {"m: ", "operand x is BLE_zy"}},
    {"draw_c1",
     kMasses + "h : BC, t : BC = draw(g, g) is stat hits, stat drawn",
     {"h: ", "operand g is int32 BCW"}},
    {"draw_c2",
     kMasses + kX + "h : BC, t : BC = draw(x, g) is stat hits, stat drawn",
     {"h: ", "operand x is BLE_zy", "BV are expected"}},
    {"draw_c2",
     kMasses + "h : BC_zyx, t : BC_zyx = draw(e, e) is stat hits, stat drawn",
     {"h: ", "operand e is BV_zyx", "BCW are expected"}},
    {"draw_c2",
     kChances + "input g : BCW is stat masses\nh : BC_zyx, t : BC_zyx = draw(e, g) is stat hits, "
                "stat drawn",
     {"h: ", "masses are int32 BCW, not f32 BCW"}},
    {"draw_c3",
     kMasses + "h : BC_zyx, t : BC_zyx = draw(e, m) is stat hits, stat drawn",
     {"h: ", "dim C of BC_zyxW must not be sharded"}},
    {"draw_c4",
     kMasses +
         "input d : B_xV is stat chances\nh : B_xC, t : B_xC = draw(d, g) is stat hits, stat drawn",
     {"h: ", "B_xV has B_x where BCW has B"}},
    {"draw_c5",
     kMasses +
         "input d : BV_x is stat chances\nh : BC_x, t : BC_x = draw(d, g) is stat hits, stat drawn",
     {"h: ", "BCW has 12 masses of 12 words where BV_x has 2 blocks"}},
};

INSTANTIATE_TEST_SUITE_P(RandomSampling, TypingRule, ::testing::ValuesIn(kRandom),
                         named_by_label(kRandom));
INSTANTIATE_TEST_SUITE_P(Sampling, TypingRule, ::testing::ValuesIn(kRows), named_by_label(kRows));

}  // namespace
}  // namespace shardproof
