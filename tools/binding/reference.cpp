#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "engine/run/case.h"
#include "tools/binding/lines.h"
#include "tools/binding/objects.h"
#include "tools/binding/shardproof.h"
#include "weights/model/registry.h"

using namespace shardproof;
using namespace shardproof::binding;

namespace {

/// Adds the ids, checkpoints and tokens of a case's passes, as a dump has them.
void list_values(const Case& c, ReferenceObject& reference) {
  const oracle::Answer& answer = reference.known->answer;
  const Passes passes = c.passes();
  const auto add = [&](const std::string& id, const std::string& dims, const auto& tensor,
                       bool integer) {
    reference.values.push_back({id, dims, tensor.shape, integer, tensor.data.data()});
  };
  for (std::int64_t i = 0; i < passes.size(); ++i) {
    const std::string pass = passes.at(i).name;
    add(pass + ".ids", "BL", answer.inputs.at(pass + ".ids"), true);
    for (std::int64_t layer = -1; layer < c.model.layers; ++layer)
      for (const CheckpointSpec& spec : checkpoint_specs(c.model)) {
        if (spec.per_layer != (layer >= 0)) continue;
        const std::string id = checkpoint_id(pass, layer, spec.name);
        if (const auto token = answer.tokens.find(id); token != answer.tokens.end())
          add(id, spec.dims, token->second, true);
        else if (const auto value = answer.checkpoints.find(id); value != answer.checkpoints.end())
          add(id, spec.dims, value->second, false);
      }
  }
}

}  // namespace

char* shardproof_reference(const char* line, ShardproofObject* weights,
                           ShardproofObject** out) noexcept {
  return object_answer(out, [&] {
    const Case c = case_of(line);
    OracleMemo memo;
    auto reference = std::make_unique<ReferenceObject>();
    reference->known =
        memo.get(c, weights == nullptr ? nullptr : &as<WeightsObject>(weights).weights);
    list_values(c, *reference);
    return reference;
  });
}

char* shardproof_reference_list(ShardproofObject* object) noexcept {
  return answer([&] {
    nlohmann::json values = nlohmann::json::array();
    for (const ReferenceValue& value : as<ReferenceObject>(object).values)
      values.push_back({{"id", value.id},
                        {"dims", value.dims},
                        {"shape", value.shape},
                        {"type", value.integer ? "i32" : "f32"}});
    return nlohmann::json{{"values", values}};
  });
}

const void* shardproof_reference_data(ShardproofObject* object, const char* id) noexcept {
  const auto* const of = dynamic_cast<ReferenceObject*>(object);
  if (of == nullptr) return nullptr;
  for (const ReferenceValue& value : of->values)
    if (value.id == id) return value.numbers;
  return nullptr;
}
