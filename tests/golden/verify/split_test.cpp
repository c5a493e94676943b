// Prefill on one torus, decode on another: the same tokens and checkpoints as on one, the caches
// counted on their way, and what judges say of a cache that arrives wrong.
#include <fmt/format.h>
#include <gtest/gtest.h>
// gtest first
#include <rapidcheck/gtest.h>

#include <cmath>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "engine/collectives/crossing.h"
#include "engine/cost/plan/split.h"
#include "engine/run/cache_crossing.h"
#include "engine/run/inference.h"
#include "golden/corpus/model.h"
#include "golden/trace/write/trace.h"
#include "golden/verify/verify.h"
#include "tests/weights/folder.h"
#include "weights/model/registry.h"

namespace shardproof {
namespace {

/// Twelve divides by every torus below.
std::string line(const std::string& more, const std::string& model = "") {
  return "model=palm-tiny,layers=2,E=24,F=24,H=12,K=12,Q=4,V=24" + model +
         " batch=12 prompt=4 chunk=3 gen=3 seed=7 " + more;
}

const std::vector<std::string> kTori{"1x1x1", "3x1x1", "1x3x1", "1x1x2", "2x1x3",
                                     "1x2x3", "2x2x1", "3x2x2", "4x1x3"};

std::string element_of(const std::vector<std::string>& all) { return *rc::gen::elementOf(all); }

/// Strategies, tori and arithmetic of any kind.
Case draw_split(const std::string& regime) {
  const std::vector<std::string> both{"ws1d:heads", "ws1d:batch", "ws2d:heads", "ws2d:batch"};
  std::vector<std::string> first = both;
  first.emplace_back("wg-xyz:batch");
  const std::string cases = fmt::format(
      "torus={} decode_torus={} prefill={} decode={} regime={} {} {} {} {} {}", element_of(kTori),
      element_of(kTori), element_of(first), element_of(both), regime,
      element_of({"", "lengths=ragged", "lengths=4,3", "prefix=2:5", "prefix=2:12 lengths=ragged"}),
      element_of({"", "weights=int8", "weights=bf16"}), element_of({"", "act=bf16"}),
      element_of({"", "block=serial"}),
      regime == "field" ? "" : element_of({"", "", "sample=random top_k=3"}));
  const std::string model = element_of({"", "", ",K=1", ",K=3", ",cache=bf16", ",softmax=base2"});
  std::string text = line(cases, model);
  if (const auto twice = text.find(",K=12"); model.starts_with(",K=") && twice != text.npos)
    text.erase(twice, 5);
  return parse_case(text);
}

/// Whether the tables can be placed on both tori; few draws cannot.
bool is_legal(const Case& c) {
  try {
    make_plan(c);
  } catch (const Error&) {
    return false;
  }
  return true;
}

RC_GTEST_PROP(Split, IsJudgedEqual, ()) {
  for (const char* regime : {"exact", "f32", "field"}) {
    const Case c = draw_split(regime);
    RC_PRE(is_legal(c));
    RC_CLASSIFY(c.torus.chips() != c.decode_torus->chips(), "tori of unequal size");
    OracleMemo memo;
    const Hazards hazards = *rc::gen::element(0, 1) == 0 ? Hazards::hostile() : Hazards::full();
    const Judgement j = verify_case(c, memo, {.hazards = hazards});
    if (j.verdict != Verdict::equal) RC_FAIL(print_case(c) + ": " + j.explanation());
  }
}

/// The checkpoints of a run, whole, and what crossed.
class Kept : public Observer {
 public:
  void observe(const Scope& scope, const Program&, const Op* op, const ValueDecl& declared,
               const Sharded& value) override {
    if (op == nullptr || declared.role.kind != Role::Kind::checkpoint || declared.role.last ||
        value.layout().is_partial() || value.stores_int32())
      return;
    checkpoints.try_emplace(checkpoint_id(scope.pass, scope.layer, declared.role.name),
                            assemble(value));
  }
  void crossed(const Scope& scope, const Program& program, const ValueDecl& declared,
               std::int64_t count) override {
    elements += count;
    crossings.push_back(scope.step(program, declared.name));
  }
  std::map<std::string, Tensor> checkpoints;
  std::int64_t elements = 0;
  std::vector<std::string> crossings;
};

IntTensor run_of(const RunPlan& plan, Observer& observer, const FaultHooks& faults = {}) {
  OracleMemo memo;
  const auto known = memo.get(plan);
  Threads threads(1);
  return run_inference(plan, known->weights, known->prompt, threads, &observer, {}, faults);
}

void require_same(const Kept& split, const Kept& whole) {
  RC_ASSERT(split.checkpoints.size() == whole.checkpoints.size());
  for (const auto& [id, tensor] : whole.checkpoints) {
    const auto at = split.checkpoints.find(id);
    if (at == split.checkpoints.end()) RC_FAIL("no " + id);
    RC_ASSERT(at->second.shape == tensor.shape);
    // Bits: unwritten slots of rows that are shorter are NaN on both sides.
    if (std::memcmp(at->second.data.data(), tensor.data.data(), tensor.data.size() * 4) != 0)
      RC_FAIL(id + " differs");
  }
}

RC_GTEST_PROP(Split, HasTheTokensAndCheckpointsOfTheCoLocatedRun, ()) {
  const Case c = draw_split("exact");
  Case one = c;
  one.decode_torus.reset();
  RC_PRE(is_legal(c) && is_legal(one));
  Kept split, whole;
  RC_ASSERT(run_of(make_plan(c), split).data == run_of(make_plan(one), whole).data);
  require_same(split, whole);
  RC_ASSERT(whole.elements == 0);
}

/// Where both slices are alike, every op is, and with it every rounding.
RC_GTEST_PROP(Split, OnTwoToriOfOneShapeIsTheCoLocatedRunInF32Too, ()) {
  Case c = draw_split("f32");
  c.decode_torus = c.torus;
  Case one = c;
  one.decode_torus.reset();
  RC_PRE(is_legal(c));
  Kept split, whole;
  RC_ASSERT(run_of(make_plan(c), split).data == run_of(make_plan(one), whole).data);
  require_same(split, whole);
  RC_ASSERT(split.elements > 0);
}

TEST(Split, ReadsAsATable) {
  // One kv head, which the three chips that decode hold whole: each of them pulls all of it.
  const Case c = parse_case(
      "torus=2x1x1 decode_torus=1x3x1 prefill=ws1d:batch decode=ws1d:heads batch=2 prompt=4 gen=2 "
      "model=palm-tiny,layers=2,E=12,F=12,H=6,K=1,Q=4,V=12");
  Kept kept;
  run_of(make_plan(c), kept);
  constexpr std::int64_t kCache = 2 * 4 * 1 * 4;  // B M K Q
  EXPECT_EQ(kept.elements, 2 * 2 * 3 * kCache);   // keys and values, layers, chips
  EXPECT_EQ(kept.crossings, (std::vector<std::string>{
                                "prefill.c0.layer0.hand_over.k", "prefill.c0.layer0.hand_over.v",
                                "prefill.c0.layer1.hand_over.k", "prefill.c0.layer1.hand_over.v"}));
}

RC_GTEST_PROP(Split, MovesWhatTheCostModelSays, ()) {
  const Case c = draw_split("exact");
  RC_PRE(is_legal(c));
  const RunPlan plan = make_plan(c);
  Kept kept;
  run_of(plan, kept);
  const auto bytes = [&](std::int64_t rows, std::int64_t context, const Layout& from,
                         const Layout& to) {
    const double elements =
        2.0 * static_cast<double>(plan.placed.layers * plan.placed.K * plan.placed.Q);
    return cost::crossing_of(elements, rows, context, 4.0, plan.prefill.torus, from,
                             plan.decode.torus, to)
        .bytes;
  };
  const SharedPrefix prefix = c.prefix;
  double wanted = bytes(c.batch, c.prompt - prefix.length, plan.prefill.cache, plan.decode.cache);
  if (prefix.given())
    wanted +=
        bytes(prefix.rows, prefix.length, plan.prefill.prefix_cache, plan.decode.prefix_cache);
  RC_ASSERT(4.0 * static_cast<double>(kept.elements) == wanted);
}

// ---- Caches that arrive wrong ----

Case faulty_case() {
  return parse_case(line("torus=2x1x3 decode_torus=3x2x2 prefill=ws2d:heads decode=ws2d:batch"));
}

Judgement judged(const FaultHooks& faults, const std::string& regime = "exact") {
  Case c = faulty_case();
  c.numerics.regime = regime == "f32" ? Regime::f32 : Regime::exact;
  OracleMemo memo;
  return verify_case(c, memo, {.faults = faults});
}

/// Changes what chip 1 pulls of the values of layer 1.
FaultHooks of_one_cache(std::function<void(Moves&)> change) {
  FaultHooks faults;
  faults.crossing = [change = std::move(change)](const Scope& scope, const Program& program,
                                                 const ValueDecl& declared, Moves& plan) {
    if (scope.layer == 1 && program.name == kHandOverProgram && declared.name == "v") change(plan);
  };
  return faults;
}

TEST(Split, AWrongSenderAMissingPieceAndAWrongPlaceAreFoundWhereTheyArrive) {
  const std::vector<std::function<void(Moves&)>> faults{
      [](Moves& plan) { plan.pieces[1][0].from_chip = (plan.pieces[1][0].from_chip + 1) % 6; },
      [](Moves& plan) { plan.pieces[1].pop_back(); },
      [](Moves& plan) { std::swap(plan.pieces[1][0].to, plan.pieces[1][1].to); },
      [](Moves& plan) { plan.pieces[1] = std::as_const(plan.pieces)[0]; },
  };
  for (std::size_t i = 0; i < faults.size(); ++i)
    for (const char* regime : {"exact", "f32"}) {
      const Judgement j = judged(of_one_cache(faults[i]), regime);
      ASSERT_EQ(j.verdict, Verdict::different) << i << " " << regime;
      EXPECT_EQ(j.findings[0].step, "prefill.c1.layer1.hand_over.v") << i;
      EXPECT_NE(j.findings[0].to_string().find("(0,0,1)"), std::string::npos)
          << i << ": " << j.findings[0].to_string();
    }
}

TEST(Split, APlanThatCannotBeCarriedOutRefusesTheRun) {
  const Judgement j = judged(of_one_cache([](Moves& plan) { plan.pieces[1][0].from_chip = 6; }));
  ASSERT_EQ(j.verdict, Verdict::refused);
  EXPECT_EQ(j.findings[0].label, "transfer_c1");
  EXPECT_EQ(j.findings[0].step, "prefill.c1.layer1.hand_over.v");
}

TEST(Split, AHookThatThrowsIsItsAuthors) {
  const FaultHooks faults = of_one_cache([](Moves&) { throw std::logic_error("mine"); });
  Kept watched;
  OracleMemo memo;
  EXPECT_THROW(verify_case(faulty_case(), memo, {.observer = &watched, .faults = faults}),
               std::logic_error);
}

TEST(Split, AnObserverThatThrowsOfWhatCrossedIsItsAuthors) {
  struct Failing : Observer {
    void observe(const Scope&, const Program&, const Op*, const ValueDecl&,
                 const Sharded&) override {}
    void crossed(const Scope&, const Program&, const ValueDecl&, std::int64_t) override {
      throw std::logic_error("mine");
    }
  } failing;
  OracleMemo memo;
  EXPECT_THROW(verify_case(faulty_case(), memo, {.observer = &failing}), std::logic_error);
}

TEST(Split, VerifyShowsItsObserverWhatCrossed) {
  const Case c = faulty_case();
  Kept watched, alone;
  OracleMemo memo;
  EXPECT_EQ(verify_case(c, memo, {.observer = &watched}).verdict, Verdict::equal);
  run_of(make_plan(c), alone);
  EXPECT_EQ(watched.crossings, alone.crossings);
  EXPECT_EQ(watched.elements, alone.elements);
}

TEST(Split, LeavesNoCacheOnTheChipsThatSentIt) {
  const RunPlan plan = make_plan(faulty_case());
  const Tensor ones({12, 4, 12, 4}, 1.0F);
  const auto cache = std::make_shared<Sharded>(shard(ones, plan.prefill.cache, plan.prefill.torus));
  Threads threads(1);
  for (const bool poison : {false, true}) {
    Hazards hazards;
    hazards.poison = poison;
    const Execution execution{plan.source_case.model, threads, nullptr, {}, {}, hazards};
    const CacheCrossing crossing(plan.hand_over, plan.decode.torus, execution);
    EXPECT_EQ(assemble(*crossing.of(cache, "k_cache")).data, ones.data);
    EXPECT_EQ(std::isnan(std::as_const(*cache).f32()[0][0]), poison);
  }
}

// ---- Refusals ----

std::string refusal(const std::function<void()>& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.what();
  }
  return "legal";
}

TEST(Split, RefusesWhatHasOneTorus) {
  EXPECT_EQ(refusal([] { make_plan(parse_case("gen=1 decode_torus=1x2x1")); }),
            "case_split: decode_torus=1x2x1 beside gen=1, which has no decode steps; legal: gen "
            "from 2 on, or leave decode_torus out");
  const Case c = parse_case("decode_torus=1x2x1");
  EXPECT_EQ(refusal([&] { corpus::model_golden(c); }),
            "case_split: decode_torus=1x2x1: a golden is of one torus; legal: leave decode_torus "
            "out");
  const Folder folder;
  EXPECT_EQ(refusal([&] { Trace(make_typed_plan(c), folder / "trace.h5"); }),
            "case_split: decode_torus=1x2x1: a trace is of one torus; legal: leave decode_torus "
            "out");
}

/// Each torus by the table of its own phase.
TEST(Split, RefusesATorusThatDoesNotDivide) {
  const auto label = [](const std::string& tori) {
    const std::string what = refusal([&] { make_plan(parse_case(line(tori))); });
    return what.substr(0, what.find(':'));
  };
  EXPECT_EQ(label("torus=2x1x3 decode_torus=3x2x1"), "legal");
  EXPECT_EQ(label("torus=2x1x3 decode_torus=5x1x1"), "strategy_c3");
  EXPECT_EQ(label("torus=5x1x1 decode_torus=2x1x3"), "strategy_c3");
  EXPECT_EQ(label("decode=wg-xyz:batch decode_torus=2x2x1 torus=1x1x1 prefill=ws1d"), "legal");
}

TEST(Split, TheSmallestBatchIsOfBothTori) {
  const Case c = parse_case("torus=2x1x1 decode_torus=1x3x1 prefill=ws2d:batch decode=ws2d:batch");
  EXPECT_EQ(c.batch, 6);
}

}  // namespace
}  // namespace shardproof
