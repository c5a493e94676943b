#include "engine/numeric/isa.h"

#include <stdexcept>
#include <string>

#include "engine/numeric/detail/kernels.h"
#include "weights/base/detail/word_table.h"

namespace shardproof {
namespace {

constexpr std::pair<std::string_view, Isa> kIsas[] = {
    {"scalar", Isa::scalar}, {"avx2", Isa::avx2}, {"avx512", Isa::avx512}};

const Kernels* kernels_of(Isa isa) {
  switch (isa) {
    case Isa::scalar:
      return &kKernelsScalar;
    case Isa::avx2:
#ifdef SHARDPROOF_AVX2
      if (__builtin_cpu_supports("avx2") != 0 && __builtin_cpu_supports("fma") != 0)
        return &kKernelsAvx2;
#endif
      return nullptr;
    case Isa::avx512:
#ifdef SHARDPROOF_AVX512
      if (__builtin_cpu_supports("avx512f") != 0 && __builtin_cpu_supports("avx512vl") != 0 &&
          __builtin_cpu_supports("avx512dq") != 0 && __builtin_cpu_supports("avx512bw") != 0 &&
          __builtin_cpu_supports("avx512cd") != 0)
        return &kKernelsAvx512;
#endif
      return nullptr;
  }
  return nullptr;
}

Isa best() {
  for (Isa isa : {Isa::avx512, Isa::avx2})
    if (has_isa(isa)) return isa;
  return Isa::scalar;
}

struct InUse {
  Isa isa = best();
  const Kernels* kernels = kernels_of(isa);
};

InUse& in_use() {
  static InUse chosen;
  return chosen;
}

}  // namespace

std::string_view to_string(Isa isa) { return word_in(kIsas, isa); }

bool has_isa(Isa isa) { return kernels_of(isa) != nullptr; }

Isa isa_in_use() { return in_use().isa; }

const Kernels& kernels_in_use() { return *in_use().kernels; }

ForcedIsa::ForcedIsa(Isa isa) {
  if (!has_isa(isa))
    throw std::invalid_argument("no kernels for " + std::string(to_string(isa)) + " here");
  in_use() = {isa, kernels_of(isa)};
}

ForcedIsa::~ForcedIsa() { in_use() = InUse(); }

}  // namespace shardproof
