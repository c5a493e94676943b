#include "engine/layouts/layer.h"

#include <fmt/format.h>

#include <map>
#include <tuple>
#include <utility>

#include "weights/model/registry.h"
#include "weights/text/composites.h"

namespace shardproof {
namespace {

/// Returns the contraction of a product: "BLHQ,HQE->BLE + BLF,FE->BLE".
EinsumSpec spec_of(const std::string& result, const Composite& product) {
  std::string spec;
  for (std::size_t t = 0; t < product.operands.size(); ++t)
    spec += fmt::format("{}{},{}->{}", t == 0 ? "" : " + ", value_row(product.operands[t])->dims,
                        weight_row(product.weights[t])->dims, value_row(result)->dims);
  return EinsumSpec::parse(spec);
}

/// Returns attention as one op of queries, keys and values, which rotates and caches them.
LogicalOp attend_of(const NamedComposites& all, const std::string& name, const Composite& mean) {
  LogicalOp op{LogicalOp::Kind::attend, name, {}};
  const Composite& scores =
      *find_composite(all, find_composite(all, mean.operands[0])->operands[0]);
  op.caches = {scores.operands[1], mean.operands[2]};
  for (std::string value : {scores.operands[0], find_composite(all, op.caches[0])->operands[0],
                            find_composite(all, op.caches[1])->operands[0]}) {
    const Composite& of = *find_composite(all, value);
    if (of.kind == CompositeKind::rotation) {
      op.rotations.push_back(value);
      value = of.operands[0];
    }
    op.operands.push_back(value);
  }
  return op;
}

void give_roles(std::vector<LogicalOp>& ops) {
  using Role = LogicalOp::Role;
  std::map<std::string, std::pair<Role, const char*>> roles;
  for (const LogicalOp& op : ops) {
    const bool attends = op.kind == LogicalOp::Kind::attend;
    if (!attends && op.kind != LogicalOp::Kind::activate) continue;
    static constexpr std::pair<Role, const char*> kRoles[] = {{Role::query, "q"},
                                                              {Role::key, "k"},
                                                              {Role::value, "v"},
                                                              {Role::gate, "h"},
                                                              {Role::up, "u"}};
    for (std::size_t i = 0; i < op.operands.size(); ++i)
      roles[op.operands[i]] = kRoles[i + (attends ? 0 : 3)];
  }
  char output = 'y';
  for (LogicalOp& op : ops) {
    if (op.kind != LogicalOp::Kind::einsum) continue;
    if (const auto of = roles.find(op.result); of != roles.end())
      std::tie(op.role, op.variable) = of->second;
    else
      op.variable = output++;
  }
}

}  // namespace

std::vector<LogicalOp> logical_layer(const ModelConfig& config, NumberFormat weights) {
  using Kind = LogicalOp::Kind;
  const NamedComposites all = composites_of(config, weights);
  std::vector<LogicalOp> ops;
  for (const auto& [name, of] : all) {
    if (!value_row(name)->per_layer) continue;
    switch (of.kind) {
      case CompositeKind::norm:
        ops.push_back({Kind::norm, name, of.operands});
        break;
      case CompositeKind::product: {
        LogicalOp op{Kind::einsum, name, {}, spec_of(name, of), of.scale, of.biases};
        for (std::size_t t = 0; t < of.operands.size(); ++t)
          op.operands.insert(op.operands.end(), {of.operands[t], of.weights[t]});
        ops.push_back(std::move(op));
        break;
      }
      case CompositeKind::mean:
        ops.push_back(attend_of(all, name, of));
        break;
      case CompositeKind::activation:
        ops.push_back({Kind::activate, name, of.operands});
        break;
      case CompositeKind::addition:
        ops.push_back({Kind::add, name, of.operands});
        break;
      default:
        break;  // parts of attention
    }
  }
  give_roles(ops);
  return ops;
}

}  // namespace shardproof
