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

const NamedComposites& composites(const Question& q) { return q.step().graph().composites(); }

/// Returns the name of the model's value of this kind.
std::string name_of(const Question& q, CompositeKind kind) {
  return shardproof::name_of(composites(q), kind);
}

/// Returns a dumped norm with its gain put back.
bounds::IntervalTensor with_gain(const Question& q, const std::string& norm) {
  const bounds::Derivation::Place place = q.replay().place_of(norm);
  const Composite& of = *find_composite(composites(q), place.name);
  const auto gain = q.weight(shardproof::weight_id(place.layer, of.weights[0]));
  const std::vector<float>& g = gain->data;
  bounds::IntervalTensor with = q.replay().value(norm);
  const std::size_t E = g.size();
  for (std::size_t i = 0; i < with.size(); ++i) {
    with.center[i] *= static_cast<double>(g[i % E]);
    with.radius[i] = (2 * q.declared().operations.unit + bounds::unit_of(q.format()) + 0x1p-53) *
                     std::abs(with.center[i]);
  }
  return with;
}

/// Returns whether all norms of the pass are right with gain: writers fold all or none.
bool all_folded(const Question& q) {
  for (std::int64_t layer = 0; layer < q.config().layers; ++layer)
    for (const auto& [name, of] : composites(q)) {
      const std::string norm = checkpoint_id(q.place().pass, layer, name);
      if (of.kind != CompositeKind::norm || !q.replay().dumped(norm)) continue;
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
  bool any = false;
  for (const auto& [name, of] : composites(q)) {
    const bool reads = of.kind == CompositeKind::product && of.reads(q.name());
    if (!reads || !q.replay().dumped(q.id_of(name))) continue;
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
  const std::string score = name_of(q, CompositeKind::score);
  const std::string max = name_of(q, CompositeKind::maximum);
  if (!q.step().graph().of_keys() || q.name() != score || !q.replay().dumped(q.id_of(score)))
    return false;
  std::vector<std::pair<std::string, bounds::IntervalTensor>> values{in_units(q, score)};
  if (q.replay().dumped(q.id_of(max))) values.push_back(in_units(q, max));
  for (const CompositeKind kind :
       {CompositeKind::exponential, CompositeKind::denominator, CompositeKind::mean})
    if (const std::string id = q.id_of(name_of(q, kind)); q.replay().dumped(id))
      return follows(q, id, values);
  return false;
}

bool scores_in_other_units(const Question& q) {
  if (!q.step().graph().of_keys() || q.name() != name_of(q, CompositeKind::exponential))
    return false;
  const std::string score = q.id_of(name_of(q, CompositeKind::score));
  return q.replay().dumped(score) &&
         holds(q, score, scaled(q.replay().expected(score), to_other_base(q), q.declared()));
}

Edit of_other_units() {
  return [](const Question& q, Search& search, const Row& row) {
    Trial(q, search).try_change(candidate(row),
                                {.values = {in_units(q, name_of(q, CompositeKind::score)),
                                            in_units(q, name_of(q, CompositeKind::maximum))}});
  };
}

Edit with_bias_inside() {
  return [](const Question& q, Search& search, const Row& row) {
    const Step whole(q.replay(), q.id(), false);
    for (const TextWeight* const weight : whole.weights(WeightKind::bias)) {
      const std::string id = whole.weight_id(*weight);
      const std::vector<float>& bias = q.weight(id)->data;
      bounds::IntervalTensor value = q.expected();
      for (std::size_t i = 0; i < value.size(); ++i) {
        value.center[i] += static_cast<double>(bias[i % bias.size()]);
        value.widen(i, 2 * q.declared().operations.unit * std::abs(value.center[i]));
      }
      Trial(q, search).try_value(candidate(row, id, q.name()), std::move(value));
    }
  };
}

}  // namespace shardproof::diagnosis
