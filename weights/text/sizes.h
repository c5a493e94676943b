#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "weights/base/error.h"
#include "weights/text/model_text.h"

namespace shardproof {

/// The sizes of one use of a text: how many layers, every extent and number, and each layer's
/// flags.
struct TextSizes {
  std::int64_t layers = 1;
  std::map<char, std::int64_t> extents;  ///< of every letter that the text declares
  std::map<std::string, double, std::less<>> numbers;
  std::map<std::string, std::vector<bool>, std::less<>> flags;  ///< by layer
  bool operator==(const TextSizes&) const = default;

  /// Returns whether what has this guard is in a layer.
  bool has(const std::optional<Guard>& guard, std::int64_t layer) const;
  /// Returns the value of a word that is a literal, a number or a letter.
  double number(std::string_view word) const;
};

/// Keys of a use: "layers" "2", "E" "24", "eps" "1e-6", "local" "10" (true in layer 0, false in
/// layer 1; one digit stands for all layers).
using TextKeys = std::map<std::string, std::string, std::less<>>;

/// Returns the sizes of a text: each key's own value, else the text's formula, else its small
/// default. Throws Error, naming text, key, value, and the line of a small size that is the value:
/// "model_c1" (a key that the text does not
/// have), "model_c14" (no value; an extent that is not a whole number from 1 to 2^31 - 1; a number
/// that is not finite; a name that needs itself), "model_c15" (a flag that is not 0 or 1 for each
/// layer), "model_c16" (a `top` of more than its letter's extent or of less than 1, an odd `turn`
/// or one beyond its channels, a view of other extents).
TextSizes sizes_of(const ModelText& text, const TextKeys& keys = {});

}  // namespace shardproof
