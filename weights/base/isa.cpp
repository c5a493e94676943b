#include "weights/base/isa.h"

#include <stdexcept>
#include <string>

#include "weights/base/detail/word_table.h"

namespace shardproof {
namespace {

constexpr std::pair<std::string_view, Isa> kIsas[] = {
    {"scalar", Isa::scalar}, {"avx2", Isa::avx2}, {"avx512", Isa::avx512}};

Isa best() {
  for (Isa isa : {Isa::avx512, Isa::avx2})
    if (has_isa(isa)) return isa;
  return Isa::scalar;
}

Isa& in_use() {
  static Isa chosen = best();
  return chosen;
}

}  // namespace

std::string_view to_string(Isa isa) { return word_in(kIsas, isa); }

bool has_isa(Isa isa) {
  switch (isa) {
    case Isa::scalar:
      return true;
#ifdef SHARDPROOF_VECTOR_KERNELS
    case Isa::avx2:
      return __builtin_cpu_supports("avx2") != 0 && __builtin_cpu_supports("fma") != 0;
    case Isa::avx512:
      return __builtin_cpu_supports("avx512f") != 0 && __builtin_cpu_supports("avx512vl") != 0 &&
             __builtin_cpu_supports("avx512dq") != 0 && __builtin_cpu_supports("avx512bw") != 0 &&
             __builtin_cpu_supports("avx512cd") != 0;
#else
    case Isa::avx2:
    case Isa::avx512:
      return false;
#endif
  }
  return false;
}

Isa isa_in_use() { return in_use(); }

ForcedIsa::ForcedIsa(Isa isa) {
  if (!has_isa(isa))
    throw std::invalid_argument("no kernels for " + std::string(to_string(isa)) + " here");
  in_use() = isa;
}

ForcedIsa::~ForcedIsa() { in_use() = best(); }

}  // namespace shardproof
