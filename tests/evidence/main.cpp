// What must be the same of every compiler, processor and emulator, written into a folder: the
// verdicts of random cases, and the traces of two runs, in the exact and in the f32 regime.

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <string>
#include <utility>

#include "engine/run/case.h"
#include "engine/run/plan_types.h"
#include "golden/cases/cases.h"
#include "golden/memo/oracle_memo.h"
#include "golden/trace/write/trace.h"
#include "golden/verify/verify.h"

namespace shardproof {
namespace {

const std::string kModel = "model=palm-tiny,layers=1,E=24,F=48,H=6,Q=4,V=42 seed=3 ";
const std::pair<const char*, std::string> kTraces[] = {
    {"exact.h5",
     kModel + "torus=1x2x3 prefill=wg-xyz:batch decode=ws2d:batch batch=6 prompt=3 chunk=2 gen=2"},
    {"f32.h5", kModel + "torus=2x3x1 prefill=ws2d:heads decode=ws2d:batch batch=6 prompt=3 gen=2 "
                        "block=serial regime=f32 schedule=ring"}};

/// Writes the evidence into an existing folder; returns whether every verdict is `equal`.
bool write_evidence(const std::filesystem::path& folder) {
  bool equal = true;
  OracleMemo memo;
  std::ofstream verdicts(folder / "verdicts");
  const auto add = [&](const Case& c, const Judgement& judgement) {
    verdicts << print_case(c) << ' ' << judgement.verdict << ' ' << judgement.tensors << ' '
             << judgement.elements << '\n';
    equal = equal && judgement.verdict == Verdict::equal;
  };
  for (std::uint64_t i = 0; i < 20; ++i) {
    const Case c = cases::draw(1, i);
    add(c, verify_case(c, memo));
  }
  for (const auto& [file, line] : kTraces) {
    const TypedPlan typed = make_typed_plan(parse_case(line));
    Trace trace(typed, folder / file);
    VerifyOptions options;
    options.observer = &trace;
    add(typed.plan.source_case, verify_plan(typed, memo, options));
    trace.write("complete");
  }
  verdicts.flush();
  return equal && verdicts.good();
}

}  // namespace
}  // namespace shardproof

int main(int argc, char** argv) {
  if (argc != 2) {
    std::cerr << "evidence: one folder is needed, which exists\n";
    return 2;
  }
  return shardproof::write_evidence(argv[1]) ? 0 : 1;
}
