#include "engine/layouts/layer.h"

#include "weights/model/registry.h"

namespace shardproof {

std::vector<LogicalOp> logical_layer(const ModelConfig& config, WeightType weights) {
  using Kind = LogicalOp::Kind;
  std::vector<LogicalOp> ops;
  const auto einsum = [&](const char* result, const char* spec, std::vector<std::string> operands,
                          const std::vector<std::string>& biases) {
    LogicalOp op{Kind::einsum, result, std::move(operands), EinsumSpec::parse(spec)};
    // The terms of one contraction have one scale.
    if (weights == WeightType::int8) op.scale = scale_of(config, op.operands[1])->name;
    for (const std::string& bias : biases)
      if (has_weight(config, bias)) op.biases.push_back(bias);
    ops.push_back(std::move(op));
  };
  const auto attention = [&](const char* norm) {
    einsum("q", "BLE,EHQ->BLHQ", {norm, "wq"}, {"bq"});
    einsum("k", "BLE,EKQ->BLKQ", {norm, "wk"}, {"bk"});
    einsum("v", "BLE,EKQ->BLKQ", {norm, "wv"}, {"bv"});
    ops.push_back({Kind::attend, "attn", {"q", "k", "v"}});
  };
  const auto feed_forward = [&](const char* norm) {
    const bool gated = has_weight(config, "w_up");
    einsum("gate", "BLE,EF->BLF", {norm, "w_gate"}, {"b_gate"});
    if (gated) einsum("up", "BLE,EF->BLF", {norm, "w_up"}, {"b_up"});
    ops.push_back(
        {Kind::activate, "hidden",
         gated ? std::vector<std::string>{"gate", "up"} : std::vector<std::string>{"gate"}});
  };
  ops.push_back({Kind::norm, "norm", {"in"}});
  attention("norm");
  if (config.block == Block::parallel) {
    feed_forward("norm");
    // Both branches are one contraction, rounded once (paper §3.4).
    einsum("block_out", "BLHQ,HQE->BLE + BLF,FE->BLE", {"attn", "wo", "hidden", "w_out"},
           {"bo", "b_out"});
    ops.push_back({Kind::add, "out", {"in", "block_out"}});
    return ops;
  }
  einsum("attn_out", "BLHQ,HQE->BLE", {"attn", "wo"}, {"bo"});
  ops.push_back({Kind::add, "mid", {"in", "attn_out"}});
  ops.push_back({Kind::norm, "norm2", {"mid"}});
  feed_forward("norm2");
  einsum("ffn_out", "BLF,FE->BLE", {"hidden", "w_out"}, {"b_out"});
  ops.push_back({Kind::add, "out", {"mid", "ffn_out"}});
  return ops;
}

}  // namespace shardproof
