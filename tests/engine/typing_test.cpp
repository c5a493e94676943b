// Every rule of docs/typing.md, by its label: for each condition that it states, one program that
// breaks that condition and no earlier one.
#include "engine/program/typing.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <fstream>
#include <iterator>
#include <map>
#include <ostream>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "engine/program/program.h"
#include "tests/weights/expect_error.h"
#include "weights/error.h"

namespace shardproof {
namespace {

/// A program that is ill-typed, and what the message must name: step, axis or dim, layout.
struct Broken {
  std::string label;
  std::string program;
  std::vector<std::string> words;
  std::string torus = "2x2x3";
  std::map<std::string, Shape> shapes = {};  ///< of inputs that differ from kExtents
};

std::ostream& operator<<(std::ostream& out, const Broken& b) { return out << b.label; }

const std::map<char, std::int64_t> kExtents{{'B', 12}, {'L', 2},  {'M', 4}, {'E', 24}, {'F', 24},
                                            {'H', 12}, {'K', 12}, {'Q', 4}, {'V', 24}, {'C', 12},
                                            {'S', 3},  {'R', 4},  {'P', 9}, {'J', 2}};

const std::string kX = "input x : BLE_zy is in\n";
const std::string kP = "input p : BLE_x partialsum-yz is raw block_out\n";
const std::string kQ = "input q : BLH_zyxQ is q\n";
const std::string kPos = "input pos : BL is input pos\n";
const std::string kTables =
    "input cos : PJ is weight rope_cos\ninput sin : PJ is weight rope_sin\n";
const std::string kHeads = "input q : BLHQ is q\n";
const std::string kGate = "input x : BLE is in\ninput w : EF is weight w_gate\n";
const std::string kCache = "input c : BMK_zQ is previous k_cache\ninput k : BLK_zQ is k_rot\n";
const std::string kCaches = "input kc : BMK_zyQ is k_cache\ninput vc : BMK_zyQ is v_cache\n";
const std::string kAttention =
    "s : BLH_zyxM, m : BLH_zyx, e : BLH_zyxM, d : BLH_zyx, o : BLH_zyxQ = ";
const std::string kMeanings = " is score, max, exp, denom, attn\n";
const std::string kCandidates = "input cv : BC is stat candidates\n";

std::string input(const std::string& name, const std::string& layout, const std::string& meaning) {
  return "input " + name + " : " + layout + " is " + meaning + "\n";
}
std::string normed(const std::string& x, const std::string& s, const std::string& g) {
  return input("x", x, "in") + input("s", s, "stat ss") + input("g", g, "weight norm");
}
std::string tables(const std::string& cos, const std::string& sin) {
  return input("cos", cos, "weight rope_cos") + input("sin", sin, "weight rope_sin");
}
std::string grown(const std::string& c, const std::string& k, const std::string& pos) {
  return input("c", c, "previous k_cache") + input("k", k, "k_rot") +
         input("pos", pos, "input pos");
}
std::string attending(const std::string& q, const std::string& kc, const std::string& pos) {
  return input("q", q, "q") + input("kc", kc, "k_cache") + input("pos", pos, "input pos");
}

/// Integer candidates come only from local_argmax.
const std::string kArgmax = R"(input z : BV_zyx is logits
cv : BC_zyx, ci : BC_zyx = local_argmax(z) is stat candidates, stat indices
gv : BC = all_gather(cv, C, zyx) is stat candidates
gi : BC = all_gather(ci, C, zyx) is stat indices
)";

const Broken kWritten[] = {
    // notation
    {"torus_c0", kX, {"'2x2'"}, "2x2"},
    {"torus_c1", kX, {"2x0x3", "size 0"}, "2x0x3"},
    {"torus_c2", kX, {"64x64x2", "4096"}, "64x64x2"},
    {"axes_c1", kX + "y : BLE = all_gather(x, E, zw) is in", {"'w'", "'zw'"}},
    {"axes_c2", kX + "y : BLE = all_gather(x, E, zyz) is in", {"axis z", "'zyz'"}},
    {"layout_c0", "input x : BL-E is in", {"'-'", "'BL-E'"}},
    {"layout_c0", "input x : BLE_ is in", {"'BLE_'", "no axes"}},
    {"layout_c0", "input x : BLE partial-x is in", {"'BLE partial-x'", "no layout"}},
    {"layout_c1", "input x : BLX is in", {"'X'", "BLX"}},
    {"layout_c2", "input x : BLEB is in", {"dim B", "BLEB"}},
    {"layout_c3", "input x : B_xLE_yx is in", {"axis x", "B_xLE_yx"}},
    {"layout_c3", "input x : BLE_x partialsum-yx is in", {"axis x", "BLE_x partialsum-xy"}},
    {"local_c1",
     "input x : BLE_xyz is in",
     {"x: ", "E=18", "BLE_xyz", "xyz=12", "2x2x3"},
     "2x2x3",
     {{"x", {12, 2, 18}}}},
    {"local_c1",
     "input x : BLE is in\n"
     "y : BL_zE = slice(x, L, z) is in",
     {"y: ", "L=2", "BL_zE", "z=3"}},

    // programs
    {"program_c0", "x : BLE = all_gather(y, E, x)", {"line 1", "is MEANING"}},
    {"program_c1", kX + "y : BLE_zy = add(x, w) is in", {"y: ", "w is used before it is made"}},
    {"program_c1", kX + "output w", {"w is never made"}},
    {"program_c1", kX, {"input x : BLE_zy is not supplied"}, "2x2x3", {{"x", {12, 2}}}},
    {"program_c2", kX + "x : BLE_z = all_gather(x, E, y) is in", {"x is made twice"}},
    {"program_c2", kX + "input x : BLE is in", {"x is made twice"}},
    {"program_c3",
     kX + "y : BLE_y = all_gather(x, E, y) is in",
     {"y: ", "declared BLE_y", "all_gather(x, E, y)", "yields BLE_z"}},
    {"program_c4", kX + "y : BLE_zy = add(x) is in", {"y: ", "add(x) has 1", "takes 2"}},
    {"program_c4",
     kX + "y : BLE_z, w : BLE_z = all_gather(x, E, y) is in, in",
     {"y: ", "yields 1", "not 2"}},
    {"program_c5", kX + "y : BLE_z = all_gather(x, E, y) is gate", {"y is BLE_z", "gate", "BLF"}},
    {"program_c5", "input x : BLE is inn", {"nothing is called 'inn'"}},

    // collectives
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
     {"y: ", "yx is no order of zy"}},
    {"permute_axes_c3",
     kX + "y : BLE_z = permute_axes(x, E, zy->z) is in",
     {"y: ", "z is no order of zy"}},

    // row selection, slices and views
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
    {"last_c3",
     "input x : BLE is out\ny : BE = last(x) is last out",
     {"y: ", "L=0 of BLE"},
     "2x2x3",
     {{"x", {12, 0, 24}}}},
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
    {"merge_dim_c3",
     "input q : BLS_yR_zQ is q\ny : BLH_yzQ = merge_dim(q, SR->H) is q",
     {"y: ", "S=6 is more than the 2 blocks"},
     "2x2x3",
     {{"q", {12, 2, 6, 6, 4}}}},

    // products
    {"einsum_c0", kX + "y : BLF = einsum(BLE->BLF; x, x) is raw gate", {"'BLE->BLF' is no einsum"}},
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
     {"y: ", "operand w is FE", "EF are wanted"}},
    {"einsum_c2",
     kGate + "y : BLF = einsum(BLF,EF->BLE; x, w) is raw gate",
     {"y: ", "operand x is BLE", "BLF are wanted"}},
    {"einsum_c3",
     kX + "input w : E_yzF is weight w_gate\n"
          "y : BLF partialsum-yz = einsum(BLE,EF->BLF; x, w) is raw gate",
     {"y: ", "BLE_zy has E_zy where E_yzF has E_yz"}},
    {"einsum_c3",
     kGate + "y : BLF = einsum(BLE,EF->BLF; x, w) is raw gate",
     {"y: ", "BLE has E=24 where EF has E=12"},
     "2x2x3",
     {{"w", {12, 24}}}},
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
     {"y: ", "one term yields BLE, another BLE_x"}},
    {"einsum_c6",
     "input o : BLHQ is attn\ninput wo : HQE is weight wo\n"
     "input a : BLF is hidden\ninput w : FE is weight w_out\n"
     "y : BLE = einsum(BLHQ,HQE->BLE + BLF,FE->BLE; o, wo; a, w) is raw block_out",
     {"y: ", "one term yields BLE, another BLE"},
     "2x2x3",
     {{"w", {24, 12}}}},
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
     {"y: ", "operand w is EF", "VE are wanted"}},
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

    // local ops
    {"add_c1", kPos + "y : BL = add(pos, pos) is stat ss", {"y: ", "operand pos is int32 BL"}},
    {"add_c1",
     kP + "y : BLE_x partialsum-yz = add(p, p) is raw block_out",
     {"y: ", "operand p is BLE_x partialsum-yz"}},
    {"add_c2",
     kX + "input w : BLE_yz is in\ny : BLE_zy = add(x, w) is in",
     {"y: ", "BLE_zy [12,2,24] and BLE_yz"}},
    {"add_c2",
     kX + "input w : BLE_zy is in\n"
          "y : BLE_zy = add(x, w) is in",
     {"y: ", "BLE_zy [12,2,24] and BLE_zy [12,4,24]"},
     "2x2x3",
     {{"w", {12, 4, 24}}}},
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
    {"scale_c3",
     kX + "input g : E_zy is weight norm\n"
          "y : BLE_zy = scale(x, g) is in",
     {"y: ", "BLE_zy has E=24 where E_zy has E=12"},
     "2x2x3",
     {{"g", {12}}}},
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
    {"bias_c3",
     kX + "input g : E_zy is weight norm\ny : BLE_zy = bias(x, g) is in",
     {"y: ", "BLE_zy has E=24 where E_zy has E=12"},
     "2x2x3",
     {{"g", {12}}}},
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
    {"swiglu_c2",
     "input g : BLF is gate\ninput u : BLF is up\n"
     "y : BLF = swiglu(g, u) is hidden",
     {"y: ", "BLF [12,2,24] and BLF [12,2,12]"},
     "2x2x3",
     {{"u", {12, 2, 12}}}},
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
     {"y: ", "operand g is E_x", "BL are wanted"}},
    {"norm_c2",
     "input u : BLF is up\ninput s : BL is stat ss\ninput g : E is weight norm\n"
     "y : BLF = norm(u, s, g) is up",
     {"y: ", "E is not the last dim of BLF"}},
    {"norm_c2",
     normed("BLE", "BL", "E") + "y : BLE = norm(x, s, s) is norm",
     {"y: ", "operand s is BL", "dims E are wanted"}},
    {"norm_c3",
     "input x : BLE_x is in\ninput s : BL is stat ss\ninput g : E is weight norm\n"
     "y : BLE_x = norm(x, s, g) is norm",
     {"y: ", "BLE_x has E_x where E has E"}},
    {"norm_c3",
     normed("BLE", "B_xL", "E") + "y : BLE = norm(x, s, g) is norm",
     {"y: ", "BLE has B where B_xL has B_x"}},
    {"norm_c3",
     normed("BLE", "BL", "E") + "y : BLE = norm(x, s, g) is norm",
     {"y: ", "BLE has L=2 where BL has L=4"},
     "2x2x3",
     {{"s", {12, 4}}}},
    {"norm_c3",
     normed("BLE", "BL", "E") + "y : BLE = norm(x, s, g) is norm",
     {"y: ", "BLE has E=24 where E has E=12"},
     "2x2x3",
     {{"g", {12}}}},
    {"norm_c2",
     normed("BLE", "BL", "E") + "y : BLE = norm(x, s, g, s) is norm",
     {"y: ", "operand s is BL", "E are wanted"}},
    {"norm_c3",
     normed("BLE", "BL", "E") + "input b : E_x is weight norm_bias\n"
                                "y : BLE = norm(x, s, g, b) is norm",
     {"y: ", "BLE has E where E_x has E_x"}},
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
     {"y: ", "operand gi is BC", "BL are wanted"}},
    {"rope_c2",
     kHeads + kPos + kTables + "y : BLHQ = rope(q, pos, q, sin) is q_rot",
     {"y: ", "operand q is BLHQ", "PJ are wanted"}},
    {"rope_c2",
     kHeads + kPos + kTables + "y : BLHQ = rope(q, pos, cos, q) is q_rot",
     {"y: ", "operand q is BLHQ", "PJ are wanted"}},
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
    {"rope_c4",
     kHeads + kPos + kTables + "y : BLHQ = rope(q, pos, cos, sin) is q_rot",
     {"y: ", "BLHQ has L=2 where BL has L=1"},
     "2x2x3",
     {{"pos", {12, 1}}}},
    {"rope_c4",
     kHeads + kPos + kTables + "y : BLHQ = rope(q, pos, cos, sin) is q_rot",
     {"y: ", "rotates 6 channels of Q=4"},
     "2x2x3",
     {{"cos", {9, 3}}, {"sin", {9, 2}}}},
    {"rope_c4",
     kHeads + kPos + kTables + "y : BLHQ = rope(q, pos, cos, sin) is q_rot",
     {"y: ", "rotates 6 channels of Q=4"},
     "2x2x3",
     {{"cos", {9, 2}}, {"sin", {9, 3}}}},
    {"rope_c4",
     kHeads + kPos + kTables + "y : BLHQ = rope(q, pos, cos, sin) is q_rot",
     {"y: ", "cos and sin differ", "P=9 J=2", "P=9 J=1"},
     "2x2x3",
     {{"sin", {9, 1}}}},
    {"rope_c4",
     kHeads + kPos + kTables + "y : BLHQ = rope(q, pos, cos, sin) is q_rot",
     {"y: ", "cos and sin differ", "P=9 J=2", "P=8 J=2"},
     "2x2x3",
     {{"sin", {8, 2}}}},
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
     {"y: ", "operand k is BLK_zQ", "BMKQ are wanted"}},
    {"append_c2",
     kCache + kPos + "y : BMK_zQ = append(c, c, pos) is k_cache",
     {"y: ", "operand c is BMK_zQ", "BLKQ are wanted"}},
    {"append_c2",
     kCache + kArgmax + "y : BMK_zQ = append(c, k, gi) is k_cache",
     {"y: ", "operand gi is BC", "BL are wanted"}},
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
    {"append_c4",
     kCache + kPos + "y : BMK_zQ = append(c, k, pos) is k_cache",
     {"y: ", "BMK_zQ has K=12 where BLK_zQ has K=6"},
     "2x2x3",
     {{"k", {12, 2, 6, 4}}}},
    {"append_c4",
     grown("BMKQ", "BLKQ_x", "BL") + "y : BMK_zQ = append(c, k, pos) is k_cache",
     {"y: ", "BMKQ has Q where BLKQ_x has Q_x"}},
    {"append_c4",
     grown("BMKQ", "BLKQ", "B_xL") + "y : BMKQ = append(c, k, pos) is k_cache",
     {"y: ", "BLKQ has B where B_xL has B_x"}},
    {"append_c4",
     kCache + kPos + "y : BMK_zQ = append(c, k, pos) is k_cache",
     {"y: ", "BLK_zQ has L=2 where BL has L=1"},
     "2x2x3",
     {{"pos", {12, 1}}}},
    {"attend_c1",
     "input q : BLH_zyxQ is q_rot\ninput kc : BMK_zyQ partialsum-x is k_cache\n" + kPos +
         kAttention + "attend(q, kc, kc, pos)" + kMeanings,
     {"s: ", "operand kc is BMK_zyQ partialsum-x"}},
    {"attend_c1",
     attending("BLHQ partialsum-x", "BMKQ", "BL") + kAttention + "attend(q, kc, kc, pos)" +
         kMeanings,
     {"s: ", "operand q is BLHQ partialsum-x"}},
    {"attend_c1",
     kQ + "input kc : BMK_zyQ is k_cache\ninput vc : BMK_zyQ partialsum-x is v_cache\n" + kPos +
         kAttention + "attend(q, kc, vc, pos)" + kMeanings,
     {"s: ", "operand vc is BMK_zyQ partialsum-x"}},
    {"attend_c1",
     attending("BLHQ", "BMKQ", "BL partialsum-x") + kAttention + "attend(q, kc, kc, pos)" +
         kMeanings,
     {"s: ", "operand pos is BL partialsum-x"}},
    {"attend_c1",
     kQ + kCaches + kPos + kAttention + "attend(pos, kc, vc, pos)" + kMeanings,
     {"s: ", "operand pos is int32 BL"}},
    {"attend_c1",
     kQ + kCaches + kPos + kAttention + "attend(q, pos, vc, pos)" + kMeanings,
     {"s: ", "operand pos is int32 BL"}},
    {"attend_c1",
     kQ + kCaches + kPos + kAttention + "attend(q, kc, pos, pos)" + kMeanings,
     {"s: ", "operand pos is int32 BL"}},
    {"attend_c2",
     kQ + "input k : BLK_zyQ is k_rot\n" + kPos + kAttention + "attend(q, k, k, pos)" + kMeanings,
     {"s: ", "operand k is BLK_zyQ", "BMKQ are wanted"}},
    {"attend_c2",
     kQ + kCaches + kPos + kAttention + "attend(kc, kc, vc, pos)" + kMeanings,
     {"s: ", "operand kc is BMK_zyQ", "BLHQ are wanted"}},
    {"attend_c2",
     kQ + kCaches + kArgmax + kAttention + "attend(q, kc, vc, gi)" + kMeanings,
     {"s: ", "operand gi is BC", "BL are wanted"}},
    {"attend_c2",
     kQ + kCaches + "input s0 : BL is stat ss\n" + kAttention + "attend(q, kc, vc, s0)" + kMeanings,
     {"s: ", "int32 BL, not f32 BL"}},
    {"attend_c3",
     kQ + "input kc : BMK_zyQ is k_cache\ninput vc : BMK_zQ is v_cache\n" + kPos + kAttention +
         "attend(q, kc, vc, pos)" + kMeanings,
     {"s: ", "BMK_zyQ and BMK_zQ"}},
    {"attend_c3",
     kQ + kCaches + kPos + kAttention + "attend(q, kc, vc, pos)" + kMeanings,
     {"s: ", "the caches differ"},
     "2x2x3",
     {{"vc", {12, 8, 12, 4}}}},
    {"attend_c3",
     kQ + kCaches + kPos + kAttention + "attend(q, kc, q, pos)" + kMeanings,
     {"s: ", "BMK_zyQ and BLH_zyxQ"}},
    {"attend_c4",
     kQ + "input kc : BM_yKQ is k_cache\n" + kPos + kAttention + "attend(q, kc, kc, pos)" +
         kMeanings,
     {"s: ", "dim M of BM_yKQ must not be sharded"}},
    {"attend_c4",
     attending("BL_xHQ", "BM_xKQ", "BL_x") + kAttention + "attend(q, kc, kc, pos)" + kMeanings,
     {"s: ", "dim M of BM_xKQ must not be sharded"}},
    {"attend_c4",
     attending("BLHQ_x", "BMKQ_x", "BL") + kAttention + "attend(q, kc, kc, pos)" + kMeanings,
     {"s: ", "dim Q of BLHQ_x must not be sharded"}},
    {"attend_c4",
     attending("BLHQ", "BMKQ_x", "BL") + kAttention + "attend(q, kc, kc, pos)" + kMeanings,
     {"s: ", "dim Q of BMKQ_x must not be sharded"}},
    {"attend_c5",
     kQ + "input kc : B_xMKQ is k_cache\n" + kPos + kAttention + "attend(q, kc, kc, pos)" +
         kMeanings,
     {"s: ", "BLH_zyxQ has B where B_xMKQ has B_x"}},
    {"attend_c5",
     kQ + kCaches + kPos + kAttention + "attend(q, kc, vc, pos)" + kMeanings,
     {"s: ", "BLH_zyxQ has Q=4 where BMK_zyQ has Q=8"},
     "2x2x3",
     {{"kc", {12, 4, 12, 8}}, {"vc", {12, 4, 12, 8}}}},
    {"attend_c5",
     attending("BLHQ", "BMKQ", "B_xL") + kAttention + "attend(q, kc, kc, pos)" + kMeanings,
     {"s: ", "BLHQ has B where B_xL has B_x"}},
    {"attend_c5",
     attending("BLHQ", "BMKQ", "BL_x") + kAttention + "attend(q, kc, kc, pos)" + kMeanings,
     {"s: ", "BLHQ has L where BL_x has L_x"}},
    {"attend_c5",
     attending("BL_xHQ", "BMKQ", "BL") + kAttention + "attend(q, kc, kc, pos)" + kMeanings,
     {"s: ", "BL_xHQ has L_x where BL has L"}},
    {"attend_c5",
     kQ + kCaches + kPos + kAttention + "attend(q, kc, vc, pos)" + kMeanings,
     {"s: ", "BLH_zyxQ has L=2 where BL has L=1"},
     "2x2x3",
     {{"pos", {12, 1}}}},
    {"attend_c6",
     kQ + "input kc : BMK_yQ is k_cache\n" + kPos + kAttention + "attend(q, kc, kc, pos)" +
         kMeanings,
     {"s: ", "BMK_yQ", "no prefix", "BLH_zyxQ"}},
    {"attend_c6",
     attending("BLH_zQ", "BMK_zyQ", "BL") + kAttention + "attend(q, kc, kc, pos)" + kMeanings,
     {"s: ", "BMK_zyQ", "no prefix", "BLH_zQ"}},
    {"attend_c7",
     kQ + kCaches + kPos + kAttention + "attend(q, kc, vc, pos)" + kMeanings,
     {"s: ", "H=12 is not divisible by K=18"},
     "2x2x3",
     {{"kc", {12, 4, 18, 4}}, {"vc", {12, 4, 18, 4}}}},
    {"local_argmax_c1",
     "input z : BV partialsum-x is raw logits\n"
     "v : BC, i : BC = local_argmax(z) is stat candidates, stat indices",
     {"v: ", "operand z is BV partialsum-x"}},
    {"local_argmax_c1",
     kPos + "v : BC, i : BC = local_argmax(pos) is stat candidates, stat indices",
     {"v: ", "operand pos is int32 BL"}},
    {"local_argmax_c2",
     kX + "v : BC, i : BC = local_argmax(x) is stat candidates, stat indices",
     {"v: ", "operand x is BLE_zy", "BV are wanted"}},
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
     {"t: ", "operand x is BLE_zy", "BC are wanted"}},
    {"argmax_c2",
     kArgmax + kPos + "t : B = argmax(gv, pos) is token",
     {"t: ", "operand pos is BL", "BC are wanted"}},
    {"argmax_c3",
     kArgmax + "t : B = argmax(cv, ci) is token",
     {"t: ", "dim C of BC_zyx must not be sharded"}},
    {"argmax_c4",
     kArgmax + "input wide : B_xC is stat candidates\nt : B_x = argmax(wide, gi) is token",
     {"t: ", "B_xC has B_x where BC has B"}},
    {"argmax_c4",
     kArgmax + "t : B = argmax(gv, ci) is token",
     {"t: ", "BC has C where BC_zyx has C_zyx"}},
    {"argmax_c4",
     kArgmax + "input w : BC is stat candidates\n"
               "t : B = argmax(w, gi) is token",
     {"t: ", "BC has C=24 where BC has C=12"},
     "2x2x3",
     {{"w", {12, 24}}}},
};

/// Every rule of rope holds of the interleaved one too.
const std::vector<Broken> kBroken = [] {
  std::vector<Broken> all(std::begin(kWritten), std::end(kWritten));
  for (Broken broken : kWritten) {
    const auto call = broken.program.find("= rope(");
    if (call == std::string::npos) continue;
    broken.label.replace(0, 4, "rope_interleaved");
    broken.program.replace(call, 7, "= rope_interleaved(");
    all.push_back(broken);
  }
  return all;
}();

/// Parses and checks, with the extents of kExtents for every input that names no shape.
void parse_and_check(const Broken& b) {
  const Torus torus = Torus::parse(b.torus);
  const Program program = parse_program("test", b.program);
  std::map<std::string, Shape> shapes = b.shapes;
  for (const Result& input : program.inputs) {
    if (shapes.contains(input.name)) continue;
    for (const Layout::Dim& dim : input.layout.dims())
      shapes[input.name].push_back(kExtents.at(dim.letter));
  }
  check(program, shapes, torus);
}

class TypingRule : public ::testing::TestWithParam<Broken> {};

TEST_P(TypingRule, IsEnforcedAndNamesWhatBreaksIt) {
  const std::string message = message_of([&] { parse_and_check(GetParam()); });
  EXPECT_TRUE(message.starts_with(GetParam().label + ": ")) << message;
  EXPECT_EQ(message.find('\n'), std::string::npos) << message;
  for (const std::string& word : GetParam().words)
    EXPECT_NE(message.find(word), std::string::npos) << "'" << word << "' is not in: " << message;
}

/// The label, and from its second row on the row's number: all_gather_c1, all_gather_c1_2.
std::string test_name(std::size_t row) {
  const std::string& label = kBroken[row].label;
  const auto count =
      std::count_if(std::begin(kBroken), std::begin(kBroken) + static_cast<std::ptrdiff_t>(row) + 1,
                    [&](const Broken& b) { return b.label == label; });
  return count == 1 ? label : label + "_" + std::to_string(count);
}

INSTANTIATE_TEST_SUITE_P(, TypingRule, ::testing::ValuesIn(kBroken),
                         [](const auto& given) { return test_name(given.index); });

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

/// Queries may be cut over their positions: every chip has all keys. The position's cut is theirs.
TEST(TypingByHand, AttendTakesQueriesCutOverL) {
  const std::string inputs = attending("BL_xH_zyQ", "BMK_zQ", "BL_x");
  const std::string results =
      "s : BL_xH_zyM, m : BL_xH_zy, e : BL_xH_zyM, d : BL_xH_zy, o : BL_xH_zyQ = ";
  EXPECT_EQ(message_of([&] {
              parse_and_check({"", inputs + results + "attend(q, kc, kc, pos)" + kMeanings, {}});
            }),
            "");
  EXPECT_NE(message_of([&] {
              parse_and_check({"", inputs + kAttention + "attend(q, kc, kc, pos)" + kMeanings, {}});
            }).find("program_c3: s: "),
            std::string::npos);
}

TEST(TypingDocument, NamesExactlyTheRulesThatAreTested) {
  std::ifstream file(SHARDPROOF_TYPING_DOC);
  ASSERT_TRUE(file) << SHARDPROOF_TYPING_DOC;
  std::stringstream text;
  text << file.rdbuf();
  const std::string document = text.str();
  std::set<std::string> documented, tested;
  const std::regex label("`([a-z_]+_c[0-9])`");
  for (std::sregex_iterator at(document.begin(), document.end(), label), end; at != end; ++at)
    documented.insert((*at)[1]);
  for (const Broken& broken : kBroken) tested.insert(broken.label);
  EXPECT_EQ(documented, tested);
}

}  // namespace
}  // namespace shardproof
