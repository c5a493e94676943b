// Compiled for the baseline processor, whatever the other files are compiled for. It includes no
// C++ header: the linker may keep any file's copy of an inline function.
#include "engine/numeric/cpu.h"

#include "engine/numeric/detail/cpu_needs.h"

#if defined(__x86_64__) || defined(__i386__)
#include <cpuid.h>

namespace shardproof {
namespace {

// XCR0: the registers that the operating system saves for each task; 0 if it does not say.
unsigned saved_state() {
  unsigned a = 0, b = 0, c = 0, d = 0;
  constexpr unsigned kOsUsesXsave = 1u << 27;
  if (__get_cpuid(1, &a, &b, &c, &d) == 0 || (c & kOsUsesXsave) == 0) return 0;
  unsigned low = 0, high = 0;
  __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return low;
}

bool present(const CpuFeature& feature, unsigned saved) {
  unsigned registers[4] = {0, 0, 0, 0};
  if (__get_cpuid_count(feature.leaf, 0, &registers[0], &registers[1], &registers[2],
                        &registers[3]) == 0)
    return false;
  return ((registers[feature.reg] >> feature.bit) & 1) != 0 &&
         (saved & feature.state) == feature.state;
}

}  // namespace

const char* missing_cpu_feature() noexcept {
  const unsigned saved = saved_state();
  for (const CpuFeature* feature = kCpuNeeds; feature->name != nullptr; ++feature)
    if (!present(*feature, saved)) return feature->name;
  return nullptr;
}

}  // namespace shardproof

#else

// On other architectures the compiler's baseline is available on every machine.
namespace shardproof {
const char* missing_cpu_feature() noexcept { return nullptr; }
}  // namespace shardproof

#endif
