#include "engine/layouts/loops.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <regex>
#include <sstream>
#include <string>
#include <vector>

#include "engine/program/count.h"
#include "engine/run/plan_types.h"
#include "weights/base/error.h"

namespace shardproof {
namespace {

Case small(const std::string& more, const std::string& heads = "") {
  return parse_case(
      fmt::format("torus=4x2x3 model=palm-tiny,{}layers=1,E=24,F=24,H=24,Q=24,V=24 batch=24 "
                  "prompt=2 gen=2 {}",
                  heads, more));
}

std::string layer(const LayoutTable& table, const Case& c) {
  return print_program(
      partition(table, c.model, extents_of(c.model, c.batch, c.prompt), c.torus, c.numerics).layer);
}
std::string layer(const std::string& table, const std::string& more = "",
                  const std::string& heads = "") {
  return layer(parse_layouts("layouts t\n" + table, "t.layouts").at(0), small(more, heads));
}

/// The statements of a program that have a loop.
std::vector<std::string> looped(const std::string& program) {
  std::vector<std::string> all;
  std::istringstream lines(program);
  for (std::string line; std::getline(lines, line);)
    if (line.find("loop ") != std::string::npos) all.push_back(line.substr(0, line.find(" is ")));
  return all;
}

using Lines = std::vector<std::string>;

const std::string kStream = "in : BLE_xzy -> BLE_x\n", kWeights = "weights : E_x F_zy H_zy\n",
                  kHidden = "hidden : BLF_zyx\n", kAttend = "attend : BLH_zyxQ\n";

TEST(Loops, ANoteOnAGatherLoopsTheContractionThatTakesIt) {
  EXPECT_EQ(
      looped(layer(kStream + kWeights + kAttend + "hidden : BLF_zyx -> BLF_zy [loop both-half]\n")),
      (Lines{"ag : BLF_zy = all_gather(a, F, x loop both-half)",
             "y : BLE_x partialsum-yz = einsum(BLHQ,HQE->BLE + BLF,FE->BLE; og, wo; loop ag, "
             "w_out)"}));
}

TEST(Loops, ANoteOnTheFirstLayoutIsOnTheArrowThatEndsThere) {
  EXPECT_EQ(looped(layer(kStream + kWeights + kAttend + "hidden : BLF_zyx [loop one-way]\n")),
            (Lines{"hr : BLF_zyx = reduce_scatter(h, F, x loop one-way)",
                   "ur : BLF_zyx = reduce_scatter(u, F, x loop one-way)"}));
  EXPECT_EQ(
      looped(layer("in : BLE_xzy [loop both-full] -> BLE_x\n" + kWeights + kAttend + kHidden)),
      (Lines{"yr : BLE_xzy = reduce_scatter(y, E, zy loop both-full)"}));
  // Of keys and values where they can be: one head is replicated, and all-reduced.
  EXPECT_EQ(looped(layer(kStream + kWeights + "attend : BLH_zyxQ [loop one-way]\n" + kHidden)),
            (Lines{"qr : BLH_zyxQ = reduce_scatter(q, H, x loop one-way)"}));
  EXPECT_EQ(looped(layer(kStream + kWeights + "attend : BLH_zyxQ [loop one-way]\n" + kHidden, "",
                         "K=24,")),
            (Lines{"qr : BLH_zyxQ = reduce_scatter(q, H, x loop one-way)",
                   "kr : BLK_zyxQ = reduce_scatter(k, K, x loop one-way)",
                   "vr : BLK_zyxQ = reduce_scatter(v, K, x loop one-way)"}));
}

TEST(Loops, ANoteMayBeOnAnArrowThatTheLineBeginsWith) {
  EXPECT_EQ(
      looped(layer(kStream + kWeights + kHidden + kAttend + "attn : BLH_zyQ [loop one-way]\n")),
      (Lines{"og : BLH_zyQ = all_gather(o, H, x loop one-way)",
             "y : BLE_x partialsum-yz = einsum(BLHQ,HQE->BLE + BLF,FE->BLE; loop og, wo; ag, "
             "w_out)"}));
}

TEST(Loops, ANoteOnTheStreamIsOnTheOutputsOfBothHalvesOfASerialBlock) {
  EXPECT_EQ(looped(layer("in : BLE_xzy [loop both-full] -> BLE_x\n" + kWeights + kAttend + kHidden,
                         "block=serial")),
            (Lines{"yr : BLE_xzy = reduce_scatter(y, E, zy loop both-full)",
                   "zr : BLE_xzy = reduce_scatter(z, E, zy loop both-full)"}));
}

const std::string kNormFirst = "in : BLE_xzy\nnorm : BLE_xzy\n" + kWeights + kAttend + kHidden;

// One gather serves several uses: a note of any of them is on it, and they agree.
TEST(Loops, ANoteOfAUseIsOnTheGatherThatItShares) {
  EXPECT_EQ(looped(layer(kNormFirst + "norm for q : BLE_x [loop one-way]\n")).front(),
            "xng : BLE_x = all_gather(xn, E, zy loop one-way)");
  EXPECT_EQ(looped(layer(kNormFirst + "norm for gate : BLE_x [loop both-half]\n")).front(),
            "xng : BLE_x = all_gather(xn, E, zy loop both-half)");
  const Lines none =
      looped(layer(kNormFirst + "norm for gate : BLE_x [loop none]\n", "loop=one-way"));
  EXPECT_TRUE(std::none_of(none.begin(), none.end(), [](const std::string& line) {
    return line.starts_with("xng");
  })) << fmt::format("{}", fmt::join(none, "\n"));
}

// One ring for all that take it; keys and values, here replicated along it, take the buffer.
TEST(Loops, OneRingIsSharedAndKeysAndValuesTakeTheBuffer) {
  const std::string text = layer("in : BLE_xzy\nnorm : BLE_xzy -> BLE_x [loop one-way]\n" +
                                 kWeights + kAttend + kHidden);
  EXPECT_EQ(looped(text), (Lines{"xng : BLE_x = all_gather(xn, E, zy loop one-way)",
                                 "q : BLH_zyQ partialsum-x = einsum(BLE,EHQ->BLHQ; loop xng, wq)",
                                 "h : BLF_zy partialsum-x = einsum(BLE,EF->BLF; loop xng, w_gate)",
                                 "u : BLF_zy partialsum-x = einsum(BLE,EF->BLF; loop xng, w_up)"}));
  EXPECT_NE(text.find("einsum(BLE,EKQ->BLKQ; xng, wk)"), std::string::npos);
}

TEST(Loops, WeightsHaveRingsToo) {
  const Lines all =
      looped(layer("in : B_xLE_zy -> B_xLE\nweights : E_x F_zy H_zy -> F_zy H_zy [loop both-half]\n"
                   "attend : B_xLH_zyQ\n"));
  // The gathers of seven matrices and six contractions: block_out takes two of them.
  EXPECT_EQ(all.size(), 13U) << fmt::format("{}", fmt::join(all, "\n"));
  EXPECT_EQ(all[0], "wq_g : EH_zyQ = all_gather(wq, E, x loop both-half)");
  EXPECT_EQ(all[1], "q : B_xLH_zyQ = einsum(BLE,EHQ->BLHQ; xn, loop wq_g)");
}

// Of one head the matrices of keys and values have no axes to gather.
TEST(Loops, ANoteOnAllMatricesIsOnThoseOfKeysAndValuesThatHaveARing) {
  const std::string table =
      "in : B_xyLE_z -> B_xyLE\nweights : E_x F_zy H_zy -> F_zy H_zy -> F_z H_z [loop one-way]\n"
      "attend : B_xyLH_zQ\n";
  const auto is_in = [](const Lines& lines, const std::string& word) {
    return std::any_of(lines.begin(), lines.end(), [&](const std::string& line) {
      return line.find("all_gather(" + word) != std::string::npos;
    });
  };
  const Lines one_head = looped(layer(table)), all_heads = looped(layer(table, "", "K=24,"));
  EXPECT_TRUE(is_in(one_head, "wq_")) << fmt::format("{}", fmt::join(one_head, "\n"));
  EXPECT_FALSE(is_in(one_head, "wk_"));
  EXPECT_TRUE(is_in(all_heads, "wk_"));
}

TEST(Loops, TheCaseLoopsWhatCanBeAndNotesWin) {
  const std::string notes = "hidden : BLF_zyx [loop none] -> BLF_zy [loop one-way]\n";
  EXPECT_EQ(looped(layer(kStream + kWeights + kAttend + notes, "loop=both-half")),
            (Lines{"qr : BLH_zyxQ = reduce_scatter(q, H, x loop both-half)",
                   "og : BLH_zyQ = all_gather(o, H, x loop both-half)",
                   "ag : BLF_zy = all_gather(a, F, x loop one-way)",
                   "y : BLE_x partialsum-yz = einsum(BLHQ,HQE->BLE + BLF,FE->BLE; loop og, wo; "
                   "loop ag, w_out)",
                   "yr : BLE_xzy = reduce_scatter(y, E, zy loop both-half)"}));
  EXPECT_EQ(looped(layer(kStream + kWeights + kAttend + kHidden)), Lines{});
}

void expect_refused(const std::string& table, const std::vector<std::string>& words,
                    const std::string& more = "") {
  try {
    layer(table, more);
    ADD_FAILURE() << table << "is not refused";
  } catch (const Error& error) {
    EXPECT_EQ(error.label(), "layouts_c10") << error.what();
    for (const std::string& word : words)
      EXPECT_NE(error.message().find(word), std::string::npos) << error.what() << "\n" << word;
    EXPECT_NE(error.message().find("leave the note out"), std::string::npos) << error.what();
  }
}

TEST(Loops, ANoteThatCannotBeIsRefused) {
  // The axis is not there to be gathered.
  expect_refused(kStream + kWeights + kAttend + "hidden : BLF_zyx -> BLF_zyx [loop one-way]\n",
                 {"t.layouts line 5", "hidden", "has no ring", "BLF_zyx"});
  expect_refused("in : B_xyzLE [loop one-way]\nweights : E_x F_zy H_zy -> F H\nattend : B_xyzLHQ\n",
                 {"t.layouts line 2", "block_out", "has no ring"});
  // The norm is between the gather and the contractions.
  expect_refused("in : BLE_xzy -> BLE_x [loop both-half]\n" + kWeights + kAttend + kHidden,
                 {"t.layouts line 2", "in: BLE_xzy -> BLE_x [loop both-half]", "no contraction"});
  // Replicas over y would differ.
  expect_refused(
      "in : BLE_xzy\nnorm : BLE_xzy -> BLE_x [loop one-way]\nweights : E_x F_z H_z\n"
      "attend : BLH_zQ\nhidden : BLF_zx\n",
      {"t.layouts line 3", "axis y of its ring", "replicas would differ"});
  // Keys alone take it.
  expect_refused(
      "in : BLE_xzy\nnorm : BLE_xzy -> BLE_x\nnorm for k : BLE_xzy -> BLE_xz [loop "
      "one-way] -> BLE_x\n" +
          kWeights + kAttend + kHidden,
      {"norm: BLE_xzy -> BLE_xz", "no contraction takes"});
  // Whole on every chip: an all_reduce is not a ring.
  expect_refused(
      "in : BLE_x\nweights : E_x F_zy H_zy\nattend : BLH_zyQ [loop one-way]\n"
      "hidden : BLF_zy\n",
      {"all_reduce", "reduce_scatter"});
}

TEST(Loops, NotesOfOneGatherThatDifferAreRefused) {
  try {
    layer(kNormFirst +
          "norm for q : BLE_x [loop one-way]\nnorm for gate : BLE_x [loop both-half]\n");
    ADD_FAILURE();
  } catch (const Error& error) {
    EXPECT_EQ(error.message(),
              "t.layouts line 8: norm: BLE_x [loop both-half], and [loop one-way] in line 7: one "
              "gather serves both uses; write the same note in both (docs/layouts.md)");
  }
}

// What is said of keys and values alone is meant.
TEST(Loops, ANoteOnTheLineOfKeysAndValuesIsStrict) {
  expect_refused(kStream + kWeights + kAttend + kHidden + "attend for k, v : BLKQ [loop one-way]\n",
                 {"all_reduce", "reduce_scatter"});
}

TEST(Loops, OneTermHasOneRing) {
  // Both the activation and the weight are gathered; each note alone is legal.
  const std::string stream =
      "in : B_zLE_xy -> B_zLE_x\nwq : E_xH_yQ\nwk, wv : E_xKQ\nwo : H_yQE_x\n"
      "w_gate, w_up : E_xF_y\nattend : B_zLH_yxQ\n";
  const auto both = [&](const std::string& of_w, const std::string& of_a) {
    return stream + "w_out : F_yE_xz -> F_yE_x" + of_w + "\nhidden : B_zLF_yx -> B_zLF_y" + of_a +
           "\n";
  };
  const std::string serial = "block=serial";
  EXPECT_EQ(looped(layer(both(" [loop one-way]", ""), serial)).size(), 2U);
  EXPECT_EQ(looped(layer(both("", " [loop one-way]"), serial)).size(), 2U);
  expect_refused(both(" [loop one-way]", " [loop one-way]"), {"has a ring of its own"}, serial);
  // By the case, the activation's.
  const Lines all = looped(layer(both("", ""), serial + " loop=one-way"));
  EXPECT_NE(std::find(all.begin(), all.end(),
                      "z : B_zLE_x partialsum-y = einsum(BLF,FE->BLE; loop ag, w_out_g)"),
            all.end())
      << fmt::format("{}", fmt::join(all, "\n"));
}

/// Without its loops a program is that of the case without: types, values, and what is sent.
TEST(Loops, ChangeNothingButTheOrder) {
  for (const char* torus : {"4x2x3", "1x5x2", "3x3x3", "2x1x4", "1x1x1"})
    for (const char* word : {"one-way", "both-full", "both-half"})
      for (const Strategy& s : all_strategies()) {
        const bool prime = std::string(torus) == "1x5x2";
        Case c = parse_case(
            fmt::format("torus={} model=palm-tiny,layers=1,E={},F={},H={},K={},Q=60,V={} "
                        "block=serial batch=1080 "
                        "prompt=1080 gen=2",
                        torus, prime ? 80 : 216, prime ? 80 : 216, prime ? 40 : 216,
                        prime ? 40 : 12, prime ? 80 : 216));
        c.prefill = s;
        c.decode = decodes(s) ? s : c.decode;
        const PartitionedLayer plain = partitioned(c, s, Phase::prefill);
        const Ledger without =
            count(plain.layer, check(plain.layer, c, c.prompt, 0), c.torus, {}, c.model);
        c.numerics.loop = parse_loop(word);
        const PartitionedLayer made = partitioned(c, s, Phase::prefill);
        const Ledger with =
            count(made.layer, check(made.layer, c, c.prompt, 0), c.torus, {}, c.model);
        EXPECT_EQ(with.moved(), without.moved()) << s.to_string();
        EXPECT_EQ(with.moved_bytes(), without.moved_bytes()) << s.to_string();
        std::string text = print_program(made.layer);
        text = std::regex_replace(text, std::regex(" loop (one-way|both-full|both-half)"), "");
        text = std::regex_replace(text, std::regex("loop "), "");
        EXPECT_EQ(text, print_program(plain.layer)) << s.to_string();
      }
}

}  // namespace
}  // namespace shardproof
