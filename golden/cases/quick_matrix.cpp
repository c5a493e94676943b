#include "golden/cases/quick_matrix.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

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

namespace {

/// Returns about how much longer an element of activations takes than in the exact regime: in f32
/// its order and its bounds are worked out, a number of the field is many words.
double work_of_element(Regime regime) {
  return regime == Regime::field ? 16.0 : regime == Regime::f32 ? 4.0 : 1.0;
}

}  // namespace

std::vector<Case> quick_matrix() {
  struct Candidate {
    Case source_case;
    std::vector<std::string> cells;
    double work;  // about what a case takes
  };
  std::vector<Candidate> all;
  for (const Case& c : standard_matrix()) {
    const ModelConfig& m = c.model;
    const auto elements = static_cast<double>(c.torus.chips() * m.layers * (m.E + m.F) * c.batch *
                                              (c.prompt + c.gen));
    all.push_back({c, quick_cells_of(c), elements * work_of_element(c.numerics.regime)});
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
  std::vector<std::size_t> longest(chosen.begin(), chosen.end());
  std::sort(longest.begin(), longest.end(), [&](std::size_t a, std::size_t b) {
    return std::tuple(-all[a].work, a) < std::tuple(-all[b].work, b);
  });
  std::map<std::string, int> times;
  for (const std::size_t i : chosen)
    for (const std::string& cell : all[i].cells) ++times[cell];
  for (const std::size_t i : longest) {  // what later choices made superfluous
    const auto& cells = all[i].cells;
    if (std::any_of(cells.begin(), cells.end(), [&](const auto& cell) { return times[cell] == 1; }))
      continue;
    for (const std::string& cell : cells) --times[cell];
    chosen.erase(i);
  }
  std::vector<Case> cases;
  for (const std::size_t i : chosen) cases.push_back(all[i].source_case);
  return cases;
}

}  // namespace shardproof::cases
