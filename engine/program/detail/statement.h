#pragma once

#include <string>
#include <string_view>
#include <utility>

#include "engine/program/program.h"
#include "weights/base/error.h"

namespace shardproof {

/// One line of a program being read; errors quote the line.
class Statement {
 public:
  Statement(std::string_view text, int number) : text_(text), line_{number} {}

  Error malformed(std::string_view why) const;
  std::string name(std::string_view text) const;
  char letter(std::string_view text) const;
  /// Splits `text` at `by`.
  std::pair<std::string_view, std::string_view> pair(std::string_view text,
                                                     std::string_view by) const;
  /// Parses "x : BLE_xzy".
  ValueDecl declaration(std::string_view text) const;
  Role role(std::string_view text) const;
  /// Parses "all_gather(x, E, zy)" into an op without results.
  Op op(std::string_view call) const;

 private:
  std::string_view text_;
  Line line_;
};

}  // namespace shardproof
