#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "golden/trace/read/dump.h"
#include "weights/base/error.h"

namespace shardproof::dump {

/// Returns whether a name, or its tail after a dot, matches a pattern: `*` stands for any
/// characters, `?` for one. A layer may be spelled `layer3` or `layers.3` in both.
bool matches(std::string_view pattern, std::string_view name);

/// Decides which values of a trace are given: operands of later values, and not judged.
class GivenValues {
 public:
  /// Takes the patterns of the trace; values may also declare themselves given.
  explicit GivenValues(const std::vector<std::string>& patterns);
  /// Returns whether a value is given. Throws Error("dump_attribute", ...) if its attribute `given`
  /// is not true or false.
  bool operator()(const std::string& name, const dump::Attributes& attributes);
  /// Throws Error("compare_given", ...) naming a pattern that matched no name.
  void require_all_met() const;

 private:
  std::vector<std::string> patterns_;
  std::vector<bool> met_;
};

}  // namespace shardproof::dump
