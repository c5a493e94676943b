#include "tools/runner/selection.h"

#include <fmt/format.h>

#include "golden/cases/cases.h"

namespace shardproof::tools {

Selection every_strategy(const std::function<Case(const std::string& line)>& parse,
                         Findings::Until until) {
  Selection all;
  for (const char* torus : {"1x1x1", "2x2x2", "4x2x3", "3x2x2", "2x3x1", "1x4x2"})
    for (const Strategy& s : all_strategies()) {
      const Case c = parse(fmt::format("torus={} prefill={} decode={} gen=3", torus, s.to_string(),
                                       decodes(s) ? s.to_string() : Strategy().to_string()));
      try {
        all.plans.push_back(std::make_shared<const TypedPlan>(make_typed_plan(c, until)));
        all.cases.push_back(c);
      } catch (const Error& error) {
        // Drops the suggested legal model: here the model is given.
        const std::string why = error.what();
        all.skipped.push_back(why.substr(0, why.find("; the nearest legal")));
      }
    }
  if (all.cases.empty())
    throw Error("verify_c1",
                "no strategy is legal for this model on any standard torus; " + all.skipped[0]);
  return all;
}

ToRun random_case(std::uint64_t seed, std::uint64_t index, Findings::Until until) {
  auto plan =
      std::make_shared<const TypedPlan>(make_typed_plan(cases::draw_plan(seed, index), until));
  return {plan->plan.source_case, plan};
}

}  // namespace shardproof::tools
