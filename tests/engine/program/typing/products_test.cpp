// The rules of einsum and embed_lookup.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/engine/program/typing/broken_program.h"

namespace shardproof {
namespace {

const std::string kGate = "input x : BLE is in\ninput w : EF is weight w_gate\n";

/// A looped gather over x, y by `axes`, and the weight that takes it.
std::string looped(const std::string& from, const std::string& to, const std::string& axes) {
  return "input a : " + from + " is hidden\ninput w : F_zE_x is weight w_out\n" + "g : " + to +
         " = all_gather(a, F, " + axes + " loop one-way) is hidden\n";
}

const std::vector<BrokenProgram> kRows{
    {"einsum_c8",
     "input a : BLF_z is hidden\ninput w : F_zE_x is weight w_out\n"
     "y : BLE_x partialsum-z = einsum(BLF,FE->BLE; loop a, w) is raw ffn_out",
     {"y: ", "a is not the result of an all_gather with a loop"}},
    {"einsum_c8",
     "input a : BLF_zx is hidden\ninput w : F_zE_x is weight w_out\n"
     "g : BLF_z = all_gather(a, F, x) is hidden\n"
     "y : BLE_x partialsum-z = einsum(BLF,FE->BLE; loop g, w) is raw ffn_out",
     {"y: ", "g is not the result of an all_gather with a loop"}},
    {"einsum_c9",
     "input a : BLF_zx is hidden\ninput w : F_zE_xy is weight w_out\n"
     "g : BLF_z = all_gather(a, F, x loop one-way) is hidden\n"
     "v : F_zE_x = all_gather(w, E, y loop one-way) is weight w_out\n"
     "y : BLE_x partialsum-z = einsum(BLF,FE->BLE; loop g, loop v) is raw ffn_out",
     {"y: ", "the term of g and v loops over both"}},
    {"einsum_c10",
     looped("BLF_zy", "BLF_z", "y") +
         "y : BLE_x partialsum-z = einsum(BLF,FE->BLE; loop g, w) is raw ffn_out",
     {"y: ", "axis y of the ring of g", "BLE_x partialsum-z", "replicas would differ"}},
    {"einsum_c10",
     looped("BLF_zxy", "BLF_z", "xy") +
         "y : BLE_x partialsum-z = einsum(BLF,FE->BLE; loop g, w) is raw ffn_out",
     {"y: ", "axis y of the ring of g"}},
    {"einsum_c0",
     kX + "y : BLF = einsum(BLE->BLF; x, x) is raw gate",
     {"'BLE->BLF' is not a valid einsum"}},
    {"einsum_c1",
     kP + "input w : E_xF is weight w_gate\n"
          "y : BLF partialsum-x = einsum(BLE,EF->BLF; p, w) is raw gate",
     {"y: ", "operand p is BLE_x partialsum-yz"}},
    {"einsum_c1",
     kX + kPos + "y : BLE_zy = einsum(BL,BLE->BLE; pos, x) is in",
     {"y: ", "operand pos is int32 BL"}},
    {"einsum_c1",
     kX + kPos + "y : BLE_zy = einsum(BLE,BL->BLE; x, pos) is in",
     {"y: ", "operand pos is int32 BL"}},
    {"einsum_c2",
     kX + "input w : FE is weight w_out\n"
          "y : BLF = einsum(BLE,EF->BLF; x, w) is raw gate",
     {"y: ", "operand w is FE", "EF are expected"}},
    {"einsum_c2",
     kGate + "y : BLF = einsum(BLF,EF->BLE; x, w) is raw gate",
     {"y: ", "operand x is BLE", "BLF are expected"}},
    {"einsum_c3",
     kX + "input w : E_yzF is weight w_gate\n"
          "y : BLF partialsum-yz = einsum(BLE,EF->BLF; x, w) is raw gate",
     {"y: ", "BLE_zy has E_zy where E_yzF has E_yz"}},
    {.label = "einsum_c3",
     .program = kGate + "y : BLF = einsum(BLE,EF->BLF; x, w) is raw gate",
     .words = {"y: ", "BLE has E=24 where EF has E=12"},
     .shapes = {{"w", {12, 24}}}},
    {"einsum_c4",
     kX + "input w : E_zyF is weight w_gate\n"
          "y : BF partialsum-yz = einsum(BLE,EF->BF; x, w) is raw last gate",
     {"y: ", "L is in one operand only"}},
    {"einsum_c4",
     kGate + "y : BF = einsum(BLE,EF->BL; x, w) is raw gate",
     {"y: ", "F is in one operand only"}},
    {"einsum_c4",
     kGate + "y : BLQ = einsum(BLE,EF->BLQ; x, w) is raw gate",
     {"y: ", "Q of the result is in neither"}},
    {"einsum_c4",
     kGate + "y : BFL = einsum(BLE,EF->BFL; x, w) is raw gate",
     {"y: ", "shared, a's, b's: BLF"}},
    {"einsum_c4",
     "input x : BLE is in\ninput g : E is weight norm\n"
     "y : BLE = einsum(BLE,E->BLE; x, g) is in",
     {"y: ", "shared, a's, b's: EBL"}},
    {"einsum_c5",
     "input x : B_zLE is in\ninput w : EF_z is weight w_gate\n"
     "y : B_zLF = einsum(BLE,EF->BLF; x, w) is raw gate",
     {"y: ", "axis z would shard two dims", "B_zLE", "EF_z"}},
    {"einsum_c6",
     "input o : BLH_zQ is attn\ninput wo : H_zQE is weight wo\n"
     "input a : BLF_zy is hidden\ninput w : F_zyE is weight w_out\n"
     "y : BLE partialsum-yz = "
     "einsum(BLHQ,HQE->BLE + BLF,FE->BLE; o, wo; a, w) is raw block_out",
     {"y: ", "BLE partialsum-z", "BLE partialsum-yz"}},
    {"einsum_c6",
     "input o : BLHQ is attn\ninput wo : HQE is weight wo\n"
     "input a : BLF is hidden\ninput w : FE_x is weight w_out\n"
     "y : BLE = einsum(BLHQ,HQE->BLE + BLF,FE->BLE; o, wo; a, w) is raw block_out",
     {"y: ", "one term gives BLE, another BLE_x"}},
    {.label = "einsum_c6",
     .program = "input o : BLHQ is attn\ninput wo : HQE is weight wo\n"
                "input a : BLF is hidden\ninput w : FE is weight w_out\n"
                "y : BLE = einsum(BLHQ,HQE->BLE + BLF,FE->BLE; o, wo; a, w) is raw block_out",
     .words = {"y: ", "one term gives BLE, another BLE"},
     .shapes = {{"w", {24, 12}}}},
    {"einsum_c7",
     "input x : BLE is in\ninput g : E is weight norm\n"
     "y : BL = einsum(BLE,BLE->BL + BLE,E->BL; x, x; x, g) is stat ss",
     {"y: ", "B of the result BL"}},
    {"embed_lookup_c1",
     kPos + "input t : VE partialsum-x is weight embed\n"
            "y : BLE = embed_lookup(pos, t) is raw embed",
     {"y: ", "operand t is VE partialsum-x"}},
    {"embed_lookup_c1",
     "input i : BL partialsum-x is input ids\n"
     "input t : VE is weight embed\n"
     "y : BLE = embed_lookup(i, t) is raw embed",
     {"y: ", "operand i is BL partialsum-x"}},
    {"embed_lookup_c1",
     kPos + "y : BLE = embed_lookup(pos, pos) is raw embed",
     {"y: ", "operand pos is int32 BL"}},
    {"embed_lookup_c2",
     "input s : BL is stat ss\ninput t : VE is weight embed\n"
     "y : BLE = embed_lookup(s, t) is raw embed",
     {"y: ", "int32 BL, not f32 BL"}},
    {"embed_lookup_c2",
     kPos + "input w : EF is weight w_gate\n"
            "y : BLE = embed_lookup(pos, w) is raw embed",
     {"y: ", "operand w is EF", "VE are expected"}},
    {"embed_lookup_c2",
     kArgmax + "input t : VE is weight embed\n"
               "y : BCE = embed_lookup(gi, t) is raw embed",
     {"y: ", "int32 BL, not int32 BC"}},
    {"embed_lookup_c3",
     "input i : B_zL is input ids\ninput t : V_zyE is weight embed\n"
     "y : B_zLE partialsum-y = embed_lookup(i, t) is raw embed",
     {"y: ", "B_zL", "V_zyE"}},
    {"embed_lookup_c3",
     "input i : B_zL is input ids\ninput t : VE_z is weight embed\n"
     "y : B_zLE = embed_lookup(i, t) is raw embed",
     {"y: ", "B_zL", "VE_z"}},
};

INSTANTIATE_TEST_SUITE_P(Products, TypingRule, ::testing::ValuesIn(kRows), named_by_label(kRows));

}  // namespace
}  // namespace shardproof
