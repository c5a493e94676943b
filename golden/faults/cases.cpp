#include "golden/faults/cases.h"

#include <fmt/format.h>

#include <numeric>

#include "engine/run/plan_types.h"

namespace shardproof::faults {
namespace {

/// Whether the strategy is one of serial blocks only, and of which it is the stream after attention
/// that says so.
bool serial_only(const Strategy& strategy) { return strategy.to_string() == "mixed:1d-2d"; }

/// The strategy that decodes: the prefill's own, or, where caches are to be handed over, one with
/// another layout of them.
std::string decode_of(const Strategy& prefill, std::string_view kind) {
  if (kind == "hand-over")
    return prefill.to_string() == "ws2d:batch" ? "wg-x:natural" : "ws2d:batch";
  return decodes(prefill) ? prefill.to_string() : "ws2d:heads";
}

Case made(const Strategy& strategy, const CaseKind& kind) {
  const std::string decode = decode_of(strategy, kind.name);
  const bool cube = kind.name == "cube";
  Case c = parse_case(
      fmt::format("torus={} prefill={} decode={} gen=3 seed=7 batch=12 {} {}",
                  cube ? "2x2x2" : "3x2x2", strategy.to_string(), decode,
                  serial_only(strategy) && kind.name != "family" ? "block=serial" : "", kind.keys));
  if (cube) c.batch = 8;
  c.prompt = 4;
  c.chunk = 2;
  if (kind.name == "prefix") c.prompt = 6;
  if (!decodes(strategy)) {
    const std::int64_t L = smallest_length(strategy, c.torus);
    c.chunk = std::max<std::int64_t>(L, 2);
    c.prompt = kind.name == "prefix" ? 3 * c.chunk : 2 * c.chunk;
    if (kind.name == "prefix") c.prefix.length = c.chunk;
    c.batch = std::lcm(smallest_batch(strategy, c.torus),
                       smallest_batch(Strategy::parse(decode), c.torus));
    c.batch = std::max<std::int64_t>(c.batch, 2);
  }
  return c;
}

}  // namespace

const std::vector<CaseKind>& case_kinds() {
  static const std::string usual = "positions=96,layers=2,E=36,F=48,H=12,Q=4,V=48";
  static const std::vector<std::string> keys{
      fmt::format("model=palm-tiny,{},K=6", usual),
      fmt::format("model=palm-tiny,positions=96,layers=2,E=32,F=32,H=16,Q=4,V=48,K=8"),
      fmt::format("model=palm-tiny,{},K=6 weights=int8", usual),
      fmt::format("model=palm-tiny,{},K=6,norm=layernorm,bias=all,ffn=geglu block=serial", usual),
      fmt::format("model=palm-tiny,{},K=6 lengths=4,1,3", usual),
      fmt::format("model=palm-tiny,positions=96,layers=2,E=36,F=48,H=10,Q=4,V=46,K=5 "
                  "pad_heads=12 pad_vocab=48",
                  usual),
      fmt::format("model=palm-tiny,{},K=6 prefix=2:2", usual),
      fmt::format("model=palm-tiny,{},K=6,softmax=base2 sample=random top_k=5 top_p=0.9", usual),
      fmt::format("model=palm-tiny,{},K=6", usual)};
  static const std::vector<CaseKind> all{
      {"plain", "a grouped-query model on 3x2x2, for most operators", keys[0]},
      {"cube", "equal axes, 2x2x2, so that one axis may stand for another", keys[1]},
      {"int8", "int8 weights, for their scales", keys[2]},
      {"family", "layernorm, biases, geglu, serial blocks", keys[3]},
      {"ragged", "rows of unequal length", keys[4]},
      {"padded", "padded heads and ids", keys[5]},
      {"prefix", "rows that share prefixes", keys[6]},
      {"base2", "a base-2 model, sampled at random", keys[7]},
      {"hand-over", "prefill and decode with caches in different layouts", keys[8]}};
  return all;
}

std::vector<FaultCase> cases_of(const Strategy& strategy) {
  std::vector<FaultCase> all;
  for (const CaseKind& kind : case_kinds()) {
    Case c = made(strategy, kind);
    try {
      static_cast<void>(make_plan(c));
    } catch (const Error&) {
      continue;  // the strategy cannot have a case of this kind
    }
    all.push_back({std::string(kind.name), strategy.to_string(), std::move(c)});
  }
  return all;
}

std::vector<FaultCase> all_cases() {
  std::vector<FaultCase> all;
  for (const Strategy& strategy : all_strategies())
    for (FaultCase& one : cases_of(strategy)) all.push_back(std::move(one));
  return all;
}

}  // namespace shardproof::faults
