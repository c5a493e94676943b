#include "oracle/graph/answer.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <string>
#include <utility>

#include "oracle/field/detail/arithmetic.h"
#include "oracle/field/detail/numbers.h"
#include "oracle/field/detail/random.h"
#include "oracle/field/detail/sample.h"
#include "oracle/graph/field_run.h"
#include "oracle/graph/run.h"
#include "oracle/request/detail/request_check.h"
#include "oracle/request/detail/row_alone.h"
#include "oracle/walk/passes.h"
#include "weights/text/text_model.h"
#include "weights/text/text_weights.h"

namespace shardproof::oracle::graph {
namespace {

/// Returns the ids of a pass, int32 [rows, L], from those of the batch; a pass over prefixes has
/// those of the first row of each.
IntTensor ids_of(const PassPlan& plan, const IntTensor& ids, const SharedPrefix& prefix) {
  if (plan.phase != Phase::prefix) return ids_at(plan, ids);
  IntTensor of_first({prefix.rows, ids.shape[1]});
  auto to = of_first.data.begin();
  for (const std::int64_t row : first_rows(prefix, ids.shape[0]))
    to = std::copy_n(ids.data.begin() + row * ids.shape[1], ids.shape[1], to);
  return ids_at(plan, of_first);
}

}  // namespace

oracle::Answer answer(const Weights& stored, const oracle::Request& request) {
  const TextModel& model = *text_model(stored.config());
  const auto find = [&](const std::string& id) { return stored.find(id); };
  graph::Answer values = run(find, {.text = model.flat(),
                                    .sizes = model.sizes(),
                                    .act = request.numerics.act,
                                    .prompt = request.prompt,
                                    .passes = request.passes,
                                    .sampling = request.sampling,
                                    .seed = request.seed,
                                    .row_ids = request.row_ids});
  oracle::Answer answer;
  answer.checkpoints = std::move(values.values);
  answer.tokens = std::move(values.tokens);
  const std::int64_t B = request.prompt.shape[0];
  IntTensor sampled({B, 1});
  std::vector<std::int64_t> generated(static_cast<std::size_t>(B), 0);
  for (std::int64_t i = 0; i < request.passes.size(); ++i) {
    const PassPlan plan = request.passes.at(i);
    answer.open(plan, Places(plan),
                plan.phase == Phase::decode
                    ? sampled
                    : ids_of(plan, request.prompt, request.passes.prefix()));
    IntTensor slots({plan.prefix.length + plan.cached + plan.L});
    std::iota(slots.data.begin(), slots.data.end(), 0);
    answer.inputs[plan.name + ".slot"] = std::move(slots);
    if (!plan.sample) continue;
    Draws draws{request.sampling, request.seed, {}, 1.0};
    const IntTensor& token = answer.tokens.at(plan.name + ".token");
    std::size_t b = 0;
    for (const PassRows& group : plan.rows)
      for (std::int64_t n = 0; n < group.rows; ++n, ++b) {
        draws.rows.push_back({request.row(b), generated[b]});
        if (!plan.samples(group)) continue;
        ++generated[b];
        sampled.data[b] = token.data[b];
      }
    answer.draws[plan.name] = std::move(draws);
  }
  return answer;
}

namespace {

/// The logits [BV] of each row's last token.
field::Tensor last_logits(const field::Tensor& logits, const Places& places) {
  const auto B = static_cast<std::size_t>(logits.shape[0]);
  const auto L = static_cast<std::size_t>(logits.shape[1]);
  const auto V = static_cast<std::size_t>(logits.shape[2]);
  field::Tensor last({logits.shape[0], logits.shape[2]});
  for (std::size_t b = 0; b < B; ++b)
    std::copy_n(logits.data.data() + (b * L + places.last(b)) * V, V, last.data.data() + b * V);
  return last;
}

/// The random weights of a text's model, with a column for each channel in tables of RoPE.
std::map<std::string, field::Tensor> weights_in_field(const field::Request& request) {
  const TextModel& model = *text_model(request.config);
  const FieldSetting& setting = request.setting;
  const field::Arithmetic math(setting);
  const field::Random random(setting);
  std::map<std::string, field::Tensor> weights;
  for (const WeightSpec& spec : weight_specs(request.config, request.weights)) {
    const TextWeight* const weight = model.weight_of_file(spec.name);
    if (weight == nullptr || !is_rope_table(weight->kind)) {
      weights[spec.name] = random.stream("weight " + spec.name, spec.shape);
      continue;
    }
    const field::Tensor pairs =
        random.stream("weight " + spec.name, shape_of_pairs(*weight, model.sizes()));
    field::Tensor table(spec.shape);
    table.data = spread(*weight, pairs, spec.shape, math.integer(1), math.integer(0));
    weights[spec.name] = std::move(table);
  }
  return weights;
}

}  // namespace

field::Answer answer_in_field(const field::Request& request) {
  const TextModel& model = *text_model(request.config);
  field::Answer answer;
  answer.config = request.config;
  answer.setting = request.setting;
  answer.weights = weights_in_field(request);
  answer.checkpoints = run_in_field({.text = model.flat(),
                                     .sizes = model.sizes(),
                                     .act = request.act,
                                     .ids = request.ids,
                                     .passes = request.passes,
                                     .setting = request.setting});
  for (std::int64_t i = 0; i < request.passes.size(); ++i) {
    const PassPlan plan = request.passes.at(i);
    Pass<field::Numbers> pass(field::Numbers(answer), answer, plan, request.act,
                              ids_of(plan, request.ids, request.passes.prefix()), 1);
    IntTensor slots({plan.prefix.length + plan.cached + plan.L});
    std::iota(slots.data.begin(), slots.data.end(), 0);
    answer.inputs[plan.name + ".slot"] = std::move(slots);
    if (!plan.sample) continue;
    const field::Tensor last = last_logits(answer.checkpoints.at(plan.name + ".logits"), pass);
    field::sample(answer, pass, plan.name, {&last, kVariable});
    field::Tensor& token = answer.checkpoints.at(plan.name + ".token");
    std::size_t b = 0;
    for (const PassRows& group : plan.rows)
      for (std::int64_t n = 0; n < group.rows; ++n, ++b)
        if (!plan.samples(group)) token.data[b] = {};
  }
  return answer;
}

}  // namespace shardproof::oracle::graph
