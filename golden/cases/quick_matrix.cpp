#include "golden/cases/quick_matrix.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "engine/run/plan.h"
#include "golden/cases/cases.h"
#include "golden/cases/strata.h"

namespace shardproof::cases {

std::vector<std::string> quick_cells_of(const Case& c) {
  const strata::Kind kind = strata::kind_of(c);
  std::set<std::string> cells;
  for (const Strategy& s : {c.prefill, c.decode}) {
    const std::string name = s.to_string();
    cells.insert(fmt::format("{} regime={}", name, static_cast<int>(kind.regime)));
    cells.insert(fmt::format("{} block={}", name, static_cast<int>(kind.block)));
    cells.insert(fmt::format("{} heads={}", name, static_cast<int>(kind.heads)));
    cells.insert(fmt::format("{} weights={}", name, static_cast<int>(kind.weights)));
    cells.insert(fmt::format("{} act={}", name, static_cast<int>(kind.act)));
    cells.insert(fmt::format("{} loop={}", name, static_cast<int>(kind.loop)));
  }
  return {cells.begin(), cells.end()};
}

std::vector<Case> quick_matrix() {
  struct Candidate {
    Case source_case;
    std::vector<std::string> cells;
    double work;  // elements of activations on all chips, about what a case takes
  };
  std::vector<Candidate> all;
  for (const Case& c : standard_matrix()) {
    const ModelConfig& m = c.model;
    const auto work = static_cast<double>(c.torus.chips() * m.layers * (m.E + m.F) * c.batch *
                                          (c.prompt + c.gen));
    all.push_back({c, quick_cells_of(c), work});
  }
  std::set<std::string> open;
  for (const Candidate& c : all) open.insert(c.cells.begin(), c.cells.end());
  std::set<std::size_t> chosen;  // in the order of the matrix
  while (!open.empty()) {
    const auto adds = [&](const Candidate& c) {
      return std::count_if(c.cells.begin(), c.cells.end(),
                           [&](const std::string& cell) { return open.contains(cell); });
    };
    const auto best = std::max_element(all.begin(), all.end(), [&](const auto& a, const auto& b) {
      return static_cast<double>(adds(a)) / a.work < static_cast<double>(adds(b)) / b.work;
    });
    for (const std::string& cell : best->cells) open.erase(cell);
    chosen.insert(static_cast<std::size_t>(best - all.begin()));
  }
  std::vector<Case> cases;
  for (const std::size_t i : chosen) cases.push_back(all[i].source_case);
  return cases;
}

}  // namespace shardproof::cases
