#include "oracle/oracle.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include "oracle/block.h"
#include "oracle/model.h"
#include "oracle/pass.h"
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

/// The logits of each row's last position in the pass.
const Tensor& unembed(Pass& pass, const Model& model, const Tensor& x) {
  const auto E = static_cast<size_t>(model.config.E);
  const auto L = static_cast<size_t>(pass.length());
  const Vectors last(static_cast<size_t>(pass.batch()), E,
                     [&](size_t b, size_t e) { return x.data[(b * L + L - 1) * E + e]; });
  Tensor s({pass.batch(), model.config.V});
  s.data = contract(last, model.unembed);
  Tensor logits = s;
  for (float& v : logits.data)
    v = static_cast<float>(static_cast<double>(v) * static_cast<double>(model.config.logit_scale));
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

IntTensor columns(const IntTensor& prompt, std::int64_t begin, std::int64_t end) {
  IntTensor part({prompt.shape[0], end - begin});
  for (std::int64_t b = 0, n = 0; b < prompt.shape[0]; ++b)
    for (std::int64_t i = begin; i < end; ++i, ++n)
      part.data[static_cast<size_t>(n)] = prompt.data[static_cast<size_t>(b * prompt.shape[1] + i)];
  return part;
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
  if (request.chunk < 0 || request.gen < 1)
    throw Error("oracle_range", fmt::format("chunk={} must be at least 0 and gen={} at least 1",
                                            request.chunk, request.gen));
  const std::int64_t length = prompt.shape[1];
  for (size_t n = 0; n < prompt.data.size(); ++n)
    if (prompt.data[n] < 0 || prompt.data[n] >= config.V)
      throw Error("oracle_range",
                  fmt::format("prompt[{},{}] is {}, a token id must be in [0, {})",
                              static_cast<std::int64_t>(n) / length,
                              static_cast<std::int64_t>(n) % length, prompt.data[n], config.V));
  if (config.rope != Rope::none && request.gen - 1 > config.positions - length)
    throw Error("oracle_range",
                fmt::format("prompt={} and gen={} need more positions than the RoPE table's {}",
                            length, request.gen, config.positions));
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
  const Model model(weights, request.numerics.weights);
  std::vector<Cache> caches(model.layers.size());
  Answer answer;

  const std::int64_t length = request.prompt.shape[1];
  const std::int64_t chunk = request.chunk == 0 ? length : std::min(request.chunk, length);
  IntTensor next;
  for (std::int64_t start = 0; start < length; start += chunk) {
    const std::int64_t end = std::min(start + chunk, length);
    const IntTensor ids = columns(request.prompt, start, end);
    Pass pass(answer, prefill_pass(start / chunk), request.numerics.act, ids, start);
    next = greedy(forward(pass, model, ids, caches));
    if (end == length) pass.token(next);
  }
  for (std::int64_t step = 1; step < request.gen; ++step) {
    const IntTensor ids = next;
    Pass pass(answer, decode_pass(step), request.numerics.act, ids, length + step - 1);
    next = greedy(forward(pass, model, ids, caches));
    pass.token(next);
  }
  return answer;
}

}  // namespace shardproof::oracle
