#include "oracle/oracle.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <string_view>
#include <utility>

#include "oracle/block.h"
#include "oracle/model.h"
#include "oracle/pass.h"
#include "oracle/storage.h"
#include "weights/error.h"
#include "weights/ieee.h"
#include "weights/registry.h"

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
  if (pass.phase == Phase::decode) return sampled;
  IntTensor ids({prompt.shape[0], pass.L});
  std::int64_t b = 0;
  for (const PassRows& group : pass.rows)
    for (std::int64_t n = 0; n < group.rows; ++n, ++b)
      for (std::int64_t i = 0; i < group.tokens; ++i)
        ids.data[static_cast<size_t>(b * pass.L + i)] =
            prompt.data[static_cast<size_t>(b * prompt.shape[1] + group.start + i)];
  return ids;
}

void check(const ModelConfig& config, const PassPlan& pass, const IntTensor& prompt) {
  const auto refuse = [&](const std::string& why) {
    throw Error("oracle_range", fmt::format("{}: {}", pass.name, why));
  };
  if (pass.batch() != prompt.shape[0])
    refuse(fmt::format("{} rows, the prompt has {}", pass.batch(), prompt.shape[0]));
  for (const PassRows& group : pass.rows) {
    const std::int64_t end = group.start + group.tokens;
    if (group.start < 0 || group.tokens < 1 || group.tokens > pass.L || group.start > pass.cached)
      refuse(fmt::format("{} tokens from position {} on in a pass of {} over {} cached",
                         group.tokens, group.start, pass.L, pass.cached));
    if (pass.phase == Phase::prefill && end > prompt.shape[1])
      refuse(fmt::format("reads to position {}, the prompt has {}", end, prompt.shape[1]));
    if (pass.phase == Phase::decode && pass.L != 1)
      refuse(fmt::format("a decode step has one token a row, not {}", pass.L));
    if (rotates(config) && group.start + pass.L > config.positions)
      refuse(fmt::format("needs {} positions, the RoPE table has {}", group.start + pass.L,
                         config.positions));
  }
}

void check(const ModelConfig& config, const Request& request) {
  const IntTensor& prompt = request.prompt;
  if (request.numerics.regime != Regime::exact)
    throw Error("oracle_regime", fmt::format("the oracle knows regime=exact only, not {}",
                                             to_string(request.numerics.regime)));
  if (prompt.shape.size() != 2 || prompt.shape[0] < 1 || prompt.shape[1] < 1 ||
      std::cmp_not_equal(prompt.data.size(), element_count(prompt.shape)))
    throw Error("oracle_range", fmt::format("the prompt must be [B, L] with B, L >= 1; it has {} "
                                            "dims and {} ids",
                                            prompt.shape.size(), prompt.data.size()));
  if (request.passes.size() < 1) throw Error("oracle_range", "there is no pass to run");
  const std::int64_t length = prompt.shape[1];
  for (size_t n = 0; n < prompt.data.size(); ++n)
    if (prompt.data[n] < 0 || prompt.data[n] >= config.V)
      throw Error("oracle_range",
                  fmt::format("prompt[{},{}] is {}, a token id must be in [0, {})",
                              static_cast<std::int64_t>(n) / length,
                              static_cast<std::int64_t>(n) % length, prompt.data[n], config.V));
  std::int64_t cached = 0;
  std::vector<std::int64_t> ends(static_cast<size_t>(prompt.shape[0]));  // of the rows' tokens
  bool sampled = false;
  std::set<std::string> names;
  std::string previous;
  Phase phase = Phase::prefill;
  for (std::int64_t i = 0; i < request.passes.size(); ++i) {
    const PassPlan pass = request.passes.at(i);
    check(config, pass, prompt);
    if (!names.insert(pass.name).second)  // ids begin with it
      throw Error("oracle_range", fmt::format("two passes are called {}", pass.name));
    if (pass.previous != previous)
      throw Error("oracle_range", fmt::format("{}: the pass before it is {:?}, not {:?}", pass.name,
                                              previous, pass.previous));
    if (phase == Phase::decode && pass.phase == Phase::prefill)  // caches are handed over once
      throw Error("oracle_range",
                  fmt::format("{}: a prefill pass after {}, a decode step", pass.name, previous));
    previous = pass.name;
    phase = pass.phase;
    if (pass.cached != cached)
      throw Error("oracle_range", fmt::format("{}: {} slots are cached before it, not {}",
                                              pass.name, cached, pass.cached));
    if (pass.phase == Phase::decode && !sampled)
      throw Error("oracle_range", fmt::format("{}: no pass before it sampled a token", pass.name));
    // Else its queries would see keys of padding, or slots that nothing wrote.
    size_t row = 0;
    for (const PassRows& group : pass.rows)
      for (std::int64_t n = 0; n < group.rows; ++n, ++row) {
        if (group.start > ends[row])
          throw Error("oracle_range",
                      fmt::format("{}: row {} goes on at position {}, its tokens end "
                                  "before {}",
                                  pass.name, row, group.start, ends[row]));
        ends[row] = group.start + group.tokens;
      }
    cached += pass.L;
    sampled = sampled || pass.sample;
  }
}

/// Checkpoints that are a contraction, up to scale, bias and st.
bool is_contraction(std::string_view id) {
  const ValueRow* const row = value_row(id.substr(id.rfind('.') + 1));
  return row != nullptr && row->contraction;
}

}  // namespace

const Tensor& Answer::raw_of(const std::string& id) const {
  if (const auto found = raw.find(id); found != raw.end()) return found->second;
  const auto found = checkpoints.find(id);
  if (found == checkpoints.end() || !is_contraction(id))
    throw Error("oracle_id", fmt::format("{:?} names no contraction of this run", id));
  return found->second;
}

const Tensor& Answer::scaled_of(const std::string& id) const {
  if (const auto found = scaled.find(id); found != scaled.end()) return found->second;
  if (!with_scale.contains(id))
    throw Error("oracle_id", fmt::format("{:?} names no contraction that this run scales", id));
  return unstored_of(id);  // no biases follow
}

const Tensor& Answer::unstored_of(const std::string& id) const {
  if (const auto found = unstored.find(id); found != unstored.end()) return found->second;
  const auto found = checkpoints.find(id);
  if (found == checkpoints.end())
    throw Error("oracle_id", fmt::format("{:?} names no checkpoint of this run", id));
  return found->second;
}

Answer run(const Weights& weights, const Request& request) {
  require_ieee();
  check(weights.config(), request);
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
