#include "tools/plan/plan_proof.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <numeric>
#include <optional>
#include <utility>
#include <vector>

#include "engine/cost/plan/fitted_model.h"
#include "weights/base/error.h"
#include "weights/text/heads.h"
#include "weights/text/text_model.h"

namespace shardproof::tools {
namespace {

/// The strategies of a run, each with its torus.
using ProvenPhases = std::vector<std::pair<Strategy, Torus>>;

std::int64_t blocks_of(char dim, const ProvenPhases& phases) {
  std::int64_t unit = 1;
  for (const auto& [strategy, torus] : phases)
    for (const ShardedDim& one : sharded_dims(strategy))
      if (one.dim == dim) unit = std::lcm(unit, std::int64_t{torus.size(one.axes)});
  return unit;
}

/// Returns whether a model may have this d_head: a whole even number of channels must rotate.
bool may_have_channels(ModelConfig model, std::int64_t Q) {
  model.Q = Q;
  try {
    validate(model);
  } catch (const Error&) {
    return false;
  }
  return true;
}

/// Returns a small d_head that the strategies divide: 16 suffices for most rotary shares, 0.4 needs
/// 20.
std::int64_t channels_of(const ModelConfig& model, std::int64_t blocks) {
  constexpr std::int64_t kChannels = 16;
  for (std::int64_t Q = std::lcm(blocks, kChannels); Q < model.Q; Q += blocks)
    if (may_have_channels(model, Q)) return Q;
  return std::lcm(blocks, std::max(kChannels, model.Q));
}

/// Returns a text's model with its own small sizes and dims that the strategies divide; nullopt if
/// it has none, or formulas that allow no others.
std::optional<ModelConfig> small_text(const ModelConfig& model, const ProvenPhases& phases) {
  const TextModel& given = *text_model(model);
  try {
    const ModelConfig small = model_config(std::make_shared<const TextModel>(
        given.text(), TextKeys{}, given.line().substr(0, given.line().find(','))));
    const auto multiple = [&](char dim, std::int64_t extent) {
      const std::int64_t unit = blocks_of(dim, phases);
      return (extent + unit - 1) / unit * unit;
    };
    const std::int64_t H = std::lcm(multiple('H', small.H), heads_per_group(small));
    return cost::with_extents(small, {{'E', multiple('E', small.E)},
                                      {'F', multiple('F', small.F)},
                                      {'H', H},
                                      {'K', kv_heads(small, H)},
                                      {'V', multiple('V', small.V)}});
  } catch (const Error&) {
    return std::nullopt;
  }
}

/// Returns the model with one layer, few channels, and dims that the strategies divide.
ModelConfig small_model(const ModelConfig& model, const ProvenPhases& phases) {
  if (model.rows != nullptr) return small_text(model, phases).value_or(model);
  const auto unit = [&](char dim) { return blocks_of(dim, phases); };
  const std::int64_t H = std::lcm(unit('H'), heads_per_group(model));
  ModelConfig small = with_dims(model, std::lcm(unit('E'), std::int64_t{8}), unit('F'), H,
                                kv_heads(model, H), std::lcm(unit('V'), std::int64_t{8}));
  small.layers = 1;
  small.Q = channels_of(model, unit('Q'));
  return small;
}

/// Returns the command with the first phase as prefill and the last as decode.
std::string command_of(const ProvenPhases& phases, const ModelConfig& model, NumberFormat weights,
                       const std::string& layouts_file, const std::string& decode_torus = "") {
  const std::int64_t positions = blocks_of('L', phases);
  const auto& [prefill, torus] = phases.front();
  return fmt::format(
      "shardproof verify --model {} --torus {}{} --prefill {} --decode {}{} --weights {} "
      "--act bf16 --wire bf16 --batch {} --prompt {}",
      print_model(small_model(model, phases)), torus.to_string(), decode_torus, prefill.to_string(),
      phases.back().first.to_string(), layouts_file.empty() ? "" : " --layouts " + layouts_file,
      to_string(weights), blocks_of('B', phases), positions == 1 ? 3 : positions);
}

}  // namespace

ProvenStrategies proven_strategies(const cost::Choice& choice) {
  if (choice.prefill && choice.decode) return {choice.prefill->strategy, choice.decode->strategy};
  const Strategy& own = choice.main().strategy;
  if (choice.decode) return {own, own};
  if (choice.beside) return {own, *choice.beside};
  return {own, decodes(own) ? own : Strategy()};
}

std::string proof_heading(const ModelConfig& model, std::string_view tori) {
  if (model.rows == nullptr || small_text(model, {}))
    return fmt::format("Proof on a small model of the same {}:", tori);
  return "Proof at full size; with sizes in a line `small` of the text it would be on small ones:";
}

std::string proof_command(const cost::Choice& choice, const ModelConfig& model,
                          const std::string& layouts_file) {
  const ProvenStrategies both = proven_strategies(choice);
  return command_of({{both.prefill, choice.torus()}, {both.decode, choice.torus()}}, model,
                    choice.weights(), layouts_file);
}

std::string split_proof_command(const cost::Choice& prefill, const cost::Choice& decode,
                                const ModelConfig& model, const std::string& layouts_file) {
  return command_of(
      {{prefill.main().strategy, prefill.torus()}, {decode.main().strategy, decode.torus()}}, model,
      decode.weights(), layouts_file, " --decode-torus " + decode.torus().to_string());
}

}  // namespace shardproof::tools
