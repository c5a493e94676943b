#include "engine/strategies/strategy.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "weights/error.h"

namespace shardproof {
namespace {

std::vector<std::string> names() {
  std::vector<std::string> all;
  for (const Strategy& s : all_strategies()) all.push_back(s.to_string());
  return all;
}

/// Requires `divisor` | `value`, where `divisor` is written `rule`.
void require_divisible(const Strategy& strategy, const Torus& torus, char dim, std::int64_t value,
                       std::string_view rule, std::int64_t divisor) {
  if (value % divisor == 0) return;
  const std::int64_t below = value / divisor * divisor;
  const std::int64_t nearest =
      below == 0 || value - below > below + divisor - value ? below + divisor : below;
  throw Error(
      "strategy_c3",
      fmt::format("{} on torus {} needs {} divisible by {}={}, but {}={}; the nearest legal "
                  "{} is {}",
                  strategy.to_string(), torus.to_string(), dim, rule, divisor, dim, value, dim,
                  nearest));
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
  throw Error("strategy_c1", fmt::format("unknown strategy '{}'{}; legal: {}", text,
                                         near.empty() ? "" : ", did you mean " + near + "?",
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

void require_legal(const Strategy& strategy, const ModelConfig& config, const Torus& torus,
                   std::int64_t batch) {
  const std::int64_t n = torus.chips();
  const std::int64_t X = torus.size(Axis::x);
  const std::int64_t YZ = n / X;
  const auto need = [&](char dim, std::int64_t value, std::string_view rule, std::int64_t divisor) {
    require_divisible(strategy, torus, dim, value, rule, divisor);
  };
  if (strategy.ffn == FfnLayout::wg_xyz) {
    need('E', config.E, "X", X);
    need('F', config.F, "YZ", YZ);
    need('H', config.H, "YZ", YZ);
  } else {
    need('E', config.E, "XYZ", n);
    need('F', config.F, "XYZ", n);
    need('H', config.H, "XYZ", n);
  }
  need('V', config.V, "XYZ", n);
  if (strategy.attention == AttentionLayout::heads) return;
  if (batch < n)
    throw Error("strategy_c4", fmt::format("{} on torus {} shards the batch over XYZ={} chips; "
                                           "batch={} is too small, the smallest legal is {}",
                                           strategy.to_string(), torus.to_string(), n, batch, n));
  need('B', batch, "XYZ", n);
}

Axes kv_axes(const ModelConfig& config, const Torus& torus) {
  for (const char* prefix : {"zyx", "zy", "z"}) {
    const Axes axes = Axes::parse(prefix);
    if (torus.size(axes) > 1 && config.K % torus.size(axes) == 0) return axes;
  }
  return Axes();
}

}  // namespace shardproof
