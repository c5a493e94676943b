// What fault hooks throw is no finding; what they make the run throw is one.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <new>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "engine/run/inference.h"
#include "golden/verify/verify.h"
#include "tests/golden/faults.h"
#include "tests/golden/one_strategy.h"

namespace shardproof {
namespace {

/// Throws at one step, as hook of its plan, of what a chip computes and of its result; of a weight
/// at once.
template <class Thrown>
struct ThrowingHook {
  Thrown what;
  std::string step = "decode.1.layer0.yr";

  void operator()(const Scope& scope, const Program& program, const Op& op, Moves&) const {
    if (scope.step(program, op.results[0].name) == step) throw what;
  }
  void operator()(const Scope& scope, const Program& program, const Op&, const ValueDecl& declared,
                  Sharded&) const {
    if (scope.step(program, declared.name) == step) throw what;
  }
  void operator()(const Scope& scope, const Program& program, const Op&, const ValueDecl& declared,
                  int, std::span<std::byte>) const {
    if (scope.step(program, declared.name) == step) throw what;
  }
  void operator()(const std::string& name, Sharded&) const {
    if (name == "layer0.wo") throw what;
  }
};

template <class Thrown>
std::vector<FaultHooks> throwing(const Thrown& what) {
  std::vector<FaultHooks> all(4);
  all[0].plan = ThrowingHook<Thrown>{what};
  all[1].result = ThrowingHook<Thrown>{what};
  all[2].weight = ThrowingHook<Thrown>{what};
  all[3].computed = ThrowingHook<Thrown>{what};
  return all;
}

template <class Thrown>
void expect_thrown_as_it_is(const Thrown& what) {
  for (const char* regime : {"exact", "f32"})
    for (const Findings::Until until : {Findings::Until::first, Findings::Until::all})
      for (FaultHooks& faults : throwing(what)) {
        Case c = of_one_strategy();
        c.numerics.regime = parse_regime(regime);
        OracleMemo memo;
        EXPECT_THROW(verify_case(c, memo, {.faults = faults, .until = until}), Thrown) << regime;
        const auto known = memo.get(c);
        const RunPlan plan = make_plan(c);
        Threads threads(1);
        Findings findings(until);
        for (Findings* to : {&findings, static_cast<Findings*>(nullptr)})
          EXPECT_THROW(
              run_inference(plan, known->weights, known->prompt, threads, nullptr, {}, faults, to),
              Thrown);
        EXPECT_TRUE(findings.all().empty());
      }
}

TEST(FaultHooks, TheirOwnExceptionsAreTheCallers) {
  expect_thrown_as_it_is(std::runtime_error("the hook's own"));
  expect_thrown_as_it_is(Error("transfer_c1", "said by the hook"));
  expect_thrown_as_it_is(std::bad_alloc());
  expect_thrown_as_it_is(7);
}

TEST(FaultHooks, TheirOwnExceptionsAreThrownWhateverWasFoundBefore) {
  for (FaultHooks& faults : throwing(std::runtime_error("the hook's own"))) {
    if (faults.weight) continue;  // before anything runs
    const auto thrower = faults.plan;
    faults.plan = [=](const Scope& scope, const Program& program, const Op& op, Moves& plan) {
      lost_transfer("sa", "prefill").plan(scope, program, op, plan);
      if (thrower) thrower(scope, program, op, plan);
    };
    OracleMemo memo;
    VerifyOptions options;
    options.faults = faults;
    EXPECT_EQ(verify_case(of_one_strategy(), memo, options).findings.size(), 1U)
        << "the run ends before the hook is there";
    options.until = Findings::Until::all;
    EXPECT_THROW(verify_case(of_one_strategy(), memo, options), std::runtime_error);
  }
}

TEST(FaultHooks, ErrorsThatTheyProvokeAreFindings) {
  const auto found = [](const FaultHooks& faults) {
    const Judgement j = verified(of_one_strategy(), {.faults = faults});
    EXPECT_EQ(j.findings.size(), 1U);
    const Finding& f = j.findings.at(0);
    return fmt::format("{} {} {}", to_string(f.detector), f.label, f.step);
  };
  FaultHooks faults;
  faults.plan = [](const Scope&, const Program& program, const Op& op, Moves& plan) {
    if (program.name == "layer" && op.results[0].name == "sa") keep_pieces_of_other_chips(plan);
  };
  EXPECT_EQ(found(faults), "run transfer_c1 prefill.c0.layer0.sa");
  // The hook's value is one of its own right; the step that takes it has no use for it.
  VerifyOptions options;
  options.hazards.replicas = false;
  options.until = Findings::Until::all;
  options.faults.result = [](const Scope&, const Program& program, const Op&,
                             const ValueDecl& declared, Sharded& value) {
    if (program.name != "layer" || declared.name != "sa") return;
    value = shard(Tensor({7}), Layout::parse("E"), value.torus());
  };
  const Judgement j = verified(of_one_strategy(), options);
  ASSERT_EQ(j.findings.size(), 2U) << j.explanation();
  EXPECT_EQ(j.findings[0].detector, Detector::values);
  EXPECT_EQ(j.findings[1].label, "engine_types");
  EXPECT_EQ(j.findings[1].step, "prefill.c0.layer0.xn");
}

}  // namespace
}  // namespace shardproof
