#include "golden/scalar/model.h"

#include <fmt/format.h>

#include <algorithm>

#include "weights/error.h"
#include "weights/registry.h"

namespace shardproof {

using scalar::Value;

namespace {

Value of_ints(const Shape& shape, std::vector<std::int32_t> ints) {
  return {{}, shape, {}, std::move(ints)};
}

bool in_layer(const Program& program) {
  return program.name == "layer" || program.name == "hand_over";
}

}  // namespace

ScalarModel::ScalarModel(const Inference& inference, const InferencePrograms& programs,
                         const Weights& weights, const IntTensor& prompt)
    : inference_(inference), programs_(programs), weights_(weights), prompt_(prompt) {
  const ModelConfig& c = inference.config;
  const Value empty{{}, {prompt.shape[0], 0, c.K, c.Q}, {{}}, {}};
  caches_.assign(static_cast<std::size_t>(c.layers), {{"k_cache", empty}, {"v_cache", empty}});
}

std::string ScalarModel::key(const Program& program, int layer, const std::string& value) {
  return in_layer(program) ? fmt::format("{}{}.{}", program.name, layer, value)
                           : fmt::format("{}.{}", program.name, value);
}

ScalarModel::Known ScalarModel::run(const Program& program, int layer, const Known& given) {
  std::map<std::string, Value> values;
  const auto made = [&](const Result& declared, Value value, bool input) {
    value.layout = declared.layout;
    values_[key(program, layer, declared.name)] = {value, &declared, in_layer(program) ? layer : -1,
                                                   input};
    values[declared.name] = std::move(value);
  };
  for (const Result& input : program.inputs) {
    const Meaning& m = input.meaning;
    if (m.kind == Meaning::Kind::weight) {
      const Tensor& w = weights_.at(weight_id(layer, m.name));
      made(input, {{}, w.shape, {w.data}, {}}, true);
    } else if (m.kind == Meaning::Kind::constant) {
      const Tensor ones = constant_tensor(inference_.config);
      made(input, {{}, ones.shape, {ones.data}, {}}, true);
    } else {
      made(input, given.at(m.to_string()), true);
    }
  }
  const scalar::Setting setting{inference_.config, inference_.torus, inference_.numerics.schedule};
  for (const Op& op : program.ops) {
    std::vector<const Value*> args;
    for (const std::string& name : op.args) args.push_back(&values.at(name));
    std::vector<Value> results = scalar::apply(op, args, setting);
    for (std::size_t r = 0; r < results.size(); ++r)
      made(op.results.at(r), std::move(results[r]), false);
  }
  Known outputs;
  for (const std::string& name : program.outputs)
    outputs[program.declared(name).meaning.to_string()] = values.at(name);
  return outputs;
}

void ScalarModel::layers_and_head(const PhasePrograms& phase, const IntTensor& ids, bool sample) {
  const std::int64_t B = ids.shape[0];
  const std::int64_t L = ids.shape[1];
  std::vector<std::int32_t> positions;
  for (std::int64_t i = 0; i < B * L; ++i)
    positions.push_back(static_cast<std::int32_t>(length_ + i % L));
  Value x = run(phase.embed, 0, {{"input ids", of_ints(ids.shape, ids.data)}}).at("embed");
  const auto layers = static_cast<int>(inference_.config.layers);
  for (int l = 0; l < layers; ++l) {
    Known& cache = caches_[static_cast<std::size_t>(l)];
    Known out = run(phase.layer, l,
                    {{"in", x},
                     {"input pos", of_ints(ids.shape, positions)},
                     {"previous k_cache", cache.at("k_cache")},
                     {"previous v_cache", cache.at("v_cache")}});
    x = out.at("out");
    cache = std::move(out);
  }
  length_ += L;
  const Value logits = run(phase.head, layers - 1, {{"out", x}}).at("logits");
  if (sample)
    tokens_.push_back(run(phase.sample, layers - 1, {{"logits", logits}}).at("token").ints);
}

bool ScalarModel::next_pass() {
  values_.clear();
  const std::int64_t B = prompt_.shape[0];
  const std::int64_t prompt = prompt_.shape[1];
  if (length_ < prompt) {
    pass_ = prefill_pass(chunks_++);
    const std::int64_t chunk = inference_.chunk > 0 ? inference_.chunk : prompt;
    const std::int64_t L = std::min(chunk, prompt - length_);
    IntTensor ids({B, L});
    for (std::int64_t i = 0; i < B * L; ++i)
      ids.data[static_cast<std::size_t>(i)] =
          prompt_.data[static_cast<std::size_t>(i / L * prompt + length_ + i % L)];
    const bool last = length_ + L == prompt;
    layers_and_head(programs_.prefill, ids, last);
    if (last && inference_.gen > 1 && !programs_.hand_over.ops.empty())
      for (int l = 0; l < static_cast<int>(inference_.config.layers); ++l) {
        Known& cache = caches_[static_cast<std::size_t>(l)];
        cache = run(programs_.hand_over, l, cache);
      }
    return true;
  }
  if (decoded_ + 1 >= inference_.gen) return false;
  pass_ = decode_pass(++decoded_);
  IntTensor ids({B, 1});
  ids.data = tokens_.back();
  layers_and_head(programs_.decode, ids, true);
  return true;
}

}  // namespace shardproof
