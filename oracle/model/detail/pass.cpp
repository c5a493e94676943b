#include "oracle/model/detail/pass.h"

#include <fmt/format.h>

#include <cmath>
#include <cstring>
#include <utility>

#include "oracle/numeric/detail/functions.h"
#include "weights/base/error.h"
#include "weights/model/registry.h"

namespace shardproof::oracle {

namespace {

bool same_bits(const Tensor& a, const Tensor& b) {
  return a.data.size() == b.data.size() &&
         std::memcmp(a.data.data(), b.data.data(), a.data.size() * sizeof(float)) == 0;
}

void require_finite(const std::string& id, const Tensor& t) {
  // v·0 is zero for finite v, otherwise NaN: a check without a branch for each element.
  bool finite = true;
  for (const float v : t.data) finite &= v * 0.0F == 0.0F;
  if (finite) return;
  for (std::size_t at = 0; at < t.data.size(); ++at)
    if (!std::isfinite(t.data[at]))
      throw Error("oracle_finite",
                  fmt::format("{}{} is {}", id, index_text(t.shape, at), t.data[at]));
}

}  // namespace

Pass::Pass(Answer& answer, const PassPlan& plan, ActType act, const IntTensor& ids, int threads)
    : Places(plan), answer_(answer), name_(plan.name), act_(act), threads_(threads) {
  answer_.open(plan, *this, ids);
}

const Tensor& Pass::store(int layer, std::string_view name, Tensor value) {
  if (act_ == ActType::f32) return keep(layer, name, std::move(value));
  Tensor stored = value;
  each_element(stored.data.size(), [&](std::size_t n) { stored.data[n] = bf16(value.data[n]); });
  const Tensor& checkpoint = keep(layer, name, std::move(stored));
  if (!same_bits(value, checkpoint))
    answer_.unstored[checkpoint_id(name_, layer, name)] = std::move(value);
  return checkpoint;
}

const Tensor& Pass::keep(int layer, std::string_view name, Tensor value) {
  const std::string id = checkpoint_id(name_, layer, name);
  require_finite(id, value);
  return answer_.checkpoints.insert_or_assign(id, std::move(value)).first->second;
}

const Tensor& Pass::contraction(int layer, std::string_view name, Tensor s) {
  if (act_ == ActType::f32) return keep(layer, name, std::move(s));  // S is the checkpoint
  const Tensor& checkpoint = store(layer, name, s);
  raw(layer, name, std::move(s));
  return checkpoint;
}

void Pass::raw(int layer, std::string_view name, Tensor s) {
  const std::string id = checkpoint_id(name_, layer, name);
  require_finite("raw " + id, s);
  if (!same_bits(s, answer_.checkpoints.at(id))) answer_.raw[id] = std::move(s);
}

void Pass::with_scale(int layer, std::string_view name) {
  answer_.with_scale.insert(checkpoint_id(name_, layer, name));
}

void Pass::scaled(int layer, std::string_view name, Tensor value) {
  const std::string id = checkpoint_id(name_, layer, name);
  require_finite("scaled " + id, value);
  answer_.scaled[id] = std::move(value);
}

void Pass::stat(int layer, std::string_view name, Tensor value) {
  const std::string id = checkpoint_id(name_, layer, name);
  require_finite("stat " + id, value);
  answer_.stats[id] = std::move(value);
}

void Pass::token(IntTensor ids) {
  ids.shape.pop_back();
  answer_.tokens[name_ + ".token"] = std::move(ids);
}

}  // namespace shardproof::oracle
