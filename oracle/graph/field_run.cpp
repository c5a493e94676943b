#include "oracle/graph/field_run.h"

#include <utility>
#include <vector>

#include "oracle/graph/detail/field_math.h"
#include "oracle/graph/detail/rows_together.h"
#include "oracle/request/detail/request_check.h"
#include "oracle/walk/walk.h"
#include "weights/text/flat.h"

namespace shardproof::oracle::graph {
namespace {

/// Runs rows that all have L tokens in every pass, over the slots of the batch's caches.
std::map<std::string, field::Tensor> together(const FieldRequest& request, const IntTensor& ids,
                                              const Passes& passes) {
  const FieldMath math(request.setting, request.act, request.text, request.sizes);
  const auto weights = [&](const TextWeight& weight, const std::string& id, const Shape& shape) {
    Shape stored = shape;
    if (turns(weight))
      stored[1] = static_cast<std::int64_t>(request.sizes.number(weight.parameters[1])) / 2;
    const field::Tensor t = math.random().stream("weight " + id, stored);
    return Lettered<field::Number>{
        weight.letters, shape,
        turns(weight) ? spread(weight, t, shape, math.number(1), math.number(0)) : t.data};
  };
  Walk<FieldMath> walk(request.text, request.sizes, math, weights);
  const SlotsByPass slots = slots_of(request.passes);
  std::map<std::string, field::Tensor> values;
  for (std::int64_t i = 0; i < passes.size(); ++i) {
    const PassPlan plan = passes.at(i);
    walk.run(tokens_alone(plan, ids_at(plan, ids), slots),
             [&](std::int64_t layer, const TextLine& line, const Lettered<field::Number>& value) {
               field::Tensor t(value.shape);
               t.data = value.data;
               values[value_id(plan.name, layer, line.name)] = std::move(t);
             });
  }
  return values;
}

}  // namespace

std::map<std::string, field::Tensor> run_in_field(const FieldRequest& of_text) {
  const ModelText flat = flat_text(of_text.text);
  const FieldRequest request{flat,        of_text.sizes,  of_text.act,
                             of_text.ids, of_text.passes, of_text.setting};
  if (is_one_batch(request.passes)) return together(request, request.ids, request.passes);
  std::vector<std::map<std::string, field::Tensor>> rows;
  for (size_t b = 0; b < static_cast<size_t>(request.ids.shape[0]); ++b)
    rows.push_back(together(request, ids_alone(request.ids, b), passes_alone(request.passes, b)));
  return RowsTogether<field::Tensor>(request.text, request.passes).values(rows);
}

}  // namespace shardproof::oracle::graph
