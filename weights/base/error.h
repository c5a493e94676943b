#pragma once

#include <stdexcept>
#include <string>
#include <string_view>

namespace shardproof {

/// The only exception type for a caller's mistake: bad input, an ill-typed program, a broken file.
/// what() is one line, "LABEL: MESSAGE", where LABEL names the rule (`all_gather_c2`) and MESSAGE
/// the offending values.
class Error : public std::runtime_error {
 public:
  Error(std::string_view label, std::string_view message)
      : std::runtime_error(std::string(label) + ": " + std::string(message)), label_(label) {}

  /// Label of the broken rule, as in the documentation and the negative tests.
  const std::string& label() const { return label_; }
  /// Returns what() without the label and ": ".
  std::string message() const { return std::string(what()).substr(label_.size() + 2); }

 private:
  std::string label_;
};

}  // namespace shardproof
