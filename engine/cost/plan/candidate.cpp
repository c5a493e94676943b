#include "engine/cost/plan/candidate.h"

#include <algorithm>

namespace shardproof::cost {

Seconds Candidate::seconds() const {
  const Seconds one = bounds.total();
  const auto all = static_cast<double>(passes());
  return {all * one.compute, all * one.memory, all * one.communication, all * one.hops,
          all * one.needed};
}

double weights_besides(const std::map<std::string, double>& own,
                       const std::map<std::string, double>& other) {
  double bytes = 0.0;
  for (const auto& [weight, size] : other) {
    const auto same = own.find(weight);
    // If the two paddings differ, the longer one holds both.
    bytes += same == own.end() ? size : std::max(0.0, size - same->second);
  }
  return bytes;
}

}  // namespace shardproof::cost
