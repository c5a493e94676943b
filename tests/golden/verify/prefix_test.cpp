// Whole runs of rows that go on from shared prefixes: the chips against the unsharded model in
// every regime, and what judges see of the faults that such runs alone can have.
#include <fmt/format.h>
#include <gtest/gtest.h>
// gtest first
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "golden/judge/judge.h"
#include "golden/trace/read/dump.h"
#include "golden/trace/verdict/diff.h"
#include "golden/verify/bounds_judge.h"
#include "golden/verify/scalar_judge.h"
#include "golden/verify/verify.h"
#include "oracle/numeric/detail/functions.h"
#include "tests/golden/recorded_run.h"
#include "tests/golden/scalar/faulty.h"
#include "tests/golden/trace/write/traced_run.h"
#include "tests/sanitized.h"
#include "tests/weights/folder.h"
#include "weights/model/softmax.h"
#include "weights/storage/generator.h"

namespace shardproof {
namespace {

/// Twelve rows of seven tokens, the first three of which are a prefix's. Meshes of 2·1·3 chips.
std::string line(const std::string& more, const std::string& keys = "") {
  return "torus=2x1x3 model=palm-tiny,layers=2,E=12,F=12,H=6,K=3,Q=4,V=12" + keys +
         " batch=12 prompt=7 chunk=2 gen=3 seed=5 " + more;
}

const std::vector<std::string> kStrategies{
    "prefill=ws1d:heads decode=ws2d:batch", "prefill=ws2d:heads decode=ws1d:batch",
    "prefill=ws2d:batch decode=ws2d:batch", "prefill=wg-xyz:batch decode=ws2d:heads"};

TEST(SharedPrefixes, AreJudgedEqualInEveryRegime) {
  OracleMemo memo;
  OneInN some(5, "cases");
  for (const std::string& strategies : kStrategies)
    for (const char* prefix : {"3:1", "3:2", "3:3", "2:5", "3:6", "3:12"})
      for (const char* numerics :
           {"", "lengths=7,4,6,5", "weights=int8 act=bf16 lengths=ragged",
            "regime=f32 schedule=ring", "regime=f32 lengths=7,4,6,5 act=bf16 wire=bf16",
            "regime=field", "regime=field lengths=ragged"}) {
        if (!some()) continue;
        const Case c =
            parse_case(line(fmt::format("prefix={} {} {}", prefix, strategies, numerics)));
        const Judgement j = verify_case(c, memo);
        EXPECT_EQ(j.verdict, Verdict::equal) << print_case(c) << ": " << j.explanation();
        if (j.drift) {
          EXPECT_EQ(j.drift->tokens, 3 * 12) << print_case(c);
        }
        if (j.bounds && std::string_view(numerics).find("wire") == std::string_view::npos) {
          EXPECT_EQ(j.bounds->loose, 0) << print_case(c);
        }
      }
}

TEST(SharedPrefixes, AreEqualInModelsOfEveryKind) {
  OracleMemo memo;
  for (const char* model : {",rope=alibi,unembed_bias=true", ",rope=interleaved,rotary=0.5",
                            ",norm=layernorm,bias=all,ffn=geglu", ",softmax=base2", ",cache=bf16",
                            ",tied=false,rope=none"})
    for (const char* more :
         {"", "regime=f32", "block=serial regime=f32 loop=both-half", "regime=field"}) {
      const Case c = parse_case(line(kStrategies[2] + " prefix=3:6 " + more, model));
      const Judgement j = verify_case(c, memo);
      EXPECT_EQ(j.verdict, Verdict::equal) << print_case(c) << ": " << j.explanation();
    }
}

/// Meshes with a chip, with three and with unequal sides; prefixes that divide rows and that do
/// not.
RC_GTEST_PROP(SharedPrefixes, OfAnySizesAreEqual, ()) {
  const auto from = [](int least, int most) { return *rc::gen::inRange(least, most + 1); };
  const std::string torus =
      *rc::gen::element<std::string>("1x1x1", "1x3x1", "2x1x3", "3x1x2", "1x2x3");
  const int B = from(1, 6), N = from(1, B), P = from(1, 4), own = from(1, 4);
  const std::string regime = *rc::gen::element<std::string>("exact", "f32", "field");
  const std::string lengths = *rc::gen::element<std::string>("", "lengths=ragged");
  const Case c = parse_case(fmt::format(
      "torus={} model=palm-tiny,layers=1,E=12,F=12,H=6,K=3,Q=4,V=12 prefill=ws2d:heads "
      "decode=ws1d:heads batch={} prompt={} chunk={} gen={} seed={} prefix={}:{} regime={} {}",
      torus, B, P + own, from(1, P + own), from(1, 3), from(1, 99), P, N, regime, lengths));
  OracleMemo memo;
  const Judgement j = verify_case(c, memo);
  if (j.verdict != Verdict::equal) RC_FAIL(print_case(c) + ": " + j.explanation());
}

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

// ---- Which prefix a row reads ----

using Mapping = std::function<std::int64_t(std::int64_t row)>;

/// The prompt of rows that go on from prefixes, with other prefixes before them.
IntTensor with_prefixes(IntTensor prompt, const SharedPrefix& prefix, const Mapping& of_row) {
  const IntTensor right = prompt;
  const std::int64_t B = prompt.shape[0], width = prompt.shape[1];
  for (std::int64_t b = 0; b < B; ++b)
    std::copy_n(right.data.begin() + prefix.first_row(of_row(b), B) * width, prefix.length,
                prompt.data.begin() + b * width);
  return prompt;
}

/// Shows a judge nothing of the passes over prefixes nor of their caches.
class OwnValues : public Observer {
 public:
  explicit OwnValues(Observer& judge) : judge_(judge) {}
  void observe(const Scope& scope, const Program& program, const Op* op, const ValueDecl& declared,
               const Sharded& value) override {
    if (scope.pass.starts_with("prefix.") || declared.role.kind == Role::Kind::prefix) return;
    ++shown;
    judge_.observe(scope, program, op, declared, value);
  }
  int shown = 0;

 private:
  Observer& judge_;
};

/// A run in which each row has a prefix of its own, whose contents are those of the judge's prefix
/// of this number: what is found in the rows' own passes.
std::vector<Finding> rows_that_read(const Case& shared, const Mapping& of_row) {
  Case apart = shared;
  apart.prefix.rows = shared.batch;
  const RunPlan judged = make_plan(shared), runs = make_plan(apart);
  OracleMemo memo;
  Findings findings;
  Threads threads(1);
  const auto run = [&](Judge judge, const Weights& weights, const IntTensor& prompt,
                       const std::shared_ptr<const Field>& field) {
    OwnValues own(judge);
    run_inference(runs, weights, with_prefixes(prompt, shared.prefix, of_row), threads, &own,
                  Hazards::hostile(), {}, &findings, field);
    EXPECT_GT(own.shown, findings.all().empty() ? 100 : 10);
  };
  if (shared.numerics.regime == Regime::field) {
    const FieldSetting setting{.seed = shared.seed};
    const auto known = memo.of_field(judged, setting);
    run(Judge(known->answer, findings), Weights(shared.model, {}), known->ids,
        std::make_shared<const Field>(setting));
  } else {
    const auto known = memo.get(judged);
    run(Judge(known->answer, known->stored, findings), known->weights, known->prompt, nullptr);
  }
  return findings.all();
}

TEST(SharedPrefixes, ReadAsCopiesAreTheSameAndAnyOtherReadingIsDifferent) {
  for (const std::string& strategies : kStrategies)
    for (const char* regime : {"", "regime=field"}) {
      const Case c = parse_case(line(fmt::format("{} prefix=3:4 {}", strategies, regime)));
      const Mapping right = [&](std::int64_t b) { return c.prefix.of_row(b, c.batch); };
      const auto none = rows_that_read(c, right);
      EXPECT_TRUE(none.empty()) << print_case(c) << none[0].to_string();
      const std::map<std::string, Mapping> wrong{
          {"the first for all", [](std::int64_t) { return 0; }},
          {"modulo", [](std::int64_t b) { return b % 4; }},
          {"rows counted on a chip of six", [](std::int64_t b) { return b % 6 * 4 / 12; }},
          {"rows of a chip as if they were all", [](std::int64_t b) { return b % 6 * 4 / 6; }},
          {"one row reads another's",
           [&](std::int64_t b) { return b == 10 ? std::int64_t{2} : right(b); }}};
      for (const auto& [what, of_row] : wrong) {
        const auto found = rows_that_read(c, of_row);
        ASSERT_FALSE(found.empty()) << what << " " << print_case(c);
        EXPECT_EQ(found[0].pass, "prefill.c0") << what;
        EXPECT_EQ(found[0].checkpoint, "prefill.c0.layer0.score") << what;
        const std::int64_t row = found[0].index.at(0);
        EXPECT_NE(of_row(row), right(row)) << what << ": row " << row;
        EXPECT_LT(found[0].index.at(3), 3) << "a position of the prefix";
      }
    }
}

// ---- Attention by a faulty rule, shown to the judges of the f32 regime ----

/// How attention over a prefix and a row's own cache goes wrong.
struct Rule {
  /// Of a row of the batch, counted on its chip and over all chips, and of the chip's rows.
  std::function<std::int64_t(std::int64_t local, std::int64_t global, std::int64_t rows)> prefix;
  bool dropped = false;    ///< the prefix's keys are not seen
  bool twice = false;      ///< they are counted twice
  bool from_zero = false;  ///< the mask takes the first own slot for position 0
  bool own_first = false;  ///< own keys come before the prefix's
};
constexpr std::int64_t kPrefixes = 4, kBatch = 12;

std::int64_t right_prefix(std::int64_t, std::int64_t global, std::int64_t) {
  return global * kPrefixes / kBatch;
}

/// What a chip has of an operand.
struct Operand {
  Operand(const Sharded& of, int chip)
      : local(of.local()), numbers(of.f32()[static_cast<std::size_t>(chip)].data()) {}
  const float* vector(std::int64_t i, std::int64_t j, std::int64_t k) const {
    return numbers + ((i * local[1] + j) * local[2] + k) * local[3];
  }
  Shape local;
  const float* numbers;
};

std::int64_t first_of(const Sharded& value, std::size_t dim, int chip) {
  return value.torus().block(chip, value.layout().dims()[dim].axes) * value.local()[dim];
}

/// All five results of a query's head, at `at` of each.
void attended(const Rule& rule, const faulty::Args& args, int chip, std::int64_t b, std::int64_t l,
              std::int64_t h, std::vector<std::vector<float>>& results) {
  const Operand q(args[0], chip), k(args[1], chip), v(args[2], chip), pk(args[3], chip),
      pv(args[4], chip);
  const std::int64_t Q = q.local[3], T = pk.local[1], M = T + k.local[1], H = args[0].shape()[2];
  const std::int64_t kv =
      (first_of(args[0], 2, chip) + h) * args[1].shape()[2] / H - first_of(args[1], 2, chip);
  const std::int64_t prefix =
      rule.prefix(b, first_of(args[0], 0, chip) + b, q.local[0]) - first_of(args[3], 0, chip);
  const std::int64_t position =
      args[5].i32()[static_cast<std::size_t>(chip)][static_cast<std::size_t>(b * q.local[1] + l)];
  const auto read = [&](const Operand& shared, const Operand& own, std::int64_t m) {
    // Of a prefix that is another chip's whatever the chip has.
    return m < T ? shared.vector(std::clamp<std::int64_t>(prefix, 0, pk.local[0] - 1), m, kv)
                 : own.vector(b, m - T, kv);
  };
  std::vector<std::int64_t> seen;
  for (std::int64_t m = 0; m < M; ++m)
    if (m < T ? !rule.dropped : (rule.from_zero ? m - T : m) <= position) seen.push_back(m);
  if (rule.own_first)
    std::rotate(seen.begin(), seen.begin() + std::min<std::ptrdiff_t>(T, std::ssize(seen)),
                seen.end());
  const std::size_t at = static_cast<std::size_t>((b * q.local[1] + l) * q.local[2] + h);
  const auto in_row = [&](std::int64_t m) {
    return at * static_cast<std::size_t>(M) + static_cast<std::size_t>(m);
  };
  const auto channel = [](std::int64_t c) { return static_cast<std::size_t>(c); };
  float top = -INFINITY;
  for (const std::int64_t m : seen) {
    const float *const one = q.vector(b, l, h), *const key = read(pk, k, m);
    float s = 0.0F;
    for (std::int64_t c = 0; c < Q; ++c) s = std::fma(one[channel(c)], key[channel(c)], s);
    s = static_cast<float>(static_cast<double>(s) *
                           scale_of_scores(Softmax::base_e, static_cast<double>(Q)));
    results[0][in_row(m)] = s;
    top = std::max(top, s);
  }
  results[1][at] = top;
  std::vector<std::int64_t> counted = seen;
  if (rule.twice)
    counted.insert(counted.begin(), seen.begin(),
                   std::find_if(seen.begin(), seen.end(), [&](auto m) { return m >= T; }));
  float Z = 0.0F;
  for (const std::int64_t m : seen)
    results[2][in_row(m)] = oracle::exp_of(results[0][in_row(m)] - top);
  for (const std::int64_t m : counted) Z = std::fma(results[2][in_row(m)], 1.0F, Z);
  results[3][at] = Z;
  for (std::int64_t c = 0; c < Q; ++c) {
    float s = 0.0F;
    for (const std::int64_t m : counted)
      s = std::fma(results[2][in_row(m)], read(pv, v, m)[channel(c)], s);
    results[4][at * static_cast<std::size_t>(Q) + channel(c)] =
        static_cast<float>(static_cast<double>(s) / static_cast<double>(Z));
  }
}

faulty::Fault attention_by(const Rule& rule) {
  return [rule](const Op& op, const faulty::Args& args, faulty::Results& results) {
    if (op.kind != OpKind::attend_prefix) return false;
    const std::size_t which = results.begin()->first;
    const auto chips = numbers_of(results.begin()->second);
    for (std::size_t chip = 0; chip < chips.size(); ++chip) {
      const Shape& q = args[0].local();
      const std::int64_t heads = q[0] * q[1] * q[2];
      const std::int64_t scores = heads * (args[1].local()[1] + args[3].local()[1]);
      std::vector<std::vector<float>> all;
      for (const std::int64_t size : {scores, heads, scores, heads, heads * q[3]})
        all.emplace_back(static_cast<std::size_t>(size), 0.0F);
      for (std::int64_t b = 0; b < q[0]; ++b)
        for (std::int64_t l = 0; l < q[1]; ++l)
          for (std::int64_t h = 0; h < q[2]; ++h)
            attended(rule, args, static_cast<int>(chip), b, l, h, all);
      EXPECT_EQ(all[which].size(), chips[chip].size());
      std::copy(all[which].begin(), all[which].end(), chips[chip].begin());
    }
    return true;
  };
}

/// What the judge of bounds finds.
std::vector<Finding> out_of_bounds(const Case& c, const faulty::Fault& fault) {
  OracleMemo memo;
  const auto known = memo.get(c);
  const RunPlan plan = make_plan(c);
  Findings findings;
  BoundsJudge judge(plan, findings);
  faulty::Faulty shown(judge, fault);
  Threads threads(1);
  run_inference(plan, known->weights, known->prompt, threads, &shown, Hazards::hostile(), {},
                &findings);
  EXPECT_GT(shown.planted, 0) << "the fault had no place";
  return findings.all();
}

TEST(SharedPrefixes, FaultsOfAttentionAreSeenByTheJudgesOfF32) {
  const std::map<std::string, Rule> faults{
      {"rows counted on the chip",
       {[](std::int64_t local, std::int64_t, std::int64_t) { return local * kPrefixes / kBatch; }}},
      {"the chip's rows as if they were all",
       {[](std::int64_t local, std::int64_t, std::int64_t rows) {
         return local * kPrefixes / rows;
       }}},
      {"the first prefix for all", {[](auto, auto, auto) { return std::int64_t{0}; }}},
      {"modulo", {[](auto, std::int64_t row, auto) { return row % kPrefixes; }}},
      {"the prefix dropped", {right_prefix, true}},
      {"the prefix twice", {right_prefix, false, true}},
      {"own positions from 0 on", {right_prefix, false, false, true}}};
  for (const std::string& strategies : {kStrategies[1], kStrategies[2]}) {
    const Case c = parse_case(line(strategies + " prefix=3:4 regime=f32"));
    const faulty::Fault right = attention_by({right_prefix});
    faulty::expect_equal(c, right);
    const auto none = out_of_bounds(c, right);
    EXPECT_TRUE(none.empty()) << none[0].to_string();
    // Another order of one sum has other bits.
    const faulty::Fault other_order = attention_by({right_prefix, false, false, false, true});
    faulty::expect_caught(c, other_order);
    for (const auto& [what, rule] : faults) {
      SCOPED_TRACE(what + " " + strategies);
      const faulty::Fault fault = attention_by(rule);
      faulty::expect_caught(c, fault);
      EXPECT_FALSE(out_of_bounds(c, fault).empty());
    }
  }
}

// ---- Faults at every place ----

/// Changes one element.
void spoil(Sharded& value, int chip, std::size_t i) {
  if (value.stores_int32())
    value.i32_of(chip)[i] ^= 1;
  else if (value.holds_partial())
    value.partial_values_of(chip)[i] += 1.0;
  else
    value.f32_of(chip)[i] =
        std::bit_cast<float>(std::bit_cast<std::uint32_t>(value.f32_of(chip)[i]) ^ 1U);
}

/// Shows the judge each value with one element changed, on each chip: it must be seen.
void change_everything(const RecordedRun& run, Observer& judge, const Findings& findings) {
  std::set<std::string> met;
  OneInN some(7, "values");
  std::size_t turn = 0;
  for (const Shown& shown : run.shown) {
    const bool now = shown.declared->role.kind != Role::Kind::weight &&
                     element_count(shown.value.shape()) > 0 && some();
    for (int chip = 0; chip < shown.value.torus().chips() && now; ++chip) {
      const auto size = static_cast<std::size_t>(element_count(shown.value.local()));
      Sharded changed = shown.value;
      spoil(changed, chip, turn++ % size);
      const std::size_t before = findings.all().size();
      shown.to(judge, changed);
      EXPECT_GT(findings.all().size(), before)
          << shown.step() << " on " << shown.value.torus().name(chip);
      met.insert(shown.scope.pass + " " + shown.declared->role.to_string());
    }
    if (testing::Test::HasFailure()) return;
    shown.to(judge);
  }
  if (kSanitized) return;
  for (const char* what :
       {"prefix.c0 k_cache", "prefix.c1 v_cache", "prefix.c1 prefix k_cache", "prefix.c1 logits",
        "prefill.c0 prefix k_cache", "prefill.c1 score", "prefill.c1 prefix v_cache",
        "decode.1 prefix v_cache", "decode.2 attn", "decode.2 k_cache"})
    EXPECT_TRUE(met.contains(what)) << what;
}

/// Three prefixes are prefilled on all chips, read by a third of them each in the prefill, and with
/// a third of their heads in the decode: both hand-overs move them.
TEST(SharedPrefixes, AFaultOnAnyChipInAnyValueIsSeen) {
  const std::string of = line("prefill=ws2d:batch decode=ws1d:heads prefix=3:3");
  {
    const RecordedRun run(of);
    Findings findings(Findings::Until::all);
    Judge judge(run.known->answer, run.known->stored, findings);
    change_everything(run, judge, findings);
  }
  const RecordedRun run(of + " regime=f32 schedule=ring");
  Findings findings(Findings::Until::all);
  ScalarJudge judge(run.plan, run.known->stored, run.known->prompt, run.known->answer, findings);
  change_everything(run, judge, findings);
}

/// Calls change(op) of every op that attends to a prefix.
std::function<void(RunPlan&)> of_attention(const std::function<void(Op&)>& change) {
  return [change](RunPlan& plan) {
    int changed = 0;
    for (PhasePrograms* phase : {&plan.prefill, &plan.decode})
      for (Op& op : phase->layer.ops)
        if (op.kind == OpKind::attend_prefix) change(op), ++changed;
    EXPECT_EQ(changed, 2);
  };
}

TEST(SharedPrefixes, AProgramThatReadsThemWronglyIsDifferentInEveryRegime) {
  const std::map<std::string, std::function<void(RunPlan&)>> mutants{
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
      VerifyOptions options;
      options.mutate = mutate;
      options.check_types = false;
      const Judgement j = verify_case(
          parse_case(
              line(fmt::format("prefill=ws2d:batch decode=ws1d:heads prefix=3:6 {}", regime))),
          memo, options);
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
  const TraceDiff found = diff_traces(a, b);
  ASSERT_TRUE(found.first);
  EXPECT_EQ(found.first->name, name);
  EXPECT_EQ(found.different.front(), name);
  EXPECT_EQ(diff_traces(a, a).exit_code(), 0);
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
      diff_traces(a, b);
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
