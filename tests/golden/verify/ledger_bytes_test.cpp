// What an element travels as under wire and cache (docs/spec.md section 5), in every program.
#include <gtest/gtest.h>

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "engine/program/count.h"
#include "engine/run/memory.h"
#include "engine/run/plan_types.h"
#include "weights/model/registry.h"

namespace shardproof {
namespace {

constexpr const char* kLedgerCase =
    "torus=2x2x3 prefill=ws2d:heads decode=ws2d:batch block=serial batch=12 "
    "model=palm-tiny,layers=1,E=24,F=24,H=12,K=6,Q=4,V=24,norm=layernorm ";
std::string with_cache(const char* cache) {
  std::string line = kLedgerCase;
  return line.replace(line.find(",norm"), 0, std::string(",cache=") + cache);
}

/// Bytes of an element of a complete value.
int width(const ValueDecl& value, const Numerics& numerics, std::optional<NumberFormat> cache) {
  static const std::set<std::string> kStored{"in",       "embed", "norm",    "norm2",  "final_norm",
                                             "q",        "k",     "v",       "q_rot",  "k_rot",
                                             "attn",     "gate",  "up",      "hidden", "block_out",
                                             "attn_out", "mid",   "ffn_out", "out"};
  const Role& role = value.role;
  const int act = numerics.act == NumberFormat::bf16 ? 2 : 4;
  if (role.kind == Role::Kind::weight) {
    const bool scale = role.name.ends_with("_scale");
    const bool matrix = role.name.starts_with("w") && !scale;
    if (numerics.weights == NumberFormat::int8) return matrix ? 1 : 4;
    const bool table = role.name == "embed" || role.name == "unembed";
    return numerics.weights == NumberFormat::bf16 && (matrix || table) ? 2 : 4;
  }
  if (role.kind != Role::Kind::checkpoint && role.kind != Role::Kind::previous) return 4;
  if (role.name.ends_with("_cache"))
    return cache == NumberFormat::bf16 ? 2 : cache == NumberFormat::f32 ? 4 : act;
  return kStored.contains(role.name) ? act : 4;
}

int wire_width(const ValueDecl& value, const Numerics& numerics,
               std::optional<NumberFormat> cache) {
  static const std::set<std::string> kWire{"embed", "q",         "k",        "v",      "gate",
                                           "up",    "block_out", "attn_out", "ffn_out"};
  if (!value.layout.is_partial()) return width(value, numerics, cache);
  return numerics.wire == NumberFormat::bf16 && kWire.contains(value.role.name) ? 2 : 4;
}

/// One program of a run, and what of it there is to see.
struct Part {
  const Program* program;
  const ValueTypes* types;
  const Torus* torus;
};

std::vector<Part> parts_of(const TypedPlan& typed) {
  std::vector<Part> parts;
  for (const TypedPasses& passes : typed.types->passes) {
    const PhasePrograms& of = typed.plan.programs(passes.phase);
    parts.push_back({&of.embed, &passes.last.embed, &of.torus});
    parts.push_back({&of.layer, &passes.last.layer, &of.torus});
    parts.push_back({&of.head, &passes.last.head, &of.torus});
  }
  parts.push_back({&typed.plan.hand_over, &typed.types->hand_over, &typed.plan.prefill.torus});
  return parts;
}

TEST(LedgerBytes, OfEveryStepAreWhatItReadsWritesAndSends) {
  std::set<std::int64_t> totals;
  std::map<std::string, std::set<int>> sent_as;  // bytes of what a collective takes, by its role
  // One table gathers its weights, which have biases.
  const std::string gathered =
      "torus=2x1x3 prefill=wg-xyz:batch decode=ws2d:heads block=serial batch=6 "
      "model=palm-tiny,layers=1,E=12,F=12,H=12,Q=2,V=12,bias=all ";
  for (const std::string& line :
       {std::string(kLedgerCase), with_cache("bf16"), with_cache("f32"), gathered})
    for (const char* numerics : {"", "act=bf16", "weights=bf16", "weights=int8", "wire=bf16",
                                 "act=bf16 weights=int8 wire=bf16 regime=f32"}) {
      const Case c = parse_case(line + numerics);
      const TypedPlan typed = make_typed_plan(c);
      for (const Part& part : parts_of(typed)) {
        const Program& program = *part.program;
        const auto elements = [&](const std::string& value) {
          const Type& type = part.types->at(value);
          std::int64_t blocks = 1;
          for (const Layout::Dim& dim : type.layout.dims()) blocks *= c.torus.size(dim.axes);
          return element_count(type.shape) / blocks;
        };
        const Ledger ledger = count(program, *part.types, *part.torus, c.numerics, c.model);
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
          const ValueDecl& from = program.declared(op.args[0]);
          const int wire = wire_width(from, c.numerics, c.model.cache);
          EXPECT_EQ(ledger.steps[i].wire_bytes, wire);
          sent_as[from.role.to_string() + (from.layout.is_partial() ? " partial" : "")].insert(
              wire);
          sent += ledger.steps[i].moved * wire;
        }
        EXPECT_EQ(ledger.moved_bytes(), sent);
        totals.insert(sent);
      }
    }
  EXPECT_GT(totals.size(), 6U);
  const std::map<std::string, std::set<int>> wanted{
      {"stat ss partial", {4}},     {"raw logits partial", {4}}, {"raw q partial", {2, 4}},
      {"k_cache", {2, 4}},          {"weight wq", {1, 2, 4}},    {"weight wo", {1, 2, 4}},
      {"weight w_gate", {1, 2, 4}}, {"weight w_out", {1, 2, 4}}, {"in", {2, 4}}};
  for (const auto& [role, bytes] : wanted) EXPECT_EQ(sent_as[role], bytes) << role;
}

// The simulator keeps every number as f32, however the model's caches are kept.
TEST(LedgerBytes, TheMemoryOfARunDoesNotDependOnThem) {
  const auto bytes = [](const std::string& line) {
    const TypedPlan typed = make_typed_plan(parse_case(line));
    return cost::estimated_bytes(typed.plan, *typed.types);
  };
  EXPECT_EQ(bytes(kLedgerCase), bytes(with_cache("bf16") + "wire=bf16"));
}

}  // namespace
}  // namespace shardproof
