#pragma once

#include <string_view>

namespace shardproof {

/// The instruction sets that kernels are compiled for. All of them give the same bits.
enum class Isa { scalar, avx2, avx512 };
std::string_view to_string(Isa isa);

/// Returns true if this build has kernels for `isa` and this machine runs them; scalar always.
bool has_isa(Isa isa);

/// The instruction set in use: the best the machine has, unless a ForcedIsa overrides it.
Isa isa_in_use();

/// Test hook: all kernels run on `isa` during its lifetime. Must not be used while other threads
/// work; does not nest. Throws std::invalid_argument unless has_isa(isa).
class ForcedIsa {
 public:
  explicit ForcedIsa(Isa isa);
  ~ForcedIsa();
  ForcedIsa(const ForcedIsa&) = delete;
  ForcedIsa& operator=(const ForcedIsa&) = delete;
};

}  // namespace shardproof
