// The rules of the ops on one element or one row.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/engine/program/typing/broken_program.h"
#include "tests/weights/expect_error.h"

namespace shardproof {
namespace {

std::string normed(const std::string& x, const std::string& s, const std::string& g) {
  return input("x", x, "in") + input("s", s, "stat ss") + input("g", g, "weight norm");
}

const std::vector<BrokenProgram> kRows{
    {"add_c1", kPos + "y : BL = add(pos, pos) is stat ss", {"y: ", "operand pos is int32 BL"}},
    {"add_c1",
     kP + "y : BLE_x partialsum-yz = add(p, p) is raw block_out",
     {"y: ", "operand p is BLE_x partialsum-yz"}},
    {"add_c2",
     kX + "input w : BLE_yz is in\ny : BLE_zy = add(x, w) is in",
     {"y: ", "BLE_zy [12,2,24] and BLE_yz"}},
    {.label = "add_c2",
     .program = kX + "input w : BLE_zy is in\n"
                     "y : BLE_zy = add(x, w) is in",
     .words = {"y: ", "BLE_zy [12,2,24] and BLE_zy [12,4,24]"},
     .shapes = {{"w", {12, 4, 24}}}},
    {"scale_c1",
     kP + "input g : E_x is weight norm\ny : BLE_x = scale(p, g) is in",
     {"y: ", "operand p is BLE_x partialsum-yz"}},
    {"scale_c1",
     kX + kPos + "y : BLE_zy = scale(x, pos) is in",
     {"y: ", "operand pos is int32 BL"}},
    {"scale_c2",
     kX + "input w : EF is weight w_gate\ny : BLE_zy = scale(x, w) is in",
     {"y: ", "BLE_zy has no dim F of EF"}},
    {"scale_c3",
     kX + "input g : E_z is weight norm\ny : BLE_zy = scale(x, g) is in",
     {"y: ", "BLE_zy has E_zy where E_z has E_z"}},
    {.label = "scale_c3",
     .program = kX + "input g : E_zy is weight norm\n"
                     "y : BLE_zy = scale(x, g) is in",
     .words = {"y: ", "BLE_zy has E=24 where E_zy has E=12"},
     .shapes = {{"g", {12}}}},
    {"scale_by_c1",
     kP + "y : BLE_x partialsum-yz = scale_by(p, embed_scale) is raw block_out",
     {"y: ", "operand p is BLE_x partialsum-yz"}},
    {"scale_by_c1",
     kPos + "y : BL = scale_by(pos, embed_scale) is stat ss",
     {"y: ", "operand pos is int32 BL"}},
    {"scale_by_c2", kX + "y : BLE_zy = scale_by(x, pi) is in", {"y: ", "'pi'", "logit_scale"}},
    {"bias_c1",
     kP + "input g : E_x is weight norm\ny : BLE_x = bias(p, g) is in",
     {"y: ", "operand p is BLE_x partialsum-yz"}},
    {"bias_c1", kX + kPos + "y : BLE_zy = bias(x, pos) is in", {"y: ", "operand pos is int32 BL"}},
    {"bias_c2",
     kX + "input w : EF is weight w_gate\ny : BLE_zy = bias(x, w) is in",
     {"y: ", "BLE_zy has no dim F of EF"}},
    {.label = "bias_c3",
     .program = kX + "input g : E_zy is weight norm\ny : BLE_zy = bias(x, g) is in",
     .words = {"y: ", "BLE_zy has E=24 where E_zy has E=12"},
     .shapes = {{"g", {12}}}},
    {"bias_c3",
     kX + "input g : E_z is weight norm\n"
          "y : BLE_zy = bias(x, g) is in",
     {"y: ", "BLE_zy has E_zy where E_z has E_z"}},
    {"bias_c2",
     kX + "input g : E_zy is weight norm\ninput w : EF is weight w_gate\n"
          "y : BLE_zy = bias(x, g, w) is in",
     {"y: ", "BLE_zy has no dim F of EF"}},
    {"divide_by_c1",
     "input s : BL partialsum-x is stat sum\ny : BL partialsum-x = divide_by(s, E) is stat mu",
     {"y: ", "operand s is BL partialsum-x"}},
    {"divide_by_c1", kPos + "y : BL = divide_by(pos, E) is stat mu", {"y: ", "int32 BL"}},
    {"divide_by_c2",
     "input s : BL is stat sum\ny : BL = divide_by(s, F) is stat mu",
     {"y: ", "'F'", "legal: E"}},
    {"center_c1",
     kX + "input s : BL partialsum-x is stat mu\ny : BLE_zy = center(x, s) is stat d",
     {"y: ", "operand s is BL partialsum-x"}},
    {"center_c2",
     kX + "input w : EF is weight w_gate\ny : BLE_zy = center(x, w) is stat d",
     {"y: ", "BLE_zy has no dim F of EF"}},
    {"center_c3",
     kX + "input s : B_xL is stat mu\ny : BLE_zy = center(x, s) is stat d",
     {"y: ", "BLE_zy has B where B_xL has B_x"}},
    {"geglu_c1",
     "input g : BLF partialsum-x is raw gate\ny : BLF partialsum-x = geglu(g, g) is hidden",
     {"y: ", "operand g is BLF partialsum-x"}},
    {"geglu_c2",
     "input g : BLF_x is gate\ninput u : BLF is up\ny : BLF_x = geglu(g, u) is hidden",
     {"y: ", "BLF_x [12,2,24] and BLF"}},
    {"gelu_c1",
     "input g : BLF partialsum-x is raw gate\ny : BLF partialsum-x = gelu(g) is hidden",
     {"y: ", "operand g is BLF partialsum-x"}},
    {"gelu_erf_c1",
     "input g : BLF partialsum-x is raw gate\ny : BLF partialsum-x = gelu_erf(g) is hidden",
     {"y: ", "operand g is BLF partialsum-x"}},
    {"store_c1",
     kP + "y : BLE_x partialsum-yz = store(p) is block_out",
     {"y: ", "operand p is BLE_x partialsum-yz"}},
    {"store_c1", kPos + "y : BL = store(pos) is stat ss", {"y: ", "operand pos is int32 BL"}},
    {"swiglu_c1",
     "input g : BLF partialsum-x is raw gate\ny : BLF partialsum-x = swiglu(g, g) is hidden",
     {"y: ", "operand g is BLF partialsum-x"}},
    {"swiglu_c1",
     kPos + "y : BL = swiglu(pos, pos) is stat ss",
     {"y: ", "operand pos is int32 BL"}},
    {"swiglu_c2",
     "input g : BLF_x is gate\ninput u : BLF is up\ny : BLF_x = swiglu(g, u) is hidden",
     {"y: ", "BLF_x [12,2,24] and BLF"}},
    {.label = "swiglu_c2",
     .program = "input g : BLF is gate\ninput u : BLF is up\n"
                "y : BLF = swiglu(g, u) is hidden",
     .words = {"y: ", "BLF [12,2,24] and BLF [12,2,12]"},
     .shapes = {{"u", {12, 2, 12}}}},
    {"norm_c1",
     "input x : BLE_x is in\ninput s : BL partialsum-x is stat ss\ninput g : E_x is weight norm\n"
     "y : BLE_x = norm(x, s, g) is norm",
     {"y: ", "operand s is BL partialsum-x"}},
    {"norm_c1",
     kX + kPos +
         "input g : E_zy is weight norm\n"
         "y : BLE_zy = norm(x, pos, g) is norm",
     {"y: ", "operand pos is int32 BL"}},
    {"norm_c2",
     "input x : BLE_x is in\ninput g : E_x is weight norm\ny : BLE_x = norm(x, g, g) is norm",
     {"y: ", "operand g is E_x", "BL are expected"}},
    {"norm_c2",
     "input u : BLF is up\ninput s : BL is stat ss\ninput g : E is weight norm\n"
     "y : BLF = norm(u, s, g) is up",
     {"y: ", "E is not the last dim of BLF"}},
    {"norm_c2",
     normed("BLE", "BL", "E") + "y : BLE = norm(x, s, s) is norm",
     {"y: ", "operand s is BL", "dims E are expected"}},
    {"norm_c3",
     "input x : BLE_x is in\ninput s : BL is stat ss\ninput g : E is weight norm\n"
     "y : BLE_x = norm(x, s, g) is norm",
     {"y: ", "BLE_x has E_x where E has E"}},
    {"norm_c3",
     normed("BLE", "B_xL", "E") + "y : BLE = norm(x, s, g) is norm",
     {"y: ", "BLE has B where B_xL has B_x"}},
    {.label = "norm_c3",
     .program = normed("BLE", "BL", "E") + "y : BLE = norm(x, s, g) is norm",
     .words = {"y: ", "BLE has L=2 where BL has L=4"},
     .shapes = {{"s", {12, 4}}}},
    {.label = "norm_c3",
     .program = normed("BLE", "BL", "E") + "y : BLE = norm(x, s, g) is norm",
     .words = {"y: ", "BLE has E=24 where E has E=12"},
     .shapes = {{"g", {12}}}},
    {"norm_c2",
     normed("BLE", "BL", "E") + "y : BLE = norm(x, s, g, s) is norm",
     {"y: ", "operand s is BL", "E are expected"}},
    {"norm_c3",
     normed("BLE", "BL", "E") + "input b : E_x is weight norm_bias\n"
                                "y : BLE = norm(x, s, g, b) is norm",
     {"y: ", "BLE has E where E_x has E_x"}},
};

INSTANTIATE_TEST_SUITE_P(LocalOps, TypingRule, ::testing::ValuesIn(kRows), named_by_label(kRows));

/// A value without dims cannot be declared in a program's text, only inferred.
TEST(TypingByHand, NormRefusesAValueWithoutDims) {
  Op op;
  op.kind = OpKind::norm;
  op.args = {"x", "s", "g"};
  const Type scalar{Layout(), {}};
  const std::string message = message_of([&] {
    infer(op, {scalar, scalar, scalar}, Torus::parse("1x1x1"));
  });
  EXPECT_TRUE(message.starts_with("norm_c2: ")) << message;
}

}  // namespace
}  // namespace shardproof
