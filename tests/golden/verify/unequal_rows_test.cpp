// Whole runs of rows with prompts of their own lengths: the chips against the oracle, and in the
// f32 regime against the scalar model.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "engine/run/inference.h"
#include "golden/judge/expected.h"
#include "golden/verify/verify.h"
#include "tests/golden/judged_run.h"

namespace shardproof {
namespace {

constexpr std::int64_t kFirst = 4, kSecond = 3, kSteps = 2;

/// The tokens of the six rows in the two passes of the prefill; neighbours alike and not.
const std::vector<std::int64_t> kInFirst{4, 2, 4, 4, 1, 3}, kInSecond{3, 1, 3, 3, 1, 2};

/// Row by row, or as the neighbours are that stand alike.
std::vector<PassRows> rows(const std::vector<std::int64_t>& start,
                           const std::vector<std::int64_t>& tokens) {
  std::vector<PassRows> all;
  for (std::size_t b = 0; b < start.size(); ++b)
    if (!all.empty() && all.back().start == start[b] && all.back().tokens == tokens[b])
      ++all.back().rows;
    else
      all.push_back({.rows = 1, .start = start[b], .tokens = tokens[b]});
  return all;
}

/// The prompts in two chunks, as long as the longest row's, then decode steps.
std::vector<PassPlan> unequal_passes() {
  const std::size_t B = kInFirst.size();
  std::vector<std::int64_t> end(B, 0);
  std::vector<PassPlan> all;
  for (std::int64_t n = 0; n < 2 + kSteps; ++n) {
    PassPlan pass = Passes(std::ssize(kInFirst), kFirst + kSecond, kFirst, 1 + kSteps).at(n);
    std::vector<std::int64_t> tokens(B, 1);
    if (n < 2) tokens = n == 0 ? kInFirst : kInSecond;
    pass.rows = rows(end, tokens);
    for (std::size_t b = 0; b < B; ++b) end[b] += tokens[b];
    all.push_back(pass);
  }
  return all;
}

Case of(const std::string& strategies, const std::string& more = "", const std::string& keys = "") {
  return parse_case("torus=2x1x3 model=palm-tiny,layers=2,E=12,F=12,H=6,Q=4,V=12" + keys +
                    " batch=6 prompt=7 chunk=4 gen=3 " + strategies + " " + more);
}

TypedPlan planned(const Case& c, const std::vector<PassPlan>& passes) {
  TypedPlan typed{make_plan(c), {}, {}};
  typed.plan.passes = Passes(passes);
  typed.types = check(typed.plan);
  return typed;
}

/// The positions of a row's scores, too, are its own.
const char* const kAlibi = ",rope=alibi,unembed_bias=true";

const std::vector<std::string> kUnequalStrategies{
    "prefill=ws1d:heads decode=ws1d:heads", "prefill=ws2d:heads decode=ws2d:heads",
    "prefill=ws2d:batch decode=ws2d:batch", "prefill=wg-xyz:batch decode=ws2d:heads"};

/// How far a run's checkpoints are from the oracle's, by name: of each tensor the largest distance
/// over the root mean square, and of those the largest. Cache slots that no token reached are left
/// out.
class Distances : public Observer {
 public:
  explicit Distances(const oracle::Answer& exact) : exact_(exact) {}

  void observe(const Scope& scope, const Program& program, const Op* op, const ValueDecl& declared,
               const Sharded& value) override {
    const Role& m = declared.role;
    // What the head takes of the last layer's out is a part of what counts already.
    const int layer = program.of_layer() ? scope.layer : -1;
    const auto at = exact_.checkpoints.find(checkpoint_id(scope.pass, layer, m.name));
    if (op == nullptr || m.kind != Role::Kind::checkpoint || declared.layout.is_partial() ||
        at == exact_.checkpoints.end())
      return;
    const Tensor whole = assemble(value);
    const Tensor& exact = at->second;
    const auto B = static_cast<std::size_t>(exact.shape[0]);
    const std::size_t row = whole.data.size() / B;  // of one sequence, as the run has it
    double largest = 0.0, squares = 0.0;
    std::int64_t count = 0;
    const bool places = exact.shape.size() > 1 && exact.shape[1] == pass_length(scope.pass) &&
                        !m.name.ends_with("_cache") && m.name != "logits";
    for (std::size_t b = 0; b < B; ++b) {
      std::size_t from = b * exact.data.size() / B;
      if (m.last) from += static_cast<std::size_t>(exact_.last.at(scope.pass).data[b]) * row;
      const std::size_t reached =
          m.name.ends_with("_cache")
              ? row / static_cast<std::size_t>(exact.shape[1]) *
                    static_cast<std::size_t>(exact_.written.at(scope.pass).data[b])
          : places && !m.last
              ? row / static_cast<std::size_t>(exact.shape[1]) *
                    static_cast<std::size_t>(exact_.tokens_in.at(scope.pass).data[b])
              : row;
      for (std::size_t i = 0; i < reached; ++i) {
        const auto e = static_cast<double>(exact.data[from + i]);
        largest = std::fmax(largest, std::fabs(static_cast<double>(whole.data[b * row + i]) - e));
        squares += e * e;
        ++count;
      }
    }
    if (squares > 0.0) largest /= std::sqrt(squares / static_cast<double>(count));
    by_name[m.name] = std::fmax(by_name[m.name], largest);
  }

  std::map<std::string, double> by_name;

 private:
  std::int64_t pass_length(const std::string& pass) const {
    return exact_.inputs.at(pass + ".ids").shape[1];
  }

  const oracle::Answer& exact_;
};

/// What drift is, measured by an observer of the run.
Judgement expect_drift_of(const TypedPlan& typed, OracleMemo& memo) {
  const auto known = memo.get(typed.plan);
  Distances distances(known->answer);
  Judgement j = verify_plan(typed, memo, {.observer = &distances});
  const std::string line = print_case(typed.plan.source_case);
  EXPECT_EQ(j.verdict, Verdict::equal) << line << ": " << j.explanation();
  if (!j.drift) return j;
  EXPECT_EQ(j.drift->equal_tokens, j.drift->tokens) << "every pass counts";
  EXPECT_EQ(j.drift->relative, distances.by_name) << line;
  for (const char* name : {"k_cache", "v_cache", "final_norm", "logits"})
    EXPECT_TRUE(distances.by_name.contains(name)) << name;
  return j;
}

TEST(Drift, IsTheDistanceOfTheRunItselfFromTheOracle) {
  OracleMemo memo;
  const Judgement j = expect_drift_of(
      make_typed_plan(parse_case("torus=5x1x3 model=palm-tiny,layers=1,E=60,F=120,H=15,Q=4,V=60 "
                                 "prefill=ws2d:heads decode=wg-xyz:batch regime=f32 schedule=ring "
                                 "prompt=3 chunk=2 gen=3 seed=5")),
      memo);
  ASSERT_TRUE(j.drift);
  for (const char* name : {"norm", "q", "gate", "hidden", "attn", "block_out", "out", "embed"})
    EXPECT_GT(j.drift->relative.count(name), 0U) << name;
}

TEST(UnequalRows, AreJudgedEqual) {
  OracleMemo memo;
  for (const std::string& strategies : kUnequalStrategies)
    for (const char* keys : {"", kAlibi})
      for (const char* numerics : {"", "act=bf16", "regime=f32 schedule=ring", "regime=f32"}) {
        const Judgement j =
            expect_drift_of(planned(of(strategies, numerics, keys), unequal_passes()), memo);
        if (j.drift) {
          EXPECT_EQ(j.drift->tokens, 3 * 6);
        }
      }
}

TEST(UnequalRows, AreJudgedByTheirOwnPasses) {
  const Case c = of(kUnequalStrategies[1]);
  OracleMemo memo;
  const TypedPlan unequal = planned(c, unequal_passes());
  // The same case, before and after, of equal rows.
  const auto equal_rows = memo.get(c);
  const auto known = memo.get(unequal.plan);
  EXPECT_NE(known, equal_rows);
  EXPECT_EQ(memo.get(c), equal_rows);
  EXPECT_EQ(memo.get(unequal.plan), known);
  EXPECT_EQ(memo.get(make_plan(c)), equal_rows);
  EXPECT_NE(known->answer.tokens.at("decode.2.token").data,
            equal_rows->answer.tokens.at("decode.2.token").data);
  // As long as the longest row.
  std::vector<PassPlan> longer = unequal_passes();
  longer[0].L = longer[0].rows[0].tokens = 6;
  for (std::size_t n = 1; n < longer.size(); ++n) longer[n].cached += 2;
  for (std::size_t n = 1; n < longer.size(); ++n) longer[n].rows[0].start += 2;
  EXPECT_EQ(memo.get(planned(c, longer).plan)->prompt.shape, (Shape{6, 9}));
  EXPECT_EQ(verify_plan(planned(c, longer), memo).verdict, Verdict::equal);
}

template <class OfRun>
Judgement crossed_under(const RunPlan& runs, const RunPlan& judges) {
  JudgedRun<OfRun> run(judges);
  run.run(run.judge, {}, &runs);
  return run.judge.finish();
}

/// A run of one plan's passes, judged by what the oracle or the scalar model makes of another's.
Judgement crossed(const TypedPlan& runs, const TypedPlan& judges) {
  return judges.plan.source_case.numerics.regime == Regime::f32
             ? crossed_under<ScalarJudge>(runs.plan, judges.plan)
             : crossed_under<Judge>(runs.plan, judges.plan);
}

TEST(UnequalRows, ThatStandElsewhereAreDifferent) {
  for (const auto& [numerics, keys] :
       {std::pair{"", ""}, {"regime=f32", ""}, {"", kAlibi}, {"regime=f32", kAlibi}}) {
    const Case c = of(kUnequalStrategies[1], numerics, keys);
    const TypedPlan right = planned(c, unequal_passes());
    EXPECT_EQ(crossed(right, right).verdict, Verdict::equal);
    const auto wrong = [&](std::size_t pass, auto&& change) {
      std::vector<PassPlan> passes = unequal_passes();
      change(passes[pass]);
      return crossed(planned(c, passes), right);
    };
    // Another position: what rotates and what is cached goes elsewhere.
    EXPECT_EQ(wrong(1, [](PassPlan& p) { p.rows[1].start += 1; }).verdict, Verdict::different);
    EXPECT_EQ(wrong(3, [](PassPlan& p) { p.rows.back().start -= 1; }).verdict, Verdict::different);
    // Another last token, whose position is right: its logits differ.
    const Judgement j = wrong(1, [](PassPlan& p) { p.rows.back().tokens -= 1; });
    EXPECT_EQ(j.verdict, Verdict::different);
    // All rows alike, as if the shorter ones were padded in front of nothing.
    EXPECT_EQ(wrong(2, [](PassPlan& p) { p.rows = {{.rows = 6, .start = p.cached, .tokens = 1}}; })
                  .verdict,
              Verdict::different);
  }
}

/// Shows a judge a cache with other bits in the first slot of row 4 that no token has reached.
class Filler : public Observer {
 public:
  Filler(Observer& judge, std::uint32_t bits, std::string role)
      : judge_(judge), bits_(bits), role_(std::move(role)) {}

  void observe(const Scope& scope, const Program& program, const Op* op, const ValueDecl& declared,
               const Sharded& value) override {
    if (scope.pass != "decode.1" || scope.layer != 1 || declared.role.to_string() != role_)
      return judge_.observe(scope, program, op, declared, value);
    Tensor whole = assemble(value);
    const std::int64_t M = whole.shape[1], width = whole.shape[2] * whole.shape[3];
    float& first = whole.data[static_cast<std::size_t>((4 * M + 4) * width)];
    EXPECT_EQ(std::bit_cast<std::uint32_t>(first), kUnwritten);
    first = std::bit_cast<float>(bits_);
    judge_.observe(scope, program, op, declared, shard(whole, value.layout(), value.torus()));
  }

  static constexpr std::uint32_t kUnwritten = 0x7fc00000;

 private:
  Observer& judge_;
  std::uint32_t bits_;
  std::string role_;
};

template <class OfRun>
void expect_seen_in_a_free_slot(const RunPlan& plan, const char* role) {
  // As it must be; +0, as the oracle files it; a number; what hostile buffers are filled with.
  for (const std::uint32_t bits : {Filler::kUnwritten, 0U, 0x3f800000U, 0xffffffffU}) {
    JudgedRun<OfRun> run(plan);
    Filler filler(run.judge, bits, role);
    run.run(filler);
    const Judgement j = run.judge.finish();
    EXPECT_EQ(j.verdict, bits == Filler::kUnwritten ? Verdict::equal : Verdict::different)
        << role << " " << bits << ": " << j.explanation();
    if (bits != Filler::kUnwritten) {
      EXPECT_EQ(j.difference()->index, (Shape{4, 4, 0, 0}));
    }
  }
}

TEST(UnequalRows, ShowWhatIsInACacheSlotThatNoTokenHasReached) {
  const RunPlan plan = planned(of(kUnequalStrategies[1]), unequal_passes()).plan;
  RunPlan f32 = plan;
  f32.source_case.numerics.regime = Regime::f32;
  for (const char* role : {"k_cache", "v_cache", "previous k_cache", "previous v_cache"}) {
    expect_seen_in_a_free_slot<Judge>(plan, role);
    expect_seen_in_a_free_slot<ScalarJudge>(f32, role);
  }
}

TEST(UnequalRows, LeaveNaNBehindTheirTokensAndNowhereElse) {
  OracleMemo memo;
  const auto known = memo.get(planned(of(kUnequalStrategies[0]), unequal_passes()).plan);
  // Padding is not written.
  const std::vector<std::vector<std::int32_t>> written{
      {4, 2, 4, 4, 1, 3}, {7, 3, 7, 7, 2, 5}, {8, 4, 8, 8, 3, 6}, {9, 5, 9, 9, 4, 7}};
  for (std::size_t n = 0; n < written.size(); ++n) {
    const std::string pass = known->answer.passes[n];
    EXPECT_EQ(known->answer.written.at(pass).data, written[n]) << pass;
    const Tensor& filed = known->answer.checkpoints.at(checkpoint_id(pass, 0, "k_cache"));
    Scope scope;
    scope.pass = pass;
    const Expected wanted =
        expected_value(known->answer, known->weights, scope, Role::parse("k_cache"), filed.shape);
    ASSERT_EQ(wanted.shape, filed.shape);
    const std::int64_t slot = filed.shape[2] * filed.shape[3], M = filed.shape[1];
    for (std::int64_t i = 0; i < std::ssize(filed.data); ++i) {
      const auto at = static_cast<std::size_t>(i);
      const bool reached = i / slot % M < written[n][static_cast<std::size_t>(i / slot / M)];
      EXPECT_EQ(wanted.bits[at],
                reached ? std::bit_cast<std::uint32_t>(filed.data[at])
                        : std::bit_cast<std::uint32_t>(std::numeric_limits<float>::quiet_NaN()));
      if (!reached) {
        EXPECT_EQ(std::bit_cast<std::uint32_t>(filed.data[at]), 0U);
      }
    }
  }
}

}  // namespace
}  // namespace shardproof
