#include "engine/strategies/strategy.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstdlib>
#include <map>
#include <numeric>
#include <optional>
#include <utility>

#include "engine/strategies/detail/shipped.h"
#include "weights/base/error.h"
#include "weights/text/heads.h"

namespace shardproof {
namespace {

std::vector<std::string> names(const std::vector<Strategy>& strategies) {
  std::vector<std::string> all;
  for (const Strategy& s : strategies) all.push_back(s.to_string());
  return all;
}

std::int64_t below(std::int64_t value, std::int64_t divisor) {
  return std::max(value / divisor * divisor, divisor);
}

/// The multiple of `divisor` nearest to `value`; of two equally near the smaller.
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

/// The divisor that all phases need of a dim, and the axes that it comes from.
struct Need {
  char dim;
  std::int64_t value;
  Axes axes;
  std::int64_t divisor;
  bool broken() const { return value % divisor != 0; }
};

std::vector<ShardedDim> largest(const std::vector<ShardedDim>& dims) {
  std::vector<ShardedDim> kept;
  for (char dim : std::string_view("EFHQVBL"))
    for (const ShardedDim& one : dims) {
      const auto covers = [&](const ShardedDim& other) {
        return other.dim == dim && other.axes.has_all(one.axes);
      };
      const auto smaller = [&](const ShardedDim& other) {
        return other.dim == dim && one.axes.has_all(other.axes);
      };
      if (one.dim != dim || std::any_of(kept.begin(), kept.end(), covers)) continue;
      std::erase_if(kept, smaller);
      kept.push_back(one);
    }
  return kept;
}

std::vector<Need> needs(const std::vector<Strategy>& phases, const ModelConfig& config,
                        const Torus& torus, std::int64_t batch) {
  const std::map<char, std::int64_t> values{{'E', config.E}, {'F', config.F}, {'H', config.H},
                                            {'Q', config.Q}, {'V', config.V}, {'B', batch}};
  std::vector<ShardedDim> dims;
  for (const Strategy& phase : phases)
    if (phase.program() == nullptr)
      for (const ShardedDim& one : sharded_dims(phase)) dims.push_back(one);
  std::vector<Need> all;
  for (const ShardedDim& one : largest(dims))
    if (one.dim != 'L')
      all.push_back({one.dim, values.at(one.dim), one.axes, torus.size(one.axes)});
  return all;
}

std::int64_t unit_of(char dim, const std::vector<Need>& needs) {
  std::int64_t unit = 1;
  for (const Need& need : needs)
    if (need.dim == dim) unit = std::lcm(unit, need.divisor);
  return unit;
}

/// The smallest multiple of `unit` that the model's rotation allows as Q: rotary·Q is even.
std::int64_t unit_of_channels(const ModelConfig& config, std::int64_t unit) {
  if (!rotates(config)) return unit;
  for (std::int64_t n = 1; n < config.Q; ++n) {
    const double rotated = config.rotary * static_cast<double>(n * unit);
    if (rotated >= 2.0 && std::fmod(rotated, 2.0) == 0.0) return n * unit;
  }
  return config.Q * unit;
}

/// The model with every dim at a legal value: the nearest, or the next below if the nearest makes
/// it too large. Returns nullopt if neither is a valid model.
std::optional<ModelConfig> legal_model(const ModelConfig& config, const ModelConfig& placed,
                                       const std::vector<Need>& needs) {
  for (const auto& choose : {nearest_multiple, below}) {
    const auto legal = [&](char dim, std::int64_t value) {
      const std::int64_t unit = unit_of(dim, needs);
      // A padded dim is corrected by other padding.
      if ((dim == 'H' && placed.H != config.H) || (dim == 'V' && placed.V != config.V))
        return value;
      return value % unit == 0 ? value : choose(value, unit);
    };
    const std::int64_t H = legal('H', config.H);
    const bool multihead = config.K == config.H && config.K > 1;  // and must stay multihead
    const std::int64_t K = multihead ? H : nearest_divisor(config.K, H);
    ModelConfig next =
        with_dims(config, legal('E', config.E), legal('F', config.F), H, K, legal('V', config.V));
    const std::int64_t channels = unit_of('Q', needs);
    if (config.Q % channels != 0) next.Q = choose(config.Q, unit_of_channels(config, channels));
    try {
      validate(next);
      return next;
    } catch (const Error&) {  // too large
      continue;
    }
  }
  return std::nullopt;
}

/// " --pad-heads 24 --pad-vocab 264": the least padding that makes the undivided dims divide; heads
/// are padded in whole groups.
std::string least_padding(const ModelConfig& config, const std::vector<Need>& needs) {
  const auto broken = [&](char dim) {
    return std::any_of(needs.begin(), needs.end(),
                       [&](const Need& need) { return need.dim == dim && need.broken(); });
  };
  const auto least = [&](std::int64_t value, std::int64_t unit) {
    return (value + unit - 1) / unit * unit;
  };
  std::string flags;
  const std::int64_t group = heads_per_group(config);
  if (broken('H'))
    flags += fmt::format(" --pad-heads {}", least(config.H, std::lcm(unit_of('H', needs), group)));
  if (broken('V')) flags += fmt::format(" --pad-vocab {}", least(config.V, unit_of('V', needs)));
  return flags;
}

std::int64_t smallest(char dim, const Strategy& strategy, const Torus& torus) {
  std::int64_t unit = 1;
  for (const ShardedDim& one : sharded_dims(strategy))
    if (one.dim == dim) unit = std::lcm(unit, std::int64_t{torus.size(one.axes)});
  return unit;
}

/// "my.layouts line 3: ": the line of a user's table that shards the dim over these axes, or the
/// table's own line if the rules do; "" for a shipped strategy.
std::string where(const std::vector<Strategy>& phases, char dim, const Axes& axes) {
  for (const Strategy& phase : phases) {
    if (phase.program() != nullptr || phase.ships()) continue;
    const LayoutTable& table = phase.table();
    const auto shards = [&](const std::vector<Layout::Dim>& dims) {
      return std::any_of(dims.begin(), dims.end(), [&](const Layout::Dim& one) {
        return one.letter == dim && one.axes.sorted() == axes;
      });
    };
    for (const LayoutLine& line : table.lines)
      for (const LayoutStep& step : line.steps)
        if (shards(step.layout.dims()) || shards(step.sharded)) return table.where(line.line);
    for (const ShardedDim& one : sharded_dims(phase))
      if (one.dim == dim && one.axes == axes) return table.where(table.line);
  }
  return "";
}

std::string where_L_is_sharded(const Strategy& strategy) {
  for (const ShardedDim& one : sharded_dims(strategy))
    if (one.dim == 'L') return where({strategy}, 'L', one.axes);
  return "";
}

/// "X=4 and Y=2".
std::string products(char dim, const std::vector<Need>& needs) {
  std::vector<std::string> all;
  for (const Need& need : needs)
    if (need.dim == dim) all.push_back(fmt::format("{}={}", product_name(need.axes), need.divisor));
  return fmt::format("{}", fmt::join(all, " and "));
}

}  // namespace

Strategy::Strategy() : Strategy(parse("ws2d:heads")) {}
Strategy::Strategy(LayoutTable table)
    : table_(std::make_shared<const LayoutTable>(std::move(table))) {}
Strategy::Strategy(Program layer) : program_(std::make_shared<const Program>(std::move(layer))) {}

bool Strategy::operator==(const Strategy& other) const {
  // Two program files differ, whatever they hold.
  if (program_ != nullptr || other.program_ != nullptr) return program_ == other.program_;
  return *table_ == *other.table_;
}

const std::vector<Strategy>& all_strategies() {
  static const std::vector<Strategy> all = [] {
    std::vector<Strategy> strategies;
    for (LayoutTable& table : parse_layouts(kShippedLayouts))
      strategies.emplace_back(std::move(table));
    return strategies;
  }();
  return all;
}

std::vector<Strategy> load_strategies(const std::string& path) {
  std::vector<Strategy> strategies;
  for (LayoutTable& table : load_layouts(path)) {
    std::string shipped;  // shipped strategy of this name or short name
    try {
      shipped = Strategy::parse(table.name).to_string();
    } catch (const Error&) {
      strategies.emplace_back(std::move(table));
      continue;
    }
    throw Error("layouts_c2",
                fmt::format("{}{} is defined twice: it is a name of {}, which ships; take another "
                            "(docs/layouts.md)",
                            table.where(table.line), table.name, shipped));
  }
  return strategies;
}

Strategy Strategy::parse(std::string_view text, const std::vector<Strategy>& own) {
  for (const char* rest : {"", ":heads", ":natural"})
    for (const std::vector<Strategy>* strategies : {&own, &all_strategies()})
      for (const Strategy& s : *strategies)
        if (s.to_string() == std::string(text) + rest) return s;
  std::vector<std::string> legal = names(own);
  for (const std::string& name : names(all_strategies())) legal.push_back(name);
  const std::string near = nearest(text, legal);
  throw Error("strategy_c1", fmt::format("unknown strategy '{}'{} legal: {}", text,
                                         near.empty() ? ";" : ", did you mean " + near + "?",
                                         fmt::join(legal, ", ")));
}

std::int64_t smallest_batch(const Strategy& strategy, const Torus& torus) {
  return smallest('B', strategy, torus);
}

std::int64_t smallest_length(const Strategy& strategy, const Torus& torus) {
  return smallest('L', strategy, torus);
}

bool decodes(const Strategy& strategy) {
  const std::vector<ShardedDim> dims = sharded_dims(strategy);
  return std::none_of(dims.begin(), dims.end(),
                      [](const ShardedDim& one) { return one.dim == 'L'; });
}

std::vector<ShardedDim> sharded_dims(const Strategy& strategy) {
  std::vector<ShardedDim> dims{{'E', Axes::parse("x")}, {'V', Axes::parse("xyz")}};
  const auto see = [&](const std::vector<Layout::Dim>& all) {
    for (const Layout::Dim& dim : all)
      if (!dim.axes.empty()) dims.push_back({dim.letter, dim.axes.sorted()});
  };
  if (const Program* layer = strategy.program()) {
    for (const ValueDecl& input : layer->inputs) see(input.layout.dims());
    for (const Op& op : layer->ops)
      for (const ValueDecl& result : op.results) see(result.layout.dims());
    return largest(dims);
  }
  for (const LayoutLine& line : strategy.table().lines)
    for (const LayoutStep& step : line.steps) {
      see(step.layout.dims());
      see(step.sharded);
    }
  return largest(dims);  // K and N are left out
}

std::string product_name(const Axes& axes) {
  std::string name = axes.to_string();
  for (char& c : name) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return name;
}

void require_decodes(const Strategy& strategy) {
  if (decodes(strategy)) return;
  std::vector<std::string> legal;
  for (const Strategy& s : all_strategies())
    if (decodes(s)) legal.push_back(s.to_string());
  throw Error(
      "strategy_c2",
      fmt::format("{}{} shards L, the positions of a pass, and a decode step has one: it is a "
                  "prefill only; --decode may be: {}",
                  where_L_is_sharded(strategy), strategy.to_string(), fmt::join(legal, ", ")));
}

void require_lengths(const Strategy& strategy, const Torus& torus, std::int64_t prompt,
                     std::int64_t chunk, const SharedPrefix& prefix) {
  const std::int64_t unit = smallest_length(strategy, torus);
  // The longest possible pass: over the prefixes, or over the prompt after them.
  const std::int64_t longest = std::max(prefix.length, prompt - prefix.length);
  const bool whole = chunk >= longest;
  const bool of_prefix = prefix.length % unit != 0, of_prompt = prompt % unit != 0;
  if (!of_prefix && !of_prompt && (whole || chunk % unit == 0)) return;
  SharedPrefix legal = prefix;
  if (prefix.given()) legal.length = nearest_multiple(prefix.length, unit);
  const std::int64_t legal_prompt =
      std::max(nearest_multiple(prompt, unit), prefix.given() ? legal.length + unit : unit);
  const std::int64_t legal_longest = std::max(legal.length, legal_prompt - legal.length);
  const std::int64_t legal_chunk = std::min(nearest_multiple(chunk, unit), legal_longest);
  const bool says_chunk = !whole || chunk < std::min(prompt, legal_longest);
  const std::string wrong = of_prefix   ? "prefix=" + prefix.to_string()
                            : of_prompt ? fmt::format("prompt={}", prompt)
                                        : fmt::format("chunk={}", chunk);
  throw Error(
      "strategy_c5",
      fmt::format("{}{} on torus {} shards L, the positions of a pass, {} ways: {} is not "
                  "divisible; the nearest legal: {}--prompt {}{}",
                  where_L_is_sharded(strategy), strategy.to_string(), torus.to_string(), unit,
                  wrong, prefix.given() ? fmt::format("--prefix {} ", legal.to_string()) : "",
                  legal_prompt, says_chunk ? fmt::format(" --chunk {}", legal_chunk) : ""));
}

void require_legal(const Strategy& strategy, const ModelConfig& config, const Torus& torus,
                   std::int64_t batch) {
  require_legal(std::vector<Strategy>{strategy}, config, torus, batch);
}

void require_legal(const std::vector<Strategy>& phases, const ModelConfig& config,
                   const Torus& torus, std::int64_t batch, const ModelConfig* padded) {
  const ModelConfig& placed = padded == nullptr ? config : *padded;
  std::vector<std::string> broken;  // "E=96, F=384 divisible by XYZ=5"
  std::string at;                   // where the first of them is given
  bool model = false, rows = false;
  const std::vector<Need> all = needs(phases, placed, torus, batch);
  for (std::size_t i = 0; i < all.size(); ++i) {
    const Need& need = all[i];
    if (!need.broken()) continue;
    (need.dim == 'B' ? rows : model) = true;
    if (at.empty()) at = where(phases, need.dim, need.axes);
    // One phrase per divisor, at its first need.
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
    if (phase.program() == nullptr && (names.empty() || names.back() != phase.to_string()))
      names.push_back(phase.to_string());
  const std::string who =
      fmt::format("{}{} on torus {}", at, fmt::join(names, " then "), torus.to_string());
  const std::int64_t least = unit_of('B', all);
  if (!model && batch < least)
    throw Error("strategy_c4", fmt::format("{} shards the batch over {} chips; batch={} is too "
                                           "small, the smallest legal is {}",
                                           who, products('B', all), batch, least));
  std::string legal;
  const std::string pads = least_padding(config, all);
  if (model) {
    const auto next = legal_model(config, placed, all);
    if (next && print_model(*next) == print_model(config))  // only the padding is wrong
      legal = "the nearest legal:" + pads;
    else
      legal = next ? "the nearest legal: --model " + print_model(*next)
                   : "no model near this one is legal: its weights would be too large to count";
  }
  if (rows)
    legal += fmt::format("{}--batch {}",
                         model ? " " : "the nearest legal: ", nearest_multiple(batch, least));
  if (!pads.empty() && !legal.ends_with(pads)) legal += "; padding that divides:" + pads;
  throw Error("strategy_c3", fmt::format("{} needs {}; {}", who, fmt::join(broken, ", "), legal));
}

}  // namespace shardproof
