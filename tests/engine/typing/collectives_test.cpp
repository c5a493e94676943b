// The rules of the collectives.
#include <gtest/gtest.h>

#include <vector>

#include "tests/engine/typing/broken_program.h"

namespace shardproof {
namespace {

const std::vector<BrokenProgram> kRows{
    {"all_gather_c1", kX + "y : BLE = all_gather(x, F, zy) is in", {"y: ", "BLE_zy", "no dim F"}},
    {"all_gather_c1", kX + "y : BLE_zy = all_gather(x, E, ) is in", {"y: ", "no axes", "BLE_zy"}},
    {"all_gather_c2",
     kX + "y : BLE = all_gather(x, E, zx) is in",
     {"y: ", "axis x is not in BLE_zy"}},
    {"all_gather_c3", kX + "y : BLE = all_gather(x, E, yz) is in", {"y: ", "yz", "E_zy"}},
    {"all_gather_c3", kX + "y : BLE_y = all_gather(x, E, z) is in", {"y: ", "z is not", "E_zy"}},
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
