// Attention over the cache of a prefix that rows share and then each row's own, by eye; and those
// caches as values of programs.
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "engine/ops/local_ops.h"
#include "tests/engine/run_program.h"
#include "tests/engine/written_values.h"
#include "tests/weights/expect_error.h"

namespace shardproof {
namespace {

// ---- by eye: one position of a prefix, one of the row's own, and queries of zeros, which weigh
// all keys alike

TEST(AttendPrefix, EndsWhereAChipLacksThePrefixOfItsRows) {
  // Cut by another axis than the rows, which no program may.
  const Torus torus(2, 3, 1);
  const Sharded zeros = values("B_xMKQ", {6, 1, 1, 1}, std::vector<float>(6, 0), torus);
  const Sharded prefix = values("N_yTKQ", {3, 1, 1, 1}, {0, 0, 0}, torus);
  const Sharded q = zeros.relabelled(Layout::parse("B_xLHQ"), {6, 1, 1, 1});
  const Sharded pos = integers("B_xL", {6, 1}, {1, 1, 1, 1, 1, 1}, torus);
  EXPECT_THROW(attend_prefix(q, zeros, zeros, {prefix, prefix}, pos, one()), std::logic_error);
}

TEST(AttendPrefix, IsOneSumPrefixFirst) {
  // 2^24 + 1 - 2^24 is 1. Of sums of the caches each rounded by itself it would be 0, as it is in
  // the chain of f32, which takes the prefix first: the other way round that would be 1, too.
  const Sharded q = values("BLHQ", {1, 1, 1, 1}, {0});
  const Sharded pk = values("NTKQ", {1, 2, 1, 1}, {0, 0});
  const Sharded pv = values("NTKQ", {1, 2, 1, 1}, {0x1p24F, 1});
  const Sharded k = values("BMKQ", {1, 1, 1, 1}, {0});
  const Sharded v = values("BMKQ", {1, 1, 1, 1}, {-0x1p24F});
  const Sharded pos = integers("BL", {1, 1}, {2});
  const auto attn = [&](Regime regime) {
    return attend_prefix(q, k, v, {pk, pv}, pos, one(), regime).attn.f32()[0][0];
  };
  EXPECT_EQ(attn(Regime::exact), 1.0F / 3.0F);
  EXPECT_EQ(attn(Regime::f32), 0.0F);
  EXPECT_EQ(std::fma(1.0F, 1.0F, std::fma(1.0F, 0x1p24F, -0x1p24F)), 1.0F);
}

TEST(AttendPrefix, PositionsCountThePrefix) {
  // A prefix of two, three own slots; the query stands at position 3, the second of them. q·k is 8,
  // 4 when scaled; a slope of 1/2 takes away half of the distance.
  const Sharded q = values("BLHQ", {1, 1, 1, 4}, {2, 2, 2, 2});
  const Sharded own = values("BMKQ", {1, 3, 1, 4}, std::vector<float>(12, 1));
  const Sharded shared = values("NTKQ", {1, 2, 1, 4}, std::vector<float>(8, 1));
  const Sharded slopes = values("H", {1}, {0.5F});
  const Sharded pos = integers("BL", {1, 1}, {3});
  const auto score = [&](const RowTokens* rows) {
    return attend_prefix(q, own, own, {shared, shared}, pos, one(), Regime::exact, &slopes, rows)
        .score.f32();
  };
  EXPECT_EQ(score(nullptr), (Chips{{2.5F, 3, 3.5F, 4, 0}}));
  // Padding, of a row whose tokens end before position 3.
  const RowTokens ended{{0}, {3}};
  EXPECT_EQ(score(&ended), (Chips{{2.5F, 3, 3.5F, 0, 0}}));
}

TEST(AppendBehindAPrefix, SlotsCountFromItsEnd) {
  const Sharded cache = values("BMKQ", {1, 1, 1, 1}, {10});
  const Sharded t = values("BLKQ", {1, 2, 1, 1}, {1, 2});
  const auto appended = [&](std::vector<std::int32_t> at, std::int64_t prefix) {
    return append(cache, t, integers("BL", {1, 2}, std::move(at)), one(), std::nullopt, nullptr,
                  prefix)
        .f32();
  };
  EXPECT_EQ(appended({6, 7}, 5), (Chips{{10, 1, 2}}));
  EXPECT_EQ(appended({1, 2}, 0), (Chips{{10, 1, 2}}));
  EXPECT_EQ(label_of([&] { appended({6, 7}, 0); }), "append_range");
  EXPECT_EQ(label_of([&] { appended({4, 5}, 5); }), "append_range");
  // The executor is told by its pass.
  const Program program =
      parse_program("layer",
                    "input c : BMKQ is previous k_cache\ninput t : BLKQ is k_rot\n"
                    "input p : BL is input pos\ny : BMKQ = append(c, t, p) is k_cache\noutput y");
  Execution execution = any_execution(one());
  execution.prefix = 5;
  const auto outputs = execute(
      program,
      {{"c", shared(cache)}, {"t", shared(t)}, {"p", shared(integers("BL", {1, 2}, {6, 7}))}},
      execution);
  EXPECT_EQ(outputs.at("y")->f32(), (Chips{{10, 1, 2}}));
}

TEST(AttendPrefix, DegreesAreThoseOfTheGreaterOfTheCaches) {
  const auto field = std::make_shared<const Field>(FieldSetting{});
  const FieldFunction stream("operands");
  std::uint64_t next = 0;
  const auto operand = [&](const char* layout, const Shape& shape, std::int64_t degree) {
    Array<FieldElement> t(shape);
    for (FieldElement& element : t.data) element = field->input(stream, next++);
    Sharded made = shard(t, Layout::parse(layout), kOne, field);
    made.set_field_degree({degree, {}});
    return shared(std::move(made));
  };
  const SharedValue q = operand("BLHQ", {1, 1, 1, 2}, 3);
  const SharedValue pos = shared(integers("BL", {1, 1}, {1}));
  for (const bool of_prefix : {false, true}) {
    const std::int64_t own = of_prefix ? 1 : 5, shared_part = of_prefix ? 5 : 1;
    const auto made =
        run_op_results("attend_prefix(q, k, v, pk, pv, pos)",
                       {q, operand("BMKQ", {1, 1, 1, 2}, own), operand("BMKQ", {1, 1, 1, 2}, own),
                        operand("NTKQ", {1, 1, 1, 2}, shared_part),
                        operand("NTKQ", {1, 1, 1, 2}, shared_part), pos},
                       5);
    EXPECT_EQ(made[0].field().degree.a, 3 + 5 + 1);  // of q and k and the constant
    EXPECT_EQ(made[4].field().degree.a, 2 + 5);      // of exp and v, over the denominator
    EXPECT_EQ(made[4].field().degree.e, (std::map<int, std::int64_t>{{0, 1}}));
  }
}

// ---- caches of prefixes as values of programs

TEST(PrefixCaches, MoveAsAnyValueDoes) {
  const Torus torus(3, 2, 1);
  const Tensor cache = tensor_of({6, 2, 6, 2});
  const auto lies = [&](const char* layout) { return shard(cache, Layout::parse(layout), torus); };
  struct Case {
    const char *from, *call, *to;
  };
  for (const auto& [from, call, to] :
       {Case{"N_xyTKQ", "all_gather(t, N, y)", "N_xTKQ"},
        Case{"N_xyTKQ", "all_gather(t, N, xy)", "NTKQ"}, Case{"NTKQ", "slice(t, N, yx)", "N_yxTKQ"},
        Case{"NTK_xyQ", "all_to_all(t, K->N, xy as yx)", "N_yxTKQ"},
        Case{"N_xTK_yQ", "all_to_all(t, N->K, x)", "NTK_yxQ"},
        Case{"N_xyTKQ", "permute_axes(t, N, xy->yx)", "N_yxTKQ"}})
    EXPECT_TRUE(same_bits(run_op(call, lies(from)), lies(to))) << call;
}

TEST(PrefixCaches, AreHandedOverByProgramsOfALayer) {
  const Program program = parse_program(std::string(kPrefixHandOverProgram),
                                        "input k : N_xTKQ is prefix k_cache\n"
                                        "kg : NTKQ = all_gather(k, N, x) is prefix k_cache\n"
                                        "output kg");
  EXPECT_TRUE(program.of_layer());
  EXPECT_EQ((Scope{"prefix.c1", "prefix.c0", 2}.step(program, "kg")),
            "prefix.c1.layer2.prefix_hand_over.kg");
  EXPECT_EQ(print_program(parse_program(program.name, print_program(program))),
            print_program(program));
  const ValueDecl& declared = program.declared("kg");
  EXPECT_EQ(declared.role.kind, Role::Kind::prefix);
  EXPECT_EQ(dims_of(declared.role), "NTKQ");
  // As the rows' own caches they travel as what they are kept as.
  Numerics bf16;
  bf16.act = NumberFormat::bf16;
  EXPECT_EQ(wire_type(declared, {}, any_config()), NumberFormat::f32);
  EXPECT_EQ(wire_type(declared, bf16, any_config()), NumberFormat::bf16);
}

/// All passes read them: what a program is given it leaves as it was, though its caller needs the
/// cache of the pass before no more.
TEST(PrefixCaches, AreNotPoisonedAfterAPass) {
  const Torus torus(2, 1, 1);
  const Program program = parse_program("layer",
                                        "input p : N_xTKQ is prefix k_cache\n"
                                        "input c : B_xMKQ is previous k_cache\n"
                                        "pg : NTKQ = all_gather(p, N, x) is prefix k_cache\n"
                                        "cg : BMKQ = all_gather(c, B, x) is previous k_cache\n"
                                        "output pg, cg");
  const Sharded prefix = values("N_xTKQ", {2, 1, 1, 1}, {1, 2}, torus);
  const Sharded cache = values("B_xMKQ", {2, 1, 1, 1}, {3, 4}, torus);
  const SharedValue p = shared(prefix), c = shared(cache);
  Execution execution = any_execution(one());
  execution.donate_inputs = true;
  execute(program, {{"p", p}, {"c", c}}, execution);
  EXPECT_TRUE(same_bits(*p, prefix));
  EXPECT_FALSE(same_bits(*c, cache));
}

}  // namespace
}  // namespace shardproof
