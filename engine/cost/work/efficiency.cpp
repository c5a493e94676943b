#include "engine/cost/work/efficiency.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>
#include <charconv>
#include <set>

#include "engine/program/rethrow.h"
#include "weights/base/detail/text_file.h"
#include "weights/base/detail/words.h"
#include "weights/base/nearest.h"

namespace shardproof::cost {
namespace {

/// One constant and its name in a text.
struct Constant {
  std::string_view name;
  double Efficiency::*value;
  bool share;  ///< above 0, at most 1; otherwise 0 or more seconds
};

constexpr std::array<Constant, 3> kConstants{
    {{"compute", &Efficiency::compute, true},
     {"interconnect", &Efficiency::interconnect, true},
     {"time_of_layer", &Efficiency::time_of_layer, false}}};

std::vector<std::string> constant_names() {
  std::vector<std::string> names;
  for (const Constant& constant : kConstants) names.emplace_back(constant.name);
  return names;
}

const Constant& constant_named(std::string_view name) {
  for (const Constant& constant : kConstants)
    if (constant.name == name) return constant;
  const std::string near = nearest(std::string(name), constant_names());
  throw Error("efficiency_c1", fmt::format("'{}' is not a constant{} legal: {}", name,
                                           near.empty() ? ";" : ", did you mean " + near + "?",
                                           fmt::join(constant_names(), " ")));
}

double constant_value(const Constant& constant, std::string_view text) {
  double value = 0.0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool number = error == std::errc() && end == text.data() + text.size();
  const bool legal =
      number && (constant.share ? value > 0.0 && value <= 1.0 : value >= 0.0 && value < 1.0);
  if (!legal)
    throw Error("efficiency_c2",
                fmt::format("{} : {}: legal is {}", constant.name, text,
                            constant.share ? "a number above 0, at most 1"
                                           : "a number of seconds from 0 to below 1"));
  return value;
}

}  // namespace

const Efficiency& fitted_efficiency() {
  static const Efficiency fitted = parse_efficiency(fitted_text());
  return fitted;
}

Efficiency parse_efficiency(std::string_view text) {
  Efficiency efficiency;
  std::set<std::string_view> given;
  while (!text.empty()) {
    const auto end = text.find('\n');
    std::string_view line = text.substr(0, end);
    line = trim(line.substr(0, line.find('#')));
    text = end == std::string_view::npos ? std::string_view() : text.substr(end + 1);
    if (line.empty()) continue;
    const auto colon = line.find(':');
    if (colon == std::string_view::npos)
      throw Error("efficiency_c1", fmt::format("'{}': write NAME : VALUE", line));
    const Constant& constant = constant_named(trim(line.substr(0, colon)));
    if (!given.insert(constant.name).second)
      throw Error("efficiency_c1", fmt::format("{} is given twice", constant.name));
    efficiency.*(constant.value) = constant_value(constant, trim(line.substr(colon + 1)));
  }
  for (const Constant& constant : kConstants)
    if (!given.contains(constant.name))
      throw Error("efficiency_c1", fmt::format("{} is missing; legal is a line '{} : VALUE'",
                                               constant.name, constant.name));
  return efficiency;
}

Efficiency load_efficiency(const std::string& path) {
  const std::string text = read_text(
      path, {"efficiency_f1", "efficiency_f2", std::size_t{1} << 20, "file of constants"});
  try {
    return parse_efficiency(text);
  } catch (const Error& error) {
    rethrow_about(error, path + ": ");
  }
}

std::string print_efficiency(const Efficiency& efficiency) {
  std::string text;
  for (const Constant& constant : kConstants)
    text += fmt::format("{} : {:.5g}\n", constant.name, efficiency.*(constant.value));
  return text;
}

Seconds terms_of_estimate(const Seconds& part, const Efficiency& efficiency) {
  return {part.compute / efficiency.compute, part.memory,
          part.communication / efficiency.interconnect, part.hops, part.needed};
}
double estimate(const Seconds& part, const Efficiency& efficiency) {
  return terms_of_estimate(part, efficiency).additive();
}

std::string guess_on(const Chip& chip) {
  return chip.name == kFittedChip
             ? ""
             : fmt::format("constants fitted on {}; for {} a guess", kFittedChip, chip.name);
}

double estimate(const Bounds& bounds, const Efficiency& efficiency) {
  return bounds.layers * (estimate(bounds.layer, efficiency) + efficiency.time_of_layer) +
         estimate(bounds.ends, efficiency);
}

}  // namespace shardproof::cost
