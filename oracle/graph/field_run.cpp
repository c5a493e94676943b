#include "oracle/graph/field_run.h"

#include <utility>

#include "oracle/graph/detail/field_math.h"
#include "oracle/request/detail/request_check.h"
#include "oracle/request/detail/row_alone.h"
#include "oracle/walk/passes.h"
#include "oracle/walk/walk.h"
#include "weights/text/flat.h"

namespace shardproof::oracle::graph {

std::map<std::string, field::Tensor> run_in_field(const FieldRequest& of_text) {
  if (!is_one_batch(of_text.passes))
    throw Error("oracle_range", "in the field a text runs rows of equal length without prefixes");
  const ModelText flat = flat_text(of_text.text);
  const FieldRequest request{flat,        of_text.sizes,  of_text.act,
                             of_text.ids, of_text.passes, of_text.setting};
  const FieldMath math(request.setting, request.act, request.text, request.sizes);
  const auto weights = [&](const TextWeight& weight, const std::string& id, const Shape& shape) {
    Shape stored = shape;
    if (turns(weight))
      stored[1] = static_cast<std::int64_t>(request.sizes.number(weight.parameters[1])) / 2;
    const field::Tensor t = math.random().stream("weight " + id, stored);
    return turns(weight) ? spread(weight, t, shape, math.number(1), math.number(0)) : t.data;
  };
  Walk<FieldMath> walk(request.text, request.sizes, math, weights);
  std::map<std::string, field::Tensor> values;
  for (std::int64_t i = 0; i < request.passes.size(); ++i) {
    const PassPlan plan = request.passes.at(i);
    walk.run(tokens_of(plan, ids_at(plan, request.ids)),
             [&](std::int64_t layer, const TextLine& line, const Lettered<field::Number>& value) {
               field::Tensor t(value.shape);
               t.data = value.data;
               values[value_id(plan.name, layer, line.name)] = std::move(t);
             });
  }
  return values;
}

}  // namespace shardproof::oracle::graph
