#include "tools/plan/capacity_report.h"

#include <fmt/format.h>

#include <map>

#include "tools/plan/estimate_notes.h"
#include "tools/text/wrapped.h"
#include "weights/base/memory.h"

namespace shardproof::tools {
namespace {

/// Returns the longest contexts of each batch, up to the number shown.
std::vector<const cost::Capacity*> shown_capacities(const CapacityReport& report) {
  std::vector<const cost::Capacity*> shown;
  for (const std::int64_t batch : report.request->batches) {
    std::size_t left = report.top;
    for (const cost::Capacity& one : report.found)
      if (one.batch == batch && left > 0) {
        shown.push_back(&one);
        --left;
      }
  }
  return shown;
}

}  // namespace

std::string capacity_text(const CapacityReport& report) {
  const std::vector<const cost::Capacity*> shown = shown_capacities(report);
  const cost::Chip& chip = report.request->chip;
  std::string out =
      wrapped(fmt::format("{} on {}: the longest context of a decode, with {}",
                          print_model(report.request->model), chip.name,
                          report.share ? fmt::format("caches in {:g}% of {}", 100.0 * *report.share,
                                                     show_bytes(chip.hbm))
                                       : fmt::format("all in {}", show_bytes(chip.hbm))),
              80, "") +
      "\n" + embedding_notes(*report.request) +
      fmt::format("\n{:<22}{:<10}{:<7}{:>6}{:>7}{:>13}{:>14}\n", "strategy", "torus", "kept",
                  "heads", "rows", "context", "caches");
  for (const cost::Capacity* one : shown)
    out += fmt::format("{:<22}{:<10}{:<7}{:>6}{:>7}{:>13}{:>14}\n", one->strategy.to_string(),
                       one->torus.to_string(), to_string(one->weights), one->heads, one->batch,
                       one->context, show_bytes(one->caches));
  return out;
}

nlohmann::json capacity_json(const CapacityReport& report) {
  nlohmann::json out{{"model", print_model(report.request->model)},
                     {"chip", report.request->chip.name},
                     {"capacity", nlohmann::json::array()}};
  add_embedding_types(*report.request, out);
  for (const cost::Capacity* one : shown_capacities(report))
    out["capacity"].push_back({{"strategy", one->strategy.to_string()},
                               {"torus", one->torus.to_string()},
                               {"weights", to_string(one->weights)},
                               {"heads", one->heads},
                               {"batch", one->batch},
                               {"context", one->context},
                               {"caches", one->caches}});
  return out;
}

}  // namespace shardproof::tools
