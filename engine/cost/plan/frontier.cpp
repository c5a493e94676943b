#include "engine/cost/plan/frontier.h"

#include <algorithm>
#include <map>
#include <tuple>

#include "weights/base/detail/stable_sort.h"

namespace shardproof::cost {
namespace {

bool faster(const Choice* a, const Choice* b) {
  return std::pair(a->latency, a->cost) < std::pair(b->latency, b->cost);
}

}  // namespace

std::vector<const Choice*> fastest_of_each(const std::vector<Choice>& choices, bool prefills) {
  std::map<std::tuple<int, std::int64_t, NumberFormat>, const Choice*> best;
  for (const Choice& choice : choices) {
    if (choice.prefill.has_value() != prefills) continue;
    const Choice*& of = best[{choice.torus().chips(), choice.batch(), choice.weights()}];
    if (of == nullptr || faster(&choice, of)) of = &choice;
  }
  std::vector<const Choice*> all;
  for (const auto& [key, choice] : best) all.push_back(choice);
  return all;
}

std::vector<const Choice*> frontier(std::vector<const Choice*> choices) {
  stable_sort(choices, faster);
  std::vector<const Choice*> kept;
  for (const Choice* choice : choices)
    if (kept.empty() || choice->cost < kept.back()->cost) kept.push_back(choice);
  return kept;
}

}  // namespace shardproof::cost
