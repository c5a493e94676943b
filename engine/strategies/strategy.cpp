#include "engine/strategies/strategy.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdlib>
#include <map>
#include <optional>
#include <utility>

#include "weights/error.h"

namespace shardproof {
namespace {

std::vector<std::string> names() {
  std::vector<std::string> all;
  for (const Strategy& s : all_strategies()) all.push_back(s.to_string());
  return all;
}

std::int64_t below(std::int64_t value, std::int64_t divisor) {
  return std::max(value / divisor * divisor, divisor);
}

/// The multiple of `divisor` nearest to `value`, of two the smaller.
std::int64_t nearest_multiple(std::int64_t value, std::int64_t divisor) {
  const std::int64_t least = below(value, divisor);
  return value - least > least + divisor - value ? least + divisor : least;
}

/// The divisor of H nearest to K.
std::int64_t nearest_divisor(std::int64_t K, std::int64_t H) {
  std::int64_t best = 1;
  for (std::int64_t d = 1; d * d <= H; ++d)
    for (std::int64_t divisor : {d, H / d})
      if (H % d == 0 && std::abs(divisor - K) < std::abs(best - K)) best = divisor;
  return best;
}

/// What a dim must be divisible by, for all phases, and the axes that say so.
struct Need {
  char dim;
  std::int64_t value;
  Axes axes;
  std::int64_t divisor;
  bool broken() const { return value % divisor != 0; }
};

std::vector<Need> needs(const std::vector<Strategy>& phases, const ModelConfig& config,
                        const Torus& torus, std::int64_t batch) {
  const std::array<std::pair<char, std::int64_t>, 5> values{
      {{'E', config.E}, {'F', config.F}, {'H', config.H}, {'V', config.V}, {'B', batch}}};
  std::vector<Need> all;
  for (const auto& [dim, value] : values) {
    Need need{dim, value, Axes(), 1};
    for (const Strategy& phase : phases)
      for (const CutDim& cut : cut_dims(phase))
        // The axes of one strategy hold those of the other, so the larger product is a multiple.
        if (cut.dim == dim && torus.size(cut.axes) > need.divisor)
          need.axes = cut.axes, need.divisor = torus.size(cut.axes);
    all.push_back(need);
  }
  return all;
}

/// The model with every dim at a legal value: the nearest, or the next below where the nearest
/// makes it too large. Empty where neither is a model.
std::optional<ModelConfig> legal_model(const ModelConfig& config, const std::vector<Need>& needs) {
  for (const auto& choose : {nearest_multiple, below}) {
    std::map<char, std::int64_t> value;
    for (const Need& need : needs)
      value[need.dim] = need.broken() ? choose(need.value, need.divisor) : need.value;
    const bool multihead = config.K == config.H && config.K > 1;  // and stays so
    const std::int64_t K = multihead ? value['H'] : nearest_divisor(config.K, value['H']);
    const ModelConfig next = with_dims(config, value['E'], value['F'], value['H'], K, value['V']);
    try {
      validate(next);
      return next;
    } catch (const Error&) {  // too large
      continue;
    }
  }
  return std::nullopt;
}

}  // namespace

const std::vector<Strategy>& all_strategies() {
  static const std::vector<Strategy> all{{FfnLayout::ws1d, AttentionLayout::heads},
                                         {FfnLayout::ws1d, AttentionLayout::batch},
                                         {FfnLayout::ws2d, AttentionLayout::heads},
                                         {FfnLayout::ws2d, AttentionLayout::batch},
                                         {FfnLayout::wg_xyz, AttentionLayout::batch}};
  return all;
}

Strategy Strategy::parse(std::string_view text) {
  const std::string full(text.find(':') == std::string_view::npos && text != "wg-xyz"
                             ? std::string(text) + ":heads"
                             : std::string(text));
  for (const Strategy& s : all_strategies())
    if (s.to_string() == full) return s;
  if (full == "wg-xyz" || full.starts_with("wg-xyz:"))
    throw Error("strategy_c2",
                fmt::format("'{}' is not built: weight-gathered xyz runs with attention over the "
                            "batch only; legal: wg-xyz:batch",
                            text));
  const std::string near = nearest(text, names());
  throw Error("strategy_c1", fmt::format("unknown strategy '{}'{} legal: {}", text,
                                         near.empty() ? ";" : ", did you mean " + near + "?",
                                         fmt::join(names(), ", ")));
}

std::string Strategy::to_string() const {
  const std::string_view f = ffn == FfnLayout::ws1d   ? "ws1d"
                             : ffn == FfnLayout::ws2d ? "ws2d"
                                                      : "wg-xyz";
  return fmt::format("{}:{}", f, attention == AttentionLayout::heads ? "heads" : "batch");
}

std::int64_t smallest_batch(const Strategy& strategy, const Torus& torus) {
  return strategy.attention == AttentionLayout::batch ? torus.chips() : 1;
}

std::string description(const Strategy& strategy) {
  const std::string_view ffn = strategy.ffn == FfnLayout::ws1d   ? "1D weight-stationary"
                               : strategy.ffn == FfnLayout::ws2d ? "2D weight-stationary"
                                                                 : "XYZ weight-gathered";
  return fmt::format("{}, attention over the {}", ffn,
                     strategy.attention == AttentionLayout::heads ? "heads" : "batch");
}

std::vector<CutDim> cut_dims(const Strategy& strategy) {
  const Axes all = Axes::parse("xyz");
  const bool gathered = strategy.ffn == FfnLayout::wg_xyz;
  const Axes rows = gathered ? Axes::parse("x") : all;
  const Axes columns = gathered ? Axes::parse("yz") : all;
  std::vector<CutDim> cuts{{'E', rows}, {'F', columns}, {'H', columns}, {'V', all}};
  if (strategy.attention == AttentionLayout::batch) cuts.push_back({'B', all});
  return cuts;
}

std::string product_name(const Axes& axes) {
  std::string name = axes.to_string();
  for (char& c : name) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return name;
}

void require_legal(const Strategy& strategy, const ModelConfig& config, const Torus& torus,
                   std::int64_t batch) {
  require_legal(std::vector<Strategy>{strategy}, config, torus, batch);
}

void require_legal(const std::vector<Strategy>& phases, const ModelConfig& config,
                   const Torus& torus, std::int64_t batch) {
  std::vector<std::string> broken;  // "E=96, F=384 divisible by XYZ=5"
  bool model = false, rows = false;
  const std::vector<Need> all = needs(phases, config, torus, batch);
  for (std::size_t i = 0; i < all.size(); ++i) {
    const Need& need = all[i];
    if (!need.broken()) continue;
    (need.dim == 'B' ? rows : model) = true;
    // One phrase for each divisor, where it is met first.
    const auto same = [&](const Need& other) { return other.broken() && other.axes == need.axes; };
    if (std::any_of(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(i), same)) continue;
    std::vector<std::string> dims;
    for (const Need& other : all)
      if (same(other)) dims.push_back(fmt::format("{}={}", other.dim, other.value));
    broken.push_back(fmt::format("{}{} by {}={}", fmt::join(dims, ", "),
                                 broken.empty() ? " divisible" : "", product_name(need.axes),
                                 need.divisor));
  }
  if (broken.empty()) return;
  std::vector<std::string> names;
  for (const Strategy& phase : phases)
    if (names.empty() || names.back() != phase.to_string()) names.push_back(phase.to_string());
  const std::string who =
      fmt::format("{} on torus {}", fmt::join(names, " then "), torus.to_string());
  const Need& batch_need = all.back();
  if (!model && batch < batch_need.divisor)
    throw Error("strategy_c4", fmt::format("{} shards the batch over {}={} chips; batch={} is too "
                                           "small, the smallest legal is {}",
                                           who, product_name(batch_need.axes), batch_need.divisor,
                                           batch, batch_need.divisor));
  std::string legal;
  if (model) {
    const auto next = legal_model(config, all);
    legal = next ? "the nearest legal: --model " + print_model(*next)
                 : "no model near this one is legal: its weights would be too large to count";
  }
  if (rows)
    legal += fmt::format("{}--batch {}", model ? " " : "the nearest legal: ",
                         nearest_multiple(batch, batch_need.divisor));
  throw Error("strategy_c3", fmt::format("{} needs {}; {}", who, fmt::join(broken, ", "), legal));
}

Axes kv_axes(const ModelConfig& config, const Torus& torus) {
  for (const char* prefix : {"zyx", "zy", "z"}) {
    const Axes axes = Axes::parse(prefix);
    if (torus.size(axes) > 1 && config.K % torus.size(axes) == 0) return axes;
  }
  return Axes();
}

}  // namespace shardproof
