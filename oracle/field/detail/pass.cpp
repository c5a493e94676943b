#include "oracle/field/detail/pass.h"

#include <fmt/format.h>

#include <utility>

#include "oracle/field/detail/philox.h"
#include "weights/model/registry.h"

namespace shardproof::oracle::field {

Function::Function(const Random& random, std::string_view name, std::int64_t& applied)
    : random_(random), hash_(fnv1a64(name)), keeps_zero_(keeps_zero(name)), applied_(applied) {}

Number Function::operator()(const Number& v) const {
  ++applied_;
  return keeps_zero_ && v == Number{} ? v : random_.function(hash_, v);
}

Pass::Pass(Answer& answer, const PassPlan& plan, ActType act, const IntTensor& ids, int threads)
    : Places(plan),
      answer_(answer),
      name_(plan.name),
      act_(act),
      threads_(threads),
      math_(answer.setting),
      random_(answer.setting) {
  answer_.open(plan, *this, ids);
}

const Tensor* Pass::weight(int layer, std::string_view name) const {
  const auto found = answer_.weights.find(weight_id(layer, name));
  return found == answer_.weights.end() ? nullptr : &found->second;
}

Number Pass::constant(std::string_view what) const {
  return random_.stream(fmt::format("constant {}", what), {1}).data[0];
}

Function Pass::function(std::string_view name, const Degree& argument) {
  answer_.degrees.insert(argument);
  return {random_, name, answer_.applied[std::string(name)]};
}

Number Pass::inverse_extent(int layer, std::string_view name, std::int64_t E) const {
  const Number extent = math_.integer(E);
  if (const auto lane = math_.zero_lane(extent))
    throw Error("field_zero", fmt::format("{}: E={} has no inverse, lane {} of it is 0",
                                          id(layer, name), E, *lane));
  return math_.inverse(extent);
}

Number Pass::inverse_denom(int layer, const Tensor& denom, std::size_t at) {
  if (const auto lane = math_.zero_lane(denom.data[at]))
    throw Error("field_zero", fmt::format("{}{} has no inverse, lane {} of it is 0",
                                          id(layer, "denom"), index_text(denom.shape, at), *lane));
  ++answer_.inverted[layer];
  return math_.inverse(denom.data[at]);
}

Value Pass::store(int layer, std::string_view name, Value value) {
  if (act_ == ActType::f32) return keep(layer, name, std::move(value));
  const Function bf16 = function("bf16", value.degree);
  Value stored{value.tensor, kVariable};
  for (Number& v : stored.tensor.data) v = bf16(v);
  answer_.unstored[id(layer, name)] = std::move(value.tensor);
  return keep(layer, name, std::move(stored));
}

Value Pass::keep(int layer, std::string_view name, Value value) {
  answer_.degrees.insert(value.degree);
  answer_.checkpoints.insert_or_assign(id(layer, name), value.tensor);
  return value;
}

void Pass::raw(int layer, std::string_view name, Value s) {
  answer_.degrees.insert(s.degree);
  const std::string checkpoint = id(layer, name);
  if (s.tensor.data != answer_.checkpoints.at(checkpoint).data)
    answer_.raw[checkpoint] = std::move(s.tensor);
}

void Pass::with_scale(int layer, std::string_view name) {
  answer_.with_scale.insert(id(layer, name));
}

void Pass::scaled(int layer, std::string_view name, const Value& value) {
  answer_.degrees.insert(value.degree);
  answer_.scaled[id(layer, name)] = value.tensor;
}

void Pass::stat(int layer, std::string_view name, const Value& value) {
  answer_.degrees.insert(value.degree);
  answer_.stats[id(layer, name)] = value.tensor;
}

std::string Pass::id(int layer, std::string_view name) const {
  return checkpoint_id(name_, layer, name);
}

}  // namespace shardproof::oracle::field
