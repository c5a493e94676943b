// What published.txt compares with: the quantities by name.
#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <stdexcept>

#include "engine/cost/chip/chip.h"
#include "engine/cost/formulas/paper_formulas.h"
#include "engine/cost/graph/graph.h"
#include "engine/cost/paper/calibration.h"
#include "engine/cost/paper/detail/comparison_rows.h"
#include "engine/cost/work/work.h"

namespace shardproof::cost {
namespace {

constexpr double kBf16Bytes = 2.0, kPercent = 100.0;

/// Settings as quantities read them.
struct Case : Settings {
  Case(const Settings& settings, const Efficiency& of) : Settings(settings), efficiency(of) {}

  Efficiency efficiency;

  std::int64_t B() const { return count("B", 1); }
  double E() const { return static_cast<double>(model().E); }
  double F() const { return static_cast<double>(model().F); }
  int chips() const { return has("torus") ? torus().chips() : static_cast<int>(number("chips")); }
  /// The tokens of all passes.
  double tokens() const { return pass().tokens() * number("steps", 1.0); }

  FfnLayout ffn(std::string_view name) const {
    for (const FfnLayout layout :
         {FfnLayout::ws1d, FfnLayout::ws2d, FfnLayout::wg_x, FfnLayout::wg_xy, FfnLayout::wg_xyz})
      if (to_string(layout) == text(name)) return layout;
    throw std::logic_error(fmt::format("published.txt: {} is not a layout", text(name)));
  }
  FfnVolume volume(std::string_view name) const {
    return ffn_volume(ffn(name), model().E, model().F, torus());
  }
  CacheSizes caches() const {
    const ModelConfig of = model();
    return {of.layers, of.H, count("Q", of.Q), kBf16Bytes};
  }
  CacheLayout cache() const {
    const std::string name = text("cache");
    return name == "multihead"          ? CacheLayout::multihead
           : name == "multiquery_heads" ? CacheLayout::multiquery_heads
                                        : CacheLayout::multiquery_batch;
  }

  /// Seconds of a pass, infinite if the batch is too small for the strategy.
  double step() const {
    return B() < smallest_batch(strategy(), torus()) ? std::numeric_limits<double>::infinity()
                                                     : estimate(paper_bounds(*this), efficiency);
  }
  double all_steps() const { return number("steps", 1.0) * step(); }
};

double peak() { return find_chip(kFittedChip).peak(NumberFormat::bf16); }

/// Returns the divisor of the chips at which least is moved.
template <class Moved>
double least_divisor(int chips, const Moved& moved) {
  int best = 1;
  for (int d = 1; d <= chips; ++d)
    if (chips % d == 0 && moved(d) < moved(best)) best = d;
  return best;
}

/// The most chips on which 2D at its best still moves no less than 1D.
double chips_of_1d(const Case& c) {
  double n = 1;
  while (least_ws2d(n + 1, c.E(), c.F()) >= 2.0 * c.E()) ++n;
  return n;
}

/// Bytes that one chip moves in a layer, infinite if the batch is too small for the layout.
double layer_volume(const Case& c) {
  if (c.B() % batch_blocks(c.ffn("ffn"), c.torus()) != 0)
    return std::numeric_limits<double>::infinity();
  return c.volume("ffn").bytes(c.pass().tokens(),
                               c.weights() == NumberFormat::int8 ? 1.0 : kBf16Bytes, kBf16Bytes);
}

/// MFU of `in` tokens in and `out` out at high throughput: the prefill takes its share of the time.
double mfu_of_both(const Case& c) {
  const double in = c.number("in"), out = c.number("out");
  const Case prefill(tables_2_and_3()[2].settings, c.efficiency);
  const double seconds = prefill.number("seconds") * in / kMeasuredContext +
                         tables_2_and_3()[3].settings.number("seconds");
  return mfu(prefill.number("N"), prefill.number("B") * (in + out), prefill.chips(), peak(),
             seconds);
}

/// The share by which a step takes longer than one of the model `to`.
double longer_step(const Case& c) {
  Case other = c;
  other.set("model", c.text("to"));
  return c.step() / other.step() - 1.0;
}

struct Quantity {
  std::string_view name;
  double (*value)(const Case&);
  std::string_view printed = {};  ///< the setting that is known to its printed digits only
};
constexpr Quantity kQuantities[] = {
    {"context",
     [](const Case& c) {
       return longest_context(c.caches(), c.cache(), c.chips(), c.B(),
                              c.number("share") * find_chip(kFittedChip).hbm);
     }},
    {"caches",
     [](const Case& c) {
       return cache_bytes(c.caches(), c.cache(), c.chips(), c.B(), kMeasuredContext);
     }},
    {"volume", layer_volume},
    {"crossover", [](const Case& c) { return crossover(c.volume("below"), c.volume("above")); }},
    {"best_x", [](const Case& c) { return best_x(c.chips(), c.E(), c.F()); }},
    {"searched_x",
     [](const Case& c) {
       return least_divisor(c.chips(), [&](int X) { return c.E() / X + c.F() * X / c.chips(); });
     }},
    {"chips_of_1d", chips_of_1d},
    {"least_ws2d", [](const Case& c) { return least_ws2d(c.chips(), c.E(), c.F()); }},
    {"best_gathered", [](const Case& c) { return best_gathered(c.chips(), c.F(), c.tokens()); }},
    {"searched_gathering",
     [](const Case& c) {
       return least_divisor(c.chips(), [&](int N) {
         return 2.0 * c.E() * c.F() * N / c.chips() + 2.0 * c.tokens() * c.E() / N;
       });
     }},
    {"least_gathered",
     [](const Case& c) { return least_gathered(c.chips(), c.E(), c.F(), c.tokens()); }},
    {"parameters", [](const Case& c) { return matrix_parameters(c.model()); }},
    {"added_parameters",
     [](const Case& c) {
       return matrix_parameters(c.model()) - matrix_parameters(parse_model(c.text("to")));
     }},
    {"mfu",
     [](const Case& c) {
       return mfu(c.number("N"), c.tokens(), c.chips(), peak(),
                  c.has("seconds") ? c.number("seconds") : c.all_steps());
     },
     "seconds"},
    {"mfu_of_both", mfu_of_both},
    {"seconds_of_chips",
     [](const Case& c) { return chip_seconds(c.tokens(), c.chips(), c.number("seconds")); },
     "seconds"},
    {"chip_seconds_of_mfu",
     [](const Case& c) {
       return chip_seconds_of_mfu(c.number("N"), peak(), c.number("mfu") / kPercent);
     },
     "mfu"},
    {"printed_steps", [](const Case& c) { return c.number("steps") * c.number("step_ms"); }},
    {"step", [](const Case& c) { return c.step(); }},
    {"all_steps", [](const Case& c) { return c.all_steps(); }},
    {"layers",
     [](const Case& c) {
       const Bounds bounds = paper_bounds(c);
       return estimate(Bounds{bounds.layer, {}, bounds.layers}, c.efficiency);
     }},
    {"longer_step", longer_step},
    {"tokens", [](const Case& c) { return c.tokens(); }},
    {"sent", [](const Case& c) { return paper_work(c).layer.sum(&Traffic::elements); }},
    {"worst_left_out", [](const Case&) { return table_calibration().worst_left_out(); }},
};

const Quantity* find_quantity(std::string_view name) {
  for (const Quantity& quantity : kQuantities)
    if (quantity.name == name) return &quantity;
  return nullptr;
}

const Quantity& quantity_named(std::string_view name) {
  if (const Quantity* quantity = find_quantity(name)) return *quantity;
  throw std::logic_error(fmt::format("published.txt: {} is not a quantity", name));
}

}  // namespace

bool is_quantity(std::string_view name) { return find_quantity(name) != nullptr; }

double value_of(const Formula& formula, const Efficiency& efficiency) {
  const Settings& at = formula.settings;
  const double value = quantity_named(formula.quantity).value({at, efficiency}) *
                       at.number("times", 1.0) / at.number("by", 1.0);
  if (formula.second.empty()) return value;
  const double second = value_of(formula.second.front(), efficiency);
  return formula.join == "over" ? value / second : value + second;
}

Range range_of(const Printed& printed) {
  return {printed.value(), printed.value() - printed.half_unit(),
          printed.value() + printed.half_unit()};
}

Range range_of(const Formula& formula, const Efficiency& efficiency) {
  const double value = value_of(formula, efficiency);
  const std::string_view from = quantity_named(formula.quantity).printed;
  if (!formula.second.empty() || !formula.settings.has(from)) return {value, value, value};
  const std::string text = formula.settings.text(from);
  const auto at = [&](double printed) {
    Formula other = formula;
    other.settings.set(from, fmt::format("{}", printed));
    return value_of(other, efficiency);
  };
  const Range printed = range_of(Printed{text});
  const auto [least, most] = std::minmax({at(printed.least), at(printed.most)});
  return {value, least, most};
}

}  // namespace shardproof::cost
