#include "oracle/request/model_values.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include "oracle/numeric/field_number.h"
#include "weights/model/registry.h"

namespace shardproof::oracle {

namespace {

using std::size_t;

/// Returns whether the checkpoint is a contraction, up to scale, bias and st.
bool is_contraction(std::string_view id) {
  const ValueRow* const row = value_row(id.substr(id.rfind('.') + 1));
  return row != nullptr && row->contraction;
}

}  // namespace

Places::Places(const PassPlan& plan) : batch_(plan.batch()), length_(plan.L) {
  for (const PassRows& group : plan.rows) {
    start_.insert(start_.end(), static_cast<size_t>(group.rows), group.start);
    last_.insert(last_.end(), static_cast<size_t>(group.rows),
                 static_cast<size_t>(std::max<std::int64_t>(group.tokens - 1, 0)));
  }
}

template <class T>
const T& ModelValues<T>::raw_of(const std::string& id) const {
  if (const auto found = raw.find(id); found != raw.end()) return found->second;
  const auto found = checkpoints.find(id);
  if (found == checkpoints.end() || !is_contraction(id))
    throw Error("oracle_id", fmt::format("{:?} names no contraction of this run", id));
  return found->second;
}

template <class T>
const T& ModelValues<T>::scaled_of(const std::string& id) const {
  if (const auto found = scaled.find(id); found != scaled.end()) return found->second;
  if (!with_scale.contains(id))
    throw Error("oracle_id", fmt::format("{:?} names no contraction that this run scales", id));
  return unstored_of(id);  // no bias is added
}

template <class T>
const T& ModelValues<T>::unstored_of(const std::string& id) const {
  if (const auto found = unstored.find(id); found != unstored.end()) return found->second;
  const auto found = checkpoints.find(id);
  if (found == checkpoints.end())
    throw Error("oracle_id", fmt::format("{:?} names no checkpoint of this run", id));
  return found->second;
}

template <class T>
void ModelValues<T>::open(const PassPlan& plan, const Places& places, const IntTensor& ids) {
  const std::int64_t B = places.batch();
  IntTensor positions(ids.shape), last_tokens({B}), slots({B}), tokens({B}), samples_here({B});
  if (!plan.previous.empty()) slots = written.at(plan.previous);
  const auto L = static_cast<size_t>(places.length());
  for (size_t at = 0; at < positions.data.size(); ++at)
    positions.data[at] = static_cast<std::int32_t>(places.position(at / L, at % L));
  size_t b = 0;
  for (const PassRows& group : plan.rows)
    for (std::int64_t n = 0; n < group.rows; ++n, ++b) {
      last_tokens.data[b] = static_cast<std::int32_t>(places.last(b));
      slots.data[b] =
          std::max(slots.data[b], static_cast<std::int32_t>(group.end() - plan.prefix.length));
      tokens.data[b] = static_cast<std::int32_t>(group.tokens);
      samples_here.data[b] = plan.samples(group) ? 1 : 0;
    }
  passes.push_back(plan.name);
  inputs[plan.name + ".ids"] = ids;
  inputs[plan.name + ".pos"] = std::move(positions);
  last[plan.name] = std::move(last_tokens);
  written[plan.name] = std::move(slots);
  tokens_in[plan.name] = std::move(tokens);
  samples[plan.name] = std::move(samples_here);
}

std::string index_text(const Shape& shape, size_t at) {
  std::string text;
  auto rest = static_cast<std::int64_t>(at);
  for (size_t d = shape.size(); d-- > 0; rest /= shape[d])
    text = std::to_string(rest % shape[d]) + (text.empty() ? "" : ",") + text;
  return "[" + text + "]";
}

template struct ModelValues<Tensor>;
template struct ModelValues<field::Tensor>;

}  // namespace shardproof::oracle
