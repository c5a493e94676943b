// The bytes of weights, as they travel and as they are read.
#include <map>
#include <string>
#include <vector>

#include "engine/program/count.h"
#include "engine/run/plan_types.h"
#include "golden/verify/verify.h"
#include "tests/golden/case_gen.h"
#include "weights/model/registry.h"

namespace shardproof {
namespace {

/// Bytes that all chips read and write in each step whose weight operand is of this kind.
std::vector<std::int64_t> bytes_with(WeightKind kind, const std::string& numerics) {
  const Case c = parse_case("torus=2x1x3 prefill=ws2d:heads block=serial " + numerics +
                            " model=palm-tiny,layers=1,E=12,F=12,H=12,Q=2,V=12,bias=all");
  const Program layer = make_plan(c).decode.layer;
  const Ledger ledger = count(layer, check(layer, c, 1, 4), c.torus, c.numerics, c.model);
  std::vector<std::int64_t> bytes;
  for (std::size_t i = 0; i < layer.ops.size(); ++i)
    for (const std::string& arg : layer.ops[i].args)
      if (const Role& role = layer.declared(arg).role; role.kind == Role::Kind::weight)
        if (weight_row(role.name)->kind == kind) bytes.push_back(ledger.steps[i].hbm_bytes);
  return bytes;
}

TEST(Ledger, OfBf16WeightsTheMatricesAloneHaveTwoBytes) {
  for (const WeightKind kind : {WeightKind::gain, WeightKind::bias, WeightKind::rope_table})
    EXPECT_EQ(bytes_with(kind, "weights=bf16"), bytes_with(kind, "weights=f32"));
  const auto bf16 = bytes_with(WeightKind::matrix, "weights=bf16");
  const auto f32 = bytes_with(WeightKind::matrix, "weights=f32");
  ASSERT_EQ(bf16.size(), f32.size());
  ASSERT_GT(bf16.size(), 0U);
  for (std::size_t i = 0; i < f32.size(); ++i) EXPECT_LT(bf16[i], f32[i]);
}

TEST(Ledger, OfInt8WeightsACodeHasOneByte) {
  // wg-xyz gathers every W matrix; the table and what is no weight are as with f32.
  std::map<std::string, std::map<std::string, int>> bytes;  // by weights= and step
  for (const char* type : {"f32", "bf16", "int8"}) {
    const Case c = parse_case(
        std::string(
            "torus=2x1x3 prefill=wg-xyz:batch block=serial batch=6 model=palm-tiny,layers=1,"
            "E=12,F=12,H=12,Q=2,V=12,bias=all weights=") +
        type);
    const PhasePrograms programs = make_plan(c).prefill;
    for (const Program* program : {&programs.embed, &programs.layer, &programs.head})
      for (const StepCost& cost :
           count(*program, check(*program, c, 1, 4), c.torus, c.numerics, c.model).steps)
        if (is_collective(cost.kind) &&
            program->declared(cost.step).role.kind == Role::Kind::weight)
          bytes[type][program->declared(cost.step).role.name] = cost.wire_bytes;
  }
  for (const char* name : {"wq", "wk", "wv", "wo", "w_gate", "w_up", "w_out"}) {
    EXPECT_EQ(bytes["f32"][name], 4) << name;
    EXPECT_EQ(bytes["bf16"][name], 2) << name;
    EXPECT_EQ(bytes["int8"][name], 1) << name;
  }
  for (const auto& [name, of_f32] : bytes["f32"])
    if (!name.starts_with("w")) {
      EXPECT_EQ(bytes["int8"][name], of_f32) << name;
    }
  // A matrix that stays where it is is read as codes, a scale as f32.
  const auto codes = bytes_with(WeightKind::matrix, "weights=int8");
  const auto f32 = bytes_with(WeightKind::matrix, "weights=f32");
  ASSERT_EQ(codes.size(), f32.size());
  for (std::size_t i = 0; i < f32.size(); ++i) EXPECT_LT(codes[i], f32[i]);
  EXPECT_EQ(bytes_with(WeightKind::scale, "weights=f32").size(), 0U);
  EXPECT_EQ(bytes_with(WeightKind::scale, "weights=int8").size(), 7U);
  for (const WeightKind kind : {WeightKind::gain, WeightKind::bias, WeightKind::rope_table})
    EXPECT_EQ(bytes_with(kind, "weights=int8"), bytes_with(kind, "weights=f32"));
}

}  // namespace
}  // namespace shardproof
