#pragma once

// Cases that several tests look at: made once for all of them, as each takes a plan or more.
#include <vector>

#include "golden/cases/cases.h"

namespace shardproof {

/// The first thousand draws of seed 1.
inline const std::vector<Case>& drawn() {
  static const std::vector<Case> all = [] {
    std::vector<Case> cases;
    for (std::uint64_t i = 0; i < 1000; ++i) cases.push_back(cases::draw(1, i));
    return cases;
  }();
  return all;
}

/// The standard matrix.
inline const std::vector<Case>& matrix() {
  static const std::vector<Case> all = cases::standard_matrix();
  return all;
}

}  // namespace shardproof
