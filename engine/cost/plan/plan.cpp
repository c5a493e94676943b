#include "engine/cost/plan/plan.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdlib>
#include <limits>
#include <set>

#include "engine/cost/chip/quantity.h"
#include "engine/cost/formulas/paper_formulas.h"
#include "engine/cost/graph/graph.h"
#include "engine/cost/plan/detail/torus_search.h"
#include "engine/cost/plan/fitted_model.h"
#include "engine/cost/plan/tori.h"
#include "engine/numeric/threads.h"
#include "weights/base/detail/stable_sort.h"

namespace shardproof::cost {
namespace {

/// Returns for example "ws2d:batch on 4x4x4 with int8 weights".
std::string named(const Strategy& strategy, const Torus& torus, NumberFormat weights) {
  return fmt::format("{} on {} with {} weights", strategy.to_string(), torus.to_string(),
                     to_string(weights));
}

std::string phase_name(Phase phase) { return phase == Phase::decode ? "decode" : "prefill"; }

/// Returns the best choice of a request, ignoring its latency limit; nothing if it has none.
std::optional<Choice> best_of(PlanRequest request) {
  request.progress = nullptr;
  request.latency.reset();
  Plan plan = make_plan(request);
  if (plan.choices.empty()) return std::nullopt;
  return std::move(plan.choices.front());
}

/// Returns the sizes of the slices that can hold the weights.
std::vector<int> roomy_slices(const PlanRequest& request) {
  const auto most =
      static_cast<int>(std::min<std::int64_t>(request.chip.max_chips, Torus::kMaxChips));
  const auto& types = request.weights;
  const bool narrow = std::find(types.begin(), types.end(), NumberFormat::int8) != types.end();
  const double least_bytes = matrix_parameters(request.model) * (narrow ? 1.0 : 2.0);
  std::vector<int> sizes = slice_sizes(request.chip.min_axis, most);
  std::erase_if(sizes, [&](int chips) { return least_bytes / chips > request.chip.hbm; });
  return sizes;
}

/// Returns the fewest chips, above those tried, of a slice on which something fits; 0 if none does.
int fewest_chips(PlanRequest request) {
  int tried = 0;
  for (const Torus& torus : request.tori) tried = std::max(tried, torus.chips());
  for (const int chips : roomy_slices(request)) {
    if (chips <= tried) continue;
    request.tori = slice_tori(chips, request.chip.min_axis);
    if (best_of(request)) return chips;
  }
  return 0;
}

/// Returns the distance of a number from the nearest of `numbers`.
template <class Numbers>
std::int64_t distance(std::int64_t number, const Numbers& numbers) {
  std::int64_t least = std::numeric_limits<std::int64_t>::max();
  for (const std::int64_t one : numbers) least = std::min(least, std::abs(number - one));
  return least;
}

/// Returns the best choice on the slice whose size is nearest to those tried.
std::optional<Choice> on_nearest_slice(PlanRequest request) {
  std::vector<int> tried;
  for (const Torus& torus : request.tori) tried.push_back(torus.chips());
  std::vector<int> sizes = roomy_slices(request);
  stable_sort(sizes, [&](int a, int b) { return distance(a, tried) < distance(b, tried); });
  for (const int chips : sizes) {
    request.tori = slice_tori(chips, request.chip.min_axis);
    if (auto found = best_of(request)) return found;
  }
  return std::nullopt;
}

/// Returns the best choice on the same tori with the nearest batch that some strategy divides.
std::optional<Choice> with_nearest_batch(PlanRequest request) {
  std::set<std::int64_t> dividing;
  for (const Torus& torus : request.tori)
    for (const Strategy& strategy : request.strategies)
      for (const std::int64_t batch : request.batches) {
        const std::int64_t unit = smallest_batch(strategy, torus);
        dividing.insert(batch / unit * unit);
        dividing.insert((batch / unit + 1) * unit);
      }
  dividing.erase(0);
  const std::vector<std::int64_t> asked = request.batches;
  for (const std::int64_t batch : asked) dividing.erase(batch);
  std::vector<std::int64_t> near(dividing.begin(), dividing.end());
  stable_sort(near, [&](std::int64_t a, std::int64_t b) {
    return distance(a, asked) < distance(b, asked);
  });
  for (const std::int64_t batch : near) {
    request.batches = {batch};
    if (auto found = best_of(request)) return found;
  }
  return std::nullopt;
}

/// Describes the nearest feasible plans, as flags of `plan`.
std::string nearest_feasible(const PlanRequest& request) {
  const auto what = [](const Choice& choice) {
    return named(choice.main().strategy, choice.torus(), choice.weights());
  };
  std::vector<std::string> ways;
  if (const auto choice = on_nearest_slice(request))
    ways.push_back(fmt::format("--chips {} ({})", choice->torus().chips(), what(*choice)));
  if (const auto choice = with_nearest_batch(request))
    ways.push_back(fmt::format("--batch {} ({})", choice->batch(), what(*choice)));
  return ways.empty()
             ? fmt::format("no slice of up to {} chips and no batch near has one that does",
                           request.chip.max_chips)
             : fmt::format("feasible is {}", fmt::join(ways, " or "));
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
    for (const NumberFormat weights : request.weights)
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
    throw Error(
        "plan_c3",
        first == nullptr
            ? std::string("there is no torus and no strategy to choose from")
            : fmt::format("no strategy divides the model and the batch: {} cannot {}: {}; {}",
                          named(first->strategy, first->torus, first->weights),
                          phase_name(first->phase), first->why, nearest_feasible(request)));
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
