#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "golden/trace/read/dump.h"
#include "weights/base/error.h"

namespace shardproof::candidate {

/// Whether a name, or its tail after a dot, is of a pattern, in which `*` stands for any letters
/// and
/// `?` for one. A layer may be spelled `layer3` or `layers.3` in both.
bool matches(std::string_view pattern, std::string_view name);

/// Which values of a trace are given: operands of what follows, and not judged.
class Given {
 public:
  /// By these patterns, and by what values say of themselves.
  explicit Given(const std::vector<std::string>& patterns);
  /// Throws Error("dump_attribute", ...) on an attribute `given` that is not true or false.
  bool operator()(const std::string& name, const dump::Attributes& attributes);
  /// Throws Error("compare_given", ...) naming a pattern that no name was of.
  void require_all_met() const;

 private:
  std::vector<std::string> patterns_;
  std::vector<bool> met_;
};

}  // namespace shardproof::candidate
