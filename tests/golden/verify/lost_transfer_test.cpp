// Loses the transfer of each collective of each program in turn: the judge must name the step that
// was lost, and the first chip that it left wrong.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <map>
#include <numeric>
#include <set>
#include <sstream>
#include <stdexcept>
#include <tuple>

#include "golden/verify/verify.h"
#include "tests/engine/strategy_sample.h"
#include "tests/golden/faults.h"
#include "tests/golden/recorded_step.h"
#include "tests/sanitized.h"
#include "weights/base/error.h"

namespace shardproof {
namespace {

struct Site {
  std::string phase;  // "prefill", "decode", "hand_over"
  std::string program;
  std::size_t op;
};

Program& program_at(RunPlan& programs, const Site& site) {
  if (site.phase == "hand_over") return programs.hand_over;
  PhasePrograms& phase = site.phase == "prefill" ? programs.prefill : programs.decode;
  if (site.program == "embed") return phase.embed;
  if (site.program == "layer") return phase.layer;
  if (site.program == "head") return phase.head;
  return phase.sample;
}

/// Whether a chip has another block in the order `as` than in the order `axes`; with sizes of 1
/// two orders may be one.
bool changes_places(const Op& op, const Torus& torus) {
  for (int chip = 0; chip < torus.chips(); ++chip)
    if (torus.block(chip, op.axes) != torus.block(chip, op.as)) return true;
  return false;
}

struct Tally {
  int caught = 0;
  int skipped = 0;  // every axis of the group has size 1
  std::map<std::tuple<std::string, std::string, OpKind>, int> met;  // in each program of a phase
  OneInN taken{3, "collectives of each kind in each program"};
};

void lose_each_transfer(const Case& c, OracleMemo& memo, Tally& tally) {
  const auto known = memo.get(c);
  RunPlan whole = make_plan(c);
  std::vector<Site> sites;
  for (const char* phase : {"prefill", "decode"})
    for (const char* program : {"embed", "layer", "head", "sample"})
      sites.push_back({phase, program, 0});
  sites.push_back({"hand_over", "hand_over", 0});
  for (Site site : sites) {
    const std::size_t ops = program_at(whole, site).ops.size();
    for (site.op = 0; site.op < ops; ++site.op) {
      const Op& op = program_at(whole, site).ops[site.op];
      if (!is_collective(op.kind)) continue;
      if (c.torus.size(op.axes) == 1) {
        ++tally.skipped;
        continue;
      }
      if (op.kind == OpKind::permute_axes && !changes_places(op, c.torus)) continue;
      if (!tally.taken(tally.met[{site.phase, site.program, op.kind}]++)) continue;
      VerifyOptions options;
      const std::string program_name = program_at(whole, site).name;
      const std::string pass = site.phase == "decode" ? "decode" : "prefill";
      options.faults = lost_transfer(op.results[0].name, pass, program_name);
      const std::string what =
          site.phase + " " + site.program + ": " + op.to_string() + " in " + print_case(c);
      const Judgement j = verify_case(c, memo, options);
      ASSERT_EQ(j.verdict, Verdict::different) << what;
      const Recorder recorder(program_name, op.results[0].name, pass);
      const auto right = value_of_step(*known, whole, {}, recorder);
      const auto wrong = value_of_step(*known, whole, options.faults, recorder);
      ASSERT_TRUE(right.seen && wrong.seen) << what;
      EXPECT_EQ(j.difference()->step, right.step) << what;
      EXPECT_EQ(j.difference()->op, op.to_string()) << what;
      if (const auto chip = first_wrong_chip(*right.seen, *wrong.seen)) {
        EXPECT_EQ(j.difference()->chip, *chip) << what;
      }
      ++tally.caught;
    }
  }
}

/// The tori on which every removal is tried. SHARDPROOF_REMOVAL_TORI names fewer of them, "3x1x2
/// 2x2x1", where all would take too long: under a sanitizer.
std::vector<std::string> lost_transfer_tori() {
  const std::vector<std::string> all{"4x2x3", "3x1x2", "1x2x3", "2x2x1"};
  const char* const fewer = std::getenv("SHARDPROOF_REMOVAL_TORI");
  if (fewer == nullptr) return all;
  std::vector<std::string> some;
  std::istringstream text(fewer);
  for (std::string torus; text >> torus;) {
    if (std::find(all.begin(), all.end(), torus) == all.end())
      throw std::invalid_argument("SHARDPROOF_REMOVAL_TORI: not one of the test's tori: " + torus);
    some.push_back(torus);
  }
  std::cout << "only on " << fewer << ", of " << all.size() << " tori (SHARDPROOF_REMOVAL_TORI)\n";
  return some;
}

/// Rows differ, and V is wide enough that candidates of different blocks differ: no removal is an
/// identity on these data.
Case lost_transfer_case(const std::string& torus, const std::string& model, const Strategy& prefill,
                        const Strategy& decode) {
  Case c = parse_case("torus=" + torus + " model=palm-tiny,layers=1,E=48,F=48,H=24,Q=4,V=72," +
                      model + " prefill=" + prefill.to_string() + " decode=" + decode.to_string() +
                      " batch=24 gen=2 seed=3");
  c.prompt = c.chunk = 2;
  if (!decodes(prefill)) {  // many positions, so as few rows as may be
    c.prompt = c.chunk = smallest_length(prefill, c.torus);
    c.batch = std::lcm(smallest_batch(prefill, c.torus), smallest_batch(decode, c.torus));
  }
  if (serial_only(prefill) || serial_only(decode)) c.model.block = Block::serial;
  return c;
}

TEST(LostTransfer, IsNamedByTheJudgeInEveryStrategy) {
  Tally tally;
  OracleMemo memo;
  const std::vector<std::string> tori = lost_transfer_tori();
  const std::vector<Strategy>& sample = sample_strategies();
  const std::vector<Strategy> decoders = decoding(sample);
  const std::vector<std::string> heads{"K=1", "K=24", "K=6", "K=3"};
  std::size_t turn = 0;
  for (const std::string& torus : tori)
    for (const Strategy& prefill : all_strategies()) {
      // One strategy of each kind, on 4x2x3 with two of the four K and two hand-overs, on the other
      // tori with one; what is left once, on 4x2x3, by turns with every K. All would take hours.
      const bool sampled = std::find(sample.begin(), sample.end(), prefill) != sample.end();
      if (!sampled && torus != "4x2x3") continue;
      const std::size_t times = !sampled ? 1 : torus == "4x2x3" ? 2 : 1;
      for (std::size_t i = 0; i < times; ++i, ++turn) {
        const bool handed_over = !decodes(prefill) || (torus == "4x2x3" && sampled && i > 0);
        const Strategy& decode = handed_over ? decoders[turn % decoders.size()] : prefill;
        const std::string& K = heads[turn % 4];
        lose_each_transfer(lost_transfer_case(torus, K, prefill, decode), memo, tally);
        if (HasFatalFailure()) return;
      }
    }
  // The second gather, norm and reduction of a serial block, and both sums of a layernorm.
  for (const Strategy& s : sample) {
    Case c =
        lost_transfer_case("4x2x3", "ffn=geglu,norm=layernorm,bias=all,rope=interleaved,tied=false",
                           s, decodes(s) ? s : Strategy());
    c.model.block = Block::serial;
    lose_each_transfer(c, memo, tally);
    if (HasFatalFailure()) return;
  }
  RecordProperty("caught", tally.caught);
  RecordProperty("skipped", tally.skipped);
  EXPECT_GT(tally.caught, (tori.size() == 4 ? 2000 : 100 * static_cast<int>(tori.size())) /
                              (tally.taken.all() ? 1 : 5));
  // Of these only 1x2x3 has groups of one chip.
  const bool has_groups_of_one = std::find(tori.begin(), tori.end(), "1x2x3") != tori.end();
  EXPECT_EQ(tally.skipped > 0, has_groups_of_one) << tally.skipped;
}

TEST(LostTransfer, IsRefusedByTheTypeCheckWhenTakenOutOfTheText) {
  // The same removal written as a program without the collective: types alone refuse it.
  const Case c = parse_case("torus=4x2x3 prefill=ws2d:batch");
  RunPlan programs = make_plan(c);
  int refused = 0;
  for (std::size_t i = 0; i < programs.decode.layer.ops.size(); ++i) {
    RunPlan mutant = programs;
    auto& ops = mutant.decode.layer.ops;
    if (!is_collective(ops[i].kind)) continue;
    const std::string gone = ops[i].results[0].name;
    const std::string instead = ops[i].args[0];
    ops.erase(ops.begin() + static_cast<std::ptrdiff_t>(i));
    for (Op& op : ops)
      for (std::string& arg : op.args)
        if (arg == gone) arg = instead;
    EXPECT_THROW(check(mutant), Error) << gone;
    ++refused;
  }
  EXPECT_EQ(refused, 12);
}

}  // namespace
}  // namespace shardproof
