#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/program/program.h"

namespace shardproof {

/// What the words of a map's expression stand for.
class MapNames {
 public:
  explicit MapNames(const Op& op);

  /// The names that are operands, in the order of Op::args.
  const std::vector<std::string>& operands() const { return operands_; }
  /// The index of the operand of this name.
  std::optional<std::size_t> operand(std::string_view name) const;
  /// The named number; null if the word is none.
  const NamedNumber* named(std::string_view word) const;
  /// The value of a literal or of a named number.
  std::optional<double> number(std::string_view word) const;
  /// The formula of an operand; null if it has none.
  const NamedFormula* formula(std::string_view name) const;

 private:
  const Op* op_;
  std::vector<std::string> operands_;
};

}  // namespace shardproof
