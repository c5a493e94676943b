#include "oracle/oracle.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "oracle/block.h"
#include "oracle/model.h"
#include "oracle/pass.h"
#include "oracle/request_check.h"
#include "oracle/storage.h"
#include "weights/error.h"
#include "weights/ieee.h"

namespace shardproof::oracle {

namespace {

using std::size_t;

const Tensor& embed(Pass& pass, const Model& model, const IntTensor& ids) {
  const auto E = static_cast<size_t>(model.config.E);
  Tensor rows({pass.batch(), pass.length(), model.config.E});
  for (size_t n = 0; n < rows.data.size(); ++n)
    // A -0 of the table counts as +0, as in any sum over its shards.
    rows.data[n] = model.table.data[static_cast<size_t>(ids.data[n / E]) * E + n % E] + 0.0F;
  Tensor x = rows;
  for (float& v : x.data)
    v = static_cast<float>(static_cast<double>(v) * static_cast<double>(model.config.embed_scale));
  const Tensor& checkpoint = pass.store(-1, "embed", std::move(x));
  pass.raw(-1, "embed", std::move(rows));
  return checkpoint;
}

/// The logits of each row's last token in the pass.
const Tensor& unembed(Pass& pass, const Model& model, const Tensor& x) {
  const auto E = static_cast<size_t>(model.config.E);
  const auto L = static_cast<size_t>(pass.length());
  const Vectors last(static_cast<size_t>(pass.batch()), E,
                     [&](size_t b, size_t e) { return x.data[(b * L + pass.last(b)) * E + e]; });
  Tensor s({pass.batch(), model.config.V});
  s.data = contract(last, model.unembed);
  Tensor logits = s;
  for (float& v : logits.data)
    v = static_cast<float>(static_cast<double>(v) * static_cast<double>(model.config.logit_scale));
  if (model.unembed_bias) {
    pass.scaled(-1, "logits", logits);
    const std::vector<float>& bias = model.unembed_bias->data;
    for (size_t n = 0; n < logits.data.size(); ++n)
      logits.data[n] = logits.data[n] + bias[n % bias.size()];
  }
  const Tensor& checkpoint = pass.keep(-1, "logits", std::move(logits));
  pass.raw(-1, "logits", std::move(s));
  return checkpoint;
}

/// One pass through the whole model; returns its logits.
const Tensor& forward(Pass& pass, const Model& model, const IntTensor& ids,
                      std::vector<Cache>& caches) {
  const Tensor* x = &embed(pass, model, ids);
  for (size_t layer = 0; layer < caches.size(); ++layer)
    x = &block(pass, static_cast<int>(layer), *x, model, caches[layer]);
  const Tensor& n = norm(pass, -1, "final_norm", *x, model.final_norm, model.config);
  return unembed(pass, model, n);
}

/// The token of the largest logit, the lowest of equals: int32 [B, 1], what the next pass reads.
IntTensor greedy(const Tensor& logits) {
  const auto V = logits.shape[1];
  IntTensor ids({logits.shape[0], 1});
  for (size_t b = 0; b < ids.data.size(); ++b) {
    const auto row = logits.data.begin() + static_cast<std::ptrdiff_t>(b) * V;
    ids.data[b] = static_cast<std::int32_t>(std::max_element(row, row + V) - row);
  }
  return ids;
}

/// What the pass reads, int32 [B, L]: of a prefill each row's tokens in the prompt, 0 where the row
/// has none; of a decode step the tokens sampled before it.
IntTensor ids_of(const PassPlan& pass, const IntTensor& prompt, const IntTensor& sampled) {
  return pass.phase == Phase::decode ? sampled : ids_at(pass, prompt);
}

}  // namespace

Answer run(const Weights& weights, const Request& request) {
  require_ieee();
  if (request.numerics.regime != Regime::exact)
    throw Error("oracle_regime", fmt::format("the oracle knows regime=exact only, not {}",
                                             to_string(request.numerics.regime)));
  check_request(weights.config(), request.passes, request.prompt, IdsOf::prefill);
  validate(weights);
  const Model model(as_stored(weights, request.numerics.weights));
  std::vector<Cache> caches(model.layers.size());
  Answer answer;

  IntTensor sampled;
  for (std::int64_t i = 0; i < request.passes.size(); ++i) {
    const PassPlan plan = request.passes.at(i);
    const IntTensor ids = ids_of(plan, request.prompt, sampled);
    Pass pass(answer, plan, request.numerics.act, ids);
    const Tensor& logits = forward(pass, model, ids, caches);
    if (!plan.sample) continue;
    sampled = greedy(logits);
    pass.token(sampled);
  }
  return answer;
}

}  // namespace shardproof::oracle
