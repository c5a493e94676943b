// Tables of layouts that are refused, at their file, line and value.
#include <string>
#include <utility>
#include <vector>

#include "tests/tools/layouts_fixture.h"

namespace {

TEST_F(Layouts, BadTablesAreRefusedAtFileLineAndValue) {
  struct Bad {
    std::vector<std::string> lines;
    std::string says, flags;
  };
  const std::vector<Bad> all{
      // An axis twice: in a subscript, in a layout, in a weight, in a contraction.
      {with(0, "in : BLE_xx"), "t.layouts line 2: in: axis x appears twice in 'xx'", ""},
      {with(0, "in : B_xLE_x"), "t.layouts line 2: in: axis x appears twice in B_xLE_x", ""},
      {with(1, "weights : E_x F_x H_zy"), "layouts_c6: t.layouts line 3: w_out: axis x appears",
       ""},
      {with(0, "in : B_zLE_xy -> B_zLE_x"), "layouts_c6: t.layouts line ", ""},
      // Values, uses, letters and notes that there are not.
      {with(4, "query : BLHQ"), "layouts_c1: t.layouts line 6: no layer has a value 'query'", ""},
      {with(4, "hiden : BLF"), "did you mean hidden?", ""},
      {with(4, "hidden for q : BLF"), "layouts_c1: t.layouts line 6: 'hidden for q'", ""},
      {with(3, "attend : BLHFQ"),
       "layouts_c3: t.layouts line 5: attend is BLHFQ; attend has dims "
       "BLHQ",
       ""},
      {with(3, "attend : BLH_zyxQ_w"), "axes_c1: t.layouts line 5: attend: 'w'", ""},
      {with(2, "hidden : BLF_zyx [loop]"),
       "layouts_c1: t.layouts line 4: 'loop' is not a valid note", ""},
      {with(0, "in : BLE_x partialsum-y"), "layouts_c3: t.layouts line 2: in is BLE_x partialsum-y",
       ""},
      {with(4, "hidden : BLF"),
       "layouts_c2: t.layouts line 6: hidden is defined twice, before in "
       "line 4",
       ""},
      {with(4, "hidden BLF"), "layouts_c0: t.layouts line 6: 'hidden BLF'", ""},
      // Lines that are missing.
      {{kLines[0], "wq : E_xH_zyQ", kLines[2], kLines[3]},
       "layouts_c5: t.layouts line 1: t gives wk no layout: write 'wk : LAYOUT'",
       ""},
      {{kLines[0], kLines[1], kLines[2]},
       "layouts_c5: t.layouts line 1: t has no line 'attend",
       ""},
      {{kLines[0], kLines[1], kLines[3]},
       "layouts_c5: t.layouts line 1: gate is BLF_zy partialsum-x, and no line 'hidden : LAYOUT'",
       ""},
      // An arrow that cannot be walked.
      {with(4, "q : BLH_zyQ -> BLH_zyQ partialsum-x"),
       "layouts_c4: t.layouts line 6: q: BLH_zyQ cannot become BLH_zyQ partialsum-x", ""},
      {with(4, "attn : BLH_zyxQ -> BLHQ_x -> BLH_zyQ"), "Q=6", "--model palm-tiny,Q=6"},
      // Terms of a parallel block, K that is no prefix.
      {{kLines[0], "weights : E_x F_zy H_z", kLines[2], "attend : BLH_zQ"},
       "layouts_c7: t.layouts line 3: block_out: the terms of a parallel block are one sum, but "
       "attn·wo is BLE_x partialsum-z and hidden·w_out is BLE_x partialsum-yz; block=serial",
       ""},
      {with(4, "attend for k : BLK_yQ"),
       "layouts_c8: t.layouts line 6: attend is BLH_zyxQ, its keys and values BLK_yQ", ""},
      // Dims that do not divide, at the line that shards them, or the table's where none does.
      {kLines,
       "strategy_c3: t.layouts line 4: t on torus 4x2x3 needs F=100 divisible by XYZ=24; "
       "the nearest legal: --model palm-tiny,F=96",
       "--model palm-tiny,F=100"},
      {kLines, "strategy_c3: t.layouts line 5: t on torus 4x2x3 needs H=12 divisible by XYZ=24",
       "--model palm-tiny,H=12"},
      {{"in : B_zyxLE", "weights : E F H", "attend : B_zyxLHQ"},
       "strategy_c3: t.layouts line 1: t on torus 4x2x3 needs V=100 divisible by XYZ=24",
       "--model palm-tiny,V=100"},
      {{"in : B_zyxLE", "weights : E F H", "attend : B_zyxLHQ"},
       "strategy_c3: t.layouts line 1: t on torus 4x2x3 needs E=30 divisible by X=4",
       "--model palm-tiny,E=30"},
      {{"in : B_zyxLE", "weights : E F H", "attend : B_zyxLHQ"},
       "strategy_c4: t.layouts line 2: t on torus 4x2x3",
       "--batch 23"},
      // [strict].
      {{kLines[0], kLines[1], kLines[2], "attend : B_zyxLHQ",
        "attn : B_zyxLHQ -> BLH_zyQ [strict]"},
       "layouts_c9: t.layouts line 6: attn: B_zyxLHQ becomes BLH_zyQ by all_to_all, all_gather",
       ""},
  };
  for (const Bad& bad : all) {
    table(bad.lines);
    // `explain` has its own batch, and shows a table without a run.
    expect_refused("verify --layouts t.layouts " + bad.flags, bad.says);
    if (bad.flags.find("batch") == std::string::npos)
      expect_refused("explain --layouts t.layouts " + bad.flags, bad.says);
    expect_refused("run --torus 4x2x3 --layouts t.layouts " + bad.flags, bad.says);
  }
  // What is strict and takes one op, or none, is not refused.
  table(with(0, "in : BLE_xzy -> BLE_x [strict]"));
  expect_equal("verify --layouts t.layouts");
}

TEST_F(Layouts, BadFilesAreRefused) {
  table(kLines, "s.layouts", "ws2d:batch");
  expect_refused(
      "verify --layouts s.layouts",
      "layouts_c2: s.layouts line 1: ws2d:batch is defined twice: it is a name of ws2d:batch");
  write("twice.layouts", slurp(path("s.layouts")) + slurp(path("s.layouts")));
  expect_refused("verify --layouts twice.layouts", "layouts_c2: twice.layouts line 6: ws2d:batch");
  write("empty.layouts", "# nothing\n");
  expect_refused("verify --layouts empty.layouts", "layouts_f2: empty.layouts holds no table");
  write("binary.layouts", std::string("\x7f"
                                      "ELF\0\1",
                                      6));
  expect_refused("verify --layouts binary.layouts", "layouts_f3: binary.layouts");
  expect_refused("verify --layouts none.layouts", "layouts_f1: none.layouts cannot be read");
  expect_refused("verify --layouts .", "layouts_f1");
  expect_refused("verify --layouts /dev/zero", "layouts_f3");
  table(kLines);
  expect_refused("verify --layouts t.layouts --trace t.layouts", "output_c2: --trace");
}

}  // namespace
