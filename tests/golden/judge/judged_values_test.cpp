// Both judges see a wrong element of every value of a run: of each pass and layer, on each chip, by
// one bit, as NaN and as -0. A run is recorded once; its values are shown again, one of them
// changed.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <set>

#include "golden/judge/expected.h"
#include "golden/judge/judge.h"
#include "golden/verify/scalar_judge.h"
#include "tests/golden/every_op.h"
#include "tests/golden/recorded_run.h"
#include "tests/golden/spoiled.h"

namespace shardproof {
namespace {

/// Two chunks, four decode steps, a hand-over where the strategies differ.
constexpr const char* kRun = "prompt=3 chunk=2 gen=5 seed=5 ";
float as_float(std::uint32_t bits) { return std::bit_cast<float>(bits); }
std::uint32_t as_bits(float value) { return std::bit_cast<std::uint32_t>(value); }

/// One way to spoil an element; false where it would stay what it is.
struct Spoiler {
  std::string name;
  std::function<bool(float&)> of_float;
  std::function<bool(double&)> of_partial;  ///< of an exact partial sum
  std::function<bool(std::int32_t&)> of_int;
};

const std::vector<Spoiler>& spoilers() {
  static const auto no_double = [](double&) { return false; };
  static const auto no_int = [](std::int32_t&) { return false; };
  static const std::vector<Spoiler> all{
      {"its last bit", [](float& v) { return v = as_float(as_bits(v) ^ 1U), true; },
       [](double& v) { return v += 1.0, true; },  // its last bit may be less than f32 shows
       [](std::int32_t& v) { return v ^= 1, true; }},
      {"its sign", [](float& v) { return v = as_float(as_bits(v) ^ 0x80000000U), true; },
       [](double& v) { return v = -v, v != 0.0; }, [](std::int32_t& v) { return v = ~v, true; }},
      {"NaN",
       [](float& v) {
         const bool other = as_bits(v) != 0x7fc00000U;  // what a free slot of a cache holds
         return v = as_float(0x7fc00000U), other;
       },
       [](double& v) { return v = std::numeric_limits<double>::quiet_NaN(), true; }, no_int},
      {"another NaN", [](float& v) { return v = as_float(0xffffffffU), true; }, no_double, no_int},
      {"-0 for +0",
       [](float& v) {
         const bool zero = as_bits(v) == 0;
         return v = -0.0F, zero;
       },
       no_double, no_int}};
  return all;
}

/// Spoils element `at` of a chip's.
bool spoil(Sharded& value, int chip, std::size_t at, const Spoiler& by) {
  if (value.stores_int32()) return by.of_int(value.i32_of(chip)[at]);
  if (value.holds_partial()) return by.of_partial(value.partial_values_of(chip)[at]);
  return by.of_float(value.f32_of(chip)[at]);
}

/// A few places of a chip's shard: both ends, and where it has a +0.
std::set<std::size_t> places(Sharded& value, int chip) {
  const std::size_t size = size_of(value, chip);
  if (size == 0) return {};
  std::set<std::size_t> all{0, size - 1};
  if (!value.stores_int32() && !value.holds_partial())
    for (std::size_t i = 0; i < size; ++i)
      if (as_bits(value.f32_of(chip)[i]) == 0) {
        all.insert(i);
        break;
      }
  return all;
}

/// By what was spoiled, and which steps.
struct Tried {
  std::set<std::string> by, steps;
};

/// Shows the judge every value with each of a few elements spoiled on every chip, then as it is;
/// each spoiled one must be a finding of its own.
Tried spoil_everything(const RecordedRun& run, Observer& judge, const Findings& findings) {
  Tried tried;
  for (const Shown& shown : run.shown) {
    Sharded value = shown.value;
    const Torus& torus = value.torus();
    for (int chip = 0; chip < torus.chips(); ++chip)
      for (const std::size_t at : places(value, chip))
        for (const Spoiler& by : spoilers()) {
          Sharded spoiled = value;
          if (!spoil(spoiled, chip, at, by)) continue;
          const std::size_t before = findings.all().size();
          shown.to(judge, spoiled);
          EXPECT_EQ(findings.all().size(), before + 1)
              << shown.step() << " on " << torus.name(chip) << "[" << at << "]: " << by.name;
          if (findings.all().size() != before + 1) return tried;
          EXPECT_EQ(findings.all().back().step, shown.step());
          EXPECT_EQ(findings.all().back().pass, shown.scope.pass);
          EXPECT_EQ(findings.all().back().op,
                    shown.op == nullptr ? "input" : shown.op->to_string());
          if (!value.holds_partial()) {
            EXPECT_EQ(findings.all().back().chip, torus.name(chip)) << shown.step();
          }
          tried.by.insert(by.name);
          tried.steps.insert(shown.step());
        }
    const std::size_t before = findings.all().size();
    shown.to(judge);
    EXPECT_EQ(findings.all().size(), before) << shown.step() << " is right";
  }
  return tried;
}

/// Those of every op; one of which rows share three prefixes: they are prefilled on all chips, read
/// by a third of them each in the prefill and with a third of their heads in the decode, so that
/// both hand-overs move them; and two of models' texts, whose steps turn, gather, choose and put
/// slots behind those of prefixes.
std::vector<Case> cases() {
  std::vector<Case> all = cases_of_every_op();
  for (const std::string& model : two_models()) all.push_back(parse_case(model + kRun));
  all.push_back(
      parse_case("torus=2x1x3 model=palm-tiny,layers=2,E=12,F=12,H=6,K=3,Q=4,V=12 batch=12 "
                 "prefill=ws2d:batch decode=ws1d:heads prompt=6 chunk=2 gen=3 seed=5 prefix=3:3"));
  all.push_back(parse_case(std::string("model=") + SHARDPROOF_SOURCE "/tests/data" +
                           "/models/llama-3.model,layers=1,E=12,F=12,H=6,K=6,Q=4,V=12,P=8 "
                           "torus=2x1x3 batch=6 prefill=ws2d:batch prompt=2 prefix=1:3 gen=2"));
  // One chip on x: of partial maxima over several the exact regime sees the largest alone.
  all.push_back(parse_case(std::string("model=") + SHARDPROOF_SOURCE "/tests/data" +
                           "/models/experts.model,E=12,F=12,H=4,K=2,Q=4,V=12,P=8,D=2 "
                           "torus=1x1x2 batch=2 prefill=ws2d:batch prompt=2 gen=2"));
  return all;
}

/// Every value that has an element was spoiled, in every pass; of which ops.
void expect_all_tried(const RecordedRun& run, const Tried& tried, std::set<OpKind>& ops) {
  std::set<std::string> passes, shown_in;
  for (std::int64_t i = 0; i < run.plan.passes.size(); ++i)
    passes.insert(run.plan.passes.at(i).name);
  for (const Shown& shown : run.shown) {
    const bool empty = element_count(shown.value.shape()) == 0;
    EXPECT_EQ(tried.steps.contains(shown.step()), !empty) << shown.step();
    if (empty) continue;
    shown_in.insert(shown.scope.pass);
    if (shown.op != nullptr) ops.insert(shown.op->kind);
  }
  EXPECT_EQ(shown_in, passes);
}

/// Each way was used, of the results of each op.
void expect_all_used(const std::set<std::string>& ways, const std::set<OpKind>& ops) {
  for (const Spoiler& by : spoilers()) EXPECT_TRUE(ways.contains(by.name)) << by.name;
  for (const OpRow& row : all_ops()) EXPECT_TRUE(ops.contains(row.kind)) << row.name;
}

TEST(JudgedValues, AreSeenWrongOnEveryChipInEveryPass) {
  std::set<std::string> ways;
  std::set<OpKind> ops;
  for (const Case& c : cases()) {
    const RecordedRun run(c);
    Findings findings(Findings::Until::all);
    Judge judge(run.known->answer, run.known->stored, findings);
    const Tried tried = spoil_everything(run, judge, findings);
    expect_all_tried(run, tried, ops);
    ways.insert(tried.by.begin(), tried.by.end());
    EXPECT_EQ(judge.finish().verdict, Verdict::different);
  }
  expect_all_used(ways, ops);
}

TEST(JudgedValues, OfTheF32RegimeToo) {
  std::set<std::string> ways;
  std::set<OpKind> ops;
  for (Case c : cases()) {
    c.numerics.regime = Regime::f32;
    c.numerics.schedule = Schedule::ring;
    const RecordedRun run(c);
    Findings findings(Findings::Until::all);
    ScalarJudge judge(run.plan, run.known->stored, run.known->prompt, run.known->answer, findings);
    const Tried tried = spoil_everything(run, judge, findings);
    expect_all_tried(run, tried, ops);
    ways.insert(tried.by.begin(), tried.by.end());
    EXPECT_EQ(judge.finish().verdict, Verdict::different);
  }
  expect_all_used(ways, ops);
}

/// With an oracle and weights that are +0 everywhere, and a run that has nothing else: few of a
/// run's own values are +0.
TEST(JudgedValues, HaveASignWhereTheyAreZero) {
  const RecordedRun run(two_models()[0] + kRun);
  const auto zero = [](auto& tensors) {
    for (auto& [id, tensor] : tensors) std::fill(tensor.data.begin(), tensor.data.end(), 0.0F);
  };
  oracle::Answer answer = run.known->answer;
  zero(answer.checkpoints), zero(answer.raw), zero(answer.unstored), zero(answer.stats);
  const auto& all = run.known->stored.tensors();
  std::map<std::string, Tensor> tensors(all.begin(), all.end());
  zero(tensors);
  const Weights weights(run.plan.source_case.model, std::move(tensors),
                        run.known->stored.stored_type());
  Findings findings(Findings::Until::all);
  Judge judge(answer, weights, findings);
  std::set<std::string> seen;
  for (const Shown& shown : run.shown) {
    Sharded value = shown.value;
    if (value.stores_int32() || value.holds_partial() ||
        shown.declared->role.kind == Role::Kind::constant || element_count(value.shape()) == 0)
      continue;
    const int chips = value.torus().chips();
    for (int chip = 0; chip < chips; ++chip) std::ranges::fill(value.f32_of(chip), 0.0F);
    shown.to(judge, value);
    ASSERT_EQ(findings.all().size(), seen.size()) << shown.step();
    for (int chip = 0; chip < chips; ++chip) {
      Findings one;
      Judge afresh(answer, weights, one);
      Sharded spoiled = value;
      spoiled.f32_of(chip).back() = -0.0F;
      shown.to(afresh, spoiled);
      EXPECT_EQ(one.all().size(), 1U) << shown.step() << " on " << value.torus().name(chip);
    }
    value.f32_of(chips - 1)[0] = -0.0F;
    shown.to(judge, value);
    seen.insert(shown.step());
    ASSERT_EQ(findings.all().size(), seen.size()) << shown.step();
  }
  EXPECT_GT(seen.size(), 200U);
}

/// The verdict on a run of which only some values are shown.
template <class IsShown>
Judgement judged(const RecordedRun& run, IsShown&& is_shown) {
  Findings findings;
  Judge judge(run.known->answer, run.known->stored, findings);
  for (const Shown& shown : run.shown)
    if (is_shown(shown)) shown.to(judge);
  judge.observe_generated(run.generated);
  return judge.finish();
}

/// The checkpoint that a value is declared to be, in full; "" of what is none.
std::string checkpoint_of(const RecordedRun& run, const Shown& shown) {
  if (shown.declared->role.kind != Role::Kind::checkpoint) return "";
  return expected_value(run.known->answer, run.known->stored, shown.scope, shown.declared->role,
                        shown.value.shape())
      .id;
}

/// Nothing of a checkpoint but rows, sums or neighbours makes it met.
TEST(JudgedValues, ThatWereNotShownWholeAreNotMet) {
  const RecordedRun run(two_models()[0] + kRun);
  EXPECT_EQ(judged(run, [](const Shown&) { return true; }).verdict, Verdict::equal);
  std::set<std::string> wanted;
  for (const auto& [id, tensor] : run.known->answer.checkpoints) wanted.insert(id);
  for (const auto& [id, tensor] : run.known->answer.tokens) wanted.insert(id);
  int by_last_row = 0;  // that would still be shown by its last row
  for (const std::string& id : wanted) {
    bool last_row = false;
    const Judgement j = judged(run, [&](const Shown& shown) {
      const bool of_it = checkpoint_of(run, shown) == id;
      const ValueRow* const row = value_row(shown.declared->role);
      const bool whole = !shown.declared->role.last || (row != nullptr && row->last_rows);
      last_row |= of_it && !whole;
      return !of_it || !whole || shown.value.holds_partial();
    });
    by_last_row += last_row ? 1 : 0;
    EXPECT_EQ(j.verdict, Verdict::not_judged) << id;
    EXPECT_EQ(j.reason(), "no complete value of the run is declared as " + id);
  }
  EXPECT_EQ(by_last_row, 6) << "the last layer's out, in every pass";
}

/// A run that shows all but its last pass, or the last of its tokens, is not one that ended.
TEST(JudgedValues, ThatStopEarlyAreNotJudged) {
  const RecordedRun run(two_models()[0] + kRun);
  for (const char* pass : {"prefill.c0", "prefill.c1", "decode.1", "decode.2", "decode.4"})
    EXPECT_EQ(judged(run, [&](const Shown& shown) { return shown.scope.pass != pass; }).verdict,
              Verdict::not_judged)
        << pass;
}

/// A wrong token of any step and row.
TEST(JudgedValues, TheGeneratedTableIsJudgedInEveryStepAndRow) {
  const std::vector<std::string> passes{"prefill.c1", "decode.1", "decode.2", "decode.3",
                                        "decode.4"};
  for (const char* regime : {"", "regime=f32"}) {
    const RecordedRun run(two_models()[0] + kRun + regime);
    ASSERT_EQ(run.generated.shape, (Shape{6, 5}));
    for (std::size_t i = 0; i < run.generated.data.size(); ++i) {
      IntTensor changed = run.generated;
      changed.data[i] ^= 1;
      Findings findings;
      const auto verdict = [&](auto&& judge) {
        for (const Shown& shown : run.shown) shown.to(judge);
        judge.observe_generated(changed);
        const Judgement j = judge.finish();
        if (*regime == '\0') {
          EXPECT_EQ(j.difference()->pass, passes[i % 5]);
        }
        EXPECT_EQ(j.difference()->index,
                  (Shape{static_cast<std::int64_t>(i / 5), static_cast<std::int64_t>(i % 5)}));
        return j.verdict;
      };
      if (*regime == '\0') {
        EXPECT_EQ(verdict(Judge(run.known->answer, run.known->stored, findings)),
                  Verdict::different)
            << i;
      } else if (i % 7 == 0) {
        EXPECT_EQ(verdict(ScalarJudge(run.plan, run.known->stored, run.known->prompt,
                                      run.known->answer, findings)),
                  Verdict::different)
            << i;
      }
    }
  }
}

}  // namespace
}  // namespace shardproof
