#include "tools/plan/plan_search.h"

#include <fmt/format.h>

#include "engine/cost/chip/quantity.h"
#include "engine/cost/paper/calibration.h"
#include "engine/cost/work/efficiency.h"
#include "tools/plan/plan_proof.h"
#include "tools/runner/progress.h"
#include "tools/text/wrapped.h"

namespace shardproof::tools {
namespace {

std::string pass_seconds(double value) {
  return cost::rounded_quantity(value, cost::Measure::seconds, 4);
}

/// Returns the command that proves the tables, in the file to which they were written.
std::string searched_proof(const std::vector<PhaseSearch>& phases, cost::Choice choice,
                           const ModelConfig& model, const std::string& file) {
  for (const PhaseSearch& one : phases)
    (one.phase == "prefill" ? choice.prefill : choice.decode)->strategy = Strategy(one.found.table);
  return proof_command(choice, model, file.empty() ? "FILE" : file);
}

}  // namespace

std::vector<PhaseSearch> search_choice(const cost::Choice& choice, const cost::Chip& chip) {
  std::vector<PhaseSearch> phases;
  for (const auto& [name, candidate] :
       {std::pair{"prefill", &choice.prefill}, {"decode", &choice.decode}}) {
    if (!*candidate) continue;
    const cost::Candidate& of = **candidate;
    Progress progress(0, "tables tried");
    // The search counts ring steps as communication, which the estimate divides by the fitted
    // interconnect share; scaling compensates.
    cost::Chip scaled = chip;
    scaled.hop_latency *= cost::fitted_efficiency().interconnect;
    PhaseSearch search{
        name, of,
        cost::search_tables(
            of.placed, cost::released_numerics(of.weights), of.torus, of.pass, scaled,
            [](const cost::Bounds& bounds) { return cost::estimate(bounds); },
            [&progress](const cost::SearchProgress&) { progress.step(); })};
    search.found.table.name = fmt::format("searched:{}", name);
    phases.push_back(std::move(search));
  }
  return phases;
}

std::string searched_layouts(const std::vector<PhaseSearch>& phases) {
  std::string text;
  for (const PhaseSearch& one : phases) text += print_layouts(one.found.table);
  return text;
}

std::string search_text(const std::vector<PhaseSearch>& phases, const cost::Choice& choice,
                        const ModelConfig& model, const std::string& file) {
  std::string text = "\n";
  for (const PhaseSearch& one : phases) {
    const cost::SearchResult& found = one.found;
    text += wrapped(
        fmt::format(
            "Search, one pass of {} on {}: of {:.3g} tables {} were turned into programs. {}",
            one.phase, one.candidate.torus.to_string(), found.end.tables, found.end.evaluated,
            found.better ? fmt::format("The best takes {}, {:.2f}% less than {}, which ships ({}):",
                                       pass_seconds(found.value),
                                       100.0 * (1.0 - found.value / found.shipped_value),
                                       found.shipped, pass_seconds(found.shipped_value))
                         : fmt::format("None takes less than {}, which ships: {}.", found.shipped,
                                       pass_seconds(found.value))),
        kWidth, "");
    text += "\n" + print_layouts(found.table) + "\n";
  }
  text += wrapped(file.empty() ? "With --out FILE they are written to a file, and proved by"
                               : fmt::format("Written to {}, and proved by", file),
                  kWidth, "");
  return text + "\n" + searched_proof(phases, choice, model, file) + "\n";
}

nlohmann::json search_json(const std::vector<PhaseSearch>& phases, const cost::Choice& choice,
                           const ModelConfig& model, const std::string& file) {
  nlohmann::json tables = nlohmann::json::array();
  for (const PhaseSearch& one : phases)
    tables.push_back({{"phase", one.phase},
                      {"strategy", one.found.table.name},
                      {"layouts", print_layouts(one.found.table)},
                      {"estimate", one.found.value},
                      {"shipped", one.found.shipped},
                      {"shipped_estimate", one.found.shipped_value},
                      {"better", one.found.better},
                      {"tables", one.found.end.tables},
                      {"evaluated", one.found.end.evaluated}});
  return {{"tables", tables}, {"proof", searched_proof(phases, choice, model, file)}};
}

}  // namespace shardproof::tools
