#include "tools/plan/plan_split.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include "engine/cost/chip/quantity.h"
#include "engine/cost/paper/calibration.h"
#include "tools/plan/estimate_notes.h"
#include "tools/plan/plan_proof.h"
#include "tools/text/wrapped.h"
#include "weights/model/registry.h"

namespace shardproof::tools {
namespace {

constexpr std::size_t kSplitWidth = 78;

std::string split_seconds(double value) {
  return cost::rounded_quantity(value, cost::Measure::seconds, 3);
}

/// Returns the layouts of the caches, each once.
std::string layouts_text(const std::vector<cost::CacheOfLayers>& caches) {
  std::vector<std::string> layouts;
  for (const cost::CacheOfLayers& cache : caches)
    if (const std::string text = cache.layout.to_string();
        std::find(layouts.begin(), layouts.end(), text) == layouts.end())
      layouts.push_back(text);
  return fmt::format("{}", fmt::join(layouts, ", "));
}

/// Returns one phase's choices on separate slices: the fastest of each torus, type of weights and
/// number of rows.
std::vector<cost::Choice> fastest_choices(cost::PlanRequest request, cost::PlanPhase phase) {
  request.phase = phase;
  request.goal = cost::Goal::latency;
  request.alone = true;
  const cost::Plan plan = cost::make_plan(request);
  cost::require_choice(plan, request);
  std::map<std::tuple<std::string, NumberFormat, std::int64_t>, cost::Choice> fastest;
  for (const cost::Choice& choice : plan.choices)  // best first
    fastest.try_emplace({choice.torus().to_string(), choice.weights(), choice.batch()}, choice);
  std::vector<cost::Choice> choices;
  for (auto& entry : fastest) choices.push_back(std::move(entry.second));
  return choices;
}

/// Choices of both phases with one type of weights.
struct SlicesOfType {
  std::vector<cost::Choice> prefills, decodes;
};

SplitPlan best_of_type(const SlicesOfType& of, const ModelConfig& model,
                       const cost::SplitGoal& goal) {
  std::vector<cost::PrefillSlice> prefills;
  std::vector<cost::DecodeSlice> decodes;
  for (const cost::Choice& c : of.prefills)
    prefills.push_back({c.torus(), c.main().caches, c.latency});
  for (const cost::Choice& c : of.decodes)
    decodes.push_back({c.torus(), c.main().caches, c.latency, c.batch()});
  const cost::Split split = cost::plan_split(model.layers, prefills, decodes, goal);
  SplitPlan plan{{}, {}, split, goal};
  for (std::size_t i = 0; i < prefills.size(); ++i)
    if (prefills[i].torus == split.prefill.torus && prefills[i].seconds == split.prefill.seconds)
      plan.prefill = of.prefills[i];
  for (std::size_t i = 0; i < decodes.size(); ++i)
    if (decodes[i].torus == split.decode.torus && decodes[i].rows == split.decode.rows &&
        decodes[i].seconds == split.decode.seconds)
      plan.decode = of.decodes[i];
  return plan;
}

nlohmann::json slice_json(const cost::Choice& choice,
                          const std::vector<cost::CacheOfLayers>& caches) {
  const cost::Candidate& of = choice.main();
  return {{"strategy", of.strategy.to_string()},
          {"torus", of.torus.to_string()},
          {"chips", of.torus.chips()},
          {"weights", std::string(to_string(of.weights))},
          {"batch", of.batch},
          {"estimate", of.estimate},
          {"memory", of.memory.total()},
          {"cache", layouts_text(caches)}};
}

}  // namespace

SplitPlan plan_two_slices(const cost::PlanRequest& request, cost::SplitGoal goal) {
  goal.context = request.prompt;
  goal.steps = request.gen;
  goal.cache_bytes = bytes_of(NumberFormat::bf16);
  cost::PlanRequest of_one = request;
  of_one.batches = {1};
  std::map<NumberFormat, SlicesOfType> types;
  for (cost::Choice& c : fastest_choices(std::move(of_one), cost::PlanPhase::prefill))
    types[c.weights()].prefills.push_back(std::move(c));
  for (cost::Choice& c : fastest_choices(request, cost::PlanPhase::decode))
    types[c.weights()].decodes.push_back(std::move(c));
  std::optional<SplitPlan> best;
  std::optional<Error> refused;
  const auto order = [](const SplitPlan& p) {
    return std::tuple(p.split.chips(), p.split.ttft, p.split.tpot);
  };
  for (const NumberFormat type : request.weights) {
    const SlicesOfType& of = types[type];
    if (of.prefills.empty() || of.decodes.empty()) continue;
    try {
      SplitPlan plan = best_of_type(of, request.model, goal);
      if (!best || order(plan) < order(*best)) best = std::move(plan);
    } catch (const Error& error) {
      refused = error;
    }
  }
  if (best) return *std::move(best);
  if (refused) throw Error(*refused);
  throw Error("split_c3",
              "no type of weights fits both a prefill and a decode; more chips, --chips 8-256, do");
}

std::string split_text(const SplitPlan& plan, const cost::PlanRequest& request,
                       const std::string& layouts_file) {
  const cost::Split& split = plan.split;
  const auto paragraph = [](const std::string& text) {
    return wrapped(text, kSplitWidth, "  ") + "\n";
  };
  const auto slice = [&](const char* phase, const cost::Choice& choice, const std::string& what) {
    const cost::Candidate& of = choice.main();
    return paragraph(fmt::format("{}: {} on {}, {} chips, {} weights: {}; memory {:.1f} GiB a chip",
                                 phase, of.strategy.to_string(), of.torus.to_string(),
                                 of.torus.chips(), to_string(of.weights), what,
                                 of.memory.total() / 0x1p30));
  };
  std::string text = paragraph(fmt::format(
      "{}: a slice for prefill and one for decode, prompt {}, {} steps, chip {}: {} chips",
      request.model.preset, plan.goal.context, plan.goal.steps, request.chip.name, split.chips()));
  text += estimate_notes(request) + "\n";
  text += slice("Prefill", plan.prefill,
                fmt::format("{} for one request", split_seconds(split.prefill.seconds)));
  text += slice("Decode", plan.decode,
                fmt::format("{} for a step of {} rows", split_seconds(split.decode.seconds),
                            split.decode.rows));
  text += paragraph(fmt::format(
      "Transfer: {} of caches for a request, {} at {}; {} of it after the prefill where each layer "
      "goes as soon as it is there, all of it where the transfer waits for the prefill",
      cost::rounded_quantity(split.cache_bytes, cost::Measure::bytes, 3),
      split_seconds(split.transfer),
      cost::rounded_quantity(plan.goal.bandwidth, cost::Measure::bytes_per_second, 3),
      split_seconds(split.exposed)));
  text += paragraph(
      fmt::format("Time to the first token {}, goal {}; each further token {}, goal "
                  "{}; up to {:.3g} requests a second",
                  split_seconds(split.ttft), split_seconds(plan.goal.ttft),
                  split_seconds(split.tpot), split_seconds(plan.goal.tpot), split.highest_rate));
  return fmt::format("{}\n{}\n{}\n", text, proof_heading(request.model, "tori"),
                     split_proof_command(plan.prefill, plan.decode, request.model, layouts_file));
}

nlohmann::json split_json(const SplitPlan& plan, const cost::PlanRequest& request,
                          const std::string& layouts_file) {
  const cost::Split& split = plan.split;
  nlohmann::json out{
      {"model", print_model(request.model)},
      {"chip", request.chip.name},
      {"chips", split.chips()},
      {"prefill", slice_json(plan.prefill, split.prefill.caches)},
      {"decode", slice_json(plan.decode, split.decode.caches)},
      {"cache_bytes", split.cache_bytes},
      {"transfer", split.transfer},
      {"exposed", split.exposed},
      {"ttft", split.ttft},
      {"tpot", split.tpot},
      {"highest_rate", split.highest_rate},
      {"proof", split_proof_command(plan.prefill, plan.decode, request.model, layouts_file)}};
  add_estimate_notes(request, out);
  return out;
}

}  // namespace shardproof::tools
