#include "oracle/model/oracle.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "oracle/model/detail/block.h"
#include "oracle/model/detail/pass.h"
#include "oracle/model/detail/sampling.h"
#include "oracle/model/model.h"
#include "oracle/numeric/contract.h"
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

const Tensor& embed(Pass& pass, const Model& model, const IntTensor& ids) {
  const auto E = static_cast<size_t>(model.config.E);
  Tensor rows({pass.batch(), pass.length(), model.config.E});
  for (size_t n = 0; n < rows.data.size(); ++n)
    // Adding +0 turns the table's -0 into +0, as a sum over its shards does.
    rows.data[n] = model.table.data[static_cast<size_t>(ids.data[n / E]) * E + n % E] + 0.0F;
  Tensor x = rows;
  for (float& v : x.data)
    v = static_cast<float>(static_cast<double>(v) * static_cast<double>(model.config.embed_scale));
  const Tensor& checkpoint = pass.store(-1, "embed", std::move(x));
  pass.raw(-1, "embed", std::move(rows));
  return checkpoint;
}

/// Computes the logits of each row's last token in the pass.
const Tensor& unembed(Pass& pass, const Model& model, const Tensor& x) {
  const auto E = static_cast<size_t>(model.config.E);
  const auto L = static_cast<size_t>(pass.length());
  const Vectors last(static_cast<size_t>(pass.batch()), E,
                     [&](size_t b, size_t e) { return x.data[(b * L + pass.last(b)) * E + e]; });
  Tensor s;
  s.shape = {pass.batch(), model.config.V};
  s.data = contract(last, model.unembed, pass.threads());
  Tensor logits = s;
  const double scale = Constants(model.config).of_logits;
  for (float& v : logits.data) v = static_cast<float>(static_cast<double>(v) * scale);
  if (model.unembed_bias != nullptr) {
    pass.scaled(-1, "logits", logits);
    const std::vector<float>& bias = model.unembed_bias->data;
    for (size_t n = 0; n < logits.data.size(); ++n)
      logits.data[n] = logits.data[n] + bias[n % bias.size()];
  }
  const Tensor& checkpoint = pass.keep(-1, "logits", std::move(logits));
  pass.raw(-1, "logits", std::move(s));
  return checkpoint;
}

/// Runs one pass through the whole model; returns its logits.
const Tensor& forward(Pass& pass, const Model& model, const IntTensor& ids,
                      std::vector<Cache>& caches) {
  const Tensor* x = &embed(pass, model, ids);
  for (size_t layer = 0; layer < caches.size(); ++layer)
    x = &block(pass, static_cast<int>(layer), *x, model, caches[layer]);
  const Tensor& n = norm(pass, -1, "final_norm", *x, model.final_norm, model.config);
  return unembed(pass, model, n);
}

/// Returns the ids that the pass reads, int32 [B, L]: for prefill each row's tokens in the prompt,
/// 0 for padding; for a decode step the tokens sampled before it.
IntTensor ids_of(const PassPlan& pass, const IntTensor& prompt, const IntTensor& sampled) {
  return pass.phase == Phase::decode ? sampled : ids_at(pass, prompt);
}

/// Runs all rows as one batch; each row must have L tokens in every pass.
Answer together(const Model& model, const Request& request) {
  std::vector<Cache> caches(model.layers.size());
  Answer answer;

  const auto batch = static_cast<size_t>(request.passes.batch());
  std::vector<std::int64_t> generated(batch, 0);  // number of tokens of each row
  IntTensor tokens;
  for (std::int64_t i = 0; i < request.passes.size(); ++i) {
    const PassPlan plan = request.passes.at(i);
    const IntTensor ids = ids_of(plan, request.prompt, tokens);
    Pass pass(answer, plan, request.numerics.act, ids, request.threads);
    const Tensor& logits = forward(pass, model, ids, caches);
    if (!plan.sample) continue;
    Draws draws{request.sampling, request.seed, {}, Constants(model.config).of_sampling};
    size_t b = 0;
    for (const PassRows& group : plan.rows)
      for (std::int64_t n = 0; n < group.rows; ++n, ++b) {
        draws.rows.push_back({request.row(b), generated[b]});
        if (plan.samples(group)) ++generated[b];
      }
    tokens = sampled(logits, draws);
    pass.token(tokens);
    answer.draws[plan.name] = std::move(draws);
  }
  return answer;
}

/// Runs each row alone and combines the results.
Answer one_by_one(const Model& model, const Request& request) {
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
  std::vector<Filed<Tensor>> rows;
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
  const Model model(stored);
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
