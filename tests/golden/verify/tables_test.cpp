// Tables of layouts under the judge: a table may be slow, never wrong.
#include <fmt/format.h>

#include <map>
#include <numeric>

#include "engine/program/count.h"
#include "golden/verify/verify.h"
#include "tests/golden/case_gen.h"
#include "tests/golden/changed_plan.h"
#include "tests/golden/random_table.h"
#include "weights/model/registry.h"

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
  c.numerics.act = *rc::gen::element(NumberFormat::f32, NumberFormat::bf16);
  c.numerics.weights = *rc::gen::element(NumberFormat::f32, NumberFormat::bf16, NumberFormat::int8);
  return c;
}

/// What became of a case: its verdict, or the label of the rule that refused its table.
std::string outcome(
    const Case& c, const PlanChange& change = [](RunPlan&) {}, Typing types = Typing::checked) {
  OracleMemo memo;
  try {
    const Judgement j = judge_changed(c, change, memo, types);
    return std::string(to_string(j.verdict)) +
           (j.verdict == Verdict::equal ? "" : ": " + j.explanation());
  } catch (const Error& error) {
    return error.what();
  }
}

/// Whether the prefill's program is refused neither by a rule of tables nor by one of types.
bool lowered(const Case& c) {
  try {
    const Extents extents = extents_of(c.model, c.batch, c.prompt);
    check(partition(c.prefill.table(), c.model, extents, c.torus, c.numerics).layer, c, c.prompt,
          0);
    return true;
  } catch (const Error&) {
    return false;
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
    equal += lowered(c) ? 1 : 0;
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

// ---- one table that each rule of the partitioner decides on; tests/source_faults breaks the rules

constexpr const char* k2d =
    "layouts t\nin : BLE_xzy -> BLE_x\nweights : E_x F_zy H_zy\nhidden : BLF_zyx\n"
    "attend : BLH_zyxQ\n";
constexpr const char* kKvPrefix =
    "layouts t\nin : BLE_xzy -> BLE_x\nweights : E_x F_zy H_zy\nhidden : BLF_zyx\n"
    "attend : BLH_zyQ\n";
constexpr const char* kReplicas =
    "layouts t\nin : BLE_zx\nnorm : BLE_zx -> BLE\nweights : E F_x H_x\nhidden : BLF_x\n"
    "attend : BLH_xQ\n";

/// With biases and scales.
Case of_rule(const char* table, const char* torus, int K) {
  Case c = small(torus, K, ",bias=all");
  c.numerics.weights = NumberFormat::int8;
  c.prefill = c.decode = strategy_of(table);
  return c;
}

/// A loop that would leave replicas apart, where the order of a sum shows.
Case of_replicas() {
  Case c = small("2x1x3", 1, ",block=serial");
  c.numerics.loop = Loop::one_way;
  c.numerics.regime = Regime::f32;
  c.prefill = c.decode = strategy_of(kReplicas);
  return c;
}

/// In the layers of both phases.
PlanChange in_layers(const std::function<void(Program&)>& change) {
  return [=](RunPlan& plan) { change(plan.prefill.layer), change(plan.decode.layer); };
}

/// Weights of this kind have their resident axes in reverse order.
PlanChange reversed(WeightKind kind) {
  return in_layers([=](Program& layer) {
    for (ValueDecl& input : layer.inputs) {
      if (input.role.kind != Role::Kind::weight || weight_row(input.role.name)->kind != kind)
        continue;
      for (std::size_t d = 0; d < input.layout.rank(); ++d) {
        const Axes axes = input.layout.dims()[d].axes;
        Axes back;
        for (int i = axes.size(); i-- > 0;) back = back.with(axes.begin()[i]);
        input.layout = input.layout.with_axes(d, back);
      }
    }
  });
}

/// K is sharded over the last axis of H that divides it: of the same shape as over the first.
void shard_k_over_y(Program& layer) {
  std::string text = print_program(layer);
  for (auto at = text.find("K_z"); at != std::string::npos; at = text.find("K_z"))
    text.replace(at, 3, "K_y");
  for (auto at = text.find("K, z"); at != std::string::npos; at = text.find("K, z"))
    text.replace(at, 4, "K, y");
  layer = parse_program("layer", text);
}

/// The gather before the contractions is looped with them.
void loop_over_replicas(Program& layer) {
  for (Op& gather : layer.ops)
    if (gather.kind == OpKind::all_gather && gather.results[0].role.name == "norm") {
      gather.loop = Loop::one_way;
      for (Op& op : layer.ops)
        if (op.kind == OpKind::einsum && op.args[0] == gather.results[0].name &&
            op.results[0].role.name != "k" && op.results[0].role.name != "v" &&
            op.results[0].role.kind != Role::Kind::stat)
          op.looped = {0};
    }
}

TEST(Tables, ThatARuleDecidesOnAreEqualAndNeverWithAnotherLayer) {
  const struct {
    const char* rule;
    Case c;
    PlanChange broken;
  } rules[] = {
      {"K over a prefix of H's axes", of_rule(kKvPrefix, "2x2x2", 2), in_layers(shard_k_over_y)},
      {"weights", of_rule(k2d, "4x2x3", 1), reversed(WeightKind::matrix)},
      {"biases", of_rule(k2d, "4x2x3", 24), reversed(WeightKind::bias)},
      {"scales", of_rule(k2d, "4x2x3", 24), reversed(WeightKind::scale)},
      {"loops", of_replicas(), in_layers(loop_over_replicas)}};
  for (const auto& [rule, c, broken] : rules) {
    EXPECT_EQ(outcome(c), "equal") << rule;
    const std::string typed = outcome(c, broken);
    EXPECT_TRUE(typed.starts_with("different: types: ")) << rule << " " << typed;
    const std::string run = outcome(c, broken, Typing::unchecked);
    EXPECT_TRUE(run.starts_with("different") || run.starts_with("refused")) << rule << " " << run;
  }
}

// An axis that both operands of a contraction use, in a contracted dim and in one of the result.
TEST(Tables, ThatUseAnAxisTwiceAreRefusedByTheRule) {
  Case c = small("4x2x3", 1);
  c.prefill = c.decode =
      strategy_of("layouts t\nin : B_xLE\nweights : E F_x H_x\nhidden : B_xLF\nattend : B_xLHQ\n");
  EXPECT_TRUE(outcome(c).starts_with("layouts_c6: t.layouts line ")) << outcome(c);
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

}  // namespace
}  // namespace shardproof
