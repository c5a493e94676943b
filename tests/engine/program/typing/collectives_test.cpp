// The rules of the collectives.
#include <gtest/gtest.h>

#include <vector>

#include "tests/engine/program/typing/broken_program.h"

namespace shardproof {
namespace {

const std::string kProduct =
    "input x : BLE_x is in\ninput w : E_xF is weight w_gate\n"
    "p : BLF partialsum-x = einsum(BLE,EF->BLF; x, w) is raw gate\n";

const std::vector<BrokenProgram> kRows{
    {"all_gather_c1", kX + "y : BLE = all_gather(x, F, zy) is in", {"y: ", "BLE_zy", "no dim F"}},
    {"all_gather_c1", kX + "y : BLE_zy = all_gather(x, E, ) is in", {"y: ", "no axes", "BLE_zy"}},
    {"all_gather_c2",
     kX + "y : BLE = all_gather(x, E, zx) is in",
     {"y: ", "axis x is not in BLE_zy"}},
    {"all_gather_c3", kX + "y : BLE = all_gather(x, E, yz) is in", {"y: ", "yz", "E_zy"}},
    {"all_gather_c3", kX + "y : BLE_y = all_gather(x, E, z) is in", {"y: ", "z is not", "E_zy"}},
    {"all_gather_c4",
     kX + "y : BLE = all_gather(x, E, zy loop one-way) is in",
     {"y: ", "no einsum loops over y", "leave 'loop one-way' out"}},
    {"all_gather_c4",
     kX + "input w : EF is weight w_gate\n"
          "y : BLE = all_gather(x, E, zy loop both-half) is in\n"
          "h : BLF = einsum(BLE,EF->BLF; y, w) is raw gate",
     {"y: ", "no einsum loops over y", "'loop y'"}},
    {"reduce_scatter_c3",
     kP + "y : BLE_xzy = reduce_scatter(p, E, zy loop one-way) is raw block_out",
     {"y: ", "p is not the result of an einsum", "leave 'loop one-way' out"}},
    {"reduce_scatter_c3",
     kProduct + "a : BLF = all_reduce(p, x) is raw gate\n"
                "y : BLF_x = reduce_scatter(p, F, x loop both-full) is raw gate",
     {"y: ", "a takes p, too", "leave 'loop both-full' out"}},
    {"reduce_scatter_c3",
     kProduct + "y : BLF_x = reduce_scatter(p, F, x loop both-full) is raw gate\noutput y, p",
     {"y: ", "p is an output"}},
    {"reduce_scatter_c1",
     kP + "y : BLE_xy partialsum-z = reduce_scatter(p, F, y) is raw block_out",
     {"y: ", "BLE_x partialsum-yz", "no dim F"}},
    {"reduce_scatter_c1",
     kP + "y : BLE_x partialsum-yz = reduce_scatter(p, E, ) is raw block_out",
     {"y: ", "no axes", "BLE_x partialsum-yz"}},
    {"reduce_scatter_c2",
     kP + "y : BLE_x = reduce_scatter(p, L, yx) is raw block_out",
     {"y: ", "axis x is not in the partialsum of BLE_x partialsum-yz"}},
    {"all_reduce_c1",
     kP + "y : BLE_x = all_reduce(p, ) is raw block_out",
     {"y: ", "no axes", "BLE_x partialsum-yz"}},
    {"all_reduce_c2",
     kX + "y : BLE_zy = all_reduce(x, y) is in",
     {"y: ", "axis y is not in the partialsum of BLE_zy"}},
    {"all_to_all_c1", kX + "y : BLE_zy = all_to_all(x, E->E, y) is in", {"y: ", "both dims are E"}},
    {"all_to_all_c1",
     kX + "y : B_yLE_z = all_to_all(x, F->B, y) is in",
     {"y: ", "BLE_zy has no dim F"}},
    {"all_to_all_c1",
     kX + "y : BLE_z = all_to_all(x, E->F, y) is in",
     {"y: ", "BLE_zy has no dim F"}},
    {"all_to_all_c1",
     kX + "y : BLE_zy = all_to_all(x, E->B, ) is in",
     {"y: ", "no axes", "BLE_zy"}},
    {"all_to_all_c2",
     kX + "y : BLE_zy = all_to_all(x, B->E, y) is in",
     {"y: ", "axis y is not in BLE_zy"}},
    {"all_to_all_c3",
     kX + "y : B_zLE_y = all_to_all(x, E->B, z) is in",
     {"y: ", "z is not", "E_zy"}},
    {"all_to_all_c4", kX + "y : B_xLE_z = all_to_all(x, E->B, y as x) is in", {"y: ", "y as x"}},
    {"all_to_all_c4", kX + "y : B_yLE = all_to_all(x, E->B, zy as y) is in", {"y: ", "zy as y"}},
    {"permute_axes_c1",
     kX + "y : BLE_yz = permute_axes(x, F, zy->yz) is in",
     {"y: ", "BLE_zy has no dim F"}},
    {"permute_axes_c2",
     kX + "y : BLE_zy = permute_axes(x, E, yz->zy) is in",
     {"y: ", "E_zy is not E_yz"}},
    {"permute_axes_c3",
     kX + "y : BLE_yx = permute_axes(x, E, zy->yx) is in",
     {"y: ", "yx is not a permutation of zy"}},
    {"permute_axes_c3",
     kX + "y : BLE_z = permute_axes(x, E, zy->z) is in",
     {"y: ", "z is not a permutation of zy"}},
};

INSTANTIATE_TEST_SUITE_P(Collectives, TypingRule, ::testing::ValuesIn(kRows),
                         named_by_label(kRows));

}  // namespace
}  // namespace shardproof
