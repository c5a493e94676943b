#include "engine/program/constants.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <vector>

#include "weights/model/softmax.h"

namespace shardproof {
namespace {

/// A constant that a program can name: the op that takes it, and its value in a model.
struct Constant {
  std::string_view name;
  OpKind op;
  double (*of)(const ModelConfig&);
};

constexpr Constant kConstants[] = {
    {"embed_scale", OpKind::scale_by,
     [](const ModelConfig& c) { return static_cast<double>(c.embed_scale); }},
    {"logit_scale", OpKind::scale_by,
     [](const ModelConfig& c) { return static_cast<double>(scale_of_logits(c)); }},
    {"E", OpKind::divide_by, [](const ModelConfig& c) { return static_cast<double>(c.E); }},
};

const Constant* find(OpKind kind, const std::string& name) {
  for (const Constant& constant : kConstants)
    if (constant.op == kind && constant.name == name) return &constant;
  return nullptr;
}

}  // namespace

double constant_of(const Op& op, const ModelConfig& config) {
  const Constant* const constant = find(op.kind, op.parameter);
  if (constant == nullptr)
    throw Error(fmt::format("{}_c2", to_string(op.kind)), no_constant(op.kind, op.parameter));
  return constant->of(config);
}

bool is_constant(OpKind kind, const std::string& name) { return find(kind, name) != nullptr; }

std::string no_constant(OpKind kind, const std::string& name) {
  std::vector<std::string_view> legal;
  for (const Constant& constant : kConstants)
    if (constant.op == kind) legal.push_back(constant.name);
  return fmt::format("'{}' is not a constant{}; legal: {}", name,
                     kind == OpKind::divide_by ? " to divide by" : "", fmt::join(legal, ", "));
}

}  // namespace shardproof
