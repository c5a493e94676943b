#include "golden/memo/oracle_memo.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "engine/run/case_weights.h"
#include "oracle/request/storage.h"
#include "weights/storage/generator.h"

namespace shardproof {
namespace {

/// Returns a key of everything, apart from the passes, that the oracle's answer depends on.
std::string oracle_key(const Case& c, const std::vector<std::int64_t>& row_ids,
                       const Weights* given) {
  return fmt::format("{} {} {} {} {} {}{} {}", fmt::ptr(given), print_model(c.model),
                     to_string(c.model.block), to_string(c.numerics.weights),
                     to_string(c.numerics.act), c.seed, print_sampling(c.sampling),
                     fmt::join(row_ids, ","));
}

std::shared_ptr<const OracleMemo::Known> ask_oracle(const Case& c, const Passes& passes,
                                                    const std::vector<std::int64_t>& row_ids,
                                                    const Weights* given, int threads) {
  // Use the case's model: a weights file's may differ in keys that do not affect weights.
  Weights weights = given != nullptr ? Weights(c.model, {given->all().begin(), given->all().end()},
                                               given->stored_type())
                                     : generated_weights(c);
  IntTensor prompt =
      generate_prompt(c.model, c.seed, passes.batch(), passes.prompt(), passes.prefix());
  Numerics numerics = c.numerics;
  numerics.regime = Regime::exact;  // for an f32 case, drift is measured from the oracle
  validate(weights);
  Weights stored = oracle::as_stored(weights, numerics.weights);
  oracle::Answer answer =
      oracle::run_stored(stored, {numerics, prompt, passes, c.sampling, c.seed, row_ids, threads});
  if (numerics.weights == WeightType::bf16) weights = stored_as(weights, numerics.weights);
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
  const std::string key = fmt::format("{} {} {} {} {} bits={} lanes={} draw={}",
                                      print_model(c.model), to_string(c.model.block),
                                      to_string(c.numerics.weights), to_string(c.numerics.act),
                                      setting.seed, setting.bits, setting.lanes, setting.draw);
  return of_field_.get(key, plan.passes, [&] {
    std::int64_t positions = plan.passes.prompt();
    for (std::int64_t i = 0; i < plan.passes.size(); ++i)
      for (const PassRows& group : plan.passes.at(i).rows)
        positions = std::max(positions, group.start + group.tokens);
    IntTensor ids =
        generate_ids(c.model, setting.seed, plan.passes.batch(), positions, plan.passes.prefix());
    oracle::field::Answer answer = oracle::field::run(
        {c.model, c.numerics.weights, c.numerics.act, ids, plan.passes, setting, threads});
    return std::make_shared<const OfField>(OfField{std::move(ids), std::move(answer)});
  });
}

}  // namespace shardproof
