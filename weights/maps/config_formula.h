#pragma once

#include <cstdint>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "weights/base/error.h"

namespace shardproof {

/// A formula over the entries of a config.json, as Python writes and computes it:
/// "hidden_size // num_attention_heads", "layer_types[n] == 'sliding_attention'",
/// "rope_scaling['factor'] ** 2", "[1, 2]", "dict(factor=8.0)" (docs/spec-model-map.md).
class ConfigFormula {
 public:
  using Value = nlohmann::json;
  /// Returns the value of a name, or nullopt if it has none.
  using Names = std::function<std::optional<Value>(const std::string& name)>;

  /// Throws Error("model_map_c0", ...) unless the text is a formula, nested at most 32 deep.
  static ConfigFormula parse(std::string_view text);
  /// Parses "name=formula, name=formula". Throws Error("model_map_c0", ...).
  static std::vector<std::pair<std::string, ConfigFormula>> parse_settings(std::string_view text);

  /// Throws Error("model_map_c2", ...), naming formula and value: a name without a value, an
  /// operation that its values do not have, a whole number beyond 64 bits, a number that is not
  /// finite.
  Value value(const Names& names) const;
  /// Returns the name of the function whose call is the whole formula: "rope_cos"; "" otherwise.
  std::string_view called() const;
  /// Returns the values of the arguments of that call. Throws as value does.
  std::vector<Value> arguments(const Names& names) const;
  /// Adds the names that the formula reads.
  void add_names(std::set<std::string, std::less<>>& names) const { add_names(whole_, names); }
  const std::string& text() const { return text_; }
  /// Returns the beginning of a value as JSON, for messages; bytes that are not UTF-8 are replaced.
  static std::string shown(const Value& value);

 private:
  enum class Kind : std::uint8_t { literal, name, list, dict, index, call, unary, binary, choice };
  struct Part {
    Kind kind = Kind::literal;
    std::string word;  ///< the name, function or operator
    Value literal;
    std::vector<Part> args;
    std::vector<std::string> keys;  ///< of a dict
  };
  static void add_names(const Part& part, std::set<std::string, std::less<>>& names) {
    if (part.kind == Kind::name) names.insert(part.word);
    for (const Part& arg : part.args) add_names(arg, names);
  }
  class Reader;
  class Evaluation;

  std::string text_;
  Part whole_;
};

}  // namespace shardproof
