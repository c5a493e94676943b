// A shared library of somebody else's, as bindings are: the static libraries can be linked into it.
#include <string>

#include "golden/verify/verify.h"

/// "equal", or what is wrong with the case of this line; until the next call.
extern "C" const char* verdict_of(const char* line) {
  using namespace shardproof;
  static std::string verdict;
  try {
    OracleMemo memo;
    const Judgement judgement = verify_case(parse_case(line), memo);
    verdict = judgement.verdict == Verdict::equal ? "equal" : judgement.explanation();
  } catch (const Error& error) {
    verdict = error.what();
  }
  return verdict.c_str();
}
