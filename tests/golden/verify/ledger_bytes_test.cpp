// What an element travels as under wire and cache (docs/spec.md section 5), in every program.
#include <gtest/gtest.h>

#include <set>
#include <string>

#include "engine/program/count.h"
#include "engine/run/memory.h"
#include "engine/run/plan_types.h"
#include "weights/model/registry.h"

namespace shardproof {
namespace {

/// Bytes of an element by what the operand of a collective is: "raw q partial", "k_cache".
std::map<std::string, std::set<int>> wire_bytes(const std::string& line) {
  const Case c = parse_case(line);
  const RunPlan plan = make_plan(c);
  std::map<std::string, std::set<int>> bytes;
  const auto add = [&](const Program& program, const ValueTypes& types, const Torus& torus) {
    for (std::size_t i = 0;
         const StepCost& cost : count(program, types, torus, c.numerics, c.model).steps) {
      const Op& op = program.ops[i++];
      if (!is_collective(op.kind)) continue;
      const ValueDecl& from = program.declared(op.args[0]);
      bytes[from.role.to_string() + (from.layout.is_partial() ? " partial" : "")].insert(
          cost.wire_bytes);
    }
  };
  const TypedPlan typed = make_typed_plan(c);
  for (const TypedPasses& passes : typed.types->passes) {
    const PhasePrograms& programs = plan.programs(passes.phase);
    add(programs.embed, passes.last.embed, programs.torus);
    add(programs.layer, passes.last.layer, programs.torus);
    add(programs.head, passes.last.head, programs.torus);
  }
  add(plan.hand_over, typed.types->hand_over, plan.prefill.torus);
  return bytes;
}

constexpr const char* kCase =
    "torus=2x2x3 prefill=ws2d:heads decode=ws2d:batch block=serial batch=12 "
    "model=palm-tiny,layers=1,E=24,F=24,H=12,K=6,Q=4,V=24,norm=layernorm ";
std::string with_cache(const char* cache) {
  std::string line = kCase;
  return line.replace(line.find(",norm"), 0, std::string(",cache=") + cache);
}

TEST(LedgerBytes, WithWireBf16PartialSumsHaveTwoBytesStatisticsAndLogitsFour) {
  for (const char* numerics : {"", "regime=f32 ", "act=bf16 "}) {
    const auto f32 = wire_bytes(kCase + std::string(numerics));
    const auto bf16 = wire_bytes(kCase + std::string(numerics) + "wire=bf16");
    ASSERT_EQ(f32.size(), bf16.size());
    int halved = 0;
    for (const auto& [what, bytes] : bf16) {
      const bool partial = what.ends_with(" partial");
      const bool f32_sum = what.starts_with("stat ") || what.starts_with("raw logits");
      EXPECT_EQ(bytes, partial ? std::set{f32_sum ? 4 : 2} : f32.at(what)) << what;
      EXPECT_TRUE(!partial || f32.at(what) == std::set{4}) << what;
      halved += partial && !f32_sum;
    }
    EXPECT_GE(halved, 6) << "embed, q, k, v, gate, up, outputs";
    EXPECT_TRUE(bf16.contains("stat ss partial"));
    EXPECT_TRUE(bf16.contains("raw logits partial"));
  }
}

TEST(LedgerBytes, OfACacheAreThoseOfItsTypeNotOfAct) {
  const auto of_cache = [](const std::string& line) { return wire_bytes(line)["k_cache"]; };
  EXPECT_EQ(of_cache(kCase), std::set{4});
  EXPECT_EQ(of_cache(std::string(kCase) + "act=bf16"), std::set{2});
  for (const char* act : {"act=f32", "act=bf16"}) {
    EXPECT_EQ(of_cache(with_cache("bf16") + act), std::set{2});
    EXPECT_EQ(of_cache(with_cache("f32") + act), std::set{4});
  }
}

// ---- every step, by the words of docs/spec.md section 5 and nothing of the registry

/// Bytes of an element of a complete value.
int width(const ValueDecl& value, const Numerics& numerics, CacheType cache) {
  static const std::set<std::string> kStored{"in",       "embed", "norm",    "norm2",  "final_norm",
                                             "q",        "k",     "v",       "q_rot",  "k_rot",
                                             "attn",     "gate",  "up",      "hidden", "block_out",
                                             "attn_out", "mid",   "ffn_out", "out"};
  const Role& role = value.role;
  const int act = numerics.act == ActType::bf16 ? 2 : 4;
  if (role.kind == Role::Kind::weight) {
    const bool scale = role.name.ends_with("_scale");
    const bool matrix = role.name.starts_with("w") && !scale;
    if (numerics.weights == WeightType::int8) return matrix ? 1 : 4;
    const bool table = role.name == "embed" || role.name == "unembed";
    return numerics.weights == WeightType::bf16 && (matrix || table) ? 2 : 4;
  }
  if (role.kind != Role::Kind::checkpoint && role.kind != Role::Kind::previous) return 4;
  if (role.name.ends_with("_cache"))
    return cache == CacheType::bf16 ? 2 : cache == CacheType::f32 ? 4 : act;
  return kStored.contains(role.name) ? act : 4;
}

int wire_width(const ValueDecl& value, const Numerics& numerics, CacheType cache) {
  static const std::set<std::string> kWire{"embed", "q",         "k",        "v",      "gate",
                                           "up",    "block_out", "attn_out", "ffn_out"};
  if (!value.layout.is_partial()) return width(value, numerics, cache);
  return numerics.wire == FloatType::bf16 && kWire.contains(value.role.name) ? 2 : 4;
}

TEST(LedgerBytes, OfEveryStepAreWhatItReadsWritesAndSends) {
  std::set<std::int64_t> totals;
  for (const std::string& line : {std::string(kCase), with_cache("bf16"), with_cache("f32")})
    for (const char* numerics : {"", "act=bf16", "weights=bf16", "weights=int8", "wire=bf16",
                                 "act=bf16 weights=int8 wire=bf16 regime=f32"}) {
      const Case c = parse_case(line + numerics);
      const TypedPlan typed = make_typed_plan(c);
      const TypedPasses& passes = typed.types->passes.front();
      const PhasePrograms& programs = typed.plan.programs(passes.phase);
      using Part = std::pair<const Program*, const ValueTypes*>;
      for (const Part& part :
           {Part{&programs.embed, &passes.last.embed}, Part{&programs.layer, &passes.last.layer},
            Part{&programs.head, &passes.last.head}}) {
        const Program& program = *part.first;
        const auto elements = [&](const std::string& value) {
          const Type& type = part.second->at(value);
          std::int64_t blocks = 1;
          for (const Layout::Dim& dim : type.layout.dims()) blocks *= c.torus.size(dim.axes);
          return element_count(type.shape) / blocks;
        };
        const Ledger ledger = count(program, *part.second, c.torus, c.numerics, c.model);
        ASSERT_EQ(ledger.steps.size(), program.ops.size());
        std::int64_t sent = 0;
        for (std::size_t i = 0; i < program.ops.size(); ++i) {
          const Op& op = program.ops[i];
          std::int64_t hbm = 0;
          const auto touch = [&](const ValueDecl& value) {
            const bool partial = value.layout.is_partial();
            hbm += elements(value.name) * (partial ? 4 : width(value, c.numerics, c.model.cache));
          };
          for (const std::string& arg : op.args) touch(program.declared(arg));
          for (const ValueDecl& result : op.results) touch(result);
          SCOPED_TRACE(print_case(c) + " " + op.to_string());
          EXPECT_EQ(ledger.steps[i].hbm_bytes, hbm * c.torus.chips());
          if (!is_collective(op.kind)) continue;
          const int wire = wire_width(program.declared(op.args[0]), c.numerics, c.model.cache);
          EXPECT_EQ(ledger.steps[i].wire_bytes, wire);
          sent += ledger.steps[i].moved * wire;
        }
        EXPECT_EQ(ledger.moved_bytes(), sent);
        totals.insert(sent);
      }
    }
  EXPECT_GT(totals.size(), 6U);
}

// The simulator keeps every number as f32, however the model's caches are kept.
TEST(LedgerBytes, TheMemoryOfARunDoesNotDependOnThem) {
  const auto bytes = [](const std::string& line) {
    const TypedPlan typed = make_typed_plan(parse_case(line));
    return cost::estimated_bytes(typed.plan, *typed.types);
  };
  EXPECT_EQ(bytes(kCase), bytes(with_cache("bf16") + "wire=bf16"));
}

}  // namespace
}  // namespace shardproof
