// Reports a missing CPU feature by one line and exit code 2 instead of SIGILL. Compiled for the
// baseline processor, and includes no C++ header, as engine/numeric/cpu.cpp.
#include <unistd.h>

#include "engine/numeric/cpu.h"

namespace {

constexpr char kBefore[] = "shardproof: cpu_c1: this processor has no ";
constexpr char kBehind[] = ", but the program was built for " SHARDPROOF_BASELINE
                           "; build it with -DSHARDPROOF_ARCH=x86-64\n";

// 101 is the first priority available to programs: precedes all other initialization of ours.
[[gnu::constructor(101)]] void check_cpu() {
  const char* missing = shardproof::missing_cpu_feature();
  if (missing == nullptr) return;
  char line[sizeof kBefore + sizeof kBehind + 32];
  char* end = line;
  const char* const parts[] = {kBefore, missing, kBehind};
  for (const char* text : parts)
    while (*text != '\0' && end != line + sizeof line) *end++ = *text++;
  constexpr int kBadInput = 2;
  // One write, so that lines of several processes do not mix. A failure cannot be reported.
  if (write(STDERR_FILENO, line, static_cast<unsigned long>(end - line)) < 0) _exit(kBadInput);
  _exit(kBadInput);
}

}  // namespace
