#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "oracle/field/answer.h"
#include "oracle/field/detail/numbers.h"
#include "oracle/field/detail/sample.h"
#include "oracle/formulas/detail/layer.h"
#include "oracle/request/detail/request_check.h"
#include "oracle/request/detail/row_alone.h"
#include "weights/model/registry.h"

namespace shardproof::oracle::field {

namespace {

using std::size_t;

/// Returns an Answer that contains only the weights.
Answer opened(const Request& request) {
  const Arithmetic math(request.setting);
  Answer answer;
  answer.config = request.config;
  answer.setting = request.setting;
  const Random random(request.setting);
  // bf16 and int8 rounding precede the model: the stored weights are random elements either way.
  for (const WeightSpec& spec : weight_specs(request.config, request.weights))
    answer.weights[spec.name] = random.stream("weight " + spec.name, spec.shape);
  answer.weights["ones"] = Tensor({request.config.E}, math.integer(1));
  return answer;
}

/// Runs all rows as one batch, and files their values in `answer`; each row must have L tokens in
/// every pass.
void run_together(Answer& answer, const Model<Numbers>& model, const Request& request) {
  std::vector<Cache<Numbers>> caches(static_cast<size_t>(model.config.layers));
  for (std::int64_t i = 0; i < request.passes.size(); ++i) {
    const PassPlan plan = request.passes.at(i);
    const IntTensor ids = ids_at(plan, request.ids);
    Pass<Numbers> pass(Numbers(answer), answer, plan, request.act, ids, request.threads);
    const Operand<Numbers> logits = forward(pass, model, ids, caches);
    if (plan.sample) sample(answer, pass, plan.name, logits);
  }
}

}  // namespace

Answer run(const Request& request) {
  const Arithmetic of_setting(request.setting);  // throws if the setting is not a field
  check_request(request.config, request.passes, request.ids, IdsOf::all);
  Answer answer = opened(request);
  const Model<Numbers> model(request.config, find_in(answer.weights));
  if (is_one_batch(request.passes)) {
    run_together(answer, model, request);
    return answer;
  }
  std::vector<ModelValues<Tensor>> rows;
  const auto B = static_cast<size_t>(request.ids.shape[0]);
  for (size_t b = 0; b < B; ++b) {
    Request own = request;
    own.ids = ids_alone(request.ids, b);
    own.passes = passes_alone(request.passes, b);
    Answer alone;
    alone.config = request.config;
    alone.setting = request.setting;
    run_together(alone, model, own);
    for (const auto& [name, count] : alone.applied) answer.applied[name] += count;
    for (const auto& [layer, count] : alone.inverted) answer.inverted[layer] += count;
    answer.degrees.merge(alone.degrees);
    for (const auto& [pass, hashed] : alone.hashed_logits) {
      Tensor& all =
          answer.hashed_logits.try_emplace(pass, Shape{request.ids.shape[0], request.config.V})
              .first->second;
      std::copy(hashed.data.begin(), hashed.data.end(),
                all.data.begin() + static_cast<std::ptrdiff_t>(b * hashed.data.size()));
    }
    answer.hashed_ids = std::move(alone.hashed_ids);
    answer.rho = alone.rho;
    rows.push_back(std::move(alone));
  }
  put_together(answer, rows, request.config, request.passes);
  return answer;
}

Answer run_embedding(const Request& request) {
  Answer answer = opened(request);
  Pass<Numbers> pass(Numbers(answer), answer, request.passes.at(0), request.act, request.ids,
                     request.threads);
  const Model<Numbers> model(request.config, find_in(answer.weights));
  Layer<Numbers>(pass, model, -1).embed(request.ids);
  return answer;
}

}  // namespace shardproof::oracle::field
