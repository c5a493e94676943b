#include "oracle/model/oracle.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "oracle/formulas/detail/layer.h"
#include "oracle/model/detail/floats.h"
#include "oracle/model/detail/sampling.h"
#include "oracle/numeric/detail/constants.h"
#include "oracle/numeric/each.h"
#include "oracle/request/detail/request_check.h"
#include "oracle/request/detail/row_alone.h"
#include "oracle/request/storage.h"
#include "weights/base/error.h"
#include "weights/base/ieee.h"

namespace shardproof::oracle {

namespace {

using std::size_t;

/// Returns the ids that the pass reads, int32 [B, L]: for prefill each row's tokens in the prompt,
/// 0 for padding; for a decode step the tokens sampled before it.
IntTensor ids_of(const PassPlan& pass, const IntTensor& prompt, const IntTensor& sampled) {
  return pass.phase == Phase::decode ? sampled : ids_at(pass, prompt);
}

/// Returns ids, int32 [B, 1], as [B].
IntTensor row_tokens(IntTensor ids) {
  ids.shape.pop_back();
  return ids;
}

/// Runs all rows as one batch; each row must have L tokens in every pass.
Answer together(const Model<Floats>& model, const Request& request) {
  std::vector<Cache<Floats>> caches(static_cast<size_t>(model.config.layers));
  Answer answer;

  const auto batch = static_cast<size_t>(request.passes.batch());
  std::vector<std::int64_t> generated(batch, 0);  // number of tokens of each row
  IntTensor tokens;
  for (std::int64_t i = 0; i < request.passes.size(); ++i) {
    const PassPlan plan = request.passes.at(i);
    const IntTensor ids = ids_of(plan, request.prompt, tokens);
    Pass<Floats> pass(Floats(model.config), answer, plan, request.numerics.act, ids,
                      request.threads);
    const Operand<Floats> logits = forward(pass, model, ids, caches);
    if (!plan.sample) continue;
    Draws draws{request.sampling, request.seed, {}, Constants(model.config).of_sampling};
    size_t b = 0;
    for (const PassRows& group : plan.rows)
      for (std::int64_t n = 0; n < group.rows; ++n, ++b) {
        draws.rows.push_back({request.row(b), generated[b]});
        if (plan.samples(group)) ++generated[b];
      }
    tokens = sampled(*logits.tensor, draws);
    answer.tokens[plan.name + ".token"] = row_tokens(tokens);
    answer.draws[plan.name] = std::move(draws);
  }
  return answer;
}

/// Runs each row alone and combines the results.
Answer one_by_one(const Model<Floats>& model, const Request& request) {
  const auto B = static_cast<size_t>(request.prompt.shape[0]);
  std::vector<Answer> alone(B);
  each(B, request.threads, [&](size_t b) {
    alone[b] = together(model, {request.numerics,
                                ids_alone(request.prompt, b),
                                passes_alone(request.passes, b),
                                request.sampling,
                                request.seed,
                                {request.row(b)}});
  });
  std::vector<ModelValues<Tensor>> rows;
  std::vector<std::map<std::string, IntTensor>> tokens;
  std::vector<std::map<std::string, Draws>> draws;
  for (Answer& own : alone) {
    tokens.push_back(std::move(own.tokens));
    draws.push_back(std::move(own.draws));
    rows.push_back(std::move(own));
  }
  Answer answer;
  put_together(answer, rows, model.config, request.passes);
  for (size_t b = 0; b < B; ++b)
    for (const auto& [id, token] : tokens[b])
      answer.tokens.try_emplace(id, Shape{request.prompt.shape[0]}).first->second.data[b] =
          token.data[0];
  for (size_t b = 0; b < B; ++b)
    for (const auto& [pass, own] : draws[b])
      answer.draws
          .try_emplace(pass, Draws{request.sampling, request.seed, std::vector<Draw>(B), own.unit})
          .first->second.rows[b] = own.rows[0];
  return answer;
}

void check(const Weights& weights, const Request& request) {
  require_ieee();
  if (request.numerics.regime != Regime::exact)
    throw Error("oracle_regime", fmt::format("the oracle knows regime=exact only, not {}",
                                             to_string(request.numerics.regime)));
  check_request(weights.config(), request.passes, request.prompt, IdsOf::prefill);
}

Answer answer(const Weights& stored, const Request& request) {
  const auto find = [&](const std::string& id) { return stored.find(id); };
  const Model<Floats> model(stored.config(), find, stored.on_demand());
  return is_one_batch(request.passes) ? together(model, request) : one_by_one(model, request);
}

}  // namespace

Answer run(const Weights& weights, const Request& request) {
  check(weights, request);
  validate(weights);
  return answer(as_stored(weights, request.numerics.weights), request);
}

Answer run_stored(const Weights& stored, const Request& request) {
  check(stored, request);
  return answer(stored, request);
}

}  // namespace shardproof::oracle
