// Tables of layouts under the judge: a table may be slow, never wrong.
#include <fmt/format.h>

#include <map>
#include <numeric>

#include "engine/program/count.h"
#include "golden/verify/verify.h"
#include "tests/golden/case_gen.h"
#include "tests/golden/random_table.h"

namespace shardproof {
namespace {

Strategy strategy_of(const std::string& text) {
  return Strategy(parse_layouts(text, "t.layouts").at(0));
}

/// A small model that every table of these tori divides.
Case small(const std::string& torus, int K, const std::string& more = "") {
  return parse_case(fmt::format(
      "torus={0} model=palm-tiny,layers=1,E=24,F=24,H=24,K={1},Q=24,V=24,embed_scale=0.75{2} "
      "batch=24 prompt=2 gen=2",
      torus, K, more));
}

Case draw_small() {
  Case c = small(*rc::gen::element<std::string>("4x2x3", "3x2x2", "2x1x4"),
                 *rc::gen::element(1, 2, 3, 4, 6, 12, 24),
                 *rc::gen::element<std::string>("", ",bias=all,norm=layernorm",
                                                ",bias=ffn,rope=alibi,unembed_bias=true"));
  c.model.block = *rc::gen::element(Block::parallel, Block::serial);
  c.numerics.act = *rc::gen::element(ActType::f32, ActType::bf16);
  c.numerics.weights = *rc::gen::element(WeightType::f32, WeightType::bf16, WeightType::int8);
  return c;
}

/// The layers of a case by a partitioner that breaks one rule.
struct BrokenLayers {
  const Case& c;
  BrokenRule broken;

  Program layer(const Strategy& strategy, std::int64_t L) const {
    return partition(strategy.table(), c.model, extents_of(c.model, c.batch, L), c.torus,
                     c.numerics, broken)
        .layer;
  }
  void operator()(RunPlan& plan) const {
    plan.prefill.layer = layer(c.prefill, c.prompt);
    plan.decode.layer = layer(c.decode, 1);
  }
};

/// What became of a case: its verdict, or the label of the rule that refused its table.
std::string outcome(const Case& c, BrokenRule broken = BrokenRule::none, bool types = true) {
  OracleMemo memo;
  VerifyOptions options;
  options.check_types = types;
  if (broken != BrokenRule::none) options.mutate = BrokenLayers{c, broken};
  try {
    const Judgement j = verify_case(c, memo, options);
    return std::string(to_string(j.verdict)) +
           (j.verdict == Verdict::equal ? "" : ": " + j.explanation());
  } catch (const Error& error) {
    return error.what();
  }
}

/// The first rule that refuses the prefill's program, by tables or by types; "equal" if none does.
std::string lowered(const Case& c, BrokenRule broken) {
  try {
    check(BrokenLayers{c, broken}.layer(c.prefill, c.prompt), c, c.prompt, 0);
    return "equal";
  } catch (const Error& error) {
    return error.what();
  }
}

bool refused_by_a_rule(const std::string& outcome) {
  return outcome.starts_with("layouts_c") && outcome.find("t.layouts line ") != std::string::npos;
}

RC_GTEST_PROP(Tables, AnyTableIsEqualOrRefusedByARule, ()) {
  Case c = draw_small();
  const std::string prefill = draw_table("prefill", true), decode = draw_table("decode");
  c.prefill = strategy_of(prefill);
  c.decode = strategy_of(decode);
  if (const auto L = smallest_length(c.prefill, c.torus); L > 1) {
    c.batch = std::lcm(smallest_batch(c.prefill, c.torus), smallest_batch(c.decode, c.torus));
    c.chunk = L;
    c.prompt = L * draw_int(1, 2);
  }
  if (*rc::gen::element(false, false, true)) {
    c.numerics.regime = Regime::f32;
    c.numerics.schedule = *rc::gen::element(Schedule::ring, Schedule::tree, Schedule::biring);
  }
  c.numerics.loop = *rc::gen::element(Loop::none, Loop::one_way, Loop::both_full, Loop::both_half);
  // Half of each row is a prefix, if the blocks of L allow it.
  if (const auto L = smallest_length(c.prefill, c.torus); c.prompt == 2 * L && draw_int(0, 1) == 0)
    c.prefix = {L, draw_int(1, static_cast<int>(c.batch))};
  const std::string what = outcome(c);
  RC_CLASSIFY(what == "equal", "equal");
  RC_CLASSIFY(what == "equal" && c.prefix.given(), "equal, with shared prefixes");
  if (what != "equal" && !refused_by_a_rule(what))
    RC_FAIL(fmt::format("{}\n{}\n{}{}", what, print_case(c), prefill, decode));
}

// Most of the tables that are drawn are lowered, so that the property above says something.
TEST(Tables, MostRandomTablesAreLowered) {
  int all = 0, equal = 0;
  rc::detail::checkTestable([&] {
    Case c = draw_small();
    c.prefill = strategy_of(draw_table("prefill", true));
    c.prompt = 24;
    ++all;
    equal += lowered(c, BrokenRule::none) == "equal";
  });
  EXPECT_GT(all, 0);
  EXPECT_GT(2 * equal, all);
}

// The passes over prefixes have no refusals of their own: where a table's blocks do not divide them
// it has none on B, and can be lowered if it could be with them.
RC_GTEST_PROP(Tables, AreLoweredWithoutBatchWhereTheyAreWithIt, ()) {
  const Case c = draw_small();
  const LayoutTable table = strategy_of(draw_table("prefill", true)).table();
  const auto layer = [&](const LayoutTable& of, std::int64_t batch) {
    return partition(of, c.model, extents_of(c.model, batch, 24), c.torus, c.numerics).layer;
  };
  try {
    layer(table, 24);
  } catch (const Error&) {
    RC_DISCARD("a table that is refused");
  }
  // A batch of one is divided by no axis: nothing but B without a subscript is legal.
  const Program alone = layer(without_batch(table), 1);
  for (const Op& op : alone.ops)
    for (const ValueDecl& result : op.results) RC_ASSERT(result.layout.axes_or_none('B').empty());
}

// Each rule of the partitioner, broken, is seen on one table that it decides on, by the types and,
// where they are off, by the judge.
struct Broken {
  BrokenRule rule;
  const char *name, *table, *torus;
  int K;
};
class BrokenPartitioner : public testing::TestWithParam<Broken> {};

TEST_P(BrokenPartitioner, IsNeverCalledEqual) {
  Case c = small(GetParam().torus, GetParam().K, ",bias=all");
  c.numerics.weights = WeightType::int8;  // which has scales
  c.prefill = c.decode = strategy_of(GetParam().table);
  EXPECT_EQ(outcome(c), "equal");
  for (bool types : {true, false}) {
    const std::string what = outcome(c, GetParam().rule, types);
    EXPECT_FALSE(what.starts_with("equal") || refused_by_a_rule(what)) << what;
  }
}

constexpr const char* k2d =
    "layouts t\nin : BLE_xzy -> BLE_x\nweights : E_x F_zy H_zy\nhidden : BLF_zyx\n"
    "attend : BLH_zyxQ\n";
INSTANTIATE_TEST_SUITE_P(
    Rules, BrokenPartitioner,
    testing::Values(
        // K_y in place of K_z: of the same shape, so that the judge sees it without types too.
        Broken{
            .rule = BrokenRule::kv_prefix,
            .name = "prefix",
            .table = "layouts t\nin : BLE_xzy -> BLE_x\nweights : E_x F_zy H_zy\nhidden : BLF_zyx\n"
                     "attend : BLH_zyQ\n",
            .torus = "2x2x2",
            .K = 2},
        Broken{.rule = BrokenRule::weight_order,
               .name = "weights",
               .table = k2d,
               .torus = "4x2x3",
               .K = 1},
        Broken{.rule = BrokenRule::bias_layout,
               .name = "biases",
               .table = k2d,
               .torus = "4x2x3",
               .K = 24},
        Broken{.rule = BrokenRule::scale_layout,
               .name = "scales",
               .table = k2d,
               .torus = "4x2x3",
               .K = 24}),
    [](const auto& test) { return std::string(test.param.name); });

/// Whether the property above fails on a table that is drawn, with this rule broken.
bool found(BrokenRule rule) {
  Case c = draw_small();
  c.prefill = strategy_of(draw_table("prefill"));
  c.decode = c.prefill;
  if (rule == BrokenRule::axes_once) {  // by the types, or where the product has no layout
    const std::string what = lowered(c, rule);
    return what.starts_with("einsum_c") || what.starts_with("layout_c3");
  }
  const std::string what = outcome(c, rule);
  return what != "equal" && !refused_by_a_rule(what);
}

// The property above fails for each broken rule: it is what finds them. The draws are the same in
// every run, since "none of a hundred" happens to a right test too, one run in hundreds; they end
// with the first table that fails.
TEST(BrokenPartitioners, FailThePropertyOfRandomTables) {
  for (BrokenRule rule : {BrokenRule::kv_prefix, BrokenRule::weight_order, BrokenRule::bias_layout,
                          BrokenRule::scale_layout, BrokenRule::axes_once}) {
    bool seen = false;
    rc::detail::TestParams draws;
    draws.seed = 1;
    draws.maxSuccess = 2000;
    rc::detail::checkTestable([&] { seen = seen || found(rule); }, rc::detail::TestMetadata(),
                              draws);
    EXPECT_TRUE(seen) << static_cast<int>(rule);
  }
}

// A loop over replicas: the types refuse it, and without them the replicas differ where sums have
// an order.
TEST(Tables, ALoopThatLeavesReplicasApartIsNeverCalledEqual) {
  Case c = small("2x1x3", 1, ",block=serial");
  c.numerics.loop = Loop::one_way;
  c.prefill = c.decode = strategy_of(
      "layouts t\nin : BLE_zx\nnorm : BLE_zx -> BLE\nweights : E F_x H_x\nhidden : BLF_x\n"
      "attend : BLH_xQ\n");
  c.numerics.regime = Regime::f32;
  EXPECT_EQ(outcome(c), "equal");
  const std::string refused = outcome(c, BrokenRule::loop_replicas);
  EXPECT_NE(refused.find("einsum_c10"), std::string::npos) << refused;
  const std::string ran = outcome(c, BrokenRule::loop_replicas, false);
  EXPECT_TRUE(ran.starts_with("different")) << ran;
}

// A strategy is data: this one ships nowhere.
TEST(Tables, ANewStrategyIsAText) {
  const Strategy own = strategy_of(
      "layouts mine\nin : B_yLE_zx -> B_yLE_x\nweights : E_x F_z H_z\nhidden : B_yLF_zx\n"
      "attend : B_yxLH_zQ\n");
  for (int K : {1, 3, 24})
    for (const char* block : {"parallel", "serial"}) {
      Case c = small("4x2x3", K, fmt::format(",block={},bias=all,norm=layernorm", block));
      c.prefill = c.decode = own;
      EXPECT_EQ(outcome(c), "equal");
    }
}

// A subscript in another order is as right, and dearer.
TEST(Tables, AnotherOrderOfHiddenIsEqualAndDearer) {
  Case c = small("4x2x3", 1);
  const auto sent = [&](const std::string& text) {
    c.prefill = c.decode = strategy_of(text);
    EXPECT_EQ(outcome(c), "equal");
    const PartitionedLayer made = partitioned(c, c.decode, Phase::decode);
    return count(made.layer, check(made.layer, c, 1, 2), c.torus, c.numerics, c.model).moved();
  };
  std::string other = k2d;
  other.replace(other.find("BLF_zyx"), 7, "BLF_yzx");
  EXPECT_GT(sent(other), sent(k2d));
}

// Every strategy as a prefill hands over to three others; verify --cases draws all pairs.
TEST(Tables, HandOversAreEqual) {
  const auto& all = all_strategies();
  for (std::size_t i = 0; i < all.size(); ++i)
    for (std::size_t n = 0; n < 3; ++n) {
      const Strategy& decode = all[(7 * i + 11 * n) % all.size()];
      Case c = small("4x2x3", n == 0 ? 1 : n == 1 ? 6 : 24, ",block=serial");
      c.prefill = all[i];
      c.decode = decode;
      c.prompt = c.chunk = smallest_length(c.prefill, c.torus) > 1 ? 24 : 2;
      if (!decodes(decode)) continue;
      EXPECT_EQ(outcome(c), "equal") << print_case(c);
    }
}

}  // namespace
}  // namespace shardproof
