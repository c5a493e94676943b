#include "engine/cost/chip/chip.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>

#include "engine/cost/chip/detail/shipped_chips.h"
#include "engine/cost/chip/quantity.h"
#include "engine/layout/torus.h"
#include "engine/program/rethrow.h"
#include "weights/base/detail/text_file.h"
#include "weights/base/detail/words.h"
#include "weights/base/nearest.h"

namespace shardproof::cost {
namespace {

constexpr std::string_view kDoc = " (docs/cost.md)";
constexpr std::size_t kMostName = 40, kMostChips = 1000;

/// A key of a text of chips.
struct ChipKey {
  std::string_view name;
  Measure measure;
  std::function<double(const Chip&)> get;
  std::function<void(Chip&, double)> set;
  QuantityLimits limits;
};

ChipKey number_key(std::string_view name, Measure measure, double Chip::*member) {
  return {name,
          measure,
          [member](const Chip& chip) { return chip.*member; },
          [member](Chip& chip, double value) { chip.*member = value; },
          {}};
}

/// Returns the place of a format in kWeightFormats, their number if it is none of them.
std::size_t place_of(NumberFormat type) {
  const auto at = std::find(kWeightFormats.begin(), kWeightFormats.end(), type);
  return static_cast<std::size_t>(at - kWeightFormats.begin());
}

ChipKey peak_key(NumberFormat type) {
  const std::size_t index = place_of(type);
  return {to_string(type),
          Measure::operations_per_second,
          [index](const Chip& chip) { return chip.peaks.at(index); },
          [index](Chip& chip, double value) { chip.peaks.at(index) = value; },
          {}};
}

ChipKey count_key(std::string_view name, std::int64_t Chip::*member) {
  return {name,
          Measure::none,
          [member](const Chip& chip) { return static_cast<double>(chip.*member); },
          [member](Chip& chip, double value) {
            if (value != std::floor(value))
              throw Error("chip_c3",
                          fmt::format("a whole number from 1 to {}, not {}; nearest legal: {}",
                                      Torus::kMaxChips, value, std::round(value)));
            chip.*member = static_cast<std::int64_t>(value);
          },
          {1.0, double{Torus::kMaxChips}}};
}

/// The keys, in print order.
const std::vector<ChipKey>& chip_keys() {
  static const std::vector<ChipKey> all{
      peak_key(NumberFormat::f32),
      peak_key(NumberFormat::bf16),
      peak_key(NumberFormat::int8),
      number_key("hbm", Measure::bytes, &Chip::hbm),
      number_key("hbm_bandwidth", Measure::bytes_per_second, &Chip::hbm_bandwidth),
      number_key("bandwidth", Measure::bytes_per_second, &Chip::bandwidth),
      number_key("axis_bandwidth", Measure::bytes_per_second, &Chip::axis_bandwidth),
      number_key("hop_latency", Measure::seconds, &Chip::hop_latency),
      number_key("all_to_all", Measure::none, &Chip::all_to_all),
      number_key("host", Measure::bytes, &Chip::host),
      number_key("host_bandwidth", Measure::bytes_per_second, &Chip::host_bandwidth),
      count_key("min_axis", &Chip::min_axis),
      count_key("max_chips", &Chip::max_chips)};
  return all;
}

const ChipKey& key_named(std::string_view name) {
  std::vector<std::string> legal;
  for (const ChipKey& key : chip_keys()) {
    if (key.name == name) return key;
    legal.emplace_back(key.name);
  }
  const std::string near = nearest(name, legal);
  throw Error("chip_c1", fmt::format("a chip has no key '{}'{} legal: {}", name,
                                     near.empty() ? ";" : ", did you mean " + near + "?",
                                     fmt::join(legal, " ")));
}

/// A chip with the lines of its text, for error messages.
struct ChipText {
  Chip chip;
  int line = 0;
  std::map<std::string_view, int> lines;  // line of each given key

  bool has(std::string_view key) const { return lines.contains(key); }
};

void require_complete(const ChipText& text) {
  const auto refuse = [&](std::string_view why) {
    throw Error("chip_c4", fmt::format("{}: {}", text.chip.name, why));
  };
  if (!text.has("f32") && !text.has("bf16") && !text.has("int8"))
    refuse("a peak is missing; give at least one, such as bf16 : 275 TFLOP/s");
  if (!text.has("hbm")) refuse("hbm is missing; for example hbm : 32 GiB");
  if (!text.has("hbm_bandwidth"))
    refuse("hbm_bandwidth is missing; for example hbm_bandwidth : 1200 GB/s");
  if (text.has("host") != text.has("host_bandwidth"))
    refuse(text.has("host") ? "host has no host_bandwidth; for example host_bandwidth : 32 GB/s"
                            : "host_bandwidth has no host; for example host : 250 GB");
  if (!text.has("max_chips")) refuse("max_chips is missing; for a chip without links it is 1");
  const bool joined = text.has("bandwidth") || text.has("axis_bandwidth");
  if (text.chip.max_chips > 1 && !joined)
    refuse(fmt::format("max_chips is {} without bandwidth or axis_bandwidth; without them it is 1",
                       text.chip.max_chips));
}

void require_consistent(const ChipText& text) {
  const auto refuse = [&](std::string_view why) {
    throw Error("chip_c5", fmt::format("{}: {}", text.chip.name, why));
  };
  const bool joined = text.has("bandwidth") || text.has("axis_bandwidth");
  if (text.has("bandwidth") && text.has("axis_bandwidth"))
    refuse(
        fmt::format("bandwidth, in line {}, and axis_bandwidth, in line {}, are two models of "
                    "one interconnect; give one",
                    text.lines.at("bandwidth"), text.lines.at("axis_bandwidth")));
  for (std::string_view key : {"hop_latency", "all_to_all", "min_axis"})
    if (text.has(key) && !joined)
      refuse(fmt::format("{}, in line {}, has no bandwidth or axis_bandwidth beside it", key,
                         text.lines.at(key)));
  if (joined && text.chip.max_chips == 1)
    refuse("an interconnect joins chips, and max_chips is 1; nearest legal: max_chips : 2");
  if (text.chip.min_axis > text.chip.max_chips)
    refuse(fmt::format("min_axis is {}, more than max_chips {}; nearest legal: min_axis : {}",
                       text.chip.min_axis, text.chip.max_chips, text.chip.max_chips));
}

/// Reads one text of chips, line by line.
class ChipReader {
 public:
  explicit ChipReader(std::string_view file) : file_(file) {}

  void read(std::string_view line, int number) {
    if (line == "chip" || line.starts_with("chip ")) return begin(line, number);
    const auto colon = line.find(':');
    if (colon == std::string_view::npos)
      throw Error("chip_c0",
                  fmt::format("'{}': write chip NAME, or KEY : VALUE", line.substr(0, kMostLine)));
    if (texts_.empty()) throw Error("chip_c0", "a chip begins with chip NAME");
    ChipText& text = texts_.back();
    const ChipKey& key = key_named(trim(line.substr(0, colon)));
    const auto [before, added] = text.lines.emplace(key.name, number);
    if (!added)
      throw Error("chip_c2", fmt::format("{} of {} is defined twice, before in line {}", key.name,
                                         text.chip.name, before->second));
    try {
      key.set(text.chip, parse_quantity(line.substr(colon + 1), key.measure, key.limits));
    } catch (const Error& error) {
      throw Error("chip_c3", fmt::format("{}: {}", key.name, error.message()));
    }
  }

  /// Returns all chips after checking that each is complete and consistent.
  std::vector<Chip> chips() const {
    std::vector<Chip> all;
    for (const ChipText& text : texts_) {
      try {
        require_complete(text);
        require_consistent(text);
      } catch (const Error& error) {
        rethrow_about(error, where(text.line), kDoc);
      }
      all.push_back(text.chip);
    }
    return all;
  }

  std::string where(int line) const {
    return file_.empty() ? fmt::format("line {}: ", line)
                         : fmt::format("{} line {}: ", file_, line);
  }

 private:
  static constexpr std::size_t kMostLine = 100;

  void begin(std::string_view line, int number) {
    const std::string_view rest = trim(line.substr(4));
    const std::string_view name = rest.substr(0, rest.find(' '));
    const auto legal = [](char c) {
      return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '_' || c == '.';
    };
    if (name.empty() || name.size() > kMostName || !std::all_of(name.begin(), name.end(), legal))
      throw Error("chip_c0",
                  fmt::format("'{}' is not a valid name of a chip: at most {} lower-case "
                              "letters, digits, -_.",
                              name.substr(0, kMostName + 1), kMostName));
    for (const ChipText& other : texts_)
      if (other.chip.name == name)
        throw Error("chip_c2",
                    fmt::format("{} is defined twice, before in line {}", name, other.line));
    if (texts_.size() == kMostChips)
      throw Error("chip_c0", fmt::format("a file has at most {} chips", kMostChips));
    ChipText text;
    text.chip.name = name;
    text.chip.description = trim(rest.substr(name.size()));
    text.line = number;
    texts_.push_back(std::move(text));
  }

  std::string_view file_;
  std::vector<ChipText> texts_;
};

}  // namespace

bool Chip::has_peak(NumberFormat type) const {
  const std::size_t place = place_of(type);
  return place < peaks.size() && peaks.at(place) > 0.0;
}

double Chip::peak(NumberFormat type) const {
  if (has_peak(type)) return peaks.at(place_of(type));
  std::vector<std::string_view> stated;
  for (const NumberFormat other : kWeightFormats)
    if (has_peak(other)) stated.push_back(to_string(other));
  throw Error("chip_c7", fmt::format("{} has no peak of {}; it has {}", name, to_string(type),
                                     fmt::join(stated, ", ")));
}

double Chip::sends(int axes) const {
  return axis_bandwidth > 0.0 ? axis_bandwidth * axes : bandwidth;
}

const std::vector<Chip>& all_chips() {
  static const std::vector<Chip> all = parse_chips(kShippedChips);
  return all;
}

std::vector<Chip> parse_chips(std::string_view text, std::string_view file) {
  std::string plain(text);
  std::replace(plain.begin(), plain.end(), '\t', ' ');
  ChipReader reader(file);
  int number = 0;
  for (std::string_view line : split(plain, "\n")) {
    ++number;
    line = trim(line.substr(0, line.find('#')));
    if (line.empty()) continue;
    try {
      reader.read(line, number);
    } catch (const Error& error) {
      rethrow_about(error, reader.where(number), kDoc);
    }
  }
  return reader.chips();
}

std::vector<Chip> load_chips(const std::string& path) {
  std::vector<Chip> chips = parse_chips(
      read_text(path, {"chip_f1", "chip_f2", std::size_t{1} << 20, "file of chips", kDoc}), path);
  if (chips.empty())
    throw Error("chip_f3", fmt::format("{} holds no chip; it begins with chip NAME{}", path, kDoc));
  for (const Chip& chip : chips)
    for (const Chip& shipped : all_chips())
      if (chip.name == shipped.name)
        throw Error("chip_c2",
                    fmt::format("{}: {} is the name of a chip that ships; take another{}", path,
                                chip.name, kDoc));
  return chips;
}

std::string print_chip(const Chip& chip) {
  std::string text = "chip " + chip.name;
  if (!chip.description.empty()) text += "  " + chip.description;
  text += "\n";
  const Chip nothing;
  for (const ChipKey& key : chip_keys()) {
    const double value = key.get(chip);
    if (value == key.get(nothing) && key.name != "max_chips") continue;
    text += fmt::format("{} : {}\n", key.name, print_quantity(value, key.measure));
  }
  return text;
}

const Chip& find_chip(std::string_view name, const std::vector<Chip>& own) {
  std::vector<std::string> legal;
  for (const std::vector<Chip>* chips : {&own, &all_chips()})
    for (const Chip& chip : *chips) {
      if (chip.name == name) return chip;
      legal.push_back(chip.name);
    }
  const std::string near = nearest(name, legal);
  throw Error("chip_c6", fmt::format("unknown chip '{}'{} legal: {}", name,
                                     near.empty() ? ";" : ", did you mean " + near + "?",
                                     fmt::join(legal, ", ")));
}

}  // namespace shardproof::cost
