#include "engine/run/plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <utility>
#include <vector>

#include "engine/run/type_check.h"
#include "engine/strategies/layer_file.h"
#include "weights/error.h"

namespace shardproof {
namespace {

void require_numbers(const Case& c) {
  validate(c.numerics);
  if (c.gen < 1) throw Error("case_gen", fmt::format("gen={}: at least 1", c.gen));
  if (c.batch < 1) throw Error("case_batch", fmt::format("batch={}: at least 1", c.batch));
  if (c.prompt < 1) throw Error("case_prompt", fmt::format("prompt={}: at least 1", c.prompt));
  if (c.chunk < 1 || c.chunk > c.prompt)
    throw Error("case_chunk", fmt::format("chunk={}: from 1 to prompt={}", c.chunk, c.prompt));
  if (c.numerics.loop != Loop::none && c.prefill.program() != nullptr &&
      c.decode.program() != nullptr)
    throw Error("case_numerics",
                fmt::format("loop={} has no effect on a user's program, whose text has its loops; "
                            "legal: loop=none",
                            to_string(c.numerics.loop)));
  const std::int64_t positions = c.prompt + c.gen - 1;
  if (positions > c.model.positions)
    throw Error(
        "case_positions",
        fmt::format("prompt={} and gen={} need {} positions; the {} {}", c.prompt, c.gen, positions,
                    rotates(c.model) ? "RoPE tables have" : "model has", c.model.positions));
}

/// The lengths of a phase's passes that differ.
std::vector<std::int64_t> lengths_of(const Passes& passes, Phase phase) {
  std::vector<std::int64_t> lengths;
  for (const Passes::Group& group : passes.groups())
    if (const PassPlan pass = passes.at(group.first); pass.phase == phase)
      lengths.push_back(pass.L);
  return lengths;
}

/// Layer programs are checked here, where file and line are known, and not where moves are
/// written around them.
void require_programs(const Case& c, const Passes& passes, Findings::Until until) {
  Findings findings(until);
  TypeCheck type_check(c.model, findings);
  std::vector<const Program*> no_layers;
  for (const Passes::Group& group : passes.groups()) {
    const PassPlan pass = passes.at(group.first);
    const Program* layer = (pass.phase == Phase::prefill ? c.prefill : c.decode).program();
    if (layer == nullptr || findings.ended() ||
        std::any_of(no_layers.begin(), no_layers.end(),
                    [&](const Program* other) { return *other == *layer; }))
      continue;
    try {
      require_layer(*layer, c.model, c.numerics);
    } catch (const Error& error) {
      no_layers.push_back(layer);
      Finding found{.detector = Detector::types, .label = error.label()};
      found.message = error.message();
      found.pass = pass.name;
      found.step = layer->name;
      findings.add(std::move(found));
      continue;
    }
    type_check.types(*layer, pass.name, c.torus, {passes.batch(), pass.L, c.prompt});
  }
  if (!findings.all().empty()) throw FindingsError(findings.all());
}

void require_legal(const Case& c, const Passes& passes, Findings::Until until) {
  require_programs(c, passes, until);
  std::vector<Strategy> phases{c.prefill};
  if (passes.decodes()) {
    phases.push_back(c.decode);
    if (c.decode.program() == nullptr) require_decodes(c.decode);
  }
  require_legal(phases, c.model, c.torus, c.batch);
  if (c.prefill.program() == nullptr)
    for (std::int64_t L : lengths_of(passes, Phase::prefill))
      require_lengths(c.prefill, c.torus, c.prompt, L);
}

/// What the passes of a phase have in common.
Extents extents(const ModelConfig& model, const Passes& passes, Phase phase) {
  std::int64_t L = 0;
  for (std::int64_t length : lengths_of(passes, phase)) L = std::gcd(L, length);
  return extents_of(model, passes.batch(), L > 0 ? L : 1);
}

PhasePrograms phase_programs(const Case& c, const Passes& passes, Phase phase) {
  const Strategy& strategy = phase == Phase::prefill ? c.prefill : c.decode;
  const Extents all = extents(c.model, passes, phase);
  if (const Program* layer = strategy.program())
    return programs_around(*layer, c.model, all, c.torus, c.numerics.act);
  PartitionedLayer made = partition(strategy.table(), c.model, all, c.torus, c.numerics);
  return programs_around(std::move(made.layer), made.residual, made.cache, c.model, all, c.torus,
                         c.numerics.act);
}

}  // namespace

PartitionedLayer partitioned(const Case& c, const Strategy& strategy, Phase phase) {
  const Extents all = extents(c.model, c.passes(), phase);
  return partition(strategy.table(), c.model, all, c.torus, c.numerics);
}

RunPlan make_plan(const Case& c, Findings::Until until) {
  validate(c.model);
  require_numbers(c);
  RunPlan plan;
  plan.given = c;
  plan.passes = c.passes();
  require_legal(c, plan.passes, until);
  plan.prefill = phase_programs(c, plan.passes, Phase::prefill);
  // A program that shards no L is the same for every length.
  const bool shared = !plan.passes.decodes() || (c.prefill == c.decode && decodes(c.decode));
  plan.decode = shared ? plan.prefill : phase_programs(c, plan.passes, Phase::decode);
  plan.hand_over = hand_over(plan.prefill.cache, plan.decode.cache,
                             extents(c.model, plan.passes, Phase::prefill), plan.prefill.torus);
  return plan;
}

}  // namespace shardproof
