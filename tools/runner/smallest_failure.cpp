#include "tools/runner/smallest_failure.h"

#include "golden/cases/cases.h"
#include "golden/verify/verify.h"
#include "tools/runner/crash_report.h"
#include "weights/base/error.h"

namespace shardproof::tools {

Case smallest_failure(const Tally::Failure& failure, const CaseSource& source) {
  OracleMemo memo;
  VerifyOptions options;
  if (source.alone) options.hazards = Hazards::full();
  const auto fails = [&](const Case& c) {
    const Running running(source.command(c));
    try {
      return verify_case(c, memo, options).verdict == failure.verdict;
    } catch (const Error&) {
      return false;
    }
  };
  return cases::shrink(failure.c, fails);
}

}  // namespace shardproof::tools
