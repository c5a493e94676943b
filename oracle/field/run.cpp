#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "oracle/field/answer.h"
#include "oracle/field/detail/block.h"
#include "oracle/field/detail/pass.h"
#include "oracle/field/detail/sample.h"
#include "oracle/numeric/each.h"
#include "oracle/request/detail/request_check.h"
#include "oracle/request/detail/row_alone.h"
#include "weights/model/registry.h"

namespace shardproof::oracle::field {

namespace {

using std::size_t;

/// Returns "constant NAME", or 1 if the model's scale is 1.
Value model_scale(const Pass& pass, const char* name, float of_model) {
  if (of_model == 1.0F) return {Tensor({1}, pass.math().integer(1)), {}};
  return {Tensor({1}, pass.constant(name)), kVariable};
}

/// Multiplies each element by the single element of `scale`.
Value scaled(const Pass& pass, const Value& x, const Value& scale) {
  Value y{x.tensor, product(x.degree, scale.degree)};
  for (Number& v : y.tensor.data) v = pass.math().multiply(v, scale.tensor.data[0]);
  return y;
}

Value embed(Pass& pass, const IntTensor& ids) {
  const auto E = static_cast<size_t>(pass.config().E);
  const Tensor& table = *pass.weight(-1, "embed");
  Value rows{Tensor({pass.batch(), pass.length(), pass.config().E}), kVariable};
  for (size_t n = 0; n < rows.tensor.data.size(); ++n)
    rows.tensor.data[n] = table.data[static_cast<size_t>(ids.data[n / E]) * E + n % E];
  const Value scale = model_scale(pass, "embed_scale", pass.config().embed_scale);
  Value checkpoint = pass.store(-1, "embed", scaled(pass, rows, scale));
  pass.raw(-1, "embed", std::move(rows));
  return checkpoint;
}

/// Computes the logits of each row's last token in the pass.
Value unembed(Pass& pass, const Value& x) {
  const ModelConfig& c = pass.config();
  const auto E = static_cast<size_t>(c.E), V = static_cast<size_t>(c.V);
  const auto L = static_cast<size_t>(pass.length());
  const Tensor& U = *pass.weight(-1, c.tied ? "embed" : "unembed");
  Value s{Tensor({pass.batch(), c.V}), product(x.degree, kVariable)};
  each_row(s.tensor.data.size(), E, pass.threads(), [&](size_t n) {
    const size_t b = n / V;
    s.tensor.data[n] =
        pass.math().dot(&x.tensor.data[(b * L + pass.last(b)) * E], &U.data[n % V * E], E);
  });
  Value logits =
      scaled(pass, s,
             model_scale(pass, "logit_scale", c.softmax == Softmax::base2 ? 1.0F : c.logit_scale));
  if (const Tensor* const bias = pass.weight(-1, "unembed_bias")) {
    pass.scaled(-1, "logits", logits);
    for (size_t n = 0; n < logits.tensor.data.size(); ++n)
      logits.tensor.data[n] = pass.math().add(logits.tensor.data[n], bias->data[n % V]);
    logits.degree = sum(logits.degree, kVariable);
  }
  Value checkpoint = pass.keep(-1, "logits", std::move(logits));
  pass.raw(-1, "logits", std::move(s));
  return checkpoint;
}

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

/// Runs all rows as one batch; each row must have L tokens in every pass.
Answer together(const Request& request) {
  Answer answer = opened(request);
  std::vector<Cache> caches(static_cast<size_t>(request.config.layers));
  for (std::int64_t i = 0; i < request.passes.size(); ++i) {
    const PassPlan plan = request.passes.at(i);
    const IntTensor ids = ids_at(plan, request.ids);
    Pass pass(answer, plan, request.act, ids, request.threads);
    Value x = embed(pass, ids);
    for (size_t layer = 0; layer < caches.size(); ++layer)
      x = block(pass, static_cast<int>(layer), x, caches[layer]);
    const Value logits = unembed(pass, norm(pass, -1, "final_norm", x));
    if (plan.sample) sample(pass, logits);
  }
  return answer;
}

}  // namespace

Answer run(const Request& request) {
  const Arithmetic of_setting(request.setting);  // throws if the setting is not a field
  check_request(request.config, request.passes, request.ids, IdsOf::all);
  if (is_one_batch(request.passes)) return together(request);
  Answer answer = opened(request);
  std::vector<Filed<Tensor>> rows;
  const auto B = static_cast<size_t>(request.ids.shape[0]);
  for (size_t b = 0; b < B; ++b) {
    Request own = request;
    own.ids = ids_alone(request.ids, b);
    own.passes = passes_alone(request.passes, b);
    Answer alone = together(own);
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
  Pass pass(answer, request.passes.at(0), request.act, request.ids, request.threads);
  embed(pass, request.ids);
  return answer;
}

}  // namespace shardproof::oracle::field
