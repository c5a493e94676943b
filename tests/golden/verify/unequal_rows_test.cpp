// Whole runs of rows with prompts of their own lengths: the chips against the oracle, and in the
// f32 regime against the scalar model.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "engine/run/inference.h"
#include "golden/judge/expected.h"
#include "golden/judge/judge.h"
#include "golden/verify/scalar_judge.h"
#include "golden/verify/verify.h"
#include "weights/storage/generator.h"

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

const std::vector<std::string> kStrategies{
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

TEST(UnequalRows, AreJudgedEqual) {
  OracleMemo memo;
  for (const std::string& strategies : kStrategies)
    for (const char* numerics :
         {"", "act=bf16", "regime=f32 schedule=ring", "regime=f32", "alibi", "alibi regime=f32"}) {
      const bool alibi = std::string_view(numerics).starts_with("alibi");
      const Case c = of(strategies, alibi ? numerics + 5 : numerics, alibi ? kAlibi : "");
      const TypedPlan typed = planned(c, unequal_passes());
      const auto known = memo.get(typed.plan);
      Distances distances(known->answer);
      VerifyOptions options;
      options.observer = &distances;
      const Judgement j = verify_plan(typed, memo, options);
      EXPECT_EQ(j.verdict, Verdict::equal) << print_case(c) << ": " << j.explanation();
      if (!j.drift) continue;
      EXPECT_EQ(j.drift->tokens, 3 * 6);
      EXPECT_EQ(j.drift->equal_tokens, j.drift->tokens) << "every pass counts";
      EXPECT_EQ(j.drift->relative, distances.by_name) << print_case(c);
      for (const char* name : {"k_cache", "v_cache", "final_norm", "logits"})
        EXPECT_TRUE(distances.by_name.contains(name)) << name;
    }
}

TEST(UnequalRows, AreJudgedByTheirOwnPasses) {
  const Case c = of(kStrategies[1]);
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

/// A run of one plan's passes, judged by what the oracle or the scalar model makes of another's.
Judgement crossed(const TypedPlan& runs, const TypedPlan& judges) {
  OracleMemo memo;
  const auto known = memo.get(judges.plan);
  Threads threads(1);
  Findings findings;
  const auto judged = [&](auto&& judge) {
    const IntTensor generated = run_inference(runs.plan, known->weights, known->prompt, threads,
                                              &judge, Hazards::hostile(), {}, &findings);
    if (!findings.ended()) judge.observe_generated(generated);
    return judge.finish();
  };
  if (judges.plan.given.numerics.regime == Regime::f32)
    return judged(ScalarJudge(judges.plan, known->weights, known->prompt, known->answer, findings));
  return judged(Judge(known->answer, known->weights, findings));
}

TEST(UnequalRows, ThatStandElsewhereAreDifferent) {
  for (const char* numerics : {"", "regime=f32", "alibi", "alibi regime=f32"}) {
    const bool alibi = std::string_view(numerics).starts_with("alibi");
    const Case c = of(kStrategies[1], alibi ? numerics + 5 : numerics, alibi ? kAlibi : "");
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
template <class JudgeOfRun>
class Filler : public Observer {
 public:
  Filler(JudgeOfRun& judge, std::uint32_t bits, std::string role)
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
  JudgeOfRun& judge_;
  std::uint32_t bits_;
  std::string role_;
};

TEST(UnequalRows, ShowWhatIsInACacheSlotThatNoTokenHasReached) {
  using OfOracle = Filler<Judge>;
  OracleMemo memo;
  const Case c = of(kStrategies[1]);
  const TypedPlan typed = planned(c, unequal_passes());
  const auto known = memo.get(typed.plan);
  TypedPlan f32 = typed;
  f32.plan.given.numerics.regime = Regime::f32;
  Threads threads(1);
  for (const char* role : {"k_cache", "v_cache", "previous k_cache", "previous v_cache"}) {
    // As it must be; +0, as the oracle files it; a number; what hostile buffers are filled with.
    for (const std::uint32_t bits : {OfOracle::kUnwritten, 0U, 0x3f800000U, 0xffffffffU}) {
      const Verdict wanted = bits == OfOracle::kUnwritten ? Verdict::equal : Verdict::different;
      Findings findings;
      Judge judge(known->answer, known->weights, findings);
      OfOracle filler(judge, bits, role);
      run_inference(typed.plan, known->weights, known->prompt, threads, &filler, Hazards::hostile(),
                    {}, &findings);
      const Judgement j = judge.finish();
      EXPECT_EQ(j.verdict, wanted) << role << " " << bits << ": " << j.explanation();
      if (wanted == Verdict::different) {
        EXPECT_EQ(j.difference()->index, (Shape{4, 4, 0, 0}));
      }

      Findings of_f32;
      ScalarJudge scalar(f32.plan, known->weights, known->prompt, known->answer, of_f32);
      Filler<ScalarJudge> same(scalar, bits, role);
      run_inference(f32.plan, known->weights, known->prompt, threads, &same, Hazards::hostile(), {},
                    &of_f32);
      EXPECT_EQ(scalar.finish().verdict, wanted) << role << " " << bits;
    }
  }
}

TEST(UnequalRows, LeaveNaNBehindTheirTokensAndNowhereElse) {
  OracleMemo memo;
  const auto known = memo.get(planned(of(kStrategies[0]), unequal_passes()).plan);
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

Case of_lengths(const std::string& strategies, const std::string& more) {
  return parse_case(
      "torus=2x1x3 model=palm-tiny,layers=2,E=12,F=12,H=6,K=3,Q=4,V=12 batch=6 "
      "seed=4 " +
      strategies + " " + more);
}

IntTensor generated(const Case& c, const std::optional<Stop>& stop = {}) {
  const RunPlan plan = make_plan(c);
  Threads threads(1);
  return run_inference(plan, generate_weights(c.model, c.seed),
                       generate_prompt(c.model, c.seed, c.batch, c.prompt), threads, nullptr, {},
                       {}, nullptr, nullptr, stop);
}

TEST(RaggedRows, AreEqualInEveryRegimeAndChunk) {
  OracleMemo memo;
  for (const char* strategies :
       {"prefill=ws2d:heads decode=ws2d:batch", "prefill=wg-xyz:batch decode=ws1d:heads",
        "prefill=sp:2d decode=ws2d:heads"})
    for (const char* lengths : {"ragged", "6,2,3,1", "2", "6"})
      for (const char* numerics :
           {"", "regime=f32 schedule=ring", "regime=field", "act=bf16 weights=int8"})
        for (const int chunk : {2, 4, 6}) {
          const Case c = of_lengths(strategies, fmt::format("prompt=6 chunk={} gen=3 lengths={} {}",
                                                            chunk, lengths, numerics));
          std::optional<RunPlan> plan;
          try {
            plan = make_plan(c);
          } catch (const Error&) {
            continue;  // where positions are sharded, not every chunk is legal
          }
          const Judgement j = verify_case(c, memo);
          EXPECT_EQ(j.verdict, Verdict::equal) << print_case(c) << ": " << j.explanation();
          if (j.drift) {
            EXPECT_EQ(j.drift->tokens, 3 * 6);
          }
        }
}

/// Each row alone, with its own prompt.
TEST(RaggedRows, GenerateWhatEachGeneratesAlone) {
  const std::vector<std::int64_t> lengths{6, 2, 3, 1, 6, 5};
  const Case one = of_lengths("prefill=ws2d:heads decode=ws2d:heads", "prompt=6 gen=4");
  const Weights weights = generate_weights(one.model, one.seed);
  const IntTensor prompt = generate_prompt(one.model, one.seed, 6, 6);
  std::vector<std::int32_t> alone;
  for (std::size_t b = 0; b < lengths.size(); ++b) {
    Case c = one;
    c.torus = Torus(1, 1, 1), c.batch = 1, c.prompt = c.chunk = lengths[b];
    IntTensor own({1, lengths[b]});
    std::copy_n(prompt.data.begin() + static_cast<std::ptrdiff_t>(6 * b), lengths[b],
                own.data.begin());
    Threads threads(1);
    const IntTensor tokens = run_inference(make_plan(c), weights, own, threads);
    alone.insert(alone.end(), tokens.data.begin(), tokens.data.end());
  }
  for (const char* strategies :
       {"prefill=ws2d:heads", "prefill=ws2d:batch", "prefill=ws1d:heads decode=ws2d:batch",
        "prefill=wg-xyz:batch decode=ws2d:bfirst-xyz"})
    for (int chunk = 1; chunk <= 6; ++chunk)
      EXPECT_EQ(
          generated(of_lengths(strategies,
                               fmt::format("prompt=6 gen=4 chunk={} lengths=6,2,3,1,6,5", chunk)))
              .data,
          alone)
          << strategies << " chunk=" << chunk;
}

TEST(RaggedRows, EndAtAStopToken) {
  for (const char* more : {"prompt=6 chunk=2 gen=6 lengths=6,2,3,1,6,5", "prompt=4 gen=6"}) {
    const Case c = of_lengths("prefill=wg-xyz:batch decode=ws2d:batch", more);
    const IntTensor whole = generated(c);
    for (std::int32_t stop = 0; stop < 12; ++stop) {
      IntTensor want = whole;
      for (std::size_t b = 0; b < 6; ++b) {
        const auto begin = want.data.begin() + static_cast<std::ptrdiff_t>(6 * b);
        const auto at = std::find(begin, begin + 6, stop);
        if (at != begin + 6) std::fill(at + 1, begin + 6, kNoToken);
      }
      EXPECT_EQ(generated(c, Stop{stop}).data, want.data) << stop;
    }
  }
}

/// A run ends with the last of the rows that count: the others then have what they have come to.
TEST(RaggedRows, ThatDoNotCountDoNotKeepARunGoing) {
  const Case c = of_lengths("prefill=ws2d:heads", "prompt=6 gen=6 lengths=6,2,3,1,6,5");
  const IntTensor whole = generated(c);
  for (std::size_t row = 0; row < 6; ++row) {
    const std::int32_t stop = whole.data[6 * row + 1];
    const auto passes_of = [&](std::size_t b) {
      const auto begin = whole.data.begin() + static_cast<std::ptrdiff_t>(6 * b);
      return std::min<std::ptrdiff_t>(6, std::find(begin, begin + 6, stop) - begin + 1);
    };
    for (std::size_t counting = 1; counting <= 6; ++counting) {
      std::ptrdiff_t most = 0;
      for (std::size_t b = 0; b < counting; ++b) most = std::max(most, passes_of(b));
      std::vector<std::int32_t> want(36, kNoToken);
      for (std::size_t b = 0; b < 6; ++b)
        std::copy_n(whole.data.begin() + static_cast<std::ptrdiff_t>(6 * b),
                    std::min(most, passes_of(b)),
                    want.begin() + static_cast<std::ptrdiff_t>(6 * b));
      EXPECT_EQ(generated(c, Stop{stop, static_cast<std::int64_t>(counting)}).data, want)
          << stop << " " << counting;
    }
  }
}

/// After its end a row is padding: nothing is written for it.
TEST(RaggedRows, ThatWereStoppedLeaveTheirSlotsUnwritten) {
  const Case c = of_lengths("prefill=ws2d:heads decode=ws2d:heads", "prompt=4 gen=5");
  const IntTensor whole = generated(c);
  const std::int32_t stop = whole.data[1];  // the second token of row 0
  class Slots : public Observer {
   public:
    void observe(const Scope& scope, const Program&, const Op* op, const ValueDecl& declared,
                 const Sharded& value) override {
      if (op == nullptr || declared.role.to_string() != "k_cache" || scope.layer != 1) return;
      const Tensor cache = assemble(value);
      const std::size_t slot = cache.data.size() / 6 / static_cast<std::size_t>(cache.shape[1]);
      written.clear();
      for (std::size_t m = 0; m < static_cast<std::size_t>(cache.shape[1]); ++m)
        written.push_back(!std::isnan(cache.data[m * slot]));
    }
    std::vector<bool> written;  // of row 0, by slot
  } slots;
  Threads threads(1);
  const IntTensor tokens = run_inference(make_plan(c), generate_weights(c.model, c.seed),
                                         generate_prompt(c.model, c.seed, c.batch, c.prompt),
                                         threads, &slots, {}, {}, nullptr, nullptr, Stop{stop});
  const auto own = static_cast<std::size_t>(
      std::find(tokens.data.begin(), tokens.data.begin() + 5, stop) - tokens.data.begin());
  for (std::size_t m = 0; m < slots.written.size(); ++m)
    EXPECT_EQ(slots.written[m], m < 4 + own) << m;
}

}  // namespace
}  // namespace shardproof
