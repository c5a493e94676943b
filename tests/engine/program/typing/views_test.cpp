// The rules of slices, row selection and views.
#include <gtest/gtest.h>

#include <vector>

#include "tests/engine/program/typing/broken_program.h"

namespace shardproof {
namespace {

const std::vector<BrokenProgram> kRows{
    {"slice_c1", kX + "y : BLE_zy = slice(x, F, x) is in", {"y: ", "BLE_zy has no dim F"}},
    {"slice_c1", kX + "y : BLE_zy = slice(x, E, ) is in", {"y: ", "no axes", "BLE_zy"}},
    {"slice_c2",
     kP + "y : BLE_x partialsum-yz = slice(p, B, y) is raw block_out",
     {"y: ", "axis y is in use in BLE_x partialsum-yz"}},
    {"slice_c2", kX + "y : B_zLE_y = slice(x, B, z) is in", {"y: ", "axis z is in use in BLE_zy"}},
    {"last_c1",
     "input w : EF is weight w_gate\ny : EF = last(w) is weight w_gate",
     {"y: ", "EF has no dim L"}},
    {"last_c2",
     "input x : BL_xE is out\ny : BE = last(x) is last out",
     {"y: ", "dim L of BL_xE must not be sharded"}},
    {.label = "last_c3",
     .program = "input x : BLE is out\ny : BE = last(x) is last out",
     .words = {"y: ", "L=0 of BLE"},
     .shapes = {{"x", {12, 0, 24}}}},
    {"split_dim_c1",
     kX + "y : BLE = split_dim(x, H->S_zR_y) is in",
     {"y: ", "BLE_zy has no dim H"}},
    {"split_dim_c2",
     kQ + "y : BLS_zQ = split_dim(q, H->S_z) is q",
     {"y: ", "'S_z' is not two dims"}},
    {"split_dim_c2",
     kQ + "y : BLS_zR_yxQ = split_dim(q, H->S_zR_y partialsum-x) is q",
     {"y: ", "'S_zR_y partialsum-x' is not two dims"}},
    {"split_dim_c2",
     kQ + "y : BLS_zR_yxQ = split_dim(q, H->S_zR_yC_x) is q",
     {"y: ", "'S_zR_yC_x' is not two dims"}},
    {"split_dim_c3",
     kQ + "y : BLS_yR_zxQ = split_dim(q, H->S_yR_zx) is q",
     {"y: ", "H_zyx does not split into S_yR_zx"}},
    {"split_dim_c3",
     kQ + "y : BLS_zR_yQ = split_dim(q, H->S_zR_y) is q",
     {"y: ", "H_zyx does not split into S_zR_y"}},
    {"split_dim_c3",
     kQ + "y : BLS_zR_xyQ = split_dim(q, H->S_zR_xy) is q",
     {"y: ", "H_zyx does not split into S_zR_xy"}},
    {"merge_dim_c1",
     kQ + "y : BLH_zyxQ = merge_dim(q, SR->H) is q",
     {"y: ", "BLH_zyxQ has no dim S"}},
    {"merge_dim_c1",
     kQ + "y : BLH_zyxQ = merge_dim(q, HR->H) is q",
     {"y: ", "BLH_zyxQ has no dim R"}},
    {"merge_dim_c1", kQ + "y : BLH_zyxQ = merge_dim(q, H->H) is q", {"y: ", "'H' is not two dims"}},
    {"merge_dim_c1",
     "input q : BLS_zR_yQ is q\n"
     "y : BLH_zyQ = merge_dim(q, SRQ->H) is q",
     {"y: ", "'SRQ' is not two dims"}},
    {"merge_dim_c2",
     "input q : BLS_zR_yQ is q\ny : BLH_yzQ = merge_dim(q, RS->H) is q",
     {"y: ", "RS are not neighbours in BLS_zR_yQ"}},
    {"merge_dim_c2",
     "input q : BLS_zR_yQ is q\n"
     "y : BLHR_yQ = merge_dim(q, SQ->H) is q",
     {"y: ", "SQ are not neighbours in BLS_zR_yQ"}},
    {.label = "merge_dim_c3",
     .program = "input q : BLS_yR_zQ is q\ny : BLH_yzQ = merge_dim(q, SR->H) is q",
     .words = {"y: ", "S=6 is more than the 2 blocks"},
     .shapes = {{"q", {12, 2, 6, 6, 4}}}},
};

INSTANTIATE_TEST_SUITE_P(Views, TypingRule, ::testing::ValuesIn(kRows), named_by_label(kRows));

}  // namespace
}  // namespace shardproof
