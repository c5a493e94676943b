#include "engine/program/program.h"

#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

#include "engine/program/typing.h"
#include "tests/engine/run_program.h"
#include "tests/engine/strategy_sample.h"
#include "tests/engine/text_rows.h"
#include "tests/sanitized.h"
#include "tests/weights/expect_error.h"

namespace shardproof {
namespace {

std::vector<Program> programs_of(const PhasePrograms& phase) {
  return {phase.embed, phase.layer, phase.head, phase.sample};
}

/// Models that between them have every op.
std::vector<ModelConfig> models() {
  std::vector<ModelConfig> all;
  for (const char* text : {"palm-tiny", "palm-tiny,ffn=geglu,norm=layernorm,bias=all,tied=false",
                           "palm-tiny,ffn=gelu,rope=interleaved,bias=qkv",
                           "palm-tiny,ffn=gelu-erf,rope=none,norm=layernorm,bias=norm"})
    for (Block block : {Block::parallel, Block::serial}) {
      all.push_back(parse_model(text));
      all.back().block = block;
    }
  return all;
}

/// The numbers of key/value heads that shard K over no axis, over z, zy and zyx.
std::vector<std::int64_t> kv_heads(const Torus& torus) {
  std::vector<std::int64_t> all;
  for (const char* axes : {"", "z", "zy", "zyx"}) all.push_back(torus.size(Axes::parse(axes)));
  return all;
}

/// The programs of every strategy.
std::vector<Program> all_programs() {
  const Torus torus(4, 2, 3);
  std::vector<Program> all;
  for (const Strategy& strategy : all_strategies())
    for (const std::int64_t K : kv_heads(torus))
      for (NumberFormat act : {NumberFormat::f32, NumberFormat::bf16})
        for (const ModelConfig& family : models())
          for (Program& program :
               programs_of(phase_under(strategy, with_dims(family, 24, 24, 24, K, 24), torus, act)))
            all.push_back(std::move(program));
  return all;
}

TEST(ProgramText, ParseInvertsPrintForEveryStrategy) {
  std::set<OpKind> kinds;
  OneInN some(20, "programs");
  for (const Program& program : all_programs()) {
    if (some()) {
      EXPECT_EQ(parse_program(program.name, print_program(program)), program) << program.name;
    }
    for (const Op& op : program.ops) kinds.insert(op.kind);
  }
  EXPECT_GE(kinds.size(), 22U) << "the strategies use fewer ops than they did";
}

constexpr const char* kEveryForm = R"(input x : BLE_xzy is in
input q : BLH_zyxQ is q
a : BLE_x = all_gather(x, E, zy) is in
b : BLE_x partialsum-yz = all_reduce(a, x) is raw embed
c : B_yzLE_x = all_to_all(a, E->B, zy as yz) is last out
d : BLE_yx = permute_axes(x, E, xzy->yzx) is in
e : BLS_zR_yxQ = split_dim(q, H->S_zR_yx) is q
f : BLH_zyxQ = merge_dim(e, SR->H) is q
g : BLE = einsum(BLHQ,HQE->BLE + BLF,FE->BLE; a, b; c, d) is raw block_out
h : BLE = scale_by(g, embed_scale) is unstored embed
l : BL = divide_by(g, E) is stat mu
m : BLF = bias(g, a, b) is gate
n : BLE = norm(g, l, a, b) is norm
i : BC, j : BC = local_argmax(h) is stat candidates, stat indices
k : BMKQ = append(a, b, c) is previous k_cache
output a, b, k
)";

TEST(ProgramText, PrintInvertsParseForEveryForm) {
  EXPECT_EQ(print_program(parse_program("forms", kEveryForm)), kEveryForm);
}

TEST(ProgramText, SkipsCommentsEmptyLinesAndBlanks) {
  const Program program =
      parse_program("p", "# head\n\n  input x : BLE is in  # tail\r\n\toutput x");
  EXPECT_EQ(print_program(program), "input x : BLE is in\noutput x\n");
  EXPECT_EQ(parse_program("p", ""), parse_program("p", print_program(parse_program("p", ""))));
}

TEST(ProgramText, TellsThePartsOfAnOp) {
  const Program program = parse_program("forms", kEveryForm);
  EXPECT_EQ(program.producer("c")->axes.to_string(), "zy");
  EXPECT_EQ(program.producer("c")->as.to_string(), "yz");
  EXPECT_EQ(program.producer("j"), program.producer("i"));
  EXPECT_EQ(program.producer("x"), nullptr);
  EXPECT_TRUE(program.producer("c")->results[0].role.last);
  EXPECT_EQ(program.producer("g")->args, (std::vector<std::string>{"a", "b", "c", "d"}));
  EXPECT_EQ(program.producer("k")->results[0].role.kind, Role::Kind::previous);
}

TEST(ProgramText, RefusesWhatIsNoStatement) {
  for (const TextRow& row :
       text_rows(SHARDPROOF_SOURCE "/tests/engine/program", "statements.txt")) {
    const std::string message = message_of([&] { parse_program("p", row[0]); });
    EXPECT_TRUE(matches(message, row[1])) << row.place << ": " << message;
  }
  EXPECT_EQ(message_of([] { parse_program("p", "\n\nx : BLE = plus(a) is in"); }),
            "program_c0: line 3: 'x : BLE = plus(a) is in': 'plus' is not an op");
}

// Each role, complete and partial; what has no row travels as f32.
TEST(NumberFormat, OfCodesIsAByte) {
  const auto type = [](const char* role, const char* layout) {
    return wire_type({"x", Layout::parse(layout), Role::parse(role)},
                     {.weights = NumberFormat::int8, .act = NumberFormat::bf16}, {});
  };
  EXPECT_EQ(type("weight wq", "EHQ"), NumberFormat::int8);
  EXPECT_EQ(type("weight w_out", "F_xE"), NumberFormat::int8);
  for (const char* role : {"weight wq_scale", "weight embed", "weight bq", "raw q", "scaled q"})
    EXPECT_EQ(type(role, "BLHQ"), NumberFormat::f32) << role;
  EXPECT_EQ(type("gate", "BLF"), NumberFormat::bf16);
}

TEST(NumberFormat, IsThatOfTheRowForCompleteCheckpointsAndWeights) {
  struct Of {
    const char* role;
    const char* layout;
    NumberFormat type;
  };
  constexpr NumberFormat f32 = NumberFormat::f32, bf16 = NumberFormat::bf16,
                         int32 = NumberFormat::int32;
  const Of all[] = {{"gate", "BLF", bf16},       {"gate", "BLF partialsum-x", f32},
                    {"in", "BLE_x", bf16},       {"last out", "BE", bf16},
                    {"raw gate", "BLF", f32},    {"unstored gate", "BLF", f32},
                    {"score", "BLHM", f32},      {"previous k_cache", "BMKQ", bf16},
                    {"stat ss", "BL", f32},      {"stat indices", "BC", int32},
                    {"token", "B", int32},       {"input pos", "BL", int32},
                    {"constant ones", "E", f32}, {"weight wq", "EHQ", bf16},
                    {"weight norm", "E", f32},   {"weight nothing", "E", f32},
                    {"nothing", "E", f32}};
  for (const auto& [role, layout, type] : all) {
    const ValueDecl value{"x", Layout::parse(layout), Role::parse(role)};
    EXPECT_EQ(wire_type(value, {.weights = NumberFormat::bf16, .act = NumberFormat::bf16}, {}),
              type)
        << role;
    EXPECT_EQ(wire_type(value, {}, {}), type == int32 ? int32 : f32) << role;
  }
}

TEST(Execute, RefusesACheckpointThatOverflowed) {
  const auto product = [](float v) {
    return message_of([&] {
      run_program(R"(
        input x : BLE_z is in
        input w : E_zF is weight w_gate
        h : BLF partialsum-z = einsum(BLE,EF->BLF; x, w) is gate
        hr : BLF_z = reduce_scatter(h, F, z) is gate
        output hr
      )",
                  Torus(1, 1, 2),
                  {{"x", tensor_of({1, 1, 2}, {v, v})}, {"w", tensor_of({2, 2}, {1, 1, 1, v})}});
    });
  };
  EXPECT_EQ(product(0x1p62F), "");
  EXPECT_TRUE(product(0x1p64F).starts_with("engine_finite: ")) << product(0x1p64F);
  EXPECT_NE(product(0x1p64F).find("hr (gate) is inf at [0,0,1], on chip (0,0,1)"),
            std::string::npos)
      << product(0x1p64F);
}

TEST(Execute, RefusesAStatisticThatOverflowed) {
  // Behind an infinite ss the norm would be zeros, finite and equal to any other such norm.
  const auto statistic = [](const std::string& name, float v) {
    return message_of([&] {
      run_program(fmt::format(R"(
                    input x : BLE_z is in
                    ss : BL partialsum-z = einsum(BLE,BLE->BL; x, x) is stat {0}
                    sa : BL = all_reduce(ss, z) is stat {0}
                    output sa
                  )",
                              name),
                  Torus(1, 1, 2), {{"x", tensor_of({1, 1, 2}, {v, v})}});
    });
  };
  for (const char* name :
       {"ss", "ss2", "final_ss", "sum", "sum2", "final_sum", "mu", "mu2", "final_mu"}) {
    EXPECT_EQ(statistic(name, 0x1p62F), "") << name;
    const std::string said = statistic(name, 0x1p64F);
    EXPECT_TRUE(said.starts_with("engine_finite: ")) << said;
    EXPECT_NE(said.find(fmt::format("sa (stat {}) is inf at [0,0], on chip (0,0,0)", name)),
              std::string::npos)
        << said;
  }
}

TEST(Execute, RefusesAnyComputedValueThatIsNotFinite) {
  // Each kind of value, infinite and NaN, on the last chip only.
  const Torus torus(1, 1, 3);
  for (const char* role :
       {"mid", "raw block_out", "unstored out", "stat d", "stat d2", "stat final_d"})
    for (float bad :
         {std::numeric_limits<float>::infinity(), -std::numeric_limits<float>::infinity(),
          std::numeric_limits<float>::quiet_NaN()}) {
      Tensor x = tensor_of({1, 1, 6});
      x.data[5] = bad;
      const std::string said = message_of([&] {
        run_program(
            fmt::format("input x : BLE_z is in\ny : BLE_z = add(x, x) is {}\noutput y", role),
            torus, {{"x", x}});
      });
      EXPECT_TRUE(said.starts_with("engine_finite: ")) << role << " " << said;
      EXPECT_NE(said.find("at [0,0,5], on chip (0,0,2)"), std::string::npos) << said;
    }
}

TEST(Execute, SaysAtWhichStepAnErrorOfItsOwnCame) {
  Program program = parse_program("test",
                                  "input x : BLE_z is in\ny : BLE_z = add(x, x) is mid\n"
                                  "output y");
  program.ops[0].args.pop_back();  // what the parser refuses: operands that are not there
  Threads threads(1);
  const auto x = shared(shard(tensor_of({1, 1, 2}), Layout::parse("BLE_z"), Torus(1, 1, 2)));
  std::string said;
  try {
    program.ops[0].kind = static_cast<OpKind>(99);
    execute(program, {{"x", x}},
            {.config = any_config(),
             .threads = threads,
             .scope = {.pass = "decode.1", .previous = "", .layer = 0}});
  } catch (const std::exception& error) {
    said = error.what();
  }
  EXPECT_TRUE(said.starts_with("decode.1.test.y = ")) << said;
  EXPECT_NE(said.find("this op is not implemented"), std::string::npos) << said;
}

TEST(Execute, TakesTheTypesOfACheckInPlaceOfItsOwn) {
  const Program program = parse_program("test", R"(
    input x : BLE_z is in
    xg : BLE = all_gather(x, E, z) is in
    y : BLE = add(xg, xg) is mid
    output y
  )");
  const Torus torus(2, 1, 3);
  const auto x =
      shared(shard(tensor_of({1, 1, 6}, {1, 2, 3, 4, 5, 6}), Layout::parse("BLE_z"), torus));
  Threads threads(1);
  Execution inferring{.config = any_config(), .threads = threads};
  Execution given = inferring;
  std::map<std::string, Type> types = check(program, {{"x", {1, 1, 6}}}, torus);
  given.types = &types;
  const Sharded expected = *execute(program, {{"x", x}}, inferring).at("y");
  const Sharded made = *execute(program, {{"x", x}}, given).at("y");
  EXPECT_EQ(made.type(), expected.type());
  EXPECT_EQ(made.f32(), expected.f32());
  // Types of another program: its values do not fit.
  types.at("xg").shape = {1, 1, 3};
  EXPECT_EQ(label_of([&] { execute(program, {{"x", x}}, given); }), "sharded_c1");
}

TEST(Strategies, LayerProgramsCheckOnUnequalTori) {
  const std::vector<ModelConfig> families = models();
  std::size_t turn = 0;
  for (const char* size : {"1x1x1", "4x2x3", "1x2x3", "3x2x1", "2x3x5"}) {
    const Torus torus = Torus::parse(size);
    const std::int64_t n = torus.chips();
    for (const Strategy& strategy : all_strategies())
      for (const std::int64_t K : kv_heads(torus)) {
        // One family of models each, by turns: eight have every op between them.
        ModelConfig model = with_dims(families[turn++ % families.size()], n, n, n, K, n);
        model.Q = 12;  // few-heads shards it
        const NumberFormat act =
            model.block == Block::serial ? NumberFormat::bf16 : NumberFormat::f32;
        SCOPED_TRACE(
            fmt::format("{} with {} on {}", strategy.to_string(), print_model(model), size));
        Case run = run_under(strategy, model, torus, act);
        run.batch *= 2;
        run.prompt *= 2;
        for (const Program& program : programs_of(make_plan(run).prefill))
          EXPECT_EQ(message_of([&] { check(program, run, run.prompt, 3); }), "") << program.name;
      }
  }
}

}  // namespace
}  // namespace shardproof
