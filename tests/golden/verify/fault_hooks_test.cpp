// Faults planted in transfer plans and placed weights: the judge names the step that each was
// planted at, on every chip of a 3x1x2 torus. Of results judged_values_test.cpp has every one.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "engine/program/typing.h"
#include "tests/golden/every_op.h"
#include "tests/golden/faults.h"
#include "tests/golden/recorded_run.h"
#include "tests/golden/recorded_step.h"

namespace shardproof {
namespace {

/// A run, whose steps are recorded, and which is judged with faults.
struct Setting : RecordedRun {
  explicit Setting(const Case& c) : RecordedRun(c) {
    for (const Shown& one : shown)
      if (one.op != nullptr) steps.push_back(&one);
  }

  /// By turns with chips that share what they compute and each by itself.
  Judgement judge(const FaultHooks& faults) {
    const bool alone = turn++ % 2 == 0;
    return verify_case(plan.source_case, memo,
                       {.hazards = alone ? Hazards::full() : Hazards::hostile(), .faults = faults});
  }

  /// Each chip by itself; with chips that share what they compute the verdict must be the same.
  Judgement judge_both(const FaultHooks& faults) {
    const Judgement alone =
        verify_case(plan.source_case, memo, {.hazards = Hazards::full(), .faults = faults});
    const Judgement sharing =
        verify_case(plan.source_case, memo, {.hazards = Hazards::hostile(), .faults = faults});
    EXPECT_EQ(sharing.verdict, alone.verdict) << alone.explanation();
    EXPECT_TRUE(sharing.difference()) << alone.explanation();
    if (sharing.difference() && alone.difference()) {
      EXPECT_EQ(sharing.difference()->step, alone.difference()->step);
    }
    return alone;
  }

  std::vector<const Shown*> steps;
  int turn = 0;
};

// ---- plans

using PlanFault = std::function<Moves(Moves, int chip)>;

/// One chip alone gets what `fault` makes of the plan.
PlanFault on_one_chip(const std::function<Moves(Moves)>& fault) {
  return [=](Moves plan, int chip) {
    Moves changed = fault(plan);
    std::swap(plan.pieces.at(static_cast<std::size_t>(chip)),
              changed.pieces.at(static_cast<std::size_t>(chip)));
    return plan;
  };
}

Moves doubled(Moves plan, int chip) {
  auto& pieces = plan.pieces.at(static_cast<std::size_t>(chip));
  const auto once = pieces;
  pieces.insert(pieces.end(), once.begin(), once.end());
  return plan;
}

/// The chip gets what is meant for another.
Moves misdirected(Moves plan, int chip) {
  const auto c = static_cast<std::size_t>(chip);
  plan.pieces.at(c) = plan.pieces.at((c + 1) % plan.pieces.size());
  return plan;
}

FaultHooks planned(const Shown& step, const PlanFault& fault, int chip) {
  FaultHooks faults;
  faults.plan = [=, id = step.step()](const Scope& scope, const Program& program, const Op& op,
                                      Moves& plan) {
    if (scope.step(program, op.results[0].name) == id) plan = fault(std::move(plan), chip);
  };
  return faults;
}

bool has_plan(OpKind kind) {
  return is_collective(kind) || kind == OpKind::slice || kind == OpKind::last;
}

bool reduces(OpKind kind) {
  return kind == OpKind::reduce_scatter || kind == OpKind::all_reduce || op_row(kind).searches;
}

/// After an all_reduce every chip has the same.
bool has_a_place(OpKind kind) { return kind != OpKind::all_reduce && !op_row(kind).searches; }

/// Each fault of a plan, and whether it can make a difference to a kind of step.
struct KindOfFault {
  std::string name;
  PlanFault fault;
  bool (*matters)(OpKind);
};
const std::vector<KindOfFault>& kinds_of_fault() {
  static const std::vector<KindOfFault> all{{"lost", on_one_chip(without_transfer), is_collective},
                                            {"doubled", doubled, reduces},
                                            {"misdirected", misdirected, has_a_place}};
  return all;
}

TEST(FaultHooks, AWrongPlanIsSeenAtItsStepOnEveryChip) {
  std::set<std::tuple<std::string, OpKind, int>> seen;
  for (const Case& c : cases_of_every_op()) {
    Setting setting(c);
    for (const Shown* step : setting.steps) {
      if (!has_plan(step->op->kind) ||
          (reduces(step->op->kind) && step->declared->layout.is_partial()))
        continue;
      const Recorder recorder(step->program->name, step->declared->name, step->scope.pass);
      for (const KindOfFault& of : kinds_of_fault())
        for (int chip = 0; chip < c.torus.chips(); ++chip) {
          if (!of.matters(step->op->kind) || seen.contains({of.name, step->op->kind, chip}))
            continue;
          const FaultHooks faults = planned(*step, of.fault, chip);
          const auto wrong = value_of_step(*setting.known, setting.plan, faults, recorder);
          ASSERT_TRUE(wrong.seen) << step->step();
          const auto first = first_wrong_chip(step->value, *wrong.seen);
          if (!first) continue;  // the chips hold the same, or a partial
          // A chip that was told wrong asks for something else in a search's next round.
          if (!op_row(step->op->kind).searches) {
            EXPECT_EQ(*first, c.torus.name(chip)) << step->step();
          }
          const Judgement j = setting.judge_both(faults);
          ASSERT_TRUE(j.difference()) << of.name << " " << step->step() << " " << j.explanation();
          EXPECT_EQ(j.difference()->step, step->step()) << of.name;
          EXPECT_EQ(j.difference()->chip, *first) << of.name << " " << step->step();
          seen.insert({of.name, step->op->kind, chip});
        }
    }
  }
  int lost_permutes = 0;  // two chips keep their block whatever the order
  for (int chip = 0; chip < 6; ++chip)
    for (const OpRow& row : all_ops())
      for (const KindOfFault& of : kinds_of_fault())
        if (const OpKind kind = row.kind; has_plan(kind) && of.matters(kind)) {
          const bool found = seen.contains({of.name, kind, chip});
          if (kind == OpKind::permute_axes && of.name == "lost")
            lost_permutes += found ? 1 : 0;
          else
            EXPECT_TRUE(found) << of.name << " " << to_string(kind) << " " << chip;
        }
  EXPECT_EQ(lost_permutes, 4);
}

Moves lost_on_all_chips(Moves plan, int) { return without_transfer(std::move(plan)); }

TEST(FaultHooks, NoMissingTransferWorksByAccident) {
  std::set<std::string> seen;
  for (const Case& c : cases_of_every_op()) {
    Setting setting(c);
    for (const Shown* step : setting.steps) {
      if (!is_collective(step->op->kind) || op_row(step->op->kind).searches ||
          step->declared->layout.is_partial() ||
          !seen.insert(std::string(to_string(step->op->kind)) + " " + step->step()).second)
        continue;
      const Recorder recorder(step->program->name, step->declared->name, step->scope.pass);
      const FaultHooks faults = planned(*step, lost_on_all_chips, 0);
      const auto wrong = value_of_step(*setting.known, setting.plan, faults, recorder);
      ASSERT_TRUE(wrong.seen) << step->step();
      if (!first_wrong_chip(step->value, *wrong.seen)) continue;  // every chip has its own block
      const Judgement j = setting.judge_both(faults);
      ASSERT_TRUE(j.difference()) << step->step();
      EXPECT_EQ(j.difference()->step, step->step());
    }
  }
  EXPECT_GE(seen.size(), 40U);
}

TEST(FaultHooks, AWrongPlanOfPartialSumsIsSeenToo) {
  int judged = 0;
  for (const Case& c : cases_of_every_op()) {
    Setting setting(c);
    for (const Shown* step : setting.steps) {
      if (!step->declared->layout.is_partial() || !is_collective(step->op->kind)) continue;
      const Judgement j = setting.judge(planned(*step, lost_on_all_chips, 0));
      ASSERT_TRUE(j.difference()) << step->step() << " " << j.explanation();
      EXPECT_EQ(j.difference()->step, step->step());
      ++judged;
    }
  }
  EXPECT_GT(judged, 0);
}

void from_a_chip_past_the_last(Moves& plan) { plan.pieces[5][0].from_chip = 6; }
void from_a_chip_before_the_first(Moves& plan) { plan.pieces[5][0].from_chip = -1; }
void from_past_the_end(Moves& plan) { plan.pieces[5][0].from += 1; }
void to_past_the_end(Moves& plan) { plan.pieces[5].back().to += 1; }
void to_before_the_begin(Moves& plan) { plan.pieces[5].back().to -= 1 << 20; }
void for_too_few_chips(Moves& plan) { plan.pieces.pop_back(); }
void of_twice_the_rows(Moves& plan) { plan.to_local[0] *= 2; }

TEST(FaultHooks, APlanThatCannotBeCarriedOutIsRefused) {
  Setting setting(cases_of_every_op()[0]);
  int number = 0;
  for (const auto change :
       {from_a_chip_past_the_last, from_a_chip_before_the_first, from_past_the_end, to_past_the_end,
        to_before_the_begin, for_too_few_chips, of_twice_the_rows}) {
    FaultHooks faults;
    faults.plan = [=](const Scope&, const Program&, const Op&, Moves& plan) { change(plan); };
    const Judgement j = setting.judge(faults);
    EXPECT_EQ(j.verdict, Verdict::refused) << number;
    EXPECT_TRUE(j.reason().starts_with("transfer_c1: ")) << number << " " << j.reason();
    ++number;
  }
}

// ---- weights

TEST(FaultHooks, AMisplacedWeightIsSeenAtTheInputOnEveryChip) {
  for (const Case& c : cases_of_every_op()) {
    Setting setting(c);
    std::map<std::string, std::set<int>> seen;
    for (const auto& entry : setting.known->stored.tensors()) {
      const std::string& weight = entry.first;
      for (int chip = 0; chip < c.torus.chips(); ++chip) {
        bool changed = false;
        FaultHooks faults;
        faults.weight = [&](const std::string& name, Sharded& placed) {
          if (name != weight || changed) return;
          const std::span<float> mine = placed.f32_of(chip);
          for (const auto& other : placed.f32())
            if (!changed && !std::equal(mine.begin(), mine.end(), other.begin())) {
              std::copy(other.begin(), other.end(), mine.begin());
              changed = true;
            }
        };
        const Judgement j = setting.judge(faults);
        if (!changed) continue;  // every chip holds all of it
        const auto name = weight.substr(weight.find('.') + 1);
        ASSERT_TRUE(j.difference()) << weight << " " << j.explanation();
        EXPECT_EQ(j.difference()->op, "input") << weight;
        EXPECT_NE(j.difference()->checkpoint.find(name), std::string::npos)
            << weight << " " << j.difference()->checkpoint;
        EXPECT_EQ(j.difference()->chip, c.torus.name(chip)) << weight;
        seen[name].insert(chip);
      }
    }
    for (const char* name : {"wq", "wo", "w_out", "embed"})
      EXPECT_EQ(seen[name].size(), 6U) << name;
  }
}

TEST(FaultHooks, AreToldWhereTheyAre) {
  Setting setting(cases_of_every_op()[0]);
  std::set<std::string> planned_at, results, weights;
  FaultHooks faults;
  faults.plan = [&](const Scope& scope, const Program& program, const Op& op, Moves&) {
    planned_at.insert(scope.step(program, op.results[0].name));
  };
  faults.result = [&](const Scope& scope, const Program& program, const Op&,
                      const ValueDecl& declared,
                      Sharded&) { results.insert(scope.step(program, declared.name)); };
  faults.weight = [&](const std::string& name, Sharded&) { weights.insert(name); };
  EXPECT_EQ(setting.judge(faults).verdict, Verdict::equal);
  std::set<std::string> with_plan, all;
  for (const Shown* step : setting.steps) {
    all.insert(step->step());
    if (has_plan(step->op->kind)) with_plan.insert(step->step());
  }
  EXPECT_EQ(planned_at, with_plan);
  EXPECT_EQ(results, all);
  for (const auto& [name, tensor] : setting.known->stored.tensors())
    EXPECT_TRUE(weights.contains(name)) << name;
}

}  // namespace
}  // namespace shardproof
