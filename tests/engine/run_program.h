#pragma once

#include <fmt/format.h>

#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/program/execute.h"
#include "engine/program/typing.h"

namespace shardproof {

/// The config that tests execute with; only eps and the two scales of it matter.
inline const ModelConfig& any_config() {
  static const ModelConfig config = parse_model("palm-tiny,embed_scale=3,logit_scale=0.5");
  return config;
}

/// How tests execute: with any config, of no scope.
inline Execution any_execution(Threads& threads, Observer* observer = nullptr,
                               const Hazards& hazards = Hazards::hostile()) {
  return {.config = any_config(),
          .threads = threads,
          .observer = observer,
          .scope = {},
          .hazards = hazards};
}

inline SharedValue shared(Sharded value) { return std::make_shared<Sharded>(std::move(value)); }

/// A tensor of `data`, or of 0, 1, 2, ... where no data is given: a misplaced element shows.
inline Tensor tensor_of(const Shape& shape, std::vector<float> data = {}) {
  Tensor t(shape);
  for (std::size_t i = 0; i < t.data.size(); ++i)
    t.data[i] = data.empty() ? static_cast<float>(i) : data.at(i);
  return t;
}

/// One op on its operands: typed by infer(), so that laws need no declared layouts, then executed.
/// `call` is a program's text: "all_gather(t, E, zy)"; its names stand for the operands in order.
inline std::vector<Sharded> run_op_results(std::string_view call,
                                           const std::vector<SharedValue>& operands,
                                           std::size_t results) {
  static Threads one(1);
  std::string declared, roles;
  for (std::size_t i = 0; i < results; ++i) {
    declared += fmt::format("{}result{} : B", i > 0 ? ", " : "", i);
    roles += i > 0 ? ", in" : "in";
  }
  Program program = parse_program("law", fmt::format("{} = {} is {}", declared, call, roles));
  Op& op = program.ops[0];
  std::vector<Type> types;
  std::map<std::string, SharedValue> inputs;
  for (std::size_t i = 0; i < operands.size(); ++i) {
    const Sharded& operand = *operands[i];
    types.push_back(operand.type());
    inputs[op.args.at(i)] = operands[i];
  }
  const std::vector<Type> inferred = infer(op, types, operands[0]->torus());
  for (std::size_t i = 0; i < results; ++i) {
    op.results[i].layout = inferred.at(i).layout;
    program.outputs.push_back(op.results[i].name);
  }
  std::vector<Sharded> values;
  for (const auto& [name, value] : execute(program, std::move(inputs), any_execution(one)))
    values.push_back(*value);
  return values;
}

inline Sharded run_op(std::string_view call, const std::vector<SharedValue>& operands) {
  return run_op_results(call, operands, 1)[0];
}
inline Sharded run_op(std::string_view call, Sharded operand) {
  return run_op(call, std::vector{shared(std::move(operand))});
}

/// A whole program, checked and executed; its inputs are unsharded tensors by name.
inline std::map<std::string, SharedValue> run_program(std::string_view text, const Torus& torus,
                                                      const std::map<std::string, Tensor>& inputs,
                                                      int threads = 1) {
  const Program program = parse_program("test", text);
  std::map<std::string, Shape> shapes;
  std::map<std::string, SharedValue> values;
  for (const ValueDecl& input : program.inputs) {
    const Tensor& tensor = inputs.at(input.name);
    shapes[input.name] = tensor.shape;
    values[input.name] = shared(shard(tensor, input.layout, torus));
  }
  check(program, shapes, torus);
  Threads pool(threads);
  return execute(program, std::move(values), any_execution(pool));
}

/// Whether every chip holds the same bits: layout, shape and buffers.
inline bool same_bits(const Sharded& a, const Sharded& b) {
  if (!(a.layout() == b.layout()) || a.shape() != b.shape() || a.data().index() != b.data().index())
    return false;
  const auto equal = [](const auto& left, const auto& right) {
    if (left.size() != right.size()) return false;
    for (std::size_t c = 0; c < left.size(); ++c)
      if (left[c].size() != right[c].size() ||
          (!left[c].empty() &&
           std::memcmp(left[c].data(), right[c].data(), left[c].size() * sizeof(left[c][0])) != 0))
        return false;
    return true;
  };
  if (a.holds_partial()) return equal(a.partial().values, b.partial().values);
  if (std::holds_alternative<ChipArrays<float>>(a.data())) return equal(a.f32(), b.f32());
  return equal(a.i32(), b.i32());
}

}  // namespace shardproof
