// Conventions of writers that a trace does not declare: they are those of models of keys.
#include "golden/diagnosis/detail/conventions.h"

#include <algorithm>
#include <cmath>

#include "golden/diagnosis/detail/trial.h"
#include "weights/base/detail/index.h"
#include "weights/model/registry.h"
#include "weights/model/softmax.h"

namespace shardproof::diagnosis {
namespace {

/// Returns a dumped norm with its gain put back.
bounds::IntervalTensor with_gain(const Question& q, const std::string& norm) {
  const bounds::Derivation::Place place = q.replay().place_of(norm);
  const Tensor& g = *q.weight(shardproof::weight_id(place.layer, place.name));
  bounds::IntervalTensor with = q.replay().value(norm);
  const std::size_t E = g.data.size();
  for (std::size_t i = 0; i < with.size(); ++i) {
    with.center[i] *= static_cast<double>(g.data[i % E]);
    with.radius[i] = (2 * q.declared().operations.unit + bounds::unit_of(q.format()) + 0x1p-53) *
                     std::abs(with.center[i]);
  }
  return with;
}

/// Returns whether all norms of the pass are right with gain: writers fold all or none.
bool all_folded(const Question& q) {
  for (std::int64_t layer = 0; layer < q.config().layers; ++layer)
    for (const char* name : {"norm", "norm2", "final_norm"}) {
      const std::string norm = checkpoint_id(q.place().pass, layer, name);
      if (!q.replay().dumped(norm)) continue;
      const bounds::IntervalTensor with = with_gain(q, norm), right = q.replay().expected(norm);
      const std::vector<bool> unspoken = q.unspoken(q.replay().place_of(norm), with.shape);
      for (std::size_t i = 0; i < with.size(); ++i)
        if ((unspoken.empty() || !unspoken[i]) &&
            !(std::abs(with.center[i] - right.center[i]) <= with.radius[i] + right.radius[i]))
          return false;
    }
  return true;
}

/// Returns a value by name, in units of the model that it is dumped in the other ones of.
std::pair<std::string, bounds::IntervalTensor> in_units(const Question& q, std::string_view name) {
  const std::string id = q.id_of(name);
  return {id, scaled(q.value(id), 1 / to_other_base(q), q.declared())};
}

}  // namespace

/// Returns whether the values that follow from the norm are right with the gain put back.
bool gains_folded(const Question& q) {
  if (!q.step().graph().of_keys() || !q.replay().dumped(q.id()) || !all_folded(q)) return false;
  const bounds::IntervalTensor with = with_gain(q, q.id());
  const bool serial = q.config().block == Block::serial;
  std::vector<std::string> made{"q", "k", "v", serial ? "" : "gate", serial ? "" : "up"};
  if (q.name() == "norm2") made = {"gate", "up"};
  if (q.name() == "final_norm") made = {"logits"};
  bool any = false;
  for (const std::string& name : made) {
    if (name.empty() || !q.replay().dumped(q.id_of(name))) continue;
    if (!follows(q, q.id_of(name), {{q.id(), with}})) return false;
    any = true;
  }
  return any;
}

double to_other_base(const Question& q) { return of_base2(q) ? kLn2 : kLog2E; }

bool of_base2(const Question& q) {
  const auto& lines = q.step().graph().lines().text().section(TextSection::layer).lines;
  return std::any_of(lines.begin(), lines.end(),
                     [](const TextLine& line) { return is_call(line.expression, ModelOp::exp2); });
}

bool followed_in_other_units(const Question& q) {
  if (!q.step().graph().of_keys() || q.name() != "score" || !q.replay().dumped(q.id_of("score")))
    return false;
  std::vector<std::pair<std::string, bounds::IntervalTensor>> values{in_units(q, "score")};
  if (q.replay().dumped(q.id_of("max"))) values.push_back(in_units(q, "max"));
  for (const char* made : {"exp", "denom", "attn"})
    if (q.replay().dumped(q.id_of(made))) return follows(q, q.id_of(made), values);
  return false;
}

bool scores_in_other_units(const Question& q) {
  const std::string score = q.id_of("score");
  return q.step().graph().of_keys() && q.name() == "exp" && q.replay().dumped(score) &&
         holds(q, score, scaled(q.replay().expected(score), to_other_base(q), q.declared()));
}

Edit of_other_units() {
  return [](const Question& q, Search& search, const Row& row) {
    Trial(q, search).try_change(candidate(row),
                                {.values = {in_units(q, "score"), in_units(q, "max")}});
  };
}

}  // namespace shardproof::diagnosis
