#include "golden/scalar/model.h"

#include <fmt/format.h>

#include <iterator>
#include <set>

#include "weights/error.h"
#include "weights/passes.h"

namespace shardproof {

using scalar::Value;

namespace {

Value of_ints(const Shape& shape, std::vector<std::int32_t> ints) {
  return {{}, shape, {}, std::move(ints)};
}

/// Whether it is S of a W matrix (docs/spec.md section 1.2): those that acc is about. The lookup of
/// embed adds nothing up, the table of logits is none, and statistics and attention have no
/// weights.
bool multiplies_weights(const Role& role) {
  static const std::set<std::string> all{"q",  "k",         "v",        "gate",
                                         "up", "block_out", "attn_out", "ffn_out"};
  return all.contains(role.name);
}

}  // namespace

scalar::Setting setting_of(const RunPlan& plan, const PassPlan& pass, const Op& op) {
  const Numerics& numerics = plan.given.numerics;
  const Role& role = op.results.at(0).role;
  return {.config = plan.given.model,
          .torus = plan.programs(pass.phase).torus,
          .schedule = numerics.schedule,
          .rows = pass.rows,
          .acc_bf16 = numerics.acc == FloatType::bf16 && multiplies_weights(role),
          .wire_bf16 = numerics.wire == FloatType::bf16 &&
                       (multiplies_weights(role) || role.name == "embed")};
}

ScalarModel::ScalarModel(const RunPlan& plan, const Weights& weights, const IntTensor& prompt)
    : plan_(plan), weights_(weights), prompt_(prompt) {
  const ModelConfig& c = plan.given.model;
  const Value empty{{}, {prompt.shape[0], 0, c.K, c.Q}, {{}}, {}};
  caches_.assign(static_cast<std::size_t>(c.layers), {{"k_cache", empty}, {"v_cache", empty}});
}

std::string ScalarModel::key(const Program& program, int layer, const std::string& value) {
  return program.of_layer() ? fmt::format("{}{}.{}", program.name, layer, value)
                            : fmt::format("{}.{}", program.name, value);
}

ScalarModel::Known ScalarModel::run(const Program& program, int layer, const Known& given) {
  std::map<std::string, Value> values;
  const auto made = [&](const ValueDecl& declared, Value value, bool input) {
    value.layout = declared.layout;
    values_[key(program, layer, declared.name)] = {value, declared.role,
                                                   program.of_layer() ? layer : -1, input};
    values[declared.name] = std::move(value);
  };
  for (const ValueDecl& input : program.inputs) {
    const Role& m = input.role;
    if (m.kind == Role::Kind::weight) {
      const Tensor& w = weights_.at(weight_id(layer, m.name));
      made(input, {{}, w.shape, {w.data}, {}}, true);
    } else if (m.kind == Role::Kind::constant) {
      const Tensor ones = constant_tensor(plan_.given.model);
      made(input, {{}, ones.shape, {ones.data}, {}}, true);
    } else {
      made(input, given.at(m.to_string()), true);
    }
  }
  for (const Op& op : program.ops) {
    std::vector<const Value*> args;
    for (const std::string& name : op.args) args.push_back(&values.at(name));
    std::vector<Value> results = scalar::apply(op, args, setting_of(plan_, pass_, op));
    for (std::size_t r = 0; r < results.size(); ++r)
      made(op.results.at(r), std::move(results[r]), false);
  }
  Known outputs;
  for (const std::string& name : program.outputs)
    outputs[program.declared(name).role.to_string()] = values.at(name);
  return outputs;
}

void ScalarModel::run_pass(const Value& ids) {
  const PhasePrograms& programs = plan_.programs(pass_.phase);
  Value positions = of_ints(ids.shape, {});
  for (const PassRows& group : pass_.rows)
    for (std::int64_t n = 0; n < group.rows * pass_.L; ++n)
      positions.ints.push_back(static_cast<std::int32_t>(group.start + n % pass_.L));
  Value x = run(programs.embed, 0, {{"input ids", ids}}).at("embed");
  const auto layers = static_cast<int>(plan_.given.model.layers);
  for (int l = 0; l < layers; ++l) {
    Known& cache = caches_[static_cast<std::size_t>(l)];
    Known out = run(programs.layer, l,
                    {{"in", x},
                     {"input pos", positions},
                     {"previous k_cache", cache.at("k_cache")},
                     {"previous v_cache", cache.at("v_cache")}});
    x = out.at("out");
    cache = std::move(out);
  }
  const Value logits = run(programs.head, layers - 1, {{"out", x}}).at("logits");
  if (pass_.sample)
    tokens_.push_back(run(programs.sample, layers - 1, {{"logits", logits}}).at("token").ints);
}

bool ScalarModel::next_pass() {
  values_.clear();
  if (next_ == plan_.passes.size()) return false;
  pass_ = plan_.passes.at(next_++);
  const std::int64_t width = prompt_.shape[1];
  Value ids = of_ints({pass_.batch(), pass_.L}, {});
  if (pass_.phase == Phase::decode) {
    ids.ints = tokens_.back();
  } else {
    for (const PassRows& group : pass_.rows)
      for (std::int64_t n = 0; n < group.rows; ++n) {
        const std::int64_t row = std::ssize(ids.ints) / pass_.L;
        for (std::int64_t i = 0; i < pass_.L; ++i)
          ids.ints.push_back(
              i < group.tokens
                  ? prompt_.data[static_cast<std::size_t>(row * width + group.start + i)]
                  : 0);
      }
  }
  run_pass(ids);
  const bool hands_over = pass_.phase == Phase::prefill && next_ < plan_.passes.size() &&
                          plan_.passes.at(next_).phase == Phase::decode;
  if (hands_over && !plan_.hand_over.ops.empty())
    for (int l = 0; l < static_cast<int>(plan_.given.model.layers); ++l) {
      Known& cache = caches_[static_cast<std::size_t>(l)];
      cache = run(plan_.hand_over, l, cache);
    }
  return true;
}

}  // namespace shardproof
