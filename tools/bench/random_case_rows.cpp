// Random cases, drawn, run and judged in this process by two threads, as `verify --cases` does.
#include <atomic>
#include <stdexcept>

#include "golden/cases/cases.h"
#include "golden/verify/verify.h"
#include "tools/bench/row.h"

namespace shardproof::bench {
namespace {

constexpr std::int64_t kCases = 300;
constexpr int kThreads = 2;

Sample judged(bool hazards) {
  OracleMemo memo;
  Threads threads(kThreads);
  std::atomic<std::int64_t> equal{0};
  const Cost start = clocks(Whose::process);
  threads.for_each(kCases, [&](std::int64_t i) {
    VerifyOptions options;
    options.at_once = kThreads;
    if (!hazards) options.hazards = {};
    const Case c = cases::draw(1, static_cast<std::uint64_t>(i));
    equal += verify_case(c, memo, options).verdict == Verdict::equal ? 1 : 0;
  });
  const Cost took = clocks(Whose::process) - start;
  if (equal != kCases) throw std::runtime_error("a random case is not equal");
  const double minutes = kCases * 60.0;
  return {took, {}, {minutes * kThreads / took.processor, minutes / took.wall}};
}

}  // namespace

std::vector<Row> random_case_rows() {
  std::vector<Row> rows;
  for (const bool hazards : {true, false})
    rows.push_back(
        {.id = std::string("cases/") + (hazards ? "hazards" : "plain"),
         .group = "random cases a minute, two threads (cpu: with both processors to itself)",
         .what = hazards ? "hazards on" : "hazards off",
         .target = hazards ? std::optional(Target{15000.0, true}) : std::nullopt,
         .unit = Unit::per_minute,
         .decides = Decides::wall,
         .start = [hazards] { return [hazards] { return judged(hazards); }; }});
  return rows;
}

}  // namespace shardproof::bench
