// The table of ops is held against all that reads or repeats it: type checker, executor, ledger,
// text and the table of its rules. An op that one of them lacks is named here.
#include "engine/program/ops.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <regex>
#include <set>
#include <sstream>

#include "engine/program/constants.h"
#include "engine/program/count.h"
#include "tests/engine/op_samples.h"
#include "tests/engine/run_program.h"
#include "tests/weights/expect_error.h"

namespace shardproof {
namespace {

/// The table that `shardproof list ops` prints.
std::string op_table() {
  std::ostringstream text;
  for (const char* name : {"/typing.txt", "/local_ops.txt"})
    text << std::ifstream(std::string(SHARDPROOF_SOURCE "/tools/verbs/rules") + name).rdbuf();
  return text.str();
}

/// The ops whose form is one of theirs under a section: "op OP", "form OP(...".
std::set<std::string> ops_under(const std::string& text, const std::string& section) {
  std::set<std::string> names;
  const auto begin = text.find("page docs/typing.md, \"" + section + "\"\n");
  if (begin == std::string::npos) return names;
  const std::string part = text.substr(begin, text.find("\npage ", begin) - begin);
  static const std::regex row(R"(\nop ([a-z_]+)\nform ([a-z_]+)\()");
  for (std::sregex_iterator m(part.begin(), part.end(), row), end; m != end; ++m)
    if ((*m)[1] == (*m)[2]) names.insert((*m)[1]);
  return names;
}

/// The sections of the table that may have the rules of an op.
std::set<std::string> sections_for(const OpRow& op) {
  if (op.collective) return {"Collectives"};
  if (op.takes_partial) return {"Local ops on any operand"};
  return {"Products", "Local ops on complete operands"};
}

/// The ops that the table does not have in one section, and only there, that may have them.
std::set<std::string> missing_of_table(const std::string& text) {
  std::set<std::string> missing;
  for (const OpRow& op : all_ops()) {
    const std::set<std::string> right = sections_for(op);
    int here = 0, elsewhere = 0;
    for (const char* section :
         {"Collectives", "Local ops on any operand", "Products", "Local ops on complete operands"})
      if (ops_under(text, section).contains(std::string(op.name)))
        ++(right.contains(section) ? here : elsewhere);
    if (here != 1 || elsewhere != 0) missing.insert(std::string(op.name));
  }
  return missing;
}

/// The ops that have no line "example ... = OP(...".
std::set<std::string> without_example(const std::string& text) {
  std::set<std::string> missing;
  for (const OpRow& op : all_ops()) {
    const std::string name(op.name);
    if (!std::regex_search(text, std::regex("\nexample [^\n]*(\n  [^\n]*)? " + name + "\\(")))
      missing.insert(name);
  }
  return missing;
}

std::string without(std::string text, const std::string& part) {
  const auto at = text.find(part);
  EXPECT_NE(at, std::string::npos) << part;
  return text.erase(at, part.size());
}

TEST(OpTable, NamesAreFoundAndFindTheirRows) {
  for (const OpRow& op : all_ops()) {
    EXPECT_EQ(find_op(op.name), &op);
    EXPECT_EQ(&op_row(op.kind), &op);
    EXPECT_EQ(to_string(op.kind), op.name);
  }
  EXPECT_EQ(find_op("all"), nullptr);
  EXPECT_EQ(op_row(static_cast<OpKind>(99)).name, "");
}

TEST(OpTable, EveryOpHasARecordWithAnExample) {
  EXPECT_EQ(missing_of_table(op_table()), std::set<std::string>());
  EXPECT_EQ(without_example(op_table()), std::set<std::string>());
}

TEST(OpTable, AnOpThatTheTableLacksIsNamed) {
  using Names = std::set<std::string>;
  const std::string table = op_table(), products = "\npage docs/typing.md, \"Products\"\n";
  EXPECT_EQ(missing_of_table(without(table, "\nop gelu\n")), Names{"gelu"});
  EXPECT_EQ(missing_of_table(without(table, "\nform rope(")), Names{"rope"});
  EXPECT_EQ(missing_of_table(without(table, "\"Products\"")),
            (Names{"einsum", "embed_lookup", "sum"}));
  // What takes partial sums among what does not: merge_dim stood last in its section.
  std::string moved = without(table, products);
  const auto at = moved.find("\nop merge_dim\n");
  ASSERT_NE(at, std::string::npos);
  moved.insert(at, products);
  EXPECT_EQ(missing_of_table(moved), Names{"merge_dim"});
  EXPECT_EQ(without_example(without(table, " = last(x)")), Names{"last"});
  EXPECT_EQ(without_example("").size(), all_ops().size());
}

TEST(OpTable, EveryOpHasASampleThatParsesPrintsAndChecks) {
  EXPECT_EQ(op_sample(static_cast<OpKind>(99)), nullptr);
  for (const OpRow& op : all_ops()) {
    const OpSample* const sample = op_sample(op.kind);
    ASSERT_NE(sample, nullptr) << op.name << " has no sample";
    const Program program = sample->program();
    EXPECT_EQ(print_program(program), sample->text);
    const Op& last = program.ops.back();
    EXPECT_EQ(last.kind, op.kind);
    EXPECT_EQ(last.results.size(), static_cast<std::size_t>(op.results)) << op.name;
    EXPECT_EQ(message_of([&] { sample->types(); }), "") << op.name;
  }
}

std::vector<Type> operand_types(const OpSample& sample, const Op& op) {
  const std::map<std::string, Type> types = sample.types();
  std::vector<Type> operands;
  for (const std::string& arg : op.args) operands.push_back(types.at(arg));
  return operands;
}

TEST(OpTable, TheTypeCheckerTakesAsManyOperandsAsTheTableSays) {
  for (const OpRow& row : all_ops()) {
    const OpSample& sample = *op_sample(row.kind);
    const Op op = sample.program().ops.back();
    const std::vector<Type> operands = operand_types(sample, op);
    for (std::size_t n = 0; n < 9; ++n) {
      std::vector<Type> given;
      Op asked = op;
      asked.args.clear();
      for (std::size_t i = 0; i < n; ++i) {
        given.push_back(operands[std::min(i, operands.size() - 1)]);
        asked.args.push_back("a");
      }
      const auto count = static_cast<int>(n);
      const bool fits = count >= row.operands.least && count <= row.operands.most;
      const std::string said = message_of([&] { infer(asked, given, sample.torus); });
      EXPECT_EQ(said.starts_with("program_c4"), !fits) << row.name << " of " << n << ": " << said;
    }
  }
}

TEST(OpTable, TheTypeCheckerTakesPartialOperandsWhereTheTableSays) {
  for (const OpRow& row : all_ops()) {
    const OpSample& sample = *op_sample(row.kind);
    const Op op = sample.program().ops.back();
    std::vector<Type> operands = operand_types(sample, op);
    const Axes more = operands[0].layout.partial().with(Axes::parse("z"));
    operands[0].layout = operands[0].layout.with_partial(more);
    const std::string said = message_of([&] { infer(op, operands, sample.torus); });
    EXPECT_EQ(said.starts_with(std::string(row.name) + "_c1: "), !row.takes_partial) << said;
    EXPECT_TRUE(!row.takes_partial || said.empty()) << said;
  }
}

TEST(OpTable, TheTypeCheckerTakesIntegersWhereTheTableSays) {
  for (const OpRow& row : all_ops()) {
    if (row.takes_partial) continue;
    const OpSample& sample = *op_sample(row.kind);
    const Op op = sample.program().ops.back();
    for (std::size_t i = 0; i < op.args.size(); ++i) {
      std::vector<Type> operands = operand_types(sample, op);
      if (row.integer_operand == OpRow::kAll) {
        operands[i].integer = true;
        EXPECT_EQ(message_of([&] { infer(op, operands, sample.torus); }), "") << row.name;
        continue;
      }
      const bool integer = static_cast<int>(i) == row.integer_operand;
      EXPECT_EQ(operands[i].integer, integer) << row.name << " " << i;
      operands[i].integer = !integer;
      const std::string said = message_of([&] { infer(op, operands, sample.torus); });
      const std::string rule = std::string(row.name) + (integer ? "_c2: " : "_c1: ");
      EXPECT_TRUE(said.starts_with(rule)) << row.name << " " << i << ": " << said;
    }
  }
}

TEST(OpTable, AStepDeclaresAsManyResultsAsTheTableSays) {
  for (const OpRow& row : all_ops())
    for (const bool more : {false, true}) {
      const OpSample& sample = *op_sample(row.kind);
      Program program = sample.program();
      Op& op = program.ops.back();
      op.results.resize(more ? op.results.size() + 1 : op.results.size() - 1, op.results[0]);
      if (more) op.results.back().name += "_more";
      program.outputs.clear();
      Findings findings;
      check(program, sample.shapes(), sample.torus, findings);
      const std::string wanted = fmt::format("{} returns {} results, not {}", op.to_string(),
                                             row.results, op.results.size());
      ASSERT_FALSE(findings.all().empty()) << row.name;
      EXPECT_EQ(findings.all()[0].label, "program_c4") << row.name;
      EXPECT_TRUE(findings.all()[0].message.ends_with(wanted)) << findings.all()[0].message;
    }
}

TEST(OpTable, TheReducingOpsTakeAwayPartialAxes) {
  for (const OpRow& row : all_ops()) {
    const OpSample& sample = *op_sample(row.kind);
    const Op op = sample.program().ops.back();
    const std::vector<Type> operands = operand_types(sample, op);
    const std::vector<Type> results = infer(op, operands, sample.torus);
    EXPECT_EQ(results.size(), static_cast<std::size_t>(row.results)) << row.name;
    const int before = operands[0].layout.partial().size();
    EXPECT_EQ(results[0].layout.partial().size() < before, row.reduces) << row.name;
  }
}

TEST(OpTable, TheLedgerCountsEveryOpAndTheCollectivesMove) {
  for (const OpRow& row : all_ops()) {
    const OpSample& sample = *op_sample(row.kind);
    const Ledger ledger = count(sample.program(), sample.types(), sample.torus, {}, any_config());
    EXPECT_EQ(ledger.steps.back().kind, row.kind);
    EXPECT_GT(ledger.steps.back().hbm_bytes, 0) << row.name;
    EXPECT_EQ(ledger.steps.back().moved > 0, row.collective) << row.name;
    EXPECT_EQ(ledger.steps.back().flops > 0, row.multiplies) << row.name;
    // Selecting rows of a table is none.
    EXPECT_EQ(row.multiplies, row.kind == OpKind::einsum || is_attention(row.kind)) << row.name;
    // A sum that the whole group gets is sent twice: two of the rings of docs/spec.md section 5.
    EXPECT_EQ(formula(ledger.steps.back(), false).starts_with("2 "),
              row.kind == OpKind::all_reduce || row.searches)
        << row.name;
  }
}

/// Runs the last op of a sample alone. Chips that stand alike on `axes` hold equal operands.
std::vector<Sharded> run_alone(const OpSample& sample, const Axes& axes,
                               std::vector<Sharded>& operands) {
  Program alone = sample.program();
  alone.inputs.clear();
  alone.ops.erase(alone.ops.begin(), alone.ops.end() - 1);
  const Op& op = alone.ops[0];
  const std::vector<Type> types = operand_types(sample, op);
  std::map<std::string, SharedValue> values;
  for (std::size_t i = 0; i < types.size(); ++i) {
    const auto size = static_cast<std::size_t>(
        element_count(local_shape(types[i].layout, types[i].shape, sample.torus)));
    ChipArrays<float> floats;
    ChipArrays<std::int32_t> ints;
    for (int chip = 0; chip < sample.torus.chips(); ++chip) {
      const auto own = static_cast<std::size_t>(sample.torus.block(chip, axes));
      floats.push_back(Buffer<float>(size));
      ints.push_back(Buffer<std::int32_t>(size));
      for (std::size_t e = 0; e < size; ++e) {
        floats.back()[e] = 0.5F + 0.25F * static_cast<float>((e + 7 * own + 3 * i) % 23);
        ints.back()[e] = static_cast<std::int32_t>(3 + e % 2);  // a slot beyond the cache, an id
      }
    }
    Sharded::Data data = std::move(floats);
    if (types[i].integer) data = std::move(ints);
    Sharded operand(sample.torus, types[i].layout, types[i].shape, std::move(data));
    operands.push_back(operand);
    values[op.args[i]] = shared(std::move(operand));
  }
  for (const ValueDecl& result : op.results) alone.outputs.push_back(result.name);
  Threads one(1);
  Numerics f32;
  f32.regime = Regime::f32;
  std::vector<Sharded> results;
  const auto outputs =
      execute(alone, std::move(values),
              {.config = any_config(), .threads = one, .scope = {}, .numerics = f32});
  for (const ValueDecl& result : op.results) results.push_back(*outputs.at(result.name));
  return results;
}

bool all_chips_alike(const Sharded& value) {
  const auto alike = [](const auto& chips) {
    return std::all_of(chips.begin(), chips.end(), [&](const auto& chip) {
      return chip.size() == chips[0].size() &&
             std::memcmp(chip.data(), chips[0].data(), chip.size() * sizeof(chip[0])) == 0;
    });
  };
  if (const auto* ints = std::get_if<ChipArrays<std::int32_t>>(&value.data())) return alike(*ints);
  return alike(value.f32());
}

TEST(OpTable, TheExecutorRunsEveryOpAndOnlySomeAskWhereAChipStands) {
  for (const OpRow& row : all_ops()) {
    const OpSample& sample = *op_sample(row.kind);
    const Op op = sample.program().ops.back();
    std::vector<Sharded> operands;
    // All of a collective's chips are one group: so each chip has the same operands, the group's.
    const Axes axes = row.collective ? op.axes : Axes();
    const std::vector<Sharded> results = run_alone(sample, axes, operands);
    EXPECT_EQ(results.size(), static_cast<std::size_t>(row.results));
    bool alike = true;
    for (const Sharded& result : results) alike = alike && all_chips_alike(result);
    EXPECT_EQ(alike, !row.depends_on_place) << row.name;
  }
}

TEST(OpTable, TheMovingOpsYieldWhatTheirOperandHeld) {
  for (const OpRow& row : all_ops()) {
    if (row.kind == OpKind::argmax || row.kind == OpKind::append || row.kind == OpKind::with_prefix)
      continue;                             // of two operands
    if (row.kind == OpKind::max) continue;  // which of its elements it yields depends on them
    const OpSample& sample = *op_sample(row.kind);
    std::vector<Sharded> operands;
    const std::vector<Sharded> results =
        run_alone(sample, sample.program().ops.back().axes, operands);
    std::set<float> held;
    if (std::holds_alternative<ChipArrays<float>>(operands[0].data()))
      for (const auto& chip : operands[0].f32()) held.insert(chip.begin(), chip.end());
    bool moved = true;
    for (const Sharded& result : results) {
      if (!std::holds_alternative<ChipArrays<float>>(result.data())) {
        moved = false;  // integers, of floats
        continue;
      }
      for (const auto& chip : result.f32())
        for (float v : chip) moved = moved && held.contains(v);
    }
    // A bf16 value stays what it is: these are.
    if (row.kind == OpKind::store) continue;
    EXPECT_EQ(moved, row.only_moves) << row.name;
  }
}

TEST(Constants, AreThoseOfTheModelAndOfTheOp) {
  const ModelConfig config = parse_model("palm-tiny,E=12,embed_scale=3,logit_scale=0.5");
  Op op;
  op.kind = OpKind::scale_by;
  op.parameter = "embed_scale";
  EXPECT_EQ(constant_of(op, config), 3.0);
  op.parameter = "logit_scale";
  EXPECT_EQ(constant_of(op, config), 0.5);
  op.parameter = "E";
  EXPECT_EQ(message_of([&] { constant_of(op, config); }),
            "scale_by_c2: 'E' is not a constant; legal: embed_scale, logit_scale");
  op.kind = OpKind::divide_by;
  EXPECT_EQ(constant_of(op, config), 12.0);
  op.parameter = "logit_scale";
  EXPECT_EQ(message_of([&] { constant_of(op, config); }),
            "divide_by_c2: 'logit_scale' is not a constant to divide by; legal: E");
}

}  // namespace
}  // namespace shardproof
