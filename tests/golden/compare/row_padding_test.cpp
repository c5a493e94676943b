// Rows of unequal length: nothing is asked of padding, and all that is not padding is judged; what
// stands at padding reaches no token of any row.
#include "golden/compare/row_padding.h"

#include <gtest/gtest.h>

#include <bit>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "golden/compare/block_map.h"
#include "golden/judge/judge.h"
#include "golden/verify/bounds_judge.h"
#include "golden/verify/scalar_judge.h"
#include "golden/verify/verify.h"
#include "tests/golden/recorded_run.h"
#include "tests/golden/spoiled.h"
#include "tests/sanitized.h"

namespace shardproof {
namespace {

using Marks = std::vector<bool>;

TEST(RowPadding, IsBehindTheTokensOfARow) {
  const RowsOfPass rows({2, 0, 3}, {false, false, true});
  EXPECT_EQ(row_padding("BL", {3, 3}, false, rows), (Marks{0, 0, 1, 1, 1, 1, 0, 0, 0}));
  EXPECT_EQ(row_padding("BLE", {3, 3, 2}, false, rows),
            (Marks{0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0, 0, 0}));
  EXPECT_EQ(row_padding("BV", {3, 2}, false, rows), (Marks{0, 0, 1, 1, 0, 0}));
  EXPECT_EQ(row_padding("B", {3}, false, rows), (Marks{0, 1, 0}));
  EXPECT_EQ(row_padding("B", {3}, true, rows), (Marks{1, 1, 0}));
}

TEST(RowPadding, IsNotInCachesNorInWhatHasNoRows) {
  const RowsOfPass rows({2, 0, 3}, {false, false, true});
  EXPECT_TRUE(row_padding("BMKQ", {3, 3, 1, 2}, false, rows).empty());
  EXPECT_TRUE(row_padding("EHQ", {3, 3, 2}, false, rows).empty());
  EXPECT_TRUE(row_padding("BLE", {3, 0, 2}, false, rows).empty());
  EXPECT_TRUE(row_padding("BLE", {2, 3, 2}, false, rows).empty()) << "other rows";
  const RowsOfPass full({3, 3, 3}, {true, true, true});
  EXPECT_TRUE(row_padding("BLE", {3, 3, 2}, false, full).empty());
  EXPECT_TRUE(row_padding("B", {3}, true, full).empty());
}

TEST(RowPadding, InATraceIsInCachesBehindARowsTokensToo) {
  // Four tokens of two chunks: rows that end in the second, in the first, and with it.
  const PassPlan pass{.name = "prefill.c1",
                      .previous = "prefill.c0",
                      .phase = Phase::prefill,
                      .L = 2,
                      .cached = 2,
                      .rows = {{1, 2, 1, true}, {1, 1, 0, true}, {1, 2, 2, true}},
                      .sample = true};
  EXPECT_EQ(padding_in_trace("BMKQ", {3, 4, 1, 1}, false, pass),
            (Marks{0, 0, 0, 1, 0, 1, 1, 1, 0, 0, 0, 0}));
  EXPECT_EQ(padding_in_trace("BLE", {3, 2, 1}, false, pass), (Marks{0, 1, 1, 1, 0, 0}));
  EXPECT_EQ(padding_in_trace("B", {3}, true, pass), (Marks{0, 1, 0}));
  EXPECT_TRUE(padding_in_trace("EHQ", {3, 4, 1}, false, pass).empty());
}

/// A text's value may have its letters in any order; what it makes of a cache has no row that has
/// no token.
TEST(RowPadding, OfATextsValueIsAlongItsLetters) {
  const PassPlan pass{.name = "prefill.c1",
                      .previous = "prefill.c0",
                      .phase = Phase::prefill,
                      .L = 2,
                      .cached = 2,
                      .rows = {{1, 2, 1, true}, {1, 1, 0, true}, {1, 2, 2, true}},
                      .sample = true};
  EXPECT_EQ(padding_in_trace("LB", {2, 3}, false, pass), (Marks{0, 1, 0, 1, 1, 0}));
  EXPECT_EQ(padding_in_trace("MB", {4, 3}, false, pass),
            (Marks{0, 0, 0, 0, 1, 0, 0, 1, 0, 1, 1, 0}));
  EXPECT_EQ(padding_in_trace("MB", {4, 3}, false, pass, true),
            (Marks{0, 1, 0, 0, 1, 0, 0, 1, 0, 1, 1, 0}));
  EXPECT_TRUE(padding_in_trace("M", {4}, false, pass).empty());
}

/// Caches have slots of a row's own tokens: those of its prefix of two are elsewhere.
TEST(RowPadding, BehindAPrefixIsCountedFromTheRowsOwnTokensOn) {
  const PassPlan pass{.name = "prefill.c1",
                      .previous = "prefill.c0",
                      .phase = Phase::prefill,
                      .L = 2,
                      .cached = 2,
                      .rows = {{1, 4, 1, true}, {1, 3, 0, true}, {1, 4, 2, true}},
                      .sample = true,
                      .prefix = {2, 1}};
  EXPECT_EQ(padding_in_trace("BMKQ", {3, 4, 1, 1}, false, pass),
            (Marks{0, 0, 0, 1, 0, 1, 1, 1, 0, 0, 0, 0}));
  EXPECT_EQ(padding_in_trace("BLHM", {3, 2, 1, 1}, false, pass), (Marks{0, 1, 1, 1, 0, 0}));
  EXPECT_TRUE(padding_in_trace("NTKQ", {3, 2, 1, 1}, false, pass).empty());
}

TEST(RowPadding, OfARoleIsThatOfItsValue) {
  const RowsOfPass rows({2, 0, 3}, {false, false, true});
  const auto of = [&](const char* role, const Shape& shape) {
    return row_padding(Role::parse(role), shape, rows);
  };
  EXPECT_EQ(of("token", {3}), (Marks{1, 1, 0}));
  EXPECT_EQ(of("last out", {3, 1}), (Marks{0, 1, 0}));
  EXPECT_EQ(of("raw gate", {3, 3, 1}), (Marks{0, 0, 1, 1, 1, 1, 0, 0, 0}));
  EXPECT_EQ(of("input ids", {3, 3}), (Marks{0, 0, 1, 1, 1, 1, 0, 0, 0}));
  EXPECT_EQ(of("stat ss", {3, 3}), (Marks{0, 0, 1, 1, 1, 1, 0, 0, 0}));
  for (const char* role : {"previous k_cache", "prefix k_cache", "k_cache", "weight wq"})
    EXPECT_TRUE(of(role, {3, 3, 1, 1}).empty()) << role;
}

const std::vector<std::int64_t> kLengths{5, 2, 3, 1, 4, 5};
constexpr std::int64_t kChunk = 2, kPrompt = 5;

std::string padded_line(const std::string& of, const std::string& more = "") {
  return of + "prompt=5 chunk=2 gen=3 seed=5 lengths=5,2,3,1,4,5 " + more;
}

/// The tokens of a row in a pass, and whether it samples there, counted by hand.
std::int64_t tokens_of(const std::string& pass, std::size_t row) {
  if (pass.starts_with("decode.")) return 1;
  const std::int64_t start = (pass.back() - '0') * kChunk;
  std::int64_t tokens = 0;
  for (std::int64_t p = start; p < std::min(start + kChunk, kPrompt); ++p)
    tokens += p < kLengths[row] ? 1 : 0;
  return tokens;
}
bool samples(const std::string& pass, std::size_t row) {
  return pass.starts_with("decode.") || (kLengths[row] - 1) / kChunk == pass.back() - '0';
}

/// Whether an element of a value is padding, by the letters of the layout that the value has.
bool is_padding(const Shown& shown, std::int64_t element) {
  const std::string letters = shown.declared->layout.letters();
  const Shape& shape = shown.value.shape();
  if (!letters.starts_with("B") || letters.starts_with("BM")) return false;
  std::int64_t row = 1;
  for (std::size_t d = 1; d < shape.size(); ++d) row *= shape[d];
  const auto b = static_cast<std::size_t>(element / row);
  const std::string& pass = shown.scope.pass;
  if (letters.starts_with("BL")) {
    const std::int64_t place = element % row / (row / shape[1]);
    return place >= tokens_of(pass, b);
  }
  // The token, and what it is chosen from.
  if (shown.declared->role.to_string() == "token" || letters == "BC") return !samples(pass, b);
  return tokens_of(pass, b) == 0;
}

/// Shows the judge every value with each of its elements changed, on each chip.
void change_everything(const RecordedRun& run, Observer& judge, const Findings& findings) {
  std::map<std::string, std::set<bool>> met;  // by letters, whether padding
  const OneInN some(5, "elements");
  for (const Shown& shown : run.shown) {
    if (shown.declared->role.kind == Role::Kind::weight) continue;
    const Torus& torus = shown.value.torus();
    for (int chip = 0; chip < torus.chips(); ++chip)
      judged_elements(shown.declared->layout, shown.value.shape(), torus, chip,
                      [&](std::int64_t local, std::int64_t global) {
                        if (!some(static_cast<int>(local))) return false;
                        Sharded changed = shown.value;
                        change_element(changed, chip, static_cast<std::size_t>(local));
                        const std::size_t before = findings.all().size();
                        shown.to(judge, changed);
                        const bool seen = findings.all().size() > before;
                        const bool padding = is_padding(shown, global);
                        EXPECT_EQ(seen, !padding)
                            << shown.step() << " on " << torus.name(chip) << ", element " << global;
                        met[shown.declared->layout.letters()].insert(padding);
                        return seen == padding;
                      });
    if (testing::Test::HasFailure()) return;
    shown.to(judge);
  }
  for (const char* letters : {"BL", "BLE", "BLF", "BLHQ", "BLHM", "BLH", "B"})
    EXPECT_EQ(met[letters].size(), 2U) << letters << ": padding and not";
  EXPECT_EQ(met["BMKQ"], std::set<bool>{false});
}

TEST(RowPadding, IsAllThatTheJudgeLeavesOut) {
  for (const std::string& of : two_models()) {
    const RecordedRun run(padded_line(of));
    Findings findings(Findings::Until::all);
    Judge judge(run.known->answer, run.known->stored, findings);
    change_everything(run, judge, findings);
  }
}

TEST(RowPadding, IsAllThatTheJudgeOfF32LeavesOut) {
  for (const std::string& of : two_models()) {
    const RecordedRun run(padded_line(of, "regime=f32 schedule=ring"));
    Findings findings(Findings::Until::all);
    ScalarJudge judge(run.plan, run.known->stored, run.known->prompt, run.known->answer, findings);
    change_everything(run, judge, findings);
  }
}

TEST(RowPadding, OfTheBoundsIsLeftOut) {
  const RecordedRun run(padded_line(two_models()[1], "regime=f32 schedule=ring"));
  int left_out = 0;
  for (const Shown& shown : run.shown) {
    if (shown.op == nullptr || shown.value.stores_int32()) continue;
    const Torus& torus = shown.value.torus();
    for (const bool padding : {false, true}) {
      Findings findings(Findings::Until::all);
      BoundsJudge judge(run.plan, findings);
      // A program's values are judged from those before them.
      for (const Shown& before : run.shown) {
        if (&before == &shown) break;
        if (before.scope.pass == shown.scope.pass && before.program == shown.program &&
            before.scope.layer == shown.scope.layer)
          before.to(judge);
      }
      Sharded changed = shown.value;
      bool found = false;
      judged_elements(shown.declared->layout, changed.shape(), torus, 0,
                      [&](std::int64_t local, std::int64_t global) {
                        if (is_padding(shown, global) != padding) return false;
                        changed.f32_of(0)[static_cast<std::size_t>(local)] = 1e30F;
                        return found = true;
                      });
      if (!found) continue;
      shown.to(judge, changed);
      EXPECT_EQ(findings.all().empty(), padding) << shown.step();
      left_out += padding ? 1 : 0;
    }
  }
  EXPECT_GT(left_out, 50);
}

/// Other numbers wherever a step has padding; or where it has none, in one value of a pass.
FaultHooks garbage(bool at_padding, const std::string& pass, const std::string& role) {
  FaultHooks hooks;
  hooks.result = [=](const Scope& scope, const Program& program, const Op& op,
                     const ValueDecl& declared, Sharded& value) {
    // The field's lookup of all ids is not a pass of the run.
    if (value.holds_partial() || scope.pass == "all_ids" ||
        (!at_padding && (scope.pass != pass || declared.role.to_string() != role)))
      return;
    const Shown shown{scope, &program, &op, &declared, value};
    for (int chip = 0; chip < value.torus().chips(); ++chip)
      judged_elements(declared.layout, value.shape(), value.torus(), chip,
                      [&](std::int64_t local, std::int64_t global) {
                        if (is_padding(shown, global) != at_padding) return false;
                        const auto i = static_cast<std::size_t>(local);
                        if (value.holds_field())
                          value.field_of(chip)[i].lane[0] = 7;
                        else if (value.stores_int32())
                          value.i32_of(chip)[i] = 1;
                        else
                          value.f32_of(chip)[i] = 1.5F;
                        return !at_padding;  // of one value one element
                      });
  };
  return hooks;
}

TEST(RowPadding, ReachesNoTokenInAnyRegime) {
  OracleMemo memo;
  for (const std::string& of : two_models())
    for (const char* regime : {"", "regime=f32 schedule=ring", "regime=field"}) {
      const Case c = parse_case(padded_line(of, regime));
      VerifyOptions options;
      options.faults = garbage(true, "", "");
      const Judgement j = verify_case(c, memo, options);
      EXPECT_EQ(j.verdict, Verdict::equal) << print_case(c) << ": " << j.explanation();
      for (const char* pass : {"prefill.c0", "prefill.c1", "prefill.c2", "decode.1"})
        for (const char* role : {"k", "attn", "out", "logits"}) {
          options.faults = garbage(false, pass, role);
          EXPECT_EQ(verify_case(c, memo, options).verdict, Verdict::different)
              << role << " of " << pass << " of " << print_case(c);
        }
    }
}

}  // namespace
}  // namespace shardproof
