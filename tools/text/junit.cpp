#include "tools/text/junit.h"

#include <fmt/format.h>

#include <algorithm>

#include "tools/text/html.h"

namespace shardproof::tools {
namespace {

std::int64_t count(const std::vector<JunitCase>& cases, JunitCase::Outcome outcome) {
  return std::count_if(cases.begin(), cases.end(),
                       [&](const JunitCase& c) { return c.outcome == outcome; });
}

std::string element(const JunitCase& c) {
  const std::string head = fmt::format("    <testcase classname=\"{}\" name=\"{}\" time=\"{:.3f}\"",
                                       escaped(c.group), escaped(c.name), c.seconds);
  switch (c.outcome) {
    case JunitCase::Outcome::passed:
      return head + "/>\n";
    case JunitCase::Outcome::skipped:
      return fmt::format("{}>\n      <skipped message=\"{}\"/>\n    </testcase>\n", head,
                         escaped(c.message));
    case JunitCase::Outcome::failed:
      break;
  }
  return fmt::format("{}>\n      <failure message=\"{}\">{}</failure>\n    </testcase>\n", head,
                     escaped(c.message), escaped(c.text));
}

}  // namespace

std::string junit_xml(const std::string& suite, const std::vector<JunitCase>& cases) {
  double seconds = 0.0;
  std::string elements;
  for (const JunitCase& c : cases) seconds += c.seconds, elements += element(c);
  const std::string counts = fmt::format(
      "tests=\"{}\" failures=\"{}\" skipped=\"{}\" errors=\"0\" time=\"{:.3f}\"", cases.size(),
      count(cases, JunitCase::Outcome::failed), count(cases, JunitCase::Outcome::skipped), seconds);
  return fmt::format(
      "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites {}>\n"
      "  <testsuite name=\"{}\" {}>\n{}  </testsuite>\n</testsuites>\n",
      counts, escaped(suite), counts, elements);
}

}  // namespace shardproof::tools
