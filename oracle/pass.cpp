#include "oracle/pass.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>

#include "oracle/functions.h"
#include "weights/error.h"
#include "weights/registry.h"

namespace shardproof::oracle {

namespace {

bool same_bits(const Tensor& a, const Tensor& b) {
  return a.data.size() == b.data.size() &&
         std::memcmp(a.data.data(), b.data.data(), a.data.size() * sizeof(float)) == 0;
}

std::string index_text(const Shape& shape, std::size_t at) {
  std::string text;
  auto rest = static_cast<std::int64_t>(at);
  for (std::size_t d = shape.size(); d-- > 0; rest /= shape[d])
    text = std::to_string(rest % shape[d]) + (text.empty() ? "" : ",") + text;
  return "[" + text + "]";
}

void require_finite(const std::string& id, const Tensor& t) {
  for (std::size_t at = 0; at < t.data.size(); ++at)
    if (!std::isfinite(t.data[at]))
      throw Error("oracle_finite",
                  fmt::format("{}{} is {}", id, index_text(t.shape, at), t.data[at]));
}

}  // namespace

Pass::Pass(Answer& answer, const PassPlan& plan, ActType act, const IntTensor& ids)
    : answer_(answer), name_(plan.name), act_(act), batch_(ids.shape[0]), length_(ids.shape[1]) {
  for (const PassRows& group : plan.rows) {
    start_.insert(start_.end(), static_cast<std::size_t>(group.rows), group.start);
    last_.insert(last_.end(), static_cast<std::size_t>(group.rows),
                 static_cast<std::size_t>(group.tokens - 1));
  }
  IntTensor positions(ids.shape), last({batch_}), written({batch_});
  if (!answer_.passes.empty()) written = answer_.written.at(answer_.passes.back());
  const auto L = static_cast<std::size_t>(length_);
  for (std::size_t at = 0; at < positions.data.size(); ++at)
    positions.data[at] = static_cast<std::int32_t>(position(at / L, at % L));
  for (std::size_t b = 0; b < last_.size(); ++b) {
    last.data[b] = static_cast<std::int32_t>(last_[b]);
    written.data[b] = std::max(written.data[b], static_cast<std::int32_t>(position(b, L)));
  }
  answer_.passes.push_back(name_);
  answer_.inputs[name_ + ".ids"] = ids;
  answer_.inputs[name_ + ".pos"] = std::move(positions);
  answer_.last[name_] = std::move(last);
  answer_.written[name_] = std::move(written);
}

const Tensor& Pass::store(int layer, std::string_view name, Tensor value) {
  if (act_ == ActType::f32) return keep(layer, name, std::move(value));
  Tensor stored = value;
  for (float& v : stored.data) v = bf16(v);
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
