#include "oracle/graph/run.h"

#include <fmt/format.h>

#include <cmath>
#include <utility>

#include "oracle/graph/detail/exact.h"
#include "oracle/graph/detail/rows_together.h"
#include "oracle/model/detail/sampling.h"
#include "oracle/request/detail/request_check.h"
#include "oracle/request/detail/row_alone.h"
#include "oracle/walk/passes.h"
#include "oracle/walk/walk.h"
#include "oracle/walk/weights.h"
#include "weights/model/registry.h"
#include "weights/text/flat.h"

namespace shardproof::oracle::graph {
namespace {

/// Returns the ids of a pass, int32 [B, L].
IntTensor ids_of(const PassPlan& pass, const IntTensor& prompt, const IntTensor& sampled) {
  return pass.phase == Phase::decode ? sampled : ids_at(pass, prompt);
}

Tensor tensor_of(const std::string& id, const Lettered<double>& value) {
  Tensor t(value.shape);
  for (size_t i = 0; i < t.data.size(); ++i) {
    if (!std::isfinite(value.data[i]))
      throw Error("oracle_finite",
                  fmt::format("{}{} is {}", id, index_text(t.shape, i), value.data[i]));
    t.data[i] = static_cast<float>(value.data[i]);
  }
  return t;
}

/// The logits [BV] of each row's last token.
Tensor last_logits(const Tensor& logits) {
  const std::int64_t B = logits.shape[0], L = logits.shape[1], V = logits.shape[2];
  Tensor last({B, V});
  for (std::int64_t b = 0; b < B; ++b)
    std::copy_n(logits.data.begin() + ((b + 1) * L - 1) * V, V, last.data.begin() + b * V);
  return last;
}

/// Runs rows that all have L tokens in every pass. `first_row` is the number of the first one.
Answer together(const FindWeight& find, const Request& request, const IntTensor& prompt,
                const Passes& passes, std::int64_t first_row) {
  const Exact math(request.act, request.sizes);
  const auto elements = [&](const TextWeight& weight, const std::string& id, const Shape& shape) {
    return weight_of<Exact>(find(id), request.text, request.sizes, weight, id, shape);
  };
  Walk<Exact> walk(request.text, request.sizes, math, elements);
  const SlotsByPass slots = slots_of(request.passes);
  Answer answer;
  IntTensor sampled_ids;
  std::int64_t generated = 0;
  for (std::int64_t i = 0; i < passes.size(); ++i) {
    const PassPlan plan = passes.at(i);
    const IntTensor ids = ids_of(plan, prompt, sampled_ids);
    walk.run(tokens_alone(plan, ids, slots),
             [&](std::int64_t layer, const TextLine& line, const Lettered<double>& value) {
               const std::string id = value_id(plan.name, layer, line.name);
               answer.values[id] = tensor_of(id, value);
             });
    if (!plan.sample) continue;
    Draws draws{request.sampling, request.seed, {}, request.unit};
    for (std::int64_t b = 0; b < plan.batch(); ++b)
      draws.rows.push_back({request.row(static_cast<size_t>(first_row + b)), generated});
    ++generated;
    sampled_ids = sampled(last_logits(answer.values.at(plan.name + ".logits")), draws);
    IntTensor token = sampled_ids;
    token.shape.pop_back();
    answer.tokens[plan.name + ".token"] = std::move(token);
  }
  return answer;
}

}  // namespace

Answer run(const FindWeight& find, const Request& of_text) {
  const ModelText flat = flat_text(of_text.text);
  const Request request{flat,           of_text.sizes,  of_text.act,
                        of_text.prompt, of_text.passes, of_text.sampling,
                        of_text.seed,   of_text.unit,   of_text.row_ids};
  if (is_one_batch(request.passes))
    return together(find, request, request.prompt, request.passes, 0);
  const std::int64_t B = request.prompt.shape[0];
  Answer answer;
  std::vector<std::map<std::string, Tensor>> rows;
  for (std::int64_t b = 0; b < B; ++b) {
    const auto row = static_cast<size_t>(b);
    Answer own = together(find, request, ids_alone(request.prompt, row),
                          passes_alone(request.passes, row), b);
    for (const auto& [id, token] : own.tokens)
      answer.tokens.try_emplace(id, Shape{B}).first->second.data[row] = token.data[0];
    rows.push_back(std::move(own.values));
  }
  answer.values = RowsTogether<Tensor>(request.text, request.passes).values(rows);
  return answer;
}

}  // namespace shardproof::oracle::graph
