#include "engine/cost/work/paper_volumes.h"

#include <algorithm>
#include <map>

#include "engine/cost/formulas/detail/monomial.h"
#include "engine/layouts/around.h"
#include "engine/layouts/partition.h"
#include "engine/program/count.h"
#include "engine/run/plan_types.h"
#include "engine/shards/finding.h"

namespace shardproof::cost {
namespace {

/// Returns the model with an FFN of two matrices in a block of its own, to separate its traffic.
ModelConfig paper_model(ModelConfig model) {
  model.block = Block::serial, model.ffn = Ffn::gelu;
  model.norm = Norm::rmsnorm, model.bias = Bias::none;
  return model;
}

/// A collective, or several of one kind in sequence, which the paper writes as one.
struct Chain {
  OpKind kind;
  double elements;  ///< D, the largest buffer
};

}  // namespace

double paper_volume(const Strategy& strategy, const ModelConfig& model, const Torus& torus,
                    const Pass& pass) {
  const ModelConfig two = paper_model(model);
  const Program layer =
      partition(strategy.table(), two, extents_of(two, pass.B, pass.L), torus, {}).layer;
  Findings findings(Findings::Until::first);
  const ValueTypes types = check(layer, two, torus, {pass.B, pass.L, pass.M}, findings);
  if (!findings.all().empty()) throw FindingsError(findings.all());
  const auto elements = [&](const std::string& value) {
    return local_elements(types.at(value), torus, pass).at(pass);
  };
  std::map<std::string, Chain> chains;  // by the name of their last result
  bool in_ffn = false;
  for (const Op& op : layer.ops) {
    const ValueDecl& result = op.results[0];
    if (op.kind == OpKind::add && result.role.name == "mid") in_ffn = true;
    if (!in_ffn || !is_collective(op.kind) || result.role.kind == Role::Kind::stat) continue;
    Chain chain{op.kind, std::max(elements(op.args[0]), elements(result.name))};
    if (const auto before = chains.find(op.args[0]);
        before != chains.end() && before->second.kind == op.kind) {
      chain.elements = std::max(chain.elements, before->second.elements);
      chains.erase(before);
    }
    chains.emplace(result.name, chain);
  }
  double volume = 0.0;
  for (const auto& [name, chain] : chains) volume += chain.elements * times_sent(chain.kind);
  return volume;
}

}  // namespace shardproof::cost
