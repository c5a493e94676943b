#include "engine/cost/analysis/experts.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <utility>

#include "engine/cost/formulas/parameters.h"

namespace shardproof::cost {
namespace {

double real_number(std::int64_t value) { return static_cast<double>(value); }

/// Returns the largest divisor of a number that is at most `most`.
std::int64_t divisor_up_to(std::int64_t number, std::int64_t most) {
  for (std::int64_t d = std::min(number, most); d > 1; --d)
    if (number % d == 0) return d;
  return 1;
}

void require_legal_experts(const Experts& x, const Chip& chip) {
  const std::array<std::pair<std::string_view, std::int64_t>, 4> numbers{
      {{"experts", x.experts}, {"top", x.top}, {"chips", x.chips}, {"tokens", x.tokens}}};
  for (const auto& [name, number] : numbers)
    if (number < 1)
      throw Error("experts_c1",
                  fmt::format("{}={}: must be at least 1; nearest legal: 1", name, number));
  if (!(x.capacity > 0.0) || !std::isfinite(x.capacity))
    throw Error("experts_c1",
                fmt::format("capacity={}: must be above 0 and finite; usual: 1.25", x.capacity));
  if (x.top > x.experts)
    throw Error("experts_c2", fmt::format("top={} of {} experts; nearest legal: {}", x.top,
                                          x.experts, x.experts));
  const std::int64_t common = std::gcd(x.experts, x.tokens);
  if (x.chips > chip.max_chips)
    throw Error("experts_c4",
                fmt::format("chips={}: at most {} chips {} are joined; nearest legal: {}", x.chips,
                            chip.max_chips, chip.name, divisor_up_to(common, chip.max_chips)));
  if (common % x.chips != 0)
    throw Error("experts_c3",
                fmt::format("chips={} do not divide experts={} and tokens={}; nearest legal: {}",
                            x.chips, x.experts, x.tokens, divisor_up_to(common, x.chips)));
}

}  // namespace

ExpertsCost experts_cost(const ModelConfig& model, const Experts& x, const ElementBytes& bytes,
                         const Chip& chip) {
  require_legal_experts(x, chip);
  ModelConfig one_layer = model;
  one_layer.layers = 1;
  const Parameters parameters = parameters_of(one_layer);
  const double ffn = real_number(parameters.ffn_in + parameters.ffn_out);
  const double E = real_number(model.E), experts = real_number(x.experts);
  const double tokens = real_number(x.tokens), top = real_number(x.top);
  const double chips = real_number(x.chips);
  ExpertsCost cost;
  cost.router_flops = 2.0 * E * experts * tokens;
  cost.dense_flops = 2.0 * ffn * tokens;
  cost.token_flops = top * cost.dense_flops;
  const double slots = std::min(std::ceil(x.capacity * top * tokens / experts), tokens);
  cost.slots = static_cast<std::int64_t>(slots);
  cost.slot_flops = 2.0 * ffn * slots * experts;
  // If the power is near 1, its difference to 1 would cancel. If every token goes to all experts,
  // the logarithm is -inf, and expm1 of that is -1.
  cost.touched = -experts * std::expm1(tokens * std::log1p(-top / experts));
  cost.weight_bytes = ffn * experts / chips * bytes.weights;
  if (x.chips > 1) {
    cost.all_to_all_bytes =
        chip.all_to_all * experts * slots / chips * E * bytes.activations * (chips - 1.0) / chips;
    cost.both_ways_seconds = 2.0 * cost.all_to_all_bytes / chip.sends(1);
  }
  return cost;
}

}  // namespace shardproof::cost
