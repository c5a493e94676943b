// A program that runs often: what its ops know from the run before is of the same types, or made
// anew.
#include "engine/program/step_memo.h"

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tests/engine/run_program.h"

namespace shardproof {
namespace {

constexpr const char* kProgram = R"(
  input t : BLE_x is in
  g : BLE = all_gather(t, E, x) is in
  s : B_xLE = slice(g, B, x) is in
  a : BLE_x = all_to_all(s, B->E, x) is in
  output g, a
)";

/// A run's input: its shape, layout and torus.
struct Given {
  const char* layout;
  Shape shape;
  Torus torus;
};

class Memos : public testing::Test {
 protected:
  const Program program = parse_program("test", kProgram);
  Threads one{1};

  std::map<std::string, SharedValue> run(const Given& given, ProgramMemo* memo) {
    Execution execution = any_execution(one, nullptr, {});
    execution.memo = memo;
    const SharedValue t =
        shared(shard(tensor_of(given.shape), Layout::parse(given.layout), given.torus));
    return execute(program, {{"t", t}}, execution);
  }
};

TEST_F(Memos, ChangeNoBitWhateverRanBefore) {
  // Of what came before each shape, torus or layout alone is another, or nothing.
  const std::vector<Given> all{
      {"BLE_x", {6, 2, 6}, {3, 1, 2}},    {"BLE_x", {6, 2, 6}, {3, 1, 2}},
      {"BLE_x", {12, 1, 6}, {3, 1, 2}},   {"BLE_x", {12, 1, 6}, {2, 1, 3}},
      {"B_zLE_x", {12, 1, 6}, {2, 1, 3}}, {"B_zLE_x", {12, 3, 12}, {2, 1, 3}},
      {"BLE_x", {6, 2, 6}, {3, 1, 2}}};
  ProgramMemo memo(program);
  for (const Given& given : all) {
    const auto with = run(given, &memo), without = run(given, nullptr);
    for (const auto& [name, value] : without)
      EXPECT_TRUE(same_bits(*with.at(name), *value)) << name << " of " << given.layout;
  }
}

TEST_F(Memos, KeepPlansAndTypesOfTheSameTypes) {
  ProgramMemo memo(program);
  const Given given{"BLE_x", {6, 2, 6}, {3, 1, 2}};
  run(given, &memo);
  std::vector<std::shared_ptr<const Moves>> plans;
  for (const OpMemo& op : memo.ops) {
    EXPECT_NE(op.plan(), nullptr);
    EXPECT_EQ(op.results().size(), 1U);
    plans.push_back(op.plan());
  }
  run(given, &memo);
  for (std::size_t i = 0; i < plans.size(); ++i) EXPECT_EQ(memo.ops[i].plan(), plans[i]);
  run({"BLE_x", {12, 2, 6}, {3, 1, 2}}, &memo);
  for (std::size_t i = 0; i < plans.size(); ++i) EXPECT_NE(memo.ops[i].plan(), plans[i]);
}

TEST_F(Memos, AreOfNoUseToPlansWithAFault) {
  ProgramMemo memo(program);
  const Given given{"BLE_x", {6, 2, 6}, {3, 1, 2}};
  FaultHooks faults;
  faults.plan = [](const Scope&, const Program&, const Op&, Moves& moves) {
    for (Piece& piece : moves.pieces[0]) piece.from_chip = 0;
  };
  Execution execution = any_execution(one, nullptr, {});
  execution.memo = &memo;
  execution.faults = &faults;
  const SharedValue t =
      shared(shard(tensor_of(given.shape), Layout::parse(given.layout), given.torus));
  const auto wrong = execute(program, {{"t", t}}, execution);
  const auto right = run(given, &memo), want = run(given, nullptr);
  EXPECT_FALSE(same_bits(*wrong.at("g"), *want.at("g")));
  EXPECT_TRUE(same_bits(*right.at("g"), *want.at("g")));
}

TEST_F(Memos, KeepNoPlanOfVeryManyPieces) {
  const auto plan = [](std::size_t pieces, bool held_once) {
    auto moves = std::make_shared<Moves>();
    moves->pieces.resize(4);
    moves->pieces[0] = std::vector<Piece>(pieces);
    for (std::size_t chip = 1; chip < 4; ++chip)
      if (held_once)
        moves->pieces.share(chip, 0);
      else
        moves->pieces[chip] = std::vector<Piece>(pieces);
    return moves;
  };
  OpMemo memo;
  memo.keep(plan(10000, false));
  EXPECT_EQ(memo.plan(), nullptr);
  memo.keep(plan(10000, true));
  EXPECT_NE(memo.plan(), nullptr);
}

}  // namespace
}  // namespace shardproof
