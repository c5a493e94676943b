// Findings of a run, the first or all: where they stand, and that each is told once.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <limits>
#include <map>
#include <new>
#include <set>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "engine/run/inference.h"
#include "golden/verify/verify.h"
#include "tests/golden/changed_plan.h"
#include "tests/golden/faults.h"
#include "tests/golden/one_strategy.h"
#include "tests/weights/expect_error.h"

namespace shardproof {
namespace {

/// Several chunks, the last shorter, and several decode steps; each phase has programs of its own.
Case of_many_passes() {
  return parse_case(
      "torus=2x1x3 gen=3 prompt=5 chunk=2 model=palm-tiny,layers=2,E=12,F=12,H=6,Q=2,V=12 "
      "prefill=wg-xyz:batch decode=ws2d:heads batch=6");
}

/// What the type check finds, all of it, once `mutate` has changed the plan.
std::vector<Finding> types_of(const Case& c, const PlanChange& mutate) {
  OracleMemo memo;
  const VerifyOptions options{.until = Findings::Until::all};
  const Judgement j = judge_changed(c, mutate, memo, Typing::checked, options);
  EXPECT_EQ(j.verdict, Verdict::different);
  for (const Finding& finding : j.findings) EXPECT_EQ(finding.detector, Detector::types);
  return j.findings;
}

std::vector<std::string> in_brief(const std::vector<Finding>& findings) {
  std::vector<std::string> all;
  for (const Finding& f : findings) all.push_back(f.label + " " + f.pass + " " + f.step);
  return all;
}

/// The ids of values as a run first shows them, by program and name.
struct FirstIds : Observer {
  void observe(const Scope& scope, const Program& program, const Op*, const ValueDecl& declared,
               const Sharded&) override {
    ids.try_emplace({&program, declared.name}, scope.pass, scope.step(program, declared.name));
  }
  std::map<std::pair<const Program*, std::string>, std::pair<std::string, std::string>> ids;
};

/// One step takes a value that there is not.
struct WithoutOperand {
  std::size_t program, op;
  void operator()(RunPlan& plan) const {
    programs_of(plan)[program]->ops[op].args = {"no_such_value"};
  }
};

/// One input has not the dims of what it is.
struct MisshapenInput {
  std::size_t program, input;
  void operator()(RunPlan& plan) const {
    programs_of(plan)[program]->inputs[input].layout = Layout::parse("B");
  }
};

TEST(TypeFindings, StandAtTheStepThatARunWouldShowFirst) {
  const Case c = of_many_passes();
  RunPlan plan = make_plan(c);
  OracleMemo memo;
  const auto known = memo.get(c);
  Threads threads(1);
  FirstIds first;
  run_inference(plan, known->weights, known->prompt, threads, &first);
  std::set<std::string> passes;
  for (std::size_t which = 0; which < 9; ++which) {
    const Program& program = *programs_of(plan)[which];
    const auto expect = [&](const std::string& name, const PlanChange& fault) {
      const std::vector<Finding> found = types_of(c, fault);
      ASSERT_EQ(found.size(), 1U) << program.name << " " << name;
      const auto& [pass, id] = first.ids.at({&program, name});
      EXPECT_EQ(found[0].pass, pass);
      EXPECT_EQ(found[0].step, id);
      EXPECT_TRUE(found[0].message.starts_with(id)) << found[0].message;
      passes.insert(pass);
    };
    // Embedding, head and sampling are alike in both phases only if their layouts are.
    for (std::size_t i = 0; i < program.ops.size(); ++i)
      expect(program.ops[i].results[0].name, WithoutOperand{.program = which, .op = i});
    for (std::size_t i = 0; i < program.inputs.size(); ++i)
      expect(program.inputs[i].name, MisshapenInput{.program = which, .input = i});
  }
  EXPECT_EQ(passes, (std::set<std::string>{"prefill.c0", "prefill.c2", "decode.1"}));
}

/// Sums go along an axis that their operands are no partial sums over.
void sum_along_y(Program& program) {
  for (Op& op : program.ops)
    if (op.kind == OpKind::all_reduce) op.axes = Axes::parse("y");
}

TEST(TypeFindings, AreToldOnceHoweverManyPassesRunTheProgram) {
  const auto in_decode = [](RunPlan& plan) { sum_along_y(plan.decode.layer); };
  const auto in_both = [](RunPlan& plan) {
    sum_along_y(plan.prefill.layer);
    sum_along_y(plan.decode.layer);
  };
  for (const char* chunk : {"", " chunk=1", " chunk=3", " chunk=5"}) {
    const Case c = parse_case(
        std::string("torus=2x1x3 gen=3 prompt=5 model=palm-tiny,layers=2,E=12,F=12,H=6,Q=2,V=12") +
        chunk);
    EXPECT_EQ(in_brief(types_of(c, in_both)),
              (std::vector<std::string>{"all_reduce_c2 prefill.c0 prefill.c0.layer0.sa"}));
    EXPECT_EQ(in_brief(types_of(c, in_decode)),
              (std::vector<std::string>{"all_reduce_c2 decode.1 decode.1.layer0.sa"}));
  }
  OracleMemo memo;
  const Judgement first = judge_changed(of_one_strategy(), in_both, memo);
  EXPECT_EQ(in_brief(first.findings),
            (std::vector<std::string>{"all_reduce_c2 prefill.c0 prefill.c0.layer0.sa"}));
  EXPECT_EQ(first.detector(), "types");
  // Two programs with one fault each are two faults, and the messages tell which is which.
  const std::vector<Finding> found = types_of(of_one_strategy(), [](RunPlan& plan) {
    sum_along_y(plan.prefill.layer);
    sum_along_y(plan.decode.layer);
    plan.decode.layer.outputs.push_back("nothing");
  });
  EXPECT_EQ(in_brief(found),
            (std::vector<std::string>{"all_reduce_c2 prefill.c0 prefill.c0.layer0.sa",
                                      "all_reduce_c2 decode.1 decode.1.layer0.sa",
                                      "program_c1 decode.1 decode.1.layer0.nothing"}));
  EXPECT_TRUE(found[0].message.starts_with("prefill.c0.layer0.sa: ")) << found[0].message;
  EXPECT_TRUE(found[1].message.starts_with("decode.1.layer0.sa: ")) << found[1].message;
  EXPECT_EQ(found[2].message, "decode.1.layer0.nothing: output nothing is never defined");
}

TEST(TypeFindings, OfStepsThatAreWrittenAlikeAreOneEach) {
  const auto twice = [](RunPlan& plan) {
    Program& layer = plan.decode.layer;
    const Op last = layer.ops.back();
    layer.ops.push_back(last);
    layer.ops.push_back(last);
  };
  EXPECT_EQ(types_of(of_many_passes(), twice).size(), 2U);
}

TEST(TypeFindings, OfALaterPassAloneNameIt) {
  // Two positions are cut in halves, the one of the last chunk is not.
  const auto cut = [](RunPlan& plan) {
    const Program more = parse_program("more", "more : BL_x = slice(sa, L, x) is stat ss");
    plan.prefill.layer.ops.push_back(more.ops[0]);
  };
  EXPECT_EQ(in_brief(types_of(of_one_strategy(), cut)),
            (std::vector<std::string>{"local_c1 prefill.c2 prefill.c2.layer0.more"}));
}

/// A user's layer whose text is ws2d:batch's, with each of these replaced.
Case with_program(const std::vector<std::pair<std::string, std::string>>& faults,
                  bool in_both_phases = true) {
  Case c = parse_case(
      "torus=4x2x3 gen=3 prompt=5 chunk=2 model=palm-tiny,layers=1,E=24,F=24,H=24,Q=2,V=24 "
      "batch=24");
  const Strategy strategy = Strategy::parse("ws2d:batch");
  std::string text = print_program(partitioned(c, strategy, Phase::prefill).layer);
  for (const auto& [from, to] : faults) {
    EXPECT_NE(text.find(from), std::string::npos) << from;
    text.replace(text.find(from), from.size(), to);
  }
  c.prefill = c.decode = strategy;
  (in_both_phases ? c.prefill : c.decode) = Strategy(parse_program("layer", text, "p.txt"));
  if (in_both_phases) c.decode = c.prefill;
  return c;
}

/// What is thrown of a user's program, as findings.
std::vector<Finding> thrown(const Case& c, Findings::Until until) {
  try {
    make_typed_plan(c, until);
  } catch (const FindingsError& error) {
    EXPECT_EQ(error.label(), error.findings().at(0).label);
    EXPECT_EQ(std::string(error.what()), error.findings().at(0).to_string());
    return error.findings();
  }
  return {};
}

const std::pair<std::string, std::string> kGate{"reduce_scatter(h, F, x)",
                                                "reduce_scatter(h, F, y)"};
const std::pair<std::string, std::string> kUp{"reduce_scatter(u, F, x)", "reduce_scatter(u, F, y)"};
const std::pair<std::string, std::string> kAttn{"all_gather(ot, H, x)", "all_gather(ot, H, y)"};

TEST(TypeFindings, OfAUsersProgramAreTheFirstOrAll) {
  using Brief = std::vector<std::string>;
  const auto all = [](const Case& c) { return in_brief(thrown(c, Findings::Until::all)); };
  // Two errors, one of them in two steps.
  const Case three = with_program({kGate, kUp, kAttn});
  EXPECT_EQ(all(three), (Brief{"all_gather_c3 prefill.c0 prefill.c0.layer0.og",
                               "reduce_scatter_c2 prefill.c0 prefill.c0.layer0.hr",
                               "reduce_scatter_c2 prefill.c0 prefill.c0.layer0.ur"}));
  EXPECT_EQ(in_brief(thrown(three, Findings::Until::first)),
            (Brief{"all_gather_c3 prefill.c0 prefill.c0.layer0.og"}));
  for (const Finding& finding : thrown(three, Findings::Until::all)) {
    EXPECT_TRUE(finding.where.starts_with("p.txt line ")) << finding.where;
    EXPECT_TRUE(finding.message.starts_with(finding.where)) << finding.message;
  }
  EXPECT_EQ(all(with_program({kGate, kUp}, false)),
            (Brief{"reduce_scatter_c2 decode.1 decode.1.layer0.hr",
                   "reduce_scatter_c2 decode.1 decode.1.layer0.ur"}));
  // Of each phase's own program, also where one is not a layer.
  Case two = with_program({kGate});
  two.decode = with_program({kAttn, kUp}).decode;
  EXPECT_EQ(all(two), (Brief{"reduce_scatter_c2 prefill.c0 prefill.c0.layer0.hr",
                             "all_gather_c3 decode.1 decode.1.layer0.og",
                             "reduce_scatter_c2 decode.1 decode.1.layer0.ur"}));
  two.prefill = with_program({{"output out, kc, vc", "output out, kc"}}).prefill;
  EXPECT_EQ(all(two),
            (Brief{"layer_c2 prefill.c0 layer", "all_gather_c3 decode.1 decode.1.layer0.og",
                   "reduce_scatter_c2 decode.1 decode.1.layer0.ur"}));
  two.decode = two.prefill;
  EXPECT_EQ(all(two), Brief{"layer_c2 prefill.c0 layer"});
  // verify_case is the same.
  OracleMemo memo;
  EXPECT_THROW(verify_case(three, memo, {.until = Findings::Until::all}), FindingsError);
  // Nor is a case that is not legal judged.
  Case illegal = of_one_strategy();
  illegal.gen = 0;
  EXPECT_THROW(verify_case(illegal, memo), Error);
}

// ---- the f32 regime

/// In the f32 regime alone, where partial sums are plain numbers: the first partial sum is another
/// one.
struct SpoiledF32Sums {
  void operator()(const Scope&, const Program& program, const Op&, const ValueDecl& declared,
                  Sharded& value) const {
    if (program.name == "layer" && declared.layout.is_partial() && !value.holds_partial())
      value.f32_of(0)[0] += 1.0F;
  }
};

TEST(AllFindings, OfTheF32RegimeAreTheScalarJudges) {
  Case c = of_one_strategy();
  c.numerics.regime = Regime::f32;
  VerifyOptions options;
  options.faults.result = SpoiledF32Sums{};
  const Judgement first = verified(c, options);
  ASSERT_EQ(first.findings.size(), 1U) << first.explanation();
  EXPECT_NE(first.findings[0].checkpoint.find("the scalar model's"), std::string::npos);
  options.until = Findings::Until::all;
  const Judgement all = verified(c, options);
  EXPECT_EQ(all.verdict, Verdict::different);
  EXPECT_EQ(all.findings.at(0).to_string(), first.findings[0].to_string());
  EXPECT_EQ(all.explanation(), first.explanation());
  EXPECT_GT(all.tensors, first.tensors);
  std::set<std::string> passes, told;
  for (const Finding& finding : all.findings) {
    EXPECT_TRUE(finding.step.starts_with(finding.pass + ".") || finding.step == "generated");
    EXPECT_TRUE(told.insert(finding.to_string()).second) << finding.to_string();
    passes.insert(finding.pass);
  }
  EXPECT_EQ(passes, (std::set<std::string>{"prefill.c0", "prefill.c1", "prefill.c2", "decode.1",
                                           "decode.2"}));
}

// ---- a run that cannot go on

TEST(AllFindings, EndWithTheRunsOwn) {
  const Case c = of_one_strategy();
  VerifyOptions options;
  options.faults.plan = [](const Scope& scope, const Program& program, const Op& op, Moves& plan) {
    lost_transfer("sa").plan(scope, program, op, plan);
    if (scope.step(program, op.results[0].name) == "decode.1.layer0.yr")
      keep_pieces_of_other_chips(plan);
  };
  const Judgement first = verified(c, options);
  EXPECT_EQ(first.findings.size(), 1U);
  options.until = Findings::Until::all;
  const Judgement all = verified(c, options);
  // What was found first decides: a wrong value, not that the run ended.
  EXPECT_EQ(all.verdict, Verdict::different);
  EXPECT_EQ(all.explanation(), first.explanation());
  ASSERT_GT(all.findings.size(), 2U);
  const Finding& last = all.findings.back();
  EXPECT_EQ(last.detector, Detector::run);
  EXPECT_EQ(last.label, "transfer_c1");
  EXPECT_EQ(last.pass, "decode.1");
  EXPECT_EQ(last.step, "decode.1.layer0.yr");
  EXPECT_EQ(std::count_if(all.findings.begin(), all.findings.end(),
                          [](const Finding& f) { return f.detector == Detector::run; }),
            1);
  EXPECT_NE(all.findings[all.findings.size() - 2].detector, Detector::run);
}

TEST(AllFindings, EndWithAnOverflow) {
  const Case c = of_one_strategy();
  VerifyOptions options;
  options.until = Findings::Until::all;
  options.faults.result = [](const Scope& scope, const Program& program, const Op&,
                             const ValueDecl& declared, Sharded& value) {
    const std::string step = scope.step(program, declared.name);
    if (step == "prefill.c1.layer0.sa") value.f32_of(0)[0] += 1.0F;
    if (step == "decode.1.layer0.yr") value.f32_of(1)[0] = std::numeric_limits<float>::infinity();
  };
  const Judgement all = verified(c, options);
  EXPECT_EQ(all.verdict, Verdict::different);
  EXPECT_EQ(all.findings.at(0).step, "prefill.c1.layer0.sa");
  EXPECT_EQ(all.findings.back().label, "engine_finite");
  EXPECT_EQ(all.findings.back().step, "decode.1.layer0.yr");
}

}  // namespace
}  // namespace shardproof
