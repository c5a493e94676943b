// The table of faults: every class has operators, every operator applies somewhere, and its edit of
// the plan of a collective is what the program that someone would write does.
#include <gtest/gtest.h>

#include <map>
#include <numeric>
#include <set>

#include "engine/layouts/table.h"
#include "engine/shards/sharded.h"
#include "golden/faults/plant.h"
#include "golden/faults/study.h"
#include "weights/base/error.h"

namespace shardproof::faults {
namespace {

std::vector<FaultCase> cases_of_some() {
  std::vector<FaultCase> all;
  for (const char* name : {"ws2d:heads", "ws2d:batch", "ws1d:batch", "ws2d:bfirst-xy", "ws2d:pre-y",
                           "wg-x:batch", "dp"})
    for (FaultCase& one : cases_of(Strategy::parse(name))) all.push_back(std::move(one));
  return all;
}

const Study& study_of_some() {
  static const Study study = plan_study(cases_of_some());
  return study;
}

TEST(FaultOperators, AreAtLeast40WithEveryClass) {
  std::set<std::string_view> names, classes;
  for (const Operator& how : all_operators()) {
    EXPECT_TRUE(names.insert(how.name).second) << how.name;
    EXPECT_EQ(&find_operator(how.name), &how);
    classes.insert(how.fault_class);
    const int ways = int{how.moves != nullptr} + int{how.result != nullptr} +
                     int{how.weight != nullptr} + int{how.planted != nullptr};
    EXPECT_EQ(ways, 1) << how.name;
    EXPECT_TRUE(how.parameters) << how.name;
    EXPECT_FALSE(how.what.empty() || how.what.ends_with('.')) << how.name;
  }
  EXPECT_GE(names.size(), 40U);
  EXPECT_EQ(classes.size(), all_classes().size());
  EXPECT_EQ(all_classes().size(), 15U);
}

TEST(FaultOperators, HaveTheReleasedCodesOwnDefects) {
  for (const char* name :
       {"ring-sign", "two-stage-all-to-all", "prefix-of-local-row", "int8-drops-norm-scale",
        "swish-factor-missing", "base2-logits-at-natural-temperature", "odd-ring-stops-early"})
    EXPECT_NO_THROW(find_operator(name)) << name;
}

TEST(FaultOperators, EachAppliesSomewhere) {
  std::map<std::string_view, int> times;
  std::set<std::string_view> phases;
  for (const Planned& one : study_of_some().mutants) {
    ++times[one.mutant.how->name];
    phases.insert(one.mutant.site.phase);
  }
  for (const Operator& how : all_operators()) EXPECT_GT(times[how.name], 0) << how.name;
  EXPECT_EQ(phases, (std::set<std::string_view>{"prefill", "decode", "hand_over", "weights"}));
}

TEST(FaultOperators, ApplyToTheStepsOfAnyStrategy) {
  // A table that nobody knew when the operators were written.
  const Strategy own(parse_layouts("layouts mine  heads on yx\nin : BLE_xzy -> BLE\n"
                                   "weights : F_yx H_yx\nattend : BLH_yxQ\n")
                         .at(0));
  Case c = cases_of(Strategy::parse("ws1d:heads")).at(0).source_case;
  c.prefill = c.decode = own;
  const Study study = plan_study({{std::string(kOwnCase), "mine", c}});
  std::set<std::string_view> classes;
  for (const Planned& one : study.mutants) classes.insert(one.mutant.how->fault_class);
  EXPECT_GE(classes.size(), 12U);
  EXPECT_GT(study.mutants.size(), 300U);
}

TEST(FaultOperators, OfUnknownNamesAndSitesAreRefused) {
  const auto refused = [](auto&& call) {
    try {
      call();
    } catch (const Error& error) {
      return error.label() == "faults_only";
    }
    return false;
  };
  EXPECT_TRUE(refused([] { find_operator("drop-colective"); }));
  EXPECT_TRUE(refused([] { Site::parse("decode.layer"); }));
  EXPECT_TRUE(refused([] { Site::parse("decode.layer."); }));
  EXPECT_TRUE(refused([] { Site::parse(""); }));
  const TypedPlan& typed = study_of_some().plans[0];
  const Operator& how = find_operator("lose-a-part");
  EXPECT_NO_THROW(plant(typed, {&how, Site::parse("prefill.layer.yr"), "first"}));
  EXPECT_TRUE(refused([&] { plant(typed, {&how, Site::parse("prefill.layer.yr"), "middle"}); }));
  EXPECT_TRUE(refused([&] { plant(typed, {&how, Site::parse("prefill.layer.xn"), "first"}); }));
  EXPECT_TRUE(refused([&] { plant(typed, {&how, Site::parse("prefill.layer.none"), "first"}); }));
}

/// Where the written op is one collective in place of another with shards of the same shapes, the
/// planted plan of moves is the one that the written op has.
TEST(FaultOperators, PlantWhatIsWritten) {
  int compared = 0;
  for (const Planned& planned : study_of_some().mutants) {
    const Operator& how = *planned.mutant.how;
    if (!how.moves || !how.written) continue;
    const TypedPlan& typed = study_of_some().plans[planned.of_case];
    const Planted planted = plant(typed, planned.mutant);
    ASSERT_NE(planted.written, nullptr);
    const Program& written = program_at(*planted.written, planned.mutant.site);
    const Op* const now = written.producer(planned.mutant.site.value);
    for (const Place& place : places_of(typed)) {
      if (!(place.site == planned.mutant.site) || place.is_weight() || now == nullptr) continue;
      const Op& before = place.op();
      if (now->args != before.args || now->kind != before.kind) continue;
      const Layout& operand = place.type_of(before.args[0]).layout;
      const Shape local = place.local(before.args[0]);
      const Moves right = moves_of(place.torus, before, operand, local);
      const auto edited =
          how.moves({place.torus, before, operand, right}, planned.mutant.parameter);
      ASSERT_TRUE(edited) << planned.mutant.to_string();
      const Moves as_written = moves_of(place.torus, *now, operand, local);
      if (as_written.to_local != right.to_local) continue;  // a crash, if anybody wrote it
      ++compared;
      EXPECT_TRUE(same_parts(*edited, as_written, op_row(before.kind).reduces))
          << planned.mutant.to_string();
    }
  }
  EXPECT_GT(compared, 100);
}

/// What a result edit makes of the numbers 0, 1, ... of a value on one chip.
std::vector<float> edited(const char* name, const Layout& layout, const Shape& shape) {
  const Case c = parse_case("torus=1x1x1");
  Tensor tensor(shape);
  std::iota(tensor.data.begin(), tensor.data.end(), 0.0F);
  Sharded value = shard(tensor, layout, c.torus);
  const ValueDecl declared{"k", layout, Role::parse("k_cache")};
  const Scope scope{"prefill.c0", "", 0};
  const Program program;
  const Op op;
  const Seen seen;
  const std::string parameter = "-";
  find_operator(name).result()({c, scope, program, op, declared, seen, parameter}, value);
  const Tensor now = assemble(value);
  return {now.data.begin(), now.data.end()};
}

TEST(FaultOperators, OfArrivedCachesMoveWhatTheySay) {
  const Layout cache = Layout::parse("BMKQ");
  const Shape shape{2, 2, 3, 2};
  using Numbers = std::vector<float>;
  EXPECT_EQ(edited("hand-over-slot-off", cache, shape),
            (Numbers{0,  1,  2,  3,  4,  5,  0,  1,  2,  3,  4,  5,
                     12, 13, 14, 15, 16, 17, 12, 13, 14, 15, 16, 17}));
  EXPECT_EQ(edited("hand-over-heads-reversed", cache, shape),
            (Numbers{4,  5,  2,  3,  0,  1,  10, 11, 8,  9,  6,  7,
                     16, 17, 14, 15, 12, 13, 22, 23, 20, 21, 18, 19}));
  // Pairs of (slot, head), in memory head by head.
  EXPECT_EQ(edited("hand-over-layout-transposed", cache, shape),
            (Numbers{0,  1,  6,  7,  2,  3,  8,  9,  4,  5,  10, 11,
                     12, 13, 18, 19, 14, 15, 20, 21, 16, 17, 22, 23}));
}

}  // namespace
}  // namespace shardproof::faults
