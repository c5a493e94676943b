#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "weights/base/error.h"

namespace shardproof {

/// Arithmetic over extents and numbers: "H // K", "Q ** -0.5", "1 / sqrt(Q)", "1 - window".
/// Evaluated in f64 from the inside out; // rounds down; a power of 0.5 is a square root and one of
/// -0.5 its reciprocal, so that neither depends on a library's pow.
class Formula {
 public:
  /// Returns the value of a name, or nullopt if it has none.
  using Names = std::function<std::optional<double>(std::string_view)>;

  /// Throws Error("model_c0", ...) unless the text is a formula of at most 64 parts.
  static Formula parse(std::string_view text);

  /// Throws Error("model_c1", ...) for a name without a value, and "model_c14" unless the result is
  /// finite or an infinity that is written as such.
  double value(const Names& names) const;
  /// Returns the names that it reads, each once, in order.
  std::vector<std::string> names() const;
  /// Returns it with one blank around each operator and no needless parentheses.
  std::string to_string() const;

  bool operator==(const Formula&) const = default;

 private:
  enum class Kind : std::uint8_t {
    number,
    name,
    negative,
    square_root,
    sum,
    difference,
    product,
    quotient,
    whole_quotient,
    power
  };
  struct Part {
    Kind kind;
    std::string text;          // of a number or name
    std::size_t a = 0, b = 0;  // operands, which stand before it
    bool operator==(const Part&) const = default;
  };
  class Reader;

  double at(std::size_t part, const Names& names) const;
  std::string print(std::size_t part, int outer) const;

  std::vector<Part> parts_;  // the last one is the whole
};

/// Returns the number that a literal writes, "0.5", "-inf", "1e-20"; nullopt if it is not one.
std::optional<double> number_in(std::string_view literal);

}  // namespace shardproof
