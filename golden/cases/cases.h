#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "engine/run/plan.h"

namespace shardproof::cases {

/// The cases that `verify --all` runs. For ws1d and ws2d over heads and batch and for
/// wg-xyz:batch: the same strategy in prefill and decode × multihead and multiquery × the tori
/// 1x1x1, 2x2x2, 4x2x3, 3x2x2, 2x3x1, 1x4x2; every pair of two strategies on 4x2x3; 4x4x4 once;
/// regime=f32 under each schedule, on plain, whole-family serial and bf16 models; serial blocks on
/// the same tori; and layernorm, the gelus, biases, interleaved and no rotation and untied tables.
/// For every strategy: multihead, grouped and multiquery × the tori 4x2x3, 2x2x2, 3x2x2, 1x4x2, and
/// 4x4x4 once; rows of unequal length, and padded heads and ids, each on two tori; and rows that
/// share prefixes. For the model family: base 2, in every regime. As products in
/// golden/cases/standard.cases.
std::vector<Case> standard_matrix();

/// Returns random case number `index` of the stream `seed`, from the stratum that
/// golden/cases/strata.h assigns to it; it depends on nothing else. Always legal, with at most
/// kMostMultiplyAdds; half of the cases have at most about a quarter of that.
Case draw(std::uint64_t seed, std::uint64_t index);
/// Returns the plan of draw(seed, index), which was built to check that the case is legal.
RunPlan draw_plan(std::uint64_t seed, std::uint64_t index);
inline constexpr double kMostMultiplyAdds = 2e7;

/// Returns legal cases that are simpler than `c` in one respect each, the boldest steps first; none
/// for the simplest case. Repeating this terminates.
std::vector<Case> simpler(const Case& c);

/// Returns the simplest failing case reached from `c` by such steps; tries at most `tries` cases.
Case shrink(Case c, const std::function<bool(const Case&)>& fails, int tries = 300);

}  // namespace shardproof::cases
