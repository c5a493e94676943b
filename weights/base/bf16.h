#pragma once

#include <bit>
#include <cstdint>

namespace shardproof {

/// Returns `value` rounded to the nearest bf16, ties to even, as f32 (docs/spec.md section 1). A
/// value beyond the largest bf16 becomes infinity; a NaN stays a NaN.
inline float round_to_bf16(float value) {
  auto bits = std::bit_cast<std::uint32_t>(value);
  if ((bits & 0x7fffffffU) > 0x7f800000U) return value;
  bits += 0x7fffU + ((bits >> 16) & 1U);
  bits &= 0xffff0000U;
  // g++ 12 at -O1 and above may drop a conditional truncation of a float's low half; this keeps it.
  asm("" : "+r"(bits));
  return std::bit_cast<float>(bits);
}

}  // namespace shardproof
