#include "tools/plan/frontier_report.h"

#include <fmt/format.h>

#include <algorithm>

#include "engine/cost/chip/quantity.h"
#include "tools/plan/estimate_notes.h"
#include "tools/text/wrapped.h"
#include "weights/base/memory.h"

namespace shardproof::tools {
namespace {

using cost::Candidate;
using cost::Choice;

const char* name_of(const FrontierReport::Phase& phase) {
  return phase.prefills ? "prefill" : "decode";
}

std::vector<const Choice*> of_weights(const std::vector<const Choice*>& points,
                                      NumberFormat weights) {
  std::vector<const Choice*> some;
  std::copy_if(points.begin(), points.end(), std::back_inserter(some),
               [&](const Choice* point) { return point->weights() == weights; });
  return some;
}

double utilization_of(const FrontierReport& report, const Candidate& one) {
  return one.flops_utilization(report.parameters, report.request->chip.peak(NumberFormat::bf16));
}

/// Calls `write(phase, choice, on_frontier)` for every point.
template <class Write>
void for_points(const FrontierReport& report, const Write& write) {
  for (const FrontierReport::Phase& phase : report.phases)
    for (const NumberFormat weights : report.request->weights) {
      const std::vector<const Choice*> points = of_weights(phase.points, weights);
      const std::vector<const Choice*> best = cost::frontier(points);
      for (const Choice* point : points)
        write(phase, *point, std::find(best.begin(), best.end(), point) != best.end());
    }
}

}  // namespace

std::string frontier_csv(const FrontierReport& report) {
  std::string out = fmt::format(
      "phase,weights,chips,torus,strategy,batch,passes,latency_s,{},added_up_s,"
      "chip_seconds_per_token,mfu,memory_bytes,frontier\n",
      report.request->volumes == cost::Volumes::paper ? "overlapped_s" : "at_least_s");
  for_points(report, [&](const FrontierReport::Phase& phase, const Choice& choice, bool best) {
    const Candidate& one = choice.main();
    out += fmt::format("{},{},{},{},{},{},{},{:.6g},{:.6g},{:.6g},{:.6g},{:.4g},{:.0f},{}\n",
                       name_of(phase), to_string(one.weights), one.torus.chips(),
                       one.torus.to_string(), one.strategy.to_string(), one.batch, one.passes(),
                       one.estimate, one.lower, one.additive, choice.cost,
                       utilization_of(report, one), one.memory.total(), best ? 1 : 0);
  });
  return out;
}

std::string frontier_text(const FrontierReport& report) {
  const cost::PlanRequest& r = *report.request;
  std::string out = estimate_notes(r);
  for (const FrontierReport::Phase& phase : report.phases)
    for (const NumberFormat weights : r.weights) {
      const std::vector<const Choice*> best = cost::frontier(of_weights(phase.points, weights));
      if (best.empty()) continue;
      out += fmt::format(
          "{} with {} weights, from the fastest to the cheapest\n"
          "  {:<22}{:<10}{:>7}{:>10}{:>16}{:>8}\n",
          phase.prefills ? "Prefill" : "Decode", to_string(weights), "strategy", "torus", "rows",
          "latency", "chip-s a token", "MFU");
      for (const Choice* point : best)
        out += fmt::format("  {:<22}{:<10}{:>7}{:>10}{:>16.4g}{:>7.1f}%\n",
                           point->main().strategy.to_string(), point->torus().to_string(),
                           point->batch(),
                           cost::rounded_quantity(point->latency, cost::Measure::seconds, 3),
                           point->cost, 100.0 * utilization_of(report, point->main()));
      out += "\n";
    }
  return out + fmt::format("{}: every point\n", report.csv);
}

nlohmann::json frontier_json(const FrontierReport& report) {
  nlohmann::json out{{"model", print_model(report.request->model)},
                     {"chip", report.request->chip.name},
                     {"csv", report.csv},
                     {"points", nlohmann::json::array()}};
  add_estimate_notes(*report.request, out);
  for_points(report, [&](const FrontierReport::Phase& phase, const Choice& choice, bool best) {
    out["points"].push_back({{"phase", name_of(phase)},
                             {"weights", to_string(choice.weights())},
                             {"torus", choice.torus().to_string()},
                             {"strategy", choice.main().strategy.to_string()},
                             {"batch", choice.batch()},
                             {"latency", choice.latency},
                             {"cost", choice.cost},
                             {"frontier", best}});
  });
  return out;
}

}  // namespace shardproof::tools
