#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "engine/run/plan.h"

namespace shardproof::cases {

/// The cases `verify` runs without arguments. Of ws1d and ws2d over heads and batch and of
/// wg-xyz:batch: prefill and decode alike × multihead and multiquery × the tori 1x1x1, 2x2x2,
/// 4x2x3, 3x2x2, 2x3x1, 1x4x2; every pair of two on 4x2x3; 4x4x4 once; regime=f32 under each
/// schedule, on plain, whole-family serial and bf16 models; serial blocks on the same tori; and
/// layernorm, the gelus, biases, interleaved and no rotation and untied tables. Of every strategy:
/// multihead, grouped and multiquery × the tori 4x2x3, 2x2x2, 3x2x2, 1x4x2, and 4x4x4 once; and
/// rows of unequal length, and padded heads and ids, each on two tori; and rows that share
/// prefixes. Of the family of models: in base 2, in every regime.
std::vector<Case> standard_matrix();

/// Random case number `index` of the stream `seed`, of the stratum that golden/cases/strata.h has
/// for it: a function of the two alone. Always legal, at most kMostMultiplyAdds, half of them at
/// most about a quarter of that.
Case draw(std::uint64_t seed, std::uint64_t index);
/// The same with its plan, which was made to see that the case is legal.
RunPlan draw_plan(std::uint64_t seed, std::uint64_t index);
inline constexpr double kMostMultiplyAdds = 2e7;

/// Legal cases that are simpler than `c` in one respect each, the boldest steps first; none for the
/// simplest case. Repeating it ends.
std::vector<Case> simpler(const Case& c);

/// The simplest case reached from `c` by such steps that still fails; at most `tries` are tried.
Case shrink(Case c, const std::function<bool(const Case&)>& fails, int tries = 300);

}  // namespace shardproof::cases
