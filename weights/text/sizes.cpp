#include "weights/text/sizes.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <optional>

namespace shardproof {
namespace {

constexpr double kMostExtent = 2147483647.0;
constexpr std::int64_t kMostLayers = 4096;

class Solver {
 public:
  Solver(const ModelText& text, const TextKeys& keys) : text_(text), keys_(keys) {}

  TextSizes solve() {
    for (const auto& [key, value] : keys_)
      if (key != "layers" && !is_named_number(key) && text_.flag(key) == nullptr)
        throw Error("model_c1",
                    fmt::format("{}: {}={}: the text has no such extent, number or flag",
                                text_.name, key, value));
    sizes_.layers = layers();
    for (const TextDim& dim : text_.dims) sizes_.extents[dim.letter] = extent(dim);
    for (const TextNumber& number : text_.numbers) {
      const double value = number_of(number.name);
      if (!std::isfinite(value))
        throw Error("model_c14", fmt::format("{}the number {} is {}, not finite",
                                             about(number.name), number.name, value));
      sizes_.numbers[number.name] = value;
    }
    for (const TextFlag& flag : text_.flags) sizes_.flags[flag.name] = truths(flag);
    for (const TextSection section : kTextSections)
      for (const TextLine& line : text_.section(section).lines) check(line, line.expression);
    return std::move(sizes_);
  }

 private:
  bool is_named_number(std::string_view key) const {
    return text_.number(key) != nullptr || (key.size() == 1 && text_.dim(key[0]) != nullptr);
  }

  /// The use's own value of a key, or null.
  const std::string* own(const std::string& key) const {
    const auto at = keys_.find(key);
    return at == keys_.end() ? nullptr : &at->second;
  }
  const SmallSize* small(const std::string& key) const {
    const auto at = text_.small.find(key);
    return at == text_.small.end() ? nullptr : &at->second;
  }
  /// The formula of an extent or a number; null if it has none.
  const Formula* formula_of(const std::string& key) const {
    const TextNumber* const number = text_.number(key);
    const TextDim* const dim = key.size() == 1 ? text_.dim(key[0]) : nullptr;
    if (number != nullptr) return number->formula ? &*number->formula : nullptr;
    return dim != nullptr && dim->formula ? &*dim->formula : nullptr;
  }

  /// How errors about a key begin: with the line of its small size if that is its value.
  std::string about(const std::string& key) const {
    const SmallSize* const size =
        own(key) == nullptr && formula_of(key) == nullptr ? small(key) : nullptr;
    return fmt::format("{}: {}", text_.name, size == nullptr ? "" : text_.where(size->line));
  }

  double literal(const std::string& key, const std::string& value) const {
    const auto number = number_in(value);
    if (!number)
      throw Error("model_c14",
                  fmt::format("{}{}={} is not a number", about(key), key, value.substr(0, 80)));
    return *number;
  }

  double number_of(const std::string& name) {
    if (const auto at = solved_.find(name); at != solved_.end()) {
      if (at->second) return *at->second;
      throw Error("model_c14",
                  fmt::format("{}: {} is a formula that needs itself", text_.name, name));
    }
    solved_[name] = std::nullopt;
    const double value = solve(name);
    solved_[name] = value;
    return value;
  }

  double solve(const std::string& name) {
    if (const std::string* value = own(name)) return literal(name, *value);
    if (const Formula* formula = formula_of(name)) return value_of(name, *formula);
    if (const SmallSize* size = small(name)) return literal(name, size->value);
    const std::string all = fmt::format("{}", fmt::join(without_value(), ", "));
    throw Error("model_c14",
                fmt::format("{}: {} {} no value; give {} as a key, {}=VALUE, or in the text: small "
                            "{}=VALUE",
                            text_.name, all, all == name ? "has" : "have",
                            all == name ? "it" : "each", name, name));
  }

  std::vector<std::string> without_value() const {
    std::vector<std::string> names;
    const auto add = [&](const std::string& name) {
      if (own(name) == nullptr && formula_of(name) == nullptr && small(name) == nullptr)
        names.push_back(name);
    };
    for (const TextDim& dim : text_.dims) add(std::string(1, dim.letter));
    for (const TextNumber& number : text_.numbers) add(number.name);
    return names;
  }

  double value_of(const std::string& name, const Formula& formula) {
    try {
      return formula.value([&](std::string_view other) -> std::optional<double> {
        if (!is_named_number(other)) return std::nullopt;
        return number_of(std::string(other));
      });
    } catch (const Error& error) {
      if (error.message().starts_with(text_.name + ": ")) throw;  // of a number that it reads
      throw Error(error.label(), fmt::format("{}: {}: {}", text_.name, name, error.message()));
    }
  }

  std::int64_t whole(const std::string& name, double value, double most) const {
    if (!(value >= 1.0 && value <= most) || value != std::floor(value))
      throw Error("model_c14", fmt::format("{}{} is {}, not a whole number from 1 to {}",
                                           about(name), name, value, most));
    return static_cast<std::int64_t>(value);
  }

  std::int64_t layers() const {
    const std::string* value = own("layers");
    if (const SmallSize* size = small("layers"); value == nullptr && size != nullptr)
      value = &size->value;
    return value == nullptr
               ? 1
               : whole("layers", literal("layers", *value), static_cast<double>(kMostLayers));
  }

  std::int64_t extent(const TextDim& dim) {
    const std::string name(1, dim.letter);
    return whole(name, number_of(name), kMostExtent);
  }

  std::vector<bool> truths(const TextFlag& flag) const {
    const SmallSize* const size = small(flag.name);
    const std::string* value = own(flag.name);
    if (value == nullptr && size != nullptr) value = &size->value;
    const auto layers = static_cast<std::size_t>(sizes_.layers);
    if (value == nullptr || (value->size() != layers && value->size() != 1) ||
        value->find_first_not_of("01") != std::string::npos)
      throw Error("model_c15",
                  fmt::format("{}{}the flag {} is {}, not a 0 or 1 for each of the {} layers; "
                              "write {}={}, or one digit for all",
                              about(flag.name), value == nullptr ? text_.where(flag.line) : "",
                              flag.name, value == nullptr ? "not given" : *value, layers, flag.name,
                              std::string(std::min<std::size_t>(layers, 40), '1')));
    std::vector<bool> truths;
    for (std::size_t layer = 0; layer < layers; ++layer)
      truths.push_back((*value)[value->size() == 1 ? 0 : layer] == '1');
    return truths;
  }

  std::int64_t extent_of(std::string_view letters) const {
    std::int64_t product = 1;
    for (const char c : letters)
      if (const auto at = sizes_.extents.find(c); at != sizes_.extents.end())
        product = std::min(product * at->second, std::int64_t{1} << 31);
    return product;
  }

  [[noreturn]] void refuse(const TextLine& line, const std::string& why) const {
    throw Error("model_c16", fmt::format("{}{}: {}", text_.where(line.line), line.name, why));
  }

  void check(const TextLine& line, const Expression& e) const {
    if (e.kind != Expression::Kind::call) return;
    const ModelForm form = row_of(e.op).form;
    if (form == ModelForm::top || form == ModelForm::turn) {
      const double count = sizes_.number(e.parameters.back());
      const std::int64_t most = extent_of(e.parameters[0]);
      const bool good =
          count == std::floor(count) && count <= static_cast<double>(most) &&
          (form == ModelForm::top ? count >= 1 : count >= 0 && std::fmod(count, 2) == 0);
      if (!good)
        refuse(line,
               fmt::format("{}: {} is {}, not {} number up to {} = {}", row_of(e.op).name,
                           e.parameters.back(), count,
                           form == ModelForm::top ? "a whole" : "an even", e.parameters[0], most));
    }
    if (form == ModelForm::view && extent_of(e.parameters[0]) != extent_of(e.parameters[1]))
      refuse(line,
             fmt::format("{}: {} has {} elements, {} has {}", row_of(e.op).name, e.parameters[0],
                         extent_of(e.parameters[0]), e.parameters[1], extent_of(e.parameters[1])));
    for (const Expression& arg : e.args) check(line, arg);
  }

  const ModelText& text_;
  const TextKeys& keys_;
  TextSizes sizes_;
  // Values by name; nullopt while a value is computed.
  std::map<std::string, std::optional<double>, std::less<>> solved_;
};

}  // namespace

bool TextSizes::has(const std::optional<Guard>& guard, std::int64_t layer) const {
  return !guard || flags.at(guard->flag)[static_cast<std::size_t>(layer)] == guard->value;
}

double TextSizes::number(std::string_view word) const {
  if (const auto at = numbers.find(word); at != numbers.end()) return at->second;
  if (word.size() == 1)
    if (const auto at = extents.find(word[0]); at != extents.end())
      return static_cast<double>(at->second);
  return *number_in(word);
}

TextSizes sizes_of(const ModelText& text, const TextKeys& keys) {
  return Solver(text, keys).solve();
}

}  // namespace shardproof
