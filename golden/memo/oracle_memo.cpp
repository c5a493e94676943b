#include "golden/memo/oracle_memo.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "engine/run/case_weights.h"
#include "oracle/graph/answer.h"
#include "oracle/request/storage.h"
#include "weights/storage/generator.h"
#include "weights/text/text_model.h"

namespace shardproof {
namespace {

/// Returns a model as a key: of a text its line and its hash, since files change.
std::string model_key(const ModelConfig& model) {
  const TextModel* const of_text = text_model(model);
  if (of_text != nullptr)
    return fmt::format("{} {:x}", print_model(model), hash_of(of_text->text()));
  return fmt::format("{} {}", print_model(model), to_string(model.block));
}

/// Returns a key of everything, apart from the passes, that the oracle's answer depends on.
std::string oracle_key(const Case& c, const std::vector<std::int64_t>& row_ids,
                       const Weights* given) {
  return fmt::format("{} {} {} {} {}{} {}", fmt::ptr(given), model_key(c.model),
                     to_string(c.numerics.weights), to_string(c.numerics.act), c.seed,
                     print_sampling(c.sampling), fmt::join(row_ids, ","));
}

std::shared_ptr<const OracleMemo::Known> ask_oracle(const Case& c, const Passes& passes,
                                                    const std::vector<std::int64_t>& row_ids,
                                                    const Weights* given, int threads) {
  // Use the case's model: a weights file's may differ in keys that do not affect weights.
  Weights weights = given != nullptr ? given->with_config(c.model) : generated_weights(c);
  IntTensor prompt =
      generate_prompt(c.model, c.seed, passes.batch(), passes.prompt(), passes.prefix());
  Numerics numerics = c.numerics;
  numerics.regime = Regime::exact;  // for an f32 case, drift is measured from the oracle
  validate(weights);
  Weights stored = oracle::as_stored(weights, numerics.weights);
  const oracle::Request request{numerics, prompt, passes, c.sampling, c.seed, row_ids, threads};
  oracle::Answer answer = c.model.rows != nullptr ? oracle::graph::answer(stored, request)
                                                  : oracle::run_stored(stored, request);
  if (numerics.weights == NumberFormat::bf16) weights = stored_as(weights, numerics.weights);
  return std::make_shared<const OracleMemo::Known>(OracleMemo::Known{
      std::move(weights), std::move(stored), std::move(prompt), std::move(answer)});
}

}  // namespace

std::shared_ptr<const OracleMemo::Known> OracleMemo::get(const RunPlan& plan, const Weights* given,
                                                         int threads) {
  return get(plan.source_case, plan.passes, plan.row_ids, given, threads);
}

std::shared_ptr<const OracleMemo::Known> OracleMemo::get(const Case& c, const Weights* given) {
  return get(c, c.passes(), {}, given, 1);
}

std::shared_ptr<const OracleMemo::Known> OracleMemo::get(const Case& c, const Passes& passes,
                                                         const std::vector<std::int64_t>& row_ids,
                                                         const Weights* given, int threads) {
  return known_.get(oracle_key(c, row_ids, given), passes,
                    [&] { return ask_oracle(c, passes, row_ids, given, threads); });
}

std::shared_ptr<const OracleMemo::OfField> OracleMemo::of_field(const RunPlan& plan,
                                                                const FieldSetting& setting,
                                                                int threads) {
  const Case& c = plan.source_case;
  const std::string key = fmt::format("{} {} {} {} bits={} lanes={} draw={}", model_key(c.model),
                                      to_string(c.numerics.weights), to_string(c.numerics.act),
                                      setting.seed, setting.bits, setting.lanes, setting.draw);
  return of_field_.get(key, plan.passes, [&] {
    std::int64_t positions = plan.passes.prompt();
    for (std::int64_t i = 0; i < plan.passes.size(); ++i)
      for (const PassRows& group : plan.passes.at(i).rows)
        positions = std::max(positions, group.start + group.tokens);
    IntTensor ids =
        generate_ids(c.model, setting.seed, plan.passes.batch(), positions, plan.passes.prefix());
    const oracle::field::Request request{
        c.model, c.numerics.weights, c.numerics.act, ids, plan.passes, setting, threads};
    oracle::field::Answer answer = c.model.rows != nullptr ? oracle::graph::answer_in_field(request)
                                                           : oracle::field::run(request);
    return std::make_shared<const OfField>(OfField{std::move(ids), std::move(answer)});
  });
}

}  // namespace shardproof
