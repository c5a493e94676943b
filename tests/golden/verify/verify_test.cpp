#include "golden/verify/verify.h"

#include <fmt/format.h>

#include <new>
#include <stdexcept>

#include "tests/golden/case_gen.h"
#include "tests/golden/changed_plan.h"
#include "tests/golden/faults.h"
#include "tests/sanitized.h"
#include "tests/weights/expect_error.h"
#include "weights/base/error.h"

namespace shardproof {
namespace {

RC_GTEST_PROP(Verify, EveryCheckpointOfEveryCaseEqualsTheOracle, ()) {
  const Case c = *any_case();
  RC_TAG(c.prefill.to_string());
  RC_CLASSIFY(c.torus.chips() >= 12, "12 chips or more");
  OracleMemo memo;
  const Judgement j = verify_case(c, memo);
  if (j.verdict != Verdict::equal) RC_LOG() << j.explanation();
  RC_ASSERT(j.verdict == Verdict::equal);
}

TEST(Verify, HazardsDoNotChangeABit) {
  OracleMemo memo;
  const auto many = fewer_if_sanitized<std::uint64_t>(60, 15, "cases");
  for (std::uint64_t i = 0; i < many; ++i) {
    const Case c = cases::draw(23, i);
    VerifyOptions options;
    options.threads = i % 3 == 0 ? 2 : 1;
    for (const Hazards& hazards : {Hazards{}, Hazards::hostile(i)}) {
      options.hazards = hazards;
      EXPECT_EQ(verify_case(c, memo, options).verdict, Verdict::equal) << print_case(c);
    }
  }
}

Judgement faulty(const Case& c, const FaultHooks& faults) {
  OracleMemo memo;
  return verify_case(c, memo, {.faults = faults});
}

TEST(Verify, AnExceptionIsTheCasesAnswer) {
  const auto thrown = [](auto error) {
    const Judgement j = ended_by(std::make_exception_ptr(error));
    EXPECT_EQ(j.verdict, Verdict::refused);
    return j.explanation();
  };
  EXPECT_EQ(thrown(std::runtime_error("the roof leaks")), "internal error: the roof leaks");
  EXPECT_TRUE(thrown(std::bad_alloc()).starts_with("memory_c1: "));
  EXPECT_EQ(thrown(Error("engine_finite", "y is inf")), "engine_finite: y is inf");
  EXPECT_NE(thrown(7), "");
}

TEST(Verify, ReplicasThatDifferAreADifferenceWhereTheSumIsRight) {
  const Case c = parse_case("torus=2x1x3 gen=2 model=palm-tiny,layers=1,E=96,F=12,H=6,Q=2,V=12");
  OracleMemo memo;
  for (const char* regime : {"exact", "f32"})
    for (int chip = 0; chip < 6; ++chip) {
      int planted = 0;
      VerifyOptions options;
      options.faults.result = [&](const Scope&, const Program& program, const Op&,
                                  const ValueDecl& declared, Sharded& value) {
        // An ulp of f64 is far below the f32 that the sum is rounded to.
        if (program.name != "layer" || declared.name != "ss" || !value.holds_partial()) return;
        for (double& partial_sum : value.partial_values_of(chip))
          partial_sum = std::nextafter(partial_sum, 2 * partial_sum), ++planted;
      };
      Case of = c;
      of.numerics.regime = parse_regime(regime);
      const Judgement j = verify_case(of, memo, options);
      ASSERT_GT(planted, 0);
      EXPECT_EQ(j.verdict, Verdict::different);
      EXPECT_EQ(j.detector(), "replicas");
      EXPECT_TRUE(j.explanation().starts_with("replicas: hazard_replicas: prefill.c0.layer0.ss : "))
          << j.explanation();
    }
}

TEST(Findings, OfAllGoOnBehindTheFirst) {
  const Case c = parse_case("torus=2x1x3 gen=2 model=palm-tiny,layers=1,E=12,F=12,H=6,Q=2,V=12");
  OracleMemo memo;
  VerifyOptions options;
  options.faults = local_statistics();
  const Judgement first = verify_case(c, memo, options);
  options.until = Findings::Until::all;
  const Judgement all = verify_case(c, memo, options);
  EXPECT_EQ(all.verdict, Verdict::different);
  ASSERT_EQ(first.findings.size(), 1U);
  EXPECT_EQ(first.findings[0].to_string(), all.findings[0].to_string());
  // The statistics that stay local differ from the oracle's and from their replicas, in each pass.
  for (const char* pass : {"prefill.c0", "decode.1"})
    for (const Detector detector : {Detector::values, Detector::replicas})
      EXPECT_TRUE(std::any_of(all.findings.begin(), all.findings.end(),
                              [&](const Finding& finding) {
                                return finding.detector == detector && finding.pass == pass &&
                                       finding.step == std::string(pass) + ".layer0.sa";
                              }))
          << pass << " " << to_string(detector);
  EXPECT_GT(all.tensors, first.tensors);
}

/// One step is an op that nobody knows.
struct UnknownOp {
  std::size_t program, op;
  void operator()(RunPlan& p) const {
    programs_of(p)[program]->ops[op].kind = static_cast<OpKind>(99);
  }
};

TEST(Verify, AnErrorInAnyStepOfAnyProgramIsTheCasesAnswer) {
  // A step without its operands is what a broken engine or partitioner could come to: it throws
  // where it runs, in whichever program and phase, and the answer names the step.
  const Case c = parse_case(
      "torus=2x1x3 gen=2 model=palm-tiny,layers=2,E=12,F=12,H=6,Q=2,V=12 prefill=wg-xyz:batch "
      "decode=ws2d:heads batch=6");
  OracleMemo memo;
  int planted = 0;
  RunPlan built = make_plan(c);
  for (std::size_t which = 0; which < 9; ++which) {
    const std::vector<Op>& ops = programs_of(built)[which]->ops;
    for (std::size_t i = 0; i < ops.size(); ++i) {
      const std::string step = "." + ops[i].results[0].name + " = ";
      const Judgement j =
          judge_changed(c, UnknownOp{.program = which, .op = i}, memo, Typing::unchecked);
      EXPECT_EQ(j.verdict, Verdict::refused) << j.explanation();
      EXPECT_NE(j.explanation().find(step), std::string::npos) << j.explanation();
      ++planted;
    }
  }
  EXPECT_GE(planted, 90);
}

/// Every all_gather goes along x, whatever its operand is sharded over.
void gather_along_x(Program& program) {
  for (Op& op : program.ops)
    if (op.kind == OpKind::all_gather) op.axes = Axes::parse("x");
}

TEST(Verify, AnIllTypedBuiltProgramIsADifferenceFoundByTheTypes) {
  const Case c = parse_case(
      "torus=2x1x3 gen=2 model=palm-tiny,layers=1,E=12,F=12,H=6,Q=2,V=12 prefill=ws2d:batch");
  OracleMemo memo;
  for (const auto phase : {&RunPlan::prefill, &RunPlan::decode}) {
    const auto change = [&](RunPlan& p) { gather_along_x((p.*phase).layer); };
    const Judgement j = judge_changed(c, change, memo);
    EXPECT_EQ(j.verdict, Verdict::different);
    EXPECT_EQ(j.detector(), "types");
    EXPECT_TRUE(j.explanation().starts_with("types: all_gather_c")) << j.explanation();
    EXPECT_FALSE(j.difference());
  }
}

TEST(Verify, WithoutTheTypeCheckAnIllTypedStepIsADifferenceStill) {
  // By its value under the declared layout, or where it yields no value at all by the types.
  const Case c = parse_case(
      "torus=3x2x2 gen=2 model=palm-tiny,layers=1,E=24,F=24,H=12,K=6,Q=12,V=24 batch=12 prompt=2 "
      "prefill=ws2d:pre-zy decode=ws2d:batch");
  const RunPlan built = make_plan(c);
  OracleMemo memo;
  int by_value = 0, by_types = 0;
  OneInN chosen(5, "changes");
  const auto judge = [&](PhasePrograms RunPlan::*phase, std::size_t i,
                         const std::function<void(Op&)>& change) {
    const auto changed = [&](RunPlan& p) { change((p.*phase).layer.ops[i]); };
    RunPlan mutant = built;
    changed(mutant);
    if (label_of([&] { check(mutant); }).empty() || !chosen()) return;
    const Judgement j = judge_changed(c, changed, memo, Typing::unchecked);
    const std::string what = (mutant.*phase).layer.ops[i].to_string();
    ASSERT_EQ(j.verdict, Verdict::different) << what << ": " << j.explanation();
    ++(j.difference() != nullptr ? by_value : by_types);
    if (j.difference() == nullptr) {
      EXPECT_EQ(j.detector(), "types") << what;
    }
    // A step without a value ends the run, however much is asked for.
    const Judgement all =
        judge_changed(c, changed, memo, Typing::unchecked, {.until = Findings::Until::all});
    EXPECT_EQ(all.verdict, Verdict::different) << what;
    EXPECT_EQ(all.findings.at(0).to_string(), j.findings.at(0).to_string()) << what;
  };
  for (const auto phase : {&RunPlan::prefill, &RunPlan::decode})
    for (std::size_t i = 0; i < (built.*phase).layer.ops.size(); ++i) {
      const Op& op = (built.*phase).layer.ops[i];
      judge(phase, i, [](Op& o) { o.args[0] = o.args.back(); });
      judge(phase, i, [](Op& o) {
        Layout& layout = o.results[0].layout;
        layout = Layout({{layout.dims()[0].letter, Axes()}}, Axes());
      });
      if (!is_collective(op.kind)) continue;
      for (const char* axes : {"", "x", "y", "z", "zyx"})
        judge(phase, i, [&](Op& o) { o.axes = Axes::parse(axes); });
      for (OpKind kind :
           {OpKind::all_gather, OpKind::reduce_scatter, OpKind::slice, OpKind::store, OpKind::last})
        judge(phase, i, [&](Op& o) { o.kind = kind; });
    }
  EXPECT_GT(by_value, 0);
  EXPECT_GT(by_types, chosen.all() ? 100 : 20);
}

TEST(Verify, AnObserversErrorIsTheCallersAtAnyStep) {
  // Not the case's answer: a full disk says nothing of the layout. In f32 the case's own
  // run is shown, and where the layouts are wrong it is shown without a judge.
  struct Failing : Observer {
    int left;
    bool of_moves;
    Failing(int steps, bool moves) : left(steps), of_moves(moves) {}
    void observe(const Scope&, const Program&, const Op*, const ValueDecl&,
                 const Sharded&) override {
      if (!of_moves) count();
    }
    void moved(const Scope&, const Program&, const Op&, std::int64_t) override {
      if (of_moves) count();
    }
    void count() {
      if (left-- == 0) throw Error("trace_c1", "the disk is full");
    }
  };
  for (const char* regime : {"exact", "f32"})
    for (bool wrong : {false, true})
      for (int steps : {0, 1, 7, 20, 100, 101}) {
        const Case c = parse_case(std::string("torus=2x1x3 gen=2 model=palm-tiny,layers=1,E=12,"
                                              "F=12,H=6,Q=2,V=12 prefill=ws2d:heads regime=") +
                                  regime);
        Failing failing(steps % 100, steps >= 100);  // of steps, or of what the first of them move
        OracleMemo memo;
        VerifyOptions options;
        options.observer = &failing;
        if (wrong) options.faults = lost_transfer("yr", "decode");
        std::string label;
        try {
          verify_case(c, memo, options);
        } catch (const Error& error) {
          label = error.label();
        }
        EXPECT_EQ(label, "trace_c1") << regime << wrong << steps;
      }
}

TEST(Verify, AnExceptionFromBelowIsTheCasesAnswer) {
  const auto answer = [](const char* regime, void (*change)(RunPlan&)) {
    RunPlan plan = make_plan(parse_case(std::string("torus=2x1x3 gen=2 model=palm-tiny,layers=1,"
                                                    "E=12,F=12,H=6,Q=2,V=12 regime=") +
                                        regime));
    change(plan);
    OracleMemo memo;
    const Judgement j = verify_unchecked(plan, memo);
    EXPECT_EQ(j.verdict, Verdict::refused);
    EXPECT_EQ(j.findings.size(), 1U);
    EXPECT_EQ(j.findings.at(0).detector, Detector::run);
    return j.explanation();
  };
  for (const char* regime : {"exact", "f32", "field"}) {
    const std::string of_op =
        answer(regime, [](RunPlan& p) { p.prefill.layer.ops[3].kind = static_cast<OpKind>(99); });
    EXPECT_NE(of_op.find("this op is not implemented"), std::string::npos) << of_op;
    // An oracle that has no such table of RoPE.
    const std::string of_oracle =
        answer(regime, [](RunPlan& p) { p.source_case.model.positions = 1; });
    EXPECT_NE(of_oracle.find("oracle_"), std::string::npos) << of_oracle;
    if (kSanitized) continue;  // which ends where an allocation is that large
    const std::string of_memory =
        answer(regime, [](RunPlan& p) { p.passes = Passes(1 << 20, 1 << 30, 0, 2); });
    EXPECT_TRUE(of_memory.starts_with("memory_c1: ")) << of_memory;
  }
}

TEST(Verify, AUsersMistakeIsThrown) {
  const Case c = parse_case("torus=2x1x3 model=palm-tiny,layers=1,E=12,F=12,H=6,Q=2,V=12 batch=6");
  const auto label = [](const Case& given) {
    OracleMemo memo;
    return label_of([&] { verify_case(given, memo); });
  };
  EXPECT_EQ(label(c), "");
  Case illegal = c;
  illegal.gen = 0;
  EXPECT_EQ(label(illegal), "case_gen");
  Program layer = parse_program(
      "layer", print_program(partitioned(c, Strategy::parse("ws2d:batch"), Phase::prefill).layer),
      "p.txt");
  gather_along_x(layer);
  Case program = c;
  program.prefill = program.decode = Strategy(layer);
  EXPECT_TRUE(label(program).starts_with("all_gather_c")) << label(program);
}

TEST(Verify, AnInfiniteStatisticIsRefused) {
  // Every ss is infinite, every norm zeros: finite, and the same in any layout.
  for (const char* regime : {"exact", "f32"})
    for (const char* norm : {"rmsnorm", "layernorm"}) {
      const Case c = parse_case(
          fmt::format("torus=2x1x3 gen=2 model=palm-tiny,layers=1,E=12,F=12,H=6,Q=2,V=12,"
                      "norm={},embed_scale=1e25 prefill=ws2d:batch regime={}",
                      norm, regime));
      OracleMemo memo;
      const Judgement j = verify_case(c, memo);
      EXPECT_EQ(j.verdict, Verdict::refused);
      EXPECT_TRUE(
          j.explanation().starts_with("oracle_finite: stat prefill.c0.layer0.ss[0,0] is inf"))
          << j.explanation();
    }
}

TEST(Verify, ADifferenceSaysHowFarItReaches) {
  // Every layer's statistics stay local: on 2x1x3 each chip's norm is of its half of E.
  const Case c = parse_case(
      "torus=2x1x3 gen=2 model=palm-tiny,layers=1,E=12,F=12,H=6,Q=2,V=12 prefill=ws2d:heads "
      "batch=2 prompt=3");
  Judgement j = faulty(c, local_statistics());
  ASSERT_TRUE(j.difference() && j.difference()->reach) << j.explanation();
  EXPECT_EQ(j.difference()->step, "prefill.c0.layer0.sa");
  // BL, 2x3 elements on all six chips; the two halves of E give two different wrong sums.
  EXPECT_EQ(j.difference()->reach->extent(), "on 6 of 6 chips, 6 of 6 elements, replicas differ");
  // One chip's cache alone.
  j = faulty(c, lost_transfer("yr", "decode"));
  ASSERT_TRUE(j.difference() && j.difference()->reach) << j.explanation();
  EXPECT_EQ(j.difference()->reach->of_elements, 2 * 12);
  EXPECT_EQ(j.difference()->reach->of_chips, 6);
}

TEST(Verify, RefusesMoreMemoryThanTheMachineHas) {
  const Case c = parse_case("torus=16x16x16 model=palm-tiny,E=1048576,F=16777216,H=4096,V=4096");
  try {
    require_memory(make_typed_plan(c));
    ADD_FAILURE() << "accepted";
  } catch (const Error& error) {
    EXPECT_EQ(error.label(), "memory_c1");
    EXPECT_NE(std::string(error.what()).find("GiB"), std::string::npos);
  }
  require_memory(make_typed_plan(parse_case("")));
}

TEST(Verify, APlanWhoseTypesWereNotCheckedIsRefused) {
  OracleMemo memo;
  const Case c = parse_case("torus=2x1x1 batch=2 prompt=1 gen=1 prefill=ws1d decode=ws1d");
  EXPECT_THROW(verify_plan({make_plan(c), {}, {}}, memo), std::logic_error);
  EXPECT_EQ(verify_unchecked(make_plan(c), memo).verdict, Verdict::equal);
}

}  // namespace
}  // namespace shardproof
