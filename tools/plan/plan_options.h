#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "engine/cost/plan/plan.h"
#include "engine/cost/plan/split.h"

namespace shardproof::tools {

inline constexpr std::int64_t kMostPositions = 1'000'000'000;

/// The flags of `plan` as they were given.
struct PlanOptions {
  std::string model = "palm-540b", chips, torus, tori;
  std::optional<std::string> batch;
  std::string weights = "any", phase, minimize, latency, heads = "pad", volumes;
  std::string chip = "tpu-v4", chips_file, only, layouts;
  std::optional<std::int64_t> context, prompt, gen, top;
  int threads = 0;
  bool alone = false, skipped = false, json = false;
  bool capacity = false, pareto = false, search = false, split = false;
  std::string cache_share, csv, out, ttft, tpot, rate, link;
};

/// Builds the request. Throws Error: "flag_c6" (a flag without effect), "flag_c7" (no chips),
/// "flag_c11" (an illegal word for a flag), "plan_c4" (a number of chips that no slice has),
/// "plan_c5" (a context shorter than prompt and steps), "plan_c6" (an invalid share); and what
/// parse_model, parse_numbers, parse_quantity, load_chips, find_chip, load_strategies and
/// Strategy::parse throw.
cost::PlanRequest plan_request(const PlanOptions& options);
/// Returns the share of --cache-share, if given.
std::optional<double> cache_share(const PlanOptions& options);

/// Returns the number of choices to print: --top, or its default.
std::size_t shown_choices(const PlanOptions& options);

/// Reads --ttft, --tpot, --rate and --link for plan_two_slices. Throws Error: "flag_c12" (one of
/// the first two is missing), and what parse_quantity throws.
cost::SplitGoal split_goal(const PlanOptions& options, const cost::Chip& chip);

}  // namespace shardproof::tools
