#include "weights/maps/rope_tables.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <vector>

namespace shardproof {
namespace {

using Value = ConfigFormula::Value;

constexpr std::int64_t kMostWidth = std::int64_t{1} << 20;

[[noreturn]] void fail(std::string_view function, const std::string& why) {
  throw Error("model_map_c6", fmt::format("{}: {}", function, why));
}

/// The arguments of one call.
class Arguments {
 public:
  Arguments(std::string_view function, const std::vector<Value>& values, std::size_t least,
            std::size_t most)
      : function_(function), values_(values) {
    if (values.size() < least || values.size() > most)
      fail(function, fmt::format("{} arguments, not {} to {}", values.size(), least, most));
  }

  double number(std::size_t place, std::string_view name) const {
    if (!values_[place].is_number() || !std::isfinite(values_[place].get<double>()))
      fail(function_,
           fmt::format("{} is {}, not a number", name, ConfigFormula::shown(values_[place])));
    return values_[place].get<double>();
  }
  std::int64_t whole(std::size_t place, std::string_view name, std::int64_t most) const {
    const double x = number(place, name);
    if (x != std::floor(x) || x < 1 || x > static_cast<double>(most))
      fail(function_, fmt::format("{} is {}, not a whole number from 1 to {}", name, x, most));
    return static_cast<std::int64_t>(x);
  }
  const Value* at(std::size_t place) const {
    return place < values_.size() && !values_[place].is_null() ? &values_[place] : nullptr;
  }

 private:
  std::string_view function_;
  const std::vector<Value>& values_;
};

/// Angles of one position apart by pair of channels, and a factor of cosines and sines.
struct Frequencies {
  std::vector<double> angles;
  double factor = 1.0;
};

/// The entries of rope_scaling.
class Scaling {
 public:
  Scaling(std::string_view function, const Value& entries)
      : function_(function), entries_(entries) {
    if (!entries.is_object())
      fail(function, fmt::format("rope_scaling is {}, not entries", ConfigFormula::shown(entries)));
  }

  std::string kind() const {
    for (const char* name : {"rope_type", "type"})
      if (const auto at = entries_.find(name); at != entries_.end() && at->is_string())
        return at->get<std::string>();
    return "default";
  }
  bool has(const char* name) const {
    const auto at = entries_.find(name);
    return at != entries_.end() && !at->is_null();
  }
  bool truth(const char* name, bool otherwise) const {
    return has(name) && entries_.at(name).is_boolean() ? entries_.at(name).get<bool>() : otherwise;
  }
  double number(const char* name) const {
    if (!has(name) || !entries_.at(name).is_number() || entries_.at(name).get<double>() <= 0)
      fail(function_, fmt::format("rope_scaling has no {} above 0", name));
    return entries_.at(name).get<double>();
  }
  double number(const char* name, double otherwise) const {
    return has(name) ? number(name) : otherwise;
  }

 private:
  std::string_view function_;
  const Value& entries_;
};

void scale_llama3(const Scaling& scaling, double context, std::vector<double>& angles) {
  const double low = scaling.number("low_freq_factor"), high = scaling.number("high_freq_factor");
  const double factor = scaling.number("factor");
  for (double& angle : angles) {
    const double turns = context * angle / (2.0 * std::numbers::pi);
    const double blend = std::clamp((turns - low) / (high - low), 0.0, 1.0);
    angle = blend * angle + (1.0 - blend) * angle / factor;
  }
}

double scale_yarn(const Scaling& scaling, double context, double theta, double channels,
                  std::vector<double>& angles) {
  const double factor = scaling.number("factor");
  const auto place = [&](double turns) {
    return channels * std::log(context / (turns * 2.0 * std::numbers::pi)) /
           (2.0 * std::log(theta));
  };
  double low = place(scaling.number("beta_fast", 32.0)),
         high = place(scaling.number("beta_slow", 1.0));
  if (scaling.truth("truncate", true)) low = std::floor(low), high = std::ceil(high);
  low = std::max(low, 0.0), high = std::min(high, channels - 1.0);
  for (std::size_t i = 0; i < angles.size(); ++i) {
    const double ramp = (static_cast<double>(i) - low) / std::max(high - low, 0.001);
    const double keep = 1.0 - std::clamp(ramp, 0.0, 1.0);
    angles[i] = angles[i] * keep + angles[i] / factor * (1.0 - keep);
  }
  if (scaling.has("attention_factor")) return scaling.number("attention_factor");
  const auto gain = [&](double m) { return factor > 1.0 ? 0.1 * m * std::log(factor) + 1.0 : 1.0; };
  if (!scaling.has("mscale") || !scaling.has("mscale_all_dim")) return gain(1.0);
  return gain(scaling.number("mscale")) / gain(scaling.number("mscale_all_dim"));
}

Frequencies frequencies(std::string_view function, const Arguments& given) {
  const double theta = given.number(0, "theta");
  const auto channels = static_cast<double>(given.whole(1, "channels", kMostWidth));
  if (theta <= 0.0) fail(function, fmt::format("theta is {}, not above 0", theta));
  Frequencies f;
  for (double i = 0; i < channels; i += 2) f.angles.push_back(std::pow(theta, -i / channels));
  const Value* const entries = given.at(4);
  if (entries == nullptr) return f;
  const Scaling scaling(function, *entries);
  const std::string kind = scaling.kind();
  if (kind == "default") return f;
  const double context = scaling.has("original_max_position_embeddings")
                             ? scaling.number("original_max_position_embeddings")
                         : given.at(5) != nullptr ? given.number(5, "context")
                                                  : 0.0;
  if (kind == "linear") {
    for (double& angle : f.angles) angle /= scaling.number("factor");
    return f;
  }
  if (kind != "llama3" && kind != "yarn")
    fail(function, fmt::format("rope_type {} is not default, linear, llama3 or yarn", kind));
  if (context <= 0.0) fail(function, fmt::format("{} needs a context above 0", kind));
  if (kind == "llama3")
    scale_llama3(scaling, context, f.angles);
  else
    f.factor = scale_yarn(scaling, context, theta, channels, f.angles);
  return f;
}

Tensor rope_table(std::string_view function, const std::vector<Value>& values,
                  std::int64_t positions) {
  const Arguments given(function, values, 3, 6);
  const Frequencies f = frequencies(function, given);
  const bool half = given.at(3) == nullptr || *given.at(3) == "half";
  if (!half && *given.at(3) != "interleaved")
    fail(function,
         fmt::format("{} is not 'half' or 'interleaved'", ConfigFormula::shown(*given.at(3))));
  const std::int64_t width = given.whole(2, "width", kMostWidth);
  const auto count = static_cast<std::int64_t>(f.angles.size());
  if (2 * count > width || given.whole(1, "channels", kMostWidth) != 2 * count)
    fail(function, fmt::format("{} channels are not an even number up to the width {}",
                               given.whole(1, "channels", kMostWidth), width));
  const bool cosines = function == "rope_cos";
  Tensor table({positions, width}, cosines ? 1.0F : 0.0F);
  for (std::int64_t row = 0; row < positions; ++row)
    for (std::int64_t i = 0; i < count; ++i) {
      const double angle = static_cast<double>(row) * f.angles[static_cast<std::size_t>(i)];
      const auto value =
          static_cast<float>((cosines ? std::cos(angle) : std::sin(angle)) * f.factor);
      const auto put = [&](std::int64_t column) {
        table.data[static_cast<std::size_t>(row * table.shape[1] + column)] = value;
      };
      put(half ? i : 2 * i);
      put(half ? i + count : 2 * i + 1);
    }
  return table;
}

/// The slopes of ALiBi of any number of heads: those of the power of two below it, and every other
/// of twice as many; or with `up` those of the power of two above it, every other first.
Tensor slopes(const std::vector<Value>& values) {
  const Arguments given("slopes", values, 1, 3);
  const std::int64_t heads = given.whole(0, "heads", kMostWidth);
  const double base = given.at(1) == nullptr ? 8.0 : given.number(1, "base");
  const bool up = given.at(2) != nullptr && *given.at(2) == true;
  std::int64_t n = 1;
  while (2 * n <= heads) n *= 2;
  if (up && n < heads) n *= 2;
  const auto slope = [&](std::int64_t i, std::int64_t of) {
    return std::exp2(-base * static_cast<double>(i) / static_cast<double>(of));
  };
  std::vector<double> found;
  if (up && n > heads) {
    for (std::int64_t i = 2; i <= n; i += 2) found.push_back(slope(i, n));
    for (std::int64_t i = 1; i <= n; i += 2) found.push_back(slope(i, n));
  } else {
    for (std::int64_t i = 1; i <= n; ++i) found.push_back(slope(i, n));
    for (std::int64_t i = 1; i < 2 * (heads - n); i += 2) found.push_back(slope(i, 2 * n));
  }
  Tensor table({heads});
  for (std::size_t i = 0; i < table.data.size(); ++i) table.data[i] = static_cast<float>(found[i]);
  return table;
}

}  // namespace

bool makes_table(std::string_view function) {
  return function == "rope_cos" || function == "rope_sin" || function == "slopes";
}

Tensor make_table(std::string_view function, const std::vector<Value>& arguments,
                  std::int64_t positions) {
  return function == "slopes" ? slopes(arguments) : rope_table(function, arguments, positions);
}

}  // namespace shardproof
