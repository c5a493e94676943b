#include "tools/plan_proof.h"

#include <fmt/format.h>

#include <numeric>

namespace shardproof::tools {
namespace {

std::int64_t blocks_of(char dim, const ProvenStrategies& both, const Torus& torus) {
  std::int64_t unit = 1;
  for (const Strategy* strategy : {&both.prefill, &both.decode})
    for (const ShardedDim& one : sharded_dims(*strategy))
      if (one.dim == dim) unit = std::lcm(unit, std::int64_t{torus.size(one.axes)});
  return unit;
}

/// The model with one layer and few channels, and dims that the strategies divide.
ModelConfig small_model(const ModelConfig& model, const ProvenStrategies& both,
                        const Torus& torus) {
  // Rotation needs an even share of the channels.
  constexpr std::int64_t kChannels = 16;
  const auto unit = [&](char dim) { return blocks_of(dim, both, torus); };
  const std::int64_t group = model.K == 1 ? 1 : model.H / model.K;
  const std::int64_t H = std::lcm(unit('H'), group);
  ModelConfig small = with_dims(model, std::lcm(unit('E'), std::int64_t{8}), unit('F'), H,
                                model.K == 1 ? 1 : H / group, std::lcm(unit('V'), std::int64_t{8}));
  small.layers = 1;
  small.Q = std::lcm(unit('Q'), kChannels);
  return small;
}

}  // namespace

ProvenStrategies proven_strategies(const cost::Choice& choice) {
  if (choice.prefill && choice.decode) return {choice.prefill->strategy, choice.decode->strategy};
  const Strategy& own = choice.main().strategy;
  if (choice.decode) return {own, own};
  if (choice.beside) return {own, *choice.beside};
  return {own, decodes(own) ? own : Strategy()};
}

std::string proof_command(const cost::Choice& choice, const ModelConfig& model,
                          const std::string& layouts_file) {
  const ProvenStrategies both = proven_strategies(choice);
  const Torus& torus = choice.torus();
  const std::int64_t positions = blocks_of('L', both, torus);
  return fmt::format(
      "shardproof verify --model {} --torus {} --prefill {} --decode {}{} --weights {} --act bf16 "
      "--wire bf16 --batch {} --prompt {}",
      print_model(small_model(model, both, torus)), torus.to_string(), both.prefill.to_string(),
      both.decode.to_string(), layouts_file.empty() ? "" : " --layouts " + layouts_file,
      to_string(choice.weights()), blocks_of('B', both, torus), positions == 1 ? 3 : positions);
}

}  // namespace shardproof::tools
