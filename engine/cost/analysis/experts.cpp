#include "engine/cost/analysis/experts.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <utility>
#include <vector>

#include "engine/cost/graph/detail/text_parts.h"
#include "engine/cost/graph/graph.h"

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

/// Returns the elements of a product's weight.
double elements_of(const GraphProduct& product) { return product.k * product.m * product.times; }

/// A token alone, which reads of the experts those that it chooses.
constexpr Pass kToken{Phase::decode, 1, 1, 0};

/// Returns the elements of the matrices of a layer with the letter F.
double ffn_elements(const ModelConfig& model) {
  const auto text = graph_of(model);
  double all = 0.0;
  for (const GraphProduct& one : layer_products(*text, 0, kToken))
    if (one.weight && contains(text->weight(one.name)->letters, 'F')) all += elements_of(one);
  return all;
}

}  // namespace

std::optional<OwnExperts> own_experts(const ModelConfig& model) {
  const TextModel* const text = text_model(model);
  if (text == nullptr) return std::nullopt;
  for (const auto& [layer, count] : kinds_of_layers(*text)) {
    const std::vector<GraphProduct> products = layer_products(*text, layer, kToken);
    OwnExperts own;
    std::string letters;  // of the experts
    for (const GraphProduct& one : products) {
      if (!one.weight || one.read >= 1.0) continue;
      const std::string& of = text->weight(one.name)->letters;
      const auto experts = static_cast<std::int64_t>(one.times);
      if (own.elements > 0.0 && experts != own.experts)
        throw Error("experts_c5",
                    fmt::format("{}: {} is of {} experts, and matrices before it of {}",
                                model.rows->line(), one.name, experts, own.experts));
      own.experts = experts;
      own.top = std::llround(one.read * one.times);
      own.elements += elements_of(one) / one.times;
      if (letters.empty()) letters = of;
      std::erase_if(letters, [&](char letter) { return !contains(of, letter); });
    }
    if (own.elements == 0.0) continue;
    const auto chooses = [&](const GraphProduct& one) {
      const std::string& of = text->weight(one.name)->letters;
      return one.read >= 1.0 && of.find_first_of(letters) != std::string::npos &&
             static_cast<std::int64_t>(one.m) == own.experts;
    };
    for (const GraphProduct& one : products)
      if (one.weight && chooses(one)) own.router_elements += elements_of(one);
    return own;
  }
  return std::nullopt;
}

ExpertsCost experts_cost(const ModelConfig& model, const Experts& x, const ElementBytes& bytes,
                         const Chip& chip) {
  require_legal_experts(x, chip);
  const std::optional<OwnExperts> own = own_experts(model);
  if (own && (x.experts != own->experts || x.top != own->top))
    throw Error(
        "experts_c5",
        fmt::format("experts={}, top={}: the text has {} experts, of which a token reads {}",
                    x.experts, x.top, own->experts, own->top));
  const double ffn = own ? own->elements : ffn_elements(model);
  const double E = real_number(model.E), experts = real_number(x.experts);
  const double tokens = real_number(x.tokens), top = real_number(x.top);
  const double chips = real_number(x.chips);
  ExpertsCost cost;
  cost.router_flops = 2.0 * (own ? own->router_elements : E * experts) * tokens;
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
