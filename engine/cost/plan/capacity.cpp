#include "engine/cost/plan/capacity.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "engine/cost/chip/quantity.h"
#include "engine/cost/formulas/paper_formulas.h"
#include "engine/cost/graph/graph.h"
#include "engine/cost/plan/fitted_model.h"
#include "engine/program/rethrow.h"
#include "weights/base/detail/stable_sort.h"

namespace shardproof::cost {
namespace {

/// More positions than any memory holds.
constexpr std::int64_t kMostContext = std::int64_t{1} << 50;

/// Returns the largest number with the property, which must be monotonic; 0 if 1 lacks it.
template <class Property>
std::int64_t largest_with(const Property& property) {
  std::int64_t has = 0, has_not = kMostContext;
  while (has + 1 < has_not) {
    const std::int64_t middle = has + (has_not - has) / 2;
    (property(middle) ? has : has_not) = middle;
  }
  return has;
}

std::optional<Capacity> capacity_of(const PlanRequest& request, const Strategy& strategy,
                                    const Torus& torus, NumberFormat weights, std::int64_t batch,
                                    std::optional<double> share) {
  const std::int64_t heads =
      request.pad_heads ? padded_heads(strategy, request.model, torus) : request.model.H;
  const ModelConfig placed = fitted_model(request.model, heads, torus);
  if (!why_no_pass(strategy, placed, torus, {Phase::decode, batch, 1, 0}).empty())
    return std::nullopt;
  Evaluator evaluator(
      {placed, matrix_parameters(request.model), request.chip, torus, weights, request.volumes});
  const auto memory = [&](std::int64_t context) {
    return evaluator.decode(strategy, batch, context, 1).memory;
  };
  const double hbm = request.chip.hbm;
  Capacity found{strategy, torus, weights, heads, batch, 0, 0.0};
  found.context = largest_with([&](std::int64_t context) {
    const ChipMemory needs = memory(context);
    return needs.total() <= hbm && (!share || needs.caches <= *share * hbm);
  });
  if (found.context == 0) return std::nullopt;
  found.caches = memory(found.context).caches;
  return found;
}

/// Returns a share of at most three digits that is enough for `bytes` bytes.
double share_for(double bytes, double hbm) {
  double step = 1.0;
  while (bytes < 100.0 * step * hbm) step /= 10.0;
  return (std::floor(bytes / (step * hbm)) + 1.0) * step;
}

}  // namespace

std::vector<Capacity> longest_contexts(const PlanRequest& request, std::optional<double> share) {
  std::vector<Capacity> all;
  for (const Torus& torus : request.tori)
    for (const NumberFormat weights : request.weights)
      for (const std::int64_t batch : request.batches)
        for (const Strategy& strategy : request.strategies) {
          try {
            if (auto one = capacity_of(request, strategy, torus, weights, batch, share))
              all.push_back(std::move(*one));
          } catch (const Error&) {  // the strategy has no program for the model
            continue;
          }
        }
  stable_sort(all, [](const Capacity& a, const Capacity& b) { return a.context > b.context; });
  return all;
}

void require_capacity(const std::vector<Capacity>& found, const PlanRequest& request,
                      std::optional<double> share) {
  if (!found.empty()) return;
  PlanRequest one = request;
  one.phase = PlanPhase::decode;
  one.context = one.gen = 1;
  one.latency.reset();
  const Plan plan = make_plan(one);
  try {
    require_choice(plan, one);
  } catch (const Error& error) {
    rethrow_about(error, "with a context of 1: ");
  }
  const auto caches = [](const Choice& choice) { return choice.main().memory.caches; };
  const Choice& least =
      *std::min_element(plan.choices.begin(), plan.choices.end(),
                        [&](const Choice& a, const Choice& b) { return caches(a) < caches(b); });
  const double hbm = request.chip.hbm;
  throw Error(
      "plan_c1",
      fmt::format("with a context of 1: the caches of {} rows need {} a chip at least ({} on "
                  "{}), and a share of {:g} is {}; --cache-share {:g} is enough",
                  least.batch(), rounded_quantity(caches(least), Measure::bytes),
                  least.main().strategy.to_string(), least.torus().to_string(), share.value_or(1.0),
                  rounded_quantity(share.value_or(1.0) * hbm, Measure::bytes),
                  share_for(caches(least), hbm)));
}

}  // namespace shardproof::cost
