// Whole runs of rows that go on from shared prefixes: the chips against the unsharded model in
// every regime, programs that read them wrongly, and their traces.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "engine/run/case_weights.h"
#include "engine/run/inference.h"
#include "golden/trace/pair/pair.h"
#include "golden/trace/read/dump.h"
#include "golden/verify/verify.h"
#include "tests/golden/changed_plan.h"
#include "tests/golden/equal_cases.h"
#include "tests/golden/trace/write/traced_run.h"
#include "tests/weights/folder.h"
#include "weights/storage/generator.h"

namespace shardproof {
namespace {

/// Twelve rows of seven tokens, the first three of which are a prefix's. Meshes of 2·1·3 chips.
std::string line(const std::string& more) {
  return "torus=2x1x3 model=palm-tiny,layers=2,E=12,F=12,H=6,K=3,Q=4,V=12 batch=12 prompt=7 "
         "chunk=2 gen=3 seed=5 " +
         more;
}

const std::vector<std::string> kStrategies{
    "prefill=ws1d:heads decode=ws2d:batch", "prefill=ws2d:heads decode=ws1d:batch",
    "prefill=ws2d:batch decode=ws2d:batch", "prefill=wg-xyz:batch decode=ws2d:heads"};

TEST(SharedPrefixes, AreJudgedEqualInEveryRegime) {
  expect_equal_cases("prefixes", [](const Case& c, const Judgement& j) {
    if (j.drift) {
      EXPECT_EQ(j.drift->tokens, c.gen * c.batch) << print_case(c);
    }
    if (j.bounds && c.numerics.wire == NumberFormat::f32) {
      EXPECT_EQ(j.bounds->loose, 0) << print_case(c);
    }
  });
}

TEST(SharedPrefixes, AreEqualInModelsOfEveryKind) { expect_equal_cases("prefixes of models"); }

IntTensor generated(const Case& c, const IntTensor& prompt) {
  Threads threads(1);
  return run_inference(make_plan(c), generate_weights(c.model, c.seed), prompt, threads);
}

/// Each row alone, with its prefix as the beginning of its prompt.
TEST(SharedPrefixes, GenerateWhatEachRowGeneratesAlone) {
  const std::vector<std::int64_t> lengths{7, 4, 6, 5};
  const SharedPrefix prefix{3, 5};
  const Case one = parse_case(line("prefill=ws2d:heads decode=ws2d:heads"));
  const IntTensor prompt = generate_prompt(one.model, one.seed, 12, 7, prefix);
  std::vector<std::int32_t> alone;
  for (std::size_t b = 0; b < 12; ++b) {
    const std::int64_t length = lengths[b % 4];
    Case c = one;
    c.torus = Torus(1, 1, 1), c.batch = 1, c.prompt = c.chunk = length;
    IntTensor own({1, length});
    std::copy_n(prompt.data.begin() + static_cast<std::ptrdiff_t>(7 * b), length, own.data.begin());
    const IntTensor tokens = generated(c, own);
    alone.insert(alone.end(), tokens.data.begin(), tokens.data.end());
  }
  for (const std::string& strategies : kStrategies)
    for (int chunk = 1; chunk <= 5; ++chunk) {
      Case c = parse_case(line(strategies + " prefix=3:5 lengths=7,4,6,5"));
      c.chunk = chunk;
      EXPECT_EQ(generated(c, prompt).data, alone) << print_case(c);
    }
}

// ---- Programs that read them wrongly ----

/// Calls change(op) of every op that attends to a prefix.
PlanChange of_attention(const std::function<void(Op&)>& change) {
  return [change](RunPlan& plan) {
    int changed = 0;
    for (PhasePrograms* phase : {&plan.prefill, &plan.decode})
      for (Op& op : phase->layer.ops)
        if (op.kind == OpKind::attend_prefix) change(op), ++changed;
    EXPECT_EQ(changed, 2);
  };
}

TEST(SharedPrefixes, AProgramThatReadsThemWronglyIsDifferentInEveryRegime) {
  const std::map<std::string, PlanChange> mutants{
      {"keys for values", of_attention([](Op& op) { std::swap(op.args[3], op.args[4]); })},
      {"the prefix dropped", of_attention([](Op& op) {
         op.kind = OpKind::attend;
         op.args.erase(op.args.begin() + 3, op.args.begin() + 5);
       })},
      {"keys handed over as values", [](RunPlan& plan) {
         ASSERT_FALSE(plan.prefix_to_decode.ops.empty());
         Program& p = plan.prefix_to_decode;
         std::swap(p.inputs[0].role, p.inputs[1].role);
       }}};
  OracleMemo memo;
  for (const char* regime : {"", "regime=f32", "regime=field"})
    for (const auto& [what, mutate] : mutants) {
      const Case c = parse_case(
          line(fmt::format("prefill=ws2d:batch decode=ws1d:heads prefix=3:6 {}", regime)));
      const Judgement j = judge_changed(c, mutate, memo, Typing::unchecked);
      EXPECT_NE(j.verdict, Verdict::equal) << what << " " << regime;
      EXPECT_NE(j.verdict, Verdict::not_judged) << what << " " << regime;
    }
}

/// The one prefix of the batch is one input, whatever rows have it.
TEST(SharedPrefixes, CountTheirIdsOnceInTheField) {
  OracleMemo memo;
  // Nine positions of twelve rows, three of them shared: 6·12 + 3·4 of 84 ids.
  const Case c = parse_case(
      "torus=2x1x3 model=palm-tiny,layers=1,E=12,F=12,H=6,K=3,Q=4,V=120 batch=12 prompt=7 chunk=2 "
      "gen=3 seed=5 prefill=ws2d:heads prefix=3:4 regime=field");
  const Judgement j = verify_case(c, memo);
  ASSERT_EQ(j.verdict, Verdict::equal) << j.explanation();
  EXPECT_TRUE(j.field->distinct_ids);
  EXPECT_EQ(j.field->ids_met, 6 * 12 + 3 * 4);
}

// ---- Traces ----

TEST(SharedPrefixes, InATraceAreNamedAndWrittenOnce) {
  const Folder folder;
  const Case c = parse_case(line("prefill=ws2d:batch decode=ws1d:heads prefix=3:6"));
  const Traced traced = trace_case(c, folder / "a.h5");
  ASSERT_EQ(traced.judgement.verdict, Verdict::equal) << traced.judgement.explanation();
  const dump::Dump a = dump::read_dump(folder / "a.h5");
  std::map<std::string, int> readers;  // of a prefix's cache, by pass
  for (const auto& [name, value] : a.values) {
    const auto meaning = value.attributes.find("meaning");
    if (meaning == value.attributes.end() || !meaning->second.starts_with("prefix ")) continue;
    ++readers[name.substr(0, name.find(".layer"))];
    EXPECT_EQ(value.attributes.at("layout").substr(0, 1), "N") << name;
    // As the last pass over prefixes left it.
    ASSERT_TRUE(value.attributes.contains("same_as")) << name;
    EXPECT_TRUE(value.attributes.at("same_as").starts_with("prefix.c1.layer")) << name;
  }
  for (const char* pass : {"prefill.c0", "prefill.c1", "decode.1", "decode.2"})
    EXPECT_GE(readers[pass], 4) << pass;
  EXPECT_EQ(readers["prefix.c0"], 0);
  const auto& shape = a.values.find("prefix.c1.ids")->second.whole.shape;
  EXPECT_EQ(shape, (Shape{6, 1}));

  // One bit of a value of a prefix.
  dump::Dump b = a;
  const std::string name = "prefix.c1.layer0.hr";
  b.values.find(name)->second.whole.bytes[8] ^= std::byte{1};
  const auto weights = std::make_shared<const Weights>(generated_weights(c));
  const auto compared = [&](const dump::Dump& other) {
    const auto claimed = [&](const dump::Dump& of) {
      return dump::ClaimedTrace{of, dump::read_claim(of.attributes, std::nullopt), weights};
    };
    return dump::compare_pair(claimed(a), claimed(other), {.runs = 0});
  };
  const dump::Pair found = compared(b);
  ASSERT_TRUE(found.first);
  ASSERT_NE(found.wrong(true), nullptr);
  EXPECT_EQ(found.wrong(true)->name, name);
  EXPECT_EQ(found.wrong(false), nullptr);
  EXPECT_EQ(compared(a).exit_code(), 0);
}

TEST(SharedPrefixes, TracesWithOtherPrefixesAreOfOtherCases) {
  const Folder folder;
  const auto trace = [&](const std::string& prefix) {
    trace_case(parse_case(line("prefill=ws2d:heads " + prefix)), folder / "t.h5", false);
    return dump::read_dump(folder / "t.h5");
  };
  const dump::Dump six = trace("prefix=3:6"), four = trace("prefix=3:4"), none = trace("");
  const auto message = [](const dump::Dump& a, const dump::Dump& b) -> std::string {
    try {
      dump::read_claim(b.attributes, a.attributes.at("case"));
    } catch (const Error& error) {
      return error.what();
    }
    return "the same";
  };
  EXPECT_EQ(message(six, four), "compare_case: the trace is of prefix=3:4, not of prefix=3:6");
  EXPECT_EQ(message(none, four), "compare_case: the trace is of prefix=3:4, not of prefix=none");
  EXPECT_EQ(message(four, none), "compare_case: the trace is of prefix=none, not of prefix=3:4");
}

}  // namespace
}  // namespace shardproof
