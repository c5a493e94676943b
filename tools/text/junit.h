#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace shardproof::tools {

/// What JUnit calls a test case.
struct JunitCase {
  enum class Outcome { passed, failed, skipped };

  std::string group, name;  ///< its `classname` and `name`
  Outcome outcome = Outcome::passed;
  std::string message = {};  ///< one line: why it failed, or was skipped
  std::string text = {};     ///< more of a failure
  double seconds = 0.0;
};

/// Returns the XML of one test suite, valid whatever bytes the texts hold.
std::string junit_xml(const std::string& suite, const std::vector<JunitCase>& cases);

}  // namespace shardproof::tools
