#include "weights/registry.h"

#include <fmt/format.h>

namespace shardproof {
namespace {

bool is_gated(const ModelConfig& c) { return c.ffn == Ffn::swiglu || c.ffn == Ffn::geglu; }

// RMS norms have no bias, whatever `bias` says (docs/spec.md section 2).
bool has_norm_bias(const ModelConfig& c) {
  return c.norm == Norm::layernorm && (c.bias == Bias::norm || c.bias == Bias::all);
}

std::int64_t extent(const ModelConfig& c, char letter) {
  switch (letter) {
    case 'E':
      return c.E;
    case 'F':
      return c.F;
    case 'H':
      return c.H;
    case 'K':
      return c.K;
    case 'Q':
      return c.Q;
    case 'V':
      return c.V;
    case 'P':
      return c.positions;
    default:  // J, the rotated pairs
      return static_cast<std::int64_t>(c.rotary * static_cast<double>(c.Q)) / 2;
  }
}

class SpecList {
 public:
  explicit SpecList(const ModelConfig& config) : config_(config) {}

  void vector(std::string name, std::string dims) { add(std::move(name), std::move(dims), 1); }

  // A matrix whose leading `contracted` dims are summed over.
  void matrix(std::string name, std::string dims, std::size_t contracted) {
    std::int64_t fan_in = 1;
    for (std::size_t i = 0; i < contracted; ++i) fan_in *= extent(config_, dims[i]);
    add(std::move(name), std::move(dims), fan_in);
    specs_.back().matrix = true;
  }

  std::vector<WeightSpec> take() { return std::move(specs_); }

 private:
  void add(std::string name, std::string dims, std::int64_t fan_in) {
    Shape shape;
    for (char letter : dims) shape.push_back(extent(config_, letter));
    specs_.push_back({std::move(name), std::move(dims), std::move(shape), fan_in, false});
  }

  const ModelConfig& config_;
  std::vector<WeightSpec> specs_;
};

void add_layer(SpecList& list, const ModelConfig& c, std::int64_t layer) {
  const auto named = [layer](std::string_view name) {
    return fmt::format("layer{}.{}", layer, name);
  };
  list.vector(named("norm"), "E");
  if (c.block == Block::serial) list.vector(named("norm2"), "E");
  list.matrix(named("wq"), "EHQ", 1);
  list.matrix(named("wk"), "EKQ", 1);
  list.matrix(named("wv"), "EKQ", 1);
  list.matrix(named("wo"), "HQE", 2);
  list.matrix(named("w_gate"), "EF", 1);
  if (is_gated(c)) list.matrix(named("w_up"), "EF", 1);
  list.matrix(named("w_out"), "FE", 1);
  if (has_norm_bias(c)) {
    list.vector(named("norm_bias"), "E");
    if (c.block == Block::serial) list.vector(named("norm2_bias"), "E");
  }
  if (c.bias == Bias::qkv || c.bias == Bias::all) {
    list.vector(named("bq"), "HQ");
    list.vector(named("bk"), "KQ");
    list.vector(named("bv"), "KQ");
  }
  if (c.bias == Bias::all) {
    list.vector(named("bo"), "E");
    list.vector(named("b_gate"), "F");
    if (is_gated(c)) list.vector(named("b_up"), "F");
    list.vector(named("b_out"), "E");
  }
}

}  // namespace

std::vector<WeightSpec> weight_specs(const ModelConfig& c) {
  SpecList list(c);
  // The table is not scaled by its extent: embedding selects rows, and logit_scale scales logits.
  list.matrix("embed", "VE", 0);
  if (!c.tied) list.matrix("unembed", "VE", 0);
  for (std::int64_t layer = 0; layer < c.layers; ++layer) add_layer(list, c, layer);
  list.vector("final_norm", "E");
  if (has_norm_bias(c)) list.vector("final_norm_bias", "E");
  if (c.rope != Rope::none) {
    list.vector("rope_cos", "PJ");
    list.vector("rope_sin", "PJ");
  }
  return list.take();
}

std::vector<CheckpointSpec> checkpoint_specs(const ModelConfig& c) {
  const bool serial = c.block == Block::serial;
  const bool rotates = c.rope != Rope::none;
  std::vector<CheckpointSpec> specs;
  const auto add = [&specs](bool present, std::string name, std::string dims) {
    if (present) specs.push_back({std::move(name), std::move(dims), true, false});
  };
  specs.push_back({"embed", "BLE", false, false});
  add(true, "norm", "BLE");
  add(serial, "norm2", "BLE");
  specs.push_back({"final_norm", "BLE", false, false});
  add(true, "q", "BLHQ");
  add(true, "k", "BLKQ");
  add(true, "v", "BLKQ");
  add(rotates, "q_rot", "BLHQ");
  add(rotates, "k_rot", "BLKQ");
  add(true, "k_cache", "BMKQ");
  add(true, "v_cache", "BMKQ");
  add(true, "score", "BLHM");
  add(true, "max", "BLH");
  add(true, "exp", "BLHM");
  add(true, "denom", "BLH");
  add(true, "attn", "BLHQ");
  add(true, "gate", "BLF");
  add(is_gated(c), "up", "BLF");
  add(true, "hidden", "BLF");
  add(!serial, "block_out", "BLE");
  add(serial, "attn_out", "BLE");
  add(serial, "mid", "BLE");
  add(serial, "ffn_out", "BLE");
  add(true, "out", "BLE");
  specs.push_back({"logits", "BV", false, false});
  specs.push_back({"token", "B", false, true});
  return specs;
}

const std::vector<StatSpec>& stat_specs() {
  static const std::vector<StatSpec> specs = [] {
    std::vector<StatSpec> all{{"candidates", "BC", false}, {"indices", "BC", false}};
    for (const auto& [name, dims] : {std::pair{"sum", "BL"}, std::pair{"mu", "BL"},
                                     std::pair{"d", "BLE"}, std::pair{"ss", "BL"}}) {
      all.push_back({name, dims, true});
      all.push_back({std::string(name) + "2", dims, true});
      all.push_back({std::string("final_") + name, dims, false});
    }
    return all;
  }();
  return specs;
}

std::string checkpoint_id(std::string_view pass, int layer, std::string_view name) {
  if (layer < 0) return fmt::format("{}.{}", pass, name);
  return fmt::format("{}.layer{}.{}", pass, layer, name);
}

}  // namespace shardproof
