#include "engine/strategies/residual.h"

#include <gtest/gtest.h>
// gtest first
#include <rapidcheck/gtest.h>

#include <set>

#include "engine/program/typing.h"
#include "tests/engine/random_layout.h"
#include "weights/error.h"

namespace shardproof {
namespace {

std::vector<std::string> steps(const std::string& from, const std::string& to) {
  const Result given{"v", Layout::parse(from), Meaning::parse("out")};
  std::vector<std::string> text;
  for (const Op& op : reshard(given, Layout::parse(to), {"v"}).ops) text.push_back(op.to_string());
  return text;
}

using Steps = std::vector<std::string>;

TEST(Reshard, TakesTheWayOfTheBuiltStrategies) {
  EXPECT_EQ(steps("BLE_xzy", "BLE_xzy"), Steps());
  EXPECT_EQ(steps("BLE_x partialsum-yz", "BLE_xzy"), Steps{"reduce_scatter(v, E, zy)"});
  EXPECT_EQ(steps("BLE_x partialsum-yz", "B_zyxLE"),
            (Steps{"reduce_scatter(v, B, zy)", "all_to_all(v_1, E->B, x)"}));
  EXPECT_EQ(steps("B_zyxE", "BE_x"), (Steps{"all_to_all(v, B->E, x)", "all_gather(v_1, B, zy)"}));
}

TEST(Reshard, MovesEachAxisTheCheapestWayItsPlaceAllows) {
  EXPECT_EQ(steps("BLE_x partialsum-yz", "BLE_x"), Steps{"all_reduce(v, yz)"});
  EXPECT_EQ(steps("BLE", "B_xLE_zy"), (Steps{"slice(v, B, x)", "slice(v_1, E, zy)"}));
  EXPECT_EQ(steps("BLE_xzy", "BLE_zyx"), Steps{"permute_axes(v, E, xzy->zyx)"});
  EXPECT_EQ(steps("B_xyzLE", "BLE_xzy"), Steps{"all_to_all(v, B->E, xyz as xzy)"});
  EXPECT_EQ(steps("BLE_x partialsum-yz", "B_xLE_zy"),
            (Steps{"all_to_all(v, E->B, x)", "reduce_scatter(v_1, E, zy)"}));
  EXPECT_EQ(
      steps("BLE_x partialsum-yz", "B_yLE_z"),  // x stands in the way of z
      (Steps{"reduce_scatter(v, B, y)", "all_gather(v_1, E, x)", "reduce_scatter(v_2, E, z)"}));
}

TEST(Reshard, AvoidsNamesThatAreTaken) {
  const Result given{"v", Layout::parse("BLE_x"), Meaning::parse("out")};
  EXPECT_EQ(reshard(given, Layout::parse("BLE"), {"v", "v_1", "v_2"}).value, "v_3");
}

TEST(Reshard, RefusesOtherDims) {
  for (const char* to : {"BLF", "BL", "BEL", "BLEQ"}) EXPECT_THROW(steps("BLE_x", to), Error) << to;
}

RC_GTEST_PROP(Reshard, IsTypedForAnyTwoLayouts, ()) {
  const Torus torus = draw_torus();
  const std::string letters = *rc::gen::element<std::string>("BLE", "BE", "BMKQ");
  const Layout from = draw_layout(letters, true);
  const Layout to = draw_layout(letters);
  RC_CLASSIFY(from.is_partial(), "partial");
  const Resharding way = reshard({"v", from, Meaning::parse("out")}, to, {"v"});
  RC_TAG(way.ops.size());
  Type now{from, draw_shape(torus, from.rank()), false};
  std::string name = "v";
  std::set<std::string> names{"v"};
  for (const Op& op : way.ops) {
    RC_LOG() << op.to_string() << "\n";
    RC_ASSERT(op.args == std::vector<std::string>{name});
    now = infer(op, {now}, torus)[0];
    RC_ASSERT(op.results[0].layout == now.layout);
    name = op.results[0].name;
    RC_ASSERT(names.insert(name).second);
  }
  RC_ASSERT(now.layout == to);
  RC_ASSERT(way.value == name);
  RC_ASSERT(way.ops.size() <= 6U);
}

TEST(ProgramsAround, AgreeWithTheBuiltStrategiesButForNames) {
  for (const char* word : {"ws2d:batch", "wg-xyz:batch", "ws1d:heads"})
    for (ActType act : {ActType::f32, ActType::bf16}) {
      const PhasePrograms built =
          build_programs(Strategy::parse(word), Axes(), parse_model("palm-tiny"), act);
      const PhasePrograms around = programs_around(built.layer, parse_model("palm-tiny"), act);
      EXPECT_EQ(around.layer, built.layer);
      EXPECT_EQ(around.residual, built.residual);
      EXPECT_EQ(around.cache, built.cache);
      for (const auto& [mine, its] :
           {std::pair{&around.embed, &built.embed}, {&around.head, &built.head}}) {
        ASSERT_EQ(mine->ops.size(), its->ops.size()) << print_program(*mine);
        for (std::size_t i = 0; i < mine->ops.size(); ++i) {
          EXPECT_EQ(mine->ops[i].kind, its->ops[i].kind);
          EXPECT_EQ(mine->ops[i].results[0].layout, its->ops[i].results[0].layout);
          EXPECT_EQ(mine->ops[i].results[0].meaning, its->ops[i].results[0].meaning);
        }
      }
    }
}

}  // namespace
}  // namespace shardproof
