#include "oracle/graph/run.h"

#include <fmt/format.h>

#include <cmath>
#include <utility>

#include "oracle/graph/detail/exact.h"
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
Answer together(const std::map<std::string, Tensor, std::less<>>& weights, const Request& request,
                const IntTensor& prompt, const Passes& passes, std::int64_t first_row) {
  const Exact math(request.act, request.sizes);
  const auto find = [&](const TextWeight& weight, const std::string& id, const Shape& shape) {
    return elements_of(weights, request.text, request.sizes, weight, id, shape);
  };
  Walk<Exact> walk(request.text, request.sizes, math, find);
  Answer answer;
  IntTensor sampled_ids;
  std::int64_t generated = 0;
  for (std::int64_t i = 0; i < passes.size(); ++i) {
    const PassPlan plan = passes.at(i);
    const IntTensor ids = ids_of(plan, prompt, sampled_ids);
    walk.run(tokens_of(plan, ids), [&](std::int64_t layer, const TextLine& line,
                                       const Lettered<double>& value) {
      const std::string id = layer < 0 ? plan.name + "." + line.name
                                       : fmt::format("{}.layer{}.{}", plan.name, layer, line.name);
      answer.values[id] = tensor_of(id, value);
    });
    if (!plan.sample) continue;
    Draws draws{request.sampling, request.seed, {}, request.unit};
    for (std::int64_t b = 0; b < plan.batch(); ++b)
      draws.rows.push_back({first_row + b, generated});
    ++generated;
    sampled_ids = sampled(last_logits(answer.values.at(plan.name + ".logits")), draws);
    IntTensor token = sampled_ids;
    token.shape.pop_back();
    answer.tokens[plan.name + ".token"] = std::move(token);
  }
  return answer;
}

/// Puts a row's value into the batch's: dims that are shorter begin at 0.
void put(Tensor& whole, const Tensor& row, std::int64_t b) {
  std::vector<std::int64_t> index(row.shape.size(), 0);
  for (const float v : row.data) {
    std::int64_t place = b;
    for (size_t d = 1; d < index.size(); ++d) place = place * whole.shape[d] + index[d];
    whole.data[static_cast<size_t>(place)] = v;
    for (size_t d = index.size(); d-- > 0;) {
      if (++index[d] < row.shape[d]) break;
      index[d] = 0;
    }
  }
}

/// A cache holds what it held where a pass has no token of the row: copies row b of the pass
/// before.
void keep_caches(Answer& answer, const Request& request, std::int64_t pass, std::int64_t b) {
  const PassPlan plan = request.passes.at(pass);
  if (plan.previous.empty()) return;
  for (std::int64_t layer = 0; layer < request.sizes.layers; ++layer)
    for (const TextLine& line : request.text.section(TextSection::layer).lines) {
      if (line.expression.kind != Expression::Kind::call || line.expression.op != ModelOp::append)
        continue;
      const auto old = answer.values.find(value_id(plan.previous, layer, line.name));
      if (old == answer.values.end()) continue;
      Tensor row = old->second;
      const auto size = static_cast<std::ptrdiff_t>(row.data.size()) / row.shape[0];
      row.data = {old->second.data.begin() + b * size, old->second.data.begin() + (b + 1) * size};
      row.shape[0] = 1;
      Shape shape = old->second.shape;
      shape[line.letters.find('M')] = plan.cached + plan.L;
      put(answer.values.try_emplace(value_id(plan.name, layer, line.name), shape).first->second,
          row, b);
    }
}

}  // namespace

Answer run(const std::map<std::string, Tensor, std::less<>>& weights, const Request& of_text) {
  if (of_text.passes.prefix().given())
    throw Error("oracle_range", "a text runs without shared prefixes");
  const ModelText flat = flat_text(of_text.text);
  const Request request{flat,           of_text.sizes,    of_text.act,  of_text.prompt,
                        of_text.passes, of_text.sampling, of_text.seed, of_text.unit};
  if (is_one_batch(request.passes))
    return together(weights, request, request.prompt, request.passes, 0);
  const std::int64_t B = request.prompt.shape[0];
  Answer answer;
  std::map<std::string, const TextLine*> lines;
  for (const TextSection section : kTextSections)
    for (const TextLine& line : request.text.section(section).lines) lines[line.name] = &line;
  std::vector<Answer> rows;
  for (std::int64_t b = 0; b < B; ++b)
    rows.push_back(together(weights, request, ids_alone(request.prompt, static_cast<size_t>(b)),
                            passes_alone(request.passes, static_cast<size_t>(b)), b));
  for (std::int64_t i = 0; i < request.passes.size(); ++i) {
    const PassPlan plan = request.passes.at(i);
    const std::string prefix = plan.name + ".";
    for (std::int64_t b = 0; b < B; ++b) {
      const Answer& row = rows[static_cast<size_t>(b)];
      keep_caches(answer, request, i, b);
      for (auto at = row.values.lower_bound(prefix);
           at != row.values.end() && at->first.starts_with(prefix); ++at) {
        const std::string& letters = lines.at(at->first.substr(at->first.rfind('.') + 1))->letters;
        if (letters.find('B') == std::string::npos) {
          answer.values[at->first] = at->second;
          continue;
        }
        Shape shape = at->second.shape;
        for (size_t d = 0; d < shape.size(); ++d)
          shape[d] = letters[d] == 'B'   ? B
                     : letters[d] == 'L' ? plan.L
                     : letters[d] == 'M' ? plan.cached + plan.L
                                         : shape[d];
        put(answer.values.try_emplace(at->first, shape).first->second, at->second, b);
      }
      if (const auto token = row.tokens.find(prefix + "token"); token != row.tokens.end())
        answer.tokens.try_emplace(token->first, Shape{B})
            .first->second.data[static_cast<size_t>(b)] = token->second.data[0];
    }
  }
  return answer;
}

}  // namespace shardproof::oracle::graph
