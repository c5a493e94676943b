#include "engine/run/plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <utility>
#include <vector>

#include "engine/layouts/text_programs.h"
#include "engine/run/detail/type_check.h"
#include "engine/run/dim_padding.h"
#include "engine/strategies/layer_file.h"
#include "weights/base/error.h"
#include "weights/text/text_model.h"

namespace shardproof {
namespace {

void require_numbers(const Case& c) {
  validate(c.numerics);
  if (c.gen < 1) throw Error("case_gen", fmt::format("gen={}: at least 1", c.gen));
  if (c.batch < 1) throw Error("case_batch", fmt::format("batch={}: at least 1", c.batch));
  if (c.prompt < 1) throw Error("case_prompt", fmt::format("prompt={}: at least 1", c.prompt));
  if (c.chunk < 1 || c.chunk > c.prompt)
    throw Error("case_chunk", fmt::format("chunk={}: from 1 to prompt={}", c.chunk, c.prompt));
  if (c.decode_torus && c.gen == 1)
    throw Error("case_split",
                fmt::format("decode_torus={} beside gen=1, which has no decode steps; legal: gen "
                            "from 2 on, or leave decode_torus out",
                            c.decode_torus->to_string()));
  if (c.numerics.loop != Loop::none && c.prefill.program() != nullptr &&
      c.decode.program() != nullptr)
    throw Error("case_numerics",
                fmt::format("loop={} has no effect on a user's program, whose text has its loops; "
                            "legal: loop=none",
                            to_string(c.numerics.loop)));
  validate(c.sampling, c.model.V);
  if (c.sampling.sample != Sample::greedy && c.numerics.regime == Regime::field)
    throw Error("case_sampling",
                "sample=random with regime=field, which samples greedily; legal: sample=greedy, or "
                "regime=exact, f32");
  const std::int64_t positions = c.prompt + c.gen - 1;
  if (positions > c.model.positions)
    throw Error(
        "case_positions",
        fmt::format("prompt={} and gen={} need {} positions; the {} {}", c.prompt, c.gen, positions,
                    rotates(c.model) ? "RoPE tables have" : "model has", c.model.positions));
}

/// A layer program attends to one cache only.
void require_one_cache(const Case& c) {
  if (!c.prefix.given()) return;
  for (const Strategy* phase : {&c.prefill, &c.decode})
    if (phase->program() != nullptr && (phase == &c.prefill || c.gen > 1))
      throw Error(
          "case_prefix",
          fmt::format("prefix={}: the layer program {} has one cache, of a row's own tokens; "
                      "legal: no prefix, or a table in its place",
                      c.prefix.to_string(), phase->to_string()));
}

/// The distinct lengths of a phase's passes.
std::vector<std::int64_t> lengths_of(const Passes& passes, Phase phase) {
  std::vector<std::int64_t> lengths;
  for (const Passes::Group& group : passes.groups())
    if (const PassPlan pass = passes.at(group.first); pass.phase == phase)
      lengths.push_back(pass.L);
  return lengths;
}

/// Checks layer programs here, where file and line are known, before moves are added around them.
void require_programs(const Case& c, const ModelConfig& placed, const Passes& passes,
                      Findings::Until until) {
  Findings findings(until);
  TypeCheck type_check(placed, findings);
  std::vector<const Program*> no_layers;
  for (const Passes::Group& group : passes.groups()) {
    const PassPlan pass = passes.at(group.first);
    const Program* layer = (pass.phase == Phase::decode ? c.decode : c.prefill).program();
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
    type_check.types(*layer, pass.name, c.torus_of(pass.phase), {passes.batch(), pass.L, c.prompt});
  }
  if (!findings.all().empty()) throw FindingsError(findings.all());
}

/// Requires of the case of a text's model what its programs need; the rest partition() refuses.
void require_table(const Case& c, const Passes& passes) {
  require_keys_of_text(c);
  if (passes.decodes()) require_decodes(c.decode);
  require_lengths(c.prefill, c.torus, c.prompt, c.chunk, c.prefix);
}

void require_legal(const Case& c, const ModelConfig& placed, const Passes& passes,
                   Findings::Until until) {
  if (c.model.rows != nullptr) return require_table(c, passes);
  require_programs(c, placed, passes, until);
  std::vector<Strategy> phases{c.prefill};
  if (passes.decodes()) {
    if (!c.decode_torus) phases.push_back(c.decode);
    if (c.decode.program() == nullptr) require_decodes(c.decode);
  }
  require_legal(phases, c.model, c.torus, c.batch, &placed);
  if (c.decode_torus) require_legal({c.decode}, c.model, *c.decode_torus, c.batch, &placed);
  if (c.prefill.program() == nullptr)
    require_lengths(c.prefill, c.torus, c.prompt, c.chunk, c.prefix);
}

/// The extents common to the passes of a phase.
Extents extents(const ModelConfig& model, const Passes& passes, Phase phase) {
  std::int64_t L = 0;
  for (std::int64_t length : lengths_of(passes, phase)) L = std::gcd(L, length);
  if (L == 0) L = 1;
  const SharedPrefix prefix = passes.prefix();
  return phase == Phase::prefix ? extents_of(model, prefix.rows, L)
                                : extents_of(model, passes.batch(), L, prefix);
}

/// Returns whether a table divides the rows of a phase. There are few prefixes, and it need not
/// divide them: if it does not, every chip holds all of them.
bool divides(const Strategy& strategy, Phase phase, const Extents& all, const Torus& torus) {
  return phase != Phase::prefix || all.at('B') % smallest_batch(strategy, torus) == 0;
}

/// Returns the first layer of each kind but the first, in the order in which their programs are
/// met.
std::vector<std::int64_t> first_of_others(const PhasePrograms& programs) {
  std::vector<std::int64_t> layers;
  for (std::size_t n = 0; n < programs.other_layers.size(); ++n) {
    const auto& all = programs.layer_programs;
    layers.push_back(std::find(all.begin(), all.end(), n + 1) - all.begin());
  }
  return layers;
}

/// The strategy's layer in a phase.
PartitionedLayer layer_of(const Case& c, const Strategy& strategy, Phase phase,
                          const Extents& all) {
  const Torus& torus = c.torus_of(phase);
  if (divides(strategy, phase, all, torus))
    return partition(strategy.table(), c.model, all, torus, c.numerics);
  return partition(without_batch(strategy.table()), c.model, all, torus, c.numerics);
}

PhasePrograms phase_programs(const Case& c, const ModelConfig& placed, const Passes& passes,
                             Phase phase) {
  const Strategy& strategy = phase == Phase::decode ? c.decode : c.prefill;
  const Extents all = extents(placed, passes, phase);
  const Torus& torus = c.torus_of(phase);
  if (c.model.rows != nullptr)
    return text_programs(
        divides(strategy, phase, all, torus) ? strategy.table() : without_batch(strategy.table()),
        c.model, all, torus, c.sampling);
  if (const Program* layer = strategy.program())
    return programs_around(*layer, c.model, all, torus, c.numerics.act, c.sampling);
  return programs_around(layer_of(c, strategy, phase, all), c.model, all, torus, c.numerics.act,
                         c.sampling);
}

}  // namespace

PartitionedLayer partitioned(const Case& c, const Strategy& strategy, Phase phase) {
  return layer_of(c, strategy, phase, extents(placed_model(c), c.passes(), phase));
}

RunPlan make_plan(const Case& given, Findings::Until until) {
  Case c = given;
  c.model = model_with_weights(std::move(c.model), c.numerics.weights);
  validate(c.model);
  require_numbers(c);
  require_padding(c);
  require_one_cache(c);
  RunPlan plan;
  plan.source_case = c;
  plan.placed = placed_model(c);
  plan.passes = c.passes();
  require_legal(c, plan.placed, plan.passes, until);
  plan.prefill = phase_programs(c, plan.placed, plan.passes, Phase::prefill);
  // A program that does not shard L is the same for every length.
  const bool same_torus = c.torus_of(Phase::decode) == c.torus;
  const bool shared =
      !plan.passes.decodes() || (c.prefill == c.decode && decodes(c.decode) && same_torus);
  plan.decode = shared ? plan.prefill : phase_programs(c, plan.placed, plan.passes, Phase::decode);
  const Extents caches = extents(plan.placed, plan.passes, Phase::prefill);
  plan.crosses = c.decode_torus.has_value();
  const Torus& torus = plan.hand_over_torus();
  const PhasePrograms& left_by = plan.crosses ? plan.decode : plan.prefill;
  plan.hand_over = hand_over(left_by, plan.decode, 0, caches, torus);
  for (const std::int64_t layer : first_of_others(plan.decode))
    plan.other_hand_overs.push_back(hand_over(left_by, plan.decode, layer, caches, torus));
  if (!c.prefix.given()) return plan;
  plan.prefix = phase_programs(c, plan.placed, plan.passes, Phase::prefix);
  const auto to_prefill = [&](std::int64_t layer) {
    return prefix_hand_over(plan.prefix, plan.prefill, layer, caches, plan.prefill.torus);
  };
  const auto to_decode = [&](std::int64_t layer) {
    return prefix_to_decode(left_by, plan.decode, layer, caches, torus);
  };
  plan.prefix_hand_over = to_prefill(0);
  plan.prefix_to_decode = to_decode(0);
  for (const std::int64_t layer : first_of_others(plan.prefill))
    plan.other_prefix_hand_overs.push_back(to_prefill(layer));
  for (const std::int64_t layer : first_of_others(plan.decode))
    plan.other_prefixes_to_decode.push_back(to_decode(layer));
  return plan;
}

}  // namespace shardproof
