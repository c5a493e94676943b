// The rules of the notation, and of programs as a whole.
#include <gtest/gtest.h>

#include <vector>

#include "tests/engine/program/typing/broken_program.h"

namespace shardproof {
namespace {

const std::vector<BrokenProgram> kRows{
    // notation
    {.label = "torus_c0", .program = kX, .words = {"'2x2'"}, .torus = "2x2"},
    {.label = "torus_c1", .program = kX, .words = {"2x0x3", "size 0"}, .torus = "2x0x3"},
    {.label = "torus_c2", .program = kX, .words = {"64x64x2", "4096"}, .torus = "64x64x2"},
    {"axes_c1", kX + "y : BLE = all_gather(x, E, zw) is in", {"'w'", "'zw'"}},
    {"axes_c2", kX + "y : BLE = all_gather(x, E, zyz) is in", {"axis z", "'zyz'"}},
    {"layout_c0", "input x : BL-E is in", {"'-'", "'BL-E'"}},
    {"layout_c0", "input x : BLE_ is in", {"'BLE_'", "no axes"}},
    {"layout_c0", "input x : BLE partial-x is in", {"'BLE partial-x'", "not a valid layout"}},
    {"layout_c1", "input x : BLX is in", {"'X'", "BLX"}},
    {"layout_c2", "input x : BLEB is in", {"dim B", "BLEB"}},
    {"layout_c3", "input x : B_xLE_yx is in", {"axis x", "B_xLE_yx"}},
    {"layout_c3", "input x : BLE_x partialsum-yx is in", {"axis x", "BLE_x partialsum-xy"}},
    {.label = "local_c1",
     .program = "input x : BLE_xyz is in",
     .words = {"x: ", "E=18", "BLE_xyz", "xyz=12", "2x2x3"},
     .shapes = {{"x", {12, 2, 18}}}},
    {"local_c1",
     "input x : BLE is in\n"
     "y : BL_zE = slice(x, L, z) is in",
     {"y: ", "L=2", "BL_zE", "z=3"}},

    // programs
    {"program_c0", "x : BLE = all_gather(y, E, x)", {"line 1", "is ROLE"}},
    {"program_c1", kX + "y : BLE_zy = add(x, w) is in", {"y: ", "w is used before it is defined"}},
    {"program_c1", kX + "output w", {"w is never defined"}},
    {.label = "program_c1",
     .program = kX,
     .words = {"input x : BLE_zy is not supplied"},
     .shapes = {{"x", {12, 2}}}},
    {"program_c2", kX + "x : BLE_z = all_gather(x, E, y) is in", {"x is defined twice"}},
    {"program_c2", kX + "input x : BLE is in", {"x is defined twice"}},
    {"program_c3",
     kX + "y : BLE_y = all_gather(x, E, y) is in",
     {"y: ", "declared BLE_y", "all_gather(x, E, y)", "returns BLE_z"}},
    {"program_c4", kX + "y : BLE_zy = add(x) is in", {"y: ", "add(x) has 1", "takes 2"}},
    {"program_c4",
     kX + "y : BLE_z, w : BLE_z = all_gather(x, E, y) is in, in",
     {"y: ", "returns 1", "not 2"}},
    {"program_c5", kX + "y : BLE_z = all_gather(x, E, y) is gate", {"y is BLE_z", "gate", "BLF"}},
    {"program_c5", "input x : BLE is inn", {"there is no value 'inn'"}},
};

INSTANTIATE_TEST_SUITE_P(Programs, TypingRule, ::testing::ValuesIn(kRows), named_by_label(kRows));

}  // namespace
}  // namespace shardproof
