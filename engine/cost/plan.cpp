#include "engine/cost/plan.h"

#include <fmt/format.h>

#include <algorithm>

#include "engine/cost/fitted_model.h"
#include "engine/cost/paper_formulas.h"
#include "engine/cost/quantity.h"
#include "engine/cost/tori.h"
#include "engine/cost/torus_search.h"
#include "engine/numeric/threads.h"
#include "weights/stable_sort.h"

namespace shardproof::cost {
namespace {

/// "ws2d:batch on 4x4x4 with int8 weights".
std::string named(const Strategy& strategy, const Torus& torus, WeightType weights) {
  return fmt::format("{} on {} with {} weights", strategy.to_string(), torus.to_string(),
                     to_string(weights));
}

std::string phase_name(Phase phase) { return phase == Phase::decode ? "decode" : "prefill"; }

/// The fewest chips of a slice, more than were tried, on which something fits; 0 if none does.
int fewest_chips(PlanRequest request) {
  int tried = 0;
  for (const Torus& torus : request.tori) tried = std::max(tried, torus.chips());
  const auto most =
      static_cast<int>(std::min<std::int64_t>(request.chip.max_chips, Torus::kMaxChips));
  const double least_bytes =
      matrix_parameters(request.model) *
      (std::count(request.weights.begin(), request.weights.end(), WeightType::int8) > 0 ? 1.0
                                                                                        : 2.0);
  request.progress = nullptr;
  request.latency.reset();
  for (const int chips : slice_sizes(request.chip.min_axis, most)) {
    if (chips <= tried || least_bytes / chips > request.chip.hbm) continue;
    request.tori = slice_tori(chips, request.chip.min_axis);
    if (!make_plan(request).choices.empty()) return chips;
  }
  return 0;
}

}  // namespace

double Choice::sum(double Candidate::*what) const {
  double all = prefill ? (*prefill).*what : 0.0;
  if (decode) all += static_cast<double>(prefill ? steps : 1) * ((*decode).*what);
  return all;
}

double Choice::memory() const {
  return std::max(prefill ? prefill->memory.total() : 0.0, decode ? decode->memory.total() : 0.0);
}

std::int64_t plan_parts(const PlanRequest& request) {
  return static_cast<std::int64_t>(request.tori.size() * request.weights.size());
}

Plan make_plan(const PlanRequest& request) {
  Plan plan;
  plan.parameters = matrix_parameters(request.model);
  std::vector<TorusSearch> parts;
  for (const Torus& torus : request.tori)
    for (const WeightType weights : request.weights)
      parts.emplace_back(request, plan.parameters, torus, weights);
  Threads threads(request.threads);
  threads.for_each(plan_parts(request), [&](std::int64_t i) {
    parts[static_cast<std::size_t>(i)].run();
    if (request.progress) request.progress();
  });
  for (TorusSearch& part : parts) {
    std::move(part.choices.begin(), part.choices.end(), std::back_inserter(plan.choices));
    std::move(part.left_out.begin(), part.left_out.end(), std::back_inserter(plan.left_out));
  }
  const auto value = [&](const Choice& choice) {
    return request.goal == Goal::latency ? choice.latency : choice.cost;
  };
  const auto meets = [&](const Choice& choice) {
    return !request.latency || choice.latency <= *request.latency;
  };
  stable_sort(plan.choices, [&](const Choice& a, const Choice& b) {
    return meets(a) != meets(b) ? meets(a) : value(a) < value(b);
  });
  plan.met =
      static_cast<std::size_t>(std::count_if(plan.choices.begin(), plan.choices.end(), meets));
  return plan;
}

void require_choice(const Plan& plan, const PlanRequest& request) {
  if (plan.met > 0) return;
  if (!plan.choices.empty()) {
    const Choice& best =
        *std::min_element(plan.choices.begin(), plan.choices.end(),
                          [](const Choice& a, const Choice& b) { return a.latency < b.latency; });
    const Candidate& named_one = best.main();
    throw Error("plan_c2", fmt::format("nothing has a latency of at most {}; the least is {}: {}",
                                       rounded_quantity(*request.latency, Measure::seconds),
                                       rounded_quantity(best.latency, Measure::seconds),
                                       named(named_one.strategy, best.torus(), best.weights())));
  }
  const LeftOut* nearest = nullptr;
  for (const LeftOut& one : plan.left_out)
    if (one.memory > 0.0 && (nearest == nullptr || one.memory < nearest->memory)) nearest = &one;
  if (nearest == nullptr) {
    const LeftOut* first = plan.left_out.empty() ? nullptr : &plan.left_out.front();
    throw Error("plan_c3",
                first == nullptr
                    ? std::string("there is no torus and no strategy to choose from")
                    : fmt::format("no strategy divides the model and the batch: {} cannot {}: {}",
                                  named(first->strategy, first->torus, first->weights),
                                  phase_name(first->phase), first->why));
  }
  const int chips = fewest_chips(request);
  throw Error(
      "plan_c1",
      fmt::format(
          "nothing fits: the {} of {} rows needs {} a chip at least ({}), and {} has {}; {}",
          phase_name(nearest->phase), nearest->batch,
          rounded_quantity(nearest->memory, Measure::bytes),
          named(nearest->strategy, nearest->torus, nearest->weights), request.chip.name,
          rounded_quantity(request.chip.hbm, Measure::bytes),
          chips > 0 ? fmt::format("{} chips hold it", chips)
                    : fmt::format("no slice of up to {} chips holds it", request.chip.max_chips)));
}

}  // namespace shardproof::cost
