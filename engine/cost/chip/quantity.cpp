#include "engine/cost/chip/quantity.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>
#include <charconv>
#include <cstdlib>
#include <limits>
#include <span>
#include <utility>
#include <vector>

#include "weights/base/detail/word_table.h"
#include "weights/base/detail/words.h"
#include "weights/base/nearest.h"

namespace shardproof::cost {
namespace {

/// A unit's names: powers of 1000, powers of 1024, or an alias that is read but never printed.
enum class Style { decimal, binary, alias };

struct Unit {
  std::string_view name;
  double factor;
  Style style = Style::decimal;
};

constexpr double kKi = 1024.0, kMi = kKi * kKi, kGi = kMi * kKi, kTi = kGi * kKi;

// The units of each measure, largest first.
constexpr std::array kBytes{Unit{"TB", 1e12},
                            Unit{"GB", 1e9},
                            Unit{"MB", 1e6},
                            Unit{"kB", 1e3},
                            Unit{"B", 1.0},
                            Unit{"TiB", kTi, Style::binary},
                            Unit{"GiB", kGi, Style::binary},
                            Unit{"MiB", kMi, Style::binary},
                            Unit{"KiB", kKi, Style::binary}};
constexpr std::array kBytesPerSecond{Unit{"TB/s", 1e12},
                                     Unit{"GB/s", 1e9},
                                     Unit{"MB/s", 1e6},
                                     Unit{"kB/s", 1e3},
                                     Unit{"B/s", 1.0},
                                     Unit{"TiB/s", kTi, Style::binary},
                                     Unit{"GiB/s", kGi, Style::binary},
                                     Unit{"MiB/s", kMi, Style::binary},
                                     Unit{"KiB/s", kKi, Style::binary}};
constexpr std::array kOperations{Unit{"PFLOP/s", 1e15},
                                 Unit{"TFLOP/s", 1e12},
                                 Unit{"GFLOP/s", 1e9},
                                 Unit{"MFLOP/s", 1e6},
                                 Unit{"FLOP/s", 1.0},
                                 Unit{"TOP/s", 1e12, Style::alias},
                                 Unit{"GOP/s", 1e9, Style::alias}};
constexpr std::array kSeconds{Unit{"s", 1.0}, Unit{"ms", 1e-3}, Unit{"us", 1e-6}, Unit{"ns", 1e-9}};
constexpr std::array kNone{Unit{"", 1.0}};

std::span<const Unit> units_of(Measure measure) {
  switch (measure) {
    case Measure::bytes:
      return kBytes;
    case Measure::bytes_per_second:
      return kBytesPerSecond;
    case Measure::operations_per_second:
      return kOperations;
    case Measure::seconds:
      return kSeconds;
    case Measure::none:
      break;
  }
  return kNone;
}

constexpr std::pair<std::string_view, Measure> kMeasures[] = {
    {"memory", Measure::bytes},
    {"bandwidth", Measure::bytes_per_second},
    {"operations per second", Measure::operations_per_second},
    {"time", Measure::seconds},
    {"a plain number", Measure::none}};

std::string_view name_of(Measure measure) { return word_in(kMeasures, measure); }

double factor_of(std::string_view name, std::string_view text, Measure measure) {
  std::vector<std::string> legal;
  for (const Unit& unit : units_of(measure)) {
    if (unit.name == name) return unit.factor;
    legal.emplace_back(unit.name);
  }
  if (measure == Measure::none)
    throw Error("quantity_c1", fmt::format("'{}': a plain number has no unit, not '{}'; nearest "
                                           "legal: {}",
                                           text, name, trim(text.substr(0, text.find(name)))));
  const std::string near = nearest(name, legal);
  throw Error(
      "quantity_c1",
      fmt::format("'{}': {}{}; legal: {}", text,
                  name.empty() ? fmt::format("a unit of {} is missing", name_of(measure))
                               : fmt::format("'{}' is not a unit of {}", name, name_of(measure)),
                  near.empty() ? "" : fmt::format(", did you mean {}?", near),
                  fmt::join(legal, " ")));
}

std::string written(double value, const Unit& unit) {
  return unit.name.empty() ? fmt::format("{}", value) : fmt::format("{} {}", value, unit.name);
}

/// Returns a number outside the range of double: infinity, or the smallest one above 0.
double beyond_doubles(const std::string& number) {
  const double value = std::strtod(number.c_str(), nullptr);
  return value == 0.0 ? std::numeric_limits<double>::denorm_min() : value;
}

}  // namespace

double parse_quantity(std::string_view text, Measure measure, const QuantityLimits& limits) {
  text = trim(text);
  double value = 0.0;
  const auto [at, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error == std::errc::invalid_argument)
    throw Error("quantity_c2", fmt::format("'{}' is not a number; a value is, for example, {}",
                                           text, written(1.0, units_of(measure).front())));
  const std::string_view name = trim(text.substr(static_cast<std::size_t>(at - text.data())));
  if (error == std::errc::result_out_of_range) value = beyond_doubles({text.data(), at});
  const double result = value * factor_of(name, text, measure);
  if (result >= limits.least && result <= limits.most) return result;
  const std::string least = print_quantity(limits.least, measure);
  const std::string most = print_quantity(limits.most, measure);
  // For a value that is not above 0, suggest 1 of the unit that was given.
  throw Error("quantity_c2", fmt::format("'{}': {} is from {} to {}; nearest legal: {}", text,
                                         name_of(measure), least, most,
                                         result > limits.most ? most
                                         : value > 0.0        ? least
                                                              : written(1.0, Unit{name, 1.0})));
}

std::string print_quantity(double value, Measure measure) {
  std::string best;
  for (const Unit& unit : units_of(measure)) {
    if (unit.style == Style::alias) continue;
    const std::string text = written(value / unit.factor, unit);
    double read = 0.0;
    std::from_chars(text.data(), text.data() + text.size(), read);
    if (read * unit.factor == value && (best.empty() || text.size() < best.size())) best = text;
  }
  return best;
}

std::string rounded_quantity(double value, Measure measure, int digits) {
  const Unit* chosen = nullptr;
  for (const Unit& unit : units_of(measure)) {
    if (unit.style != Style::decimal) continue;
    chosen = &unit;
    if (value >= unit.factor) break;
  }
  return fmt::format("{:.{}g}{}{}", value / chosen->factor, digits, chosen->name.empty() ? "" : " ",
                     chosen->name);
}

}  // namespace shardproof::cost
