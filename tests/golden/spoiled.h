#pragma once

// Runs whose values tests change, and how they do.
#include <bit>
#include <cstdint>
#include <string>
#include <vector>

#include "engine/shards/sharded.h"

namespace shardproof {

/// Two models that between them have most kinds of values, for six rows.
inline const std::vector<std::string>& two_models() {
  static const std::vector<std::string> all{
      "torus=1x2x3 model=palm-tiny,layers=2,E=12,F=12,H=6,K=3,Q=2,V=12 prefill=wg-xyz:batch "
      "decode=ws2d:batch batch=6 ",
      "torus=3x1x2 model=palm-tiny,layers=1,E=12,F=12,H=6,Q=4,V=12,block=serial,norm=layernorm,"
      "bias=all,rope=alibi,tied=false,unembed_bias=true prefill=ws2d:heads decode=ws2d:heads "
      "act=bf16 weights=int8 batch=6 "};
  return all;
}

/// The elements that a chip has of a value.
inline std::size_t size_of(Sharded& value, int chip) {
  if (value.stores_int32()) return value.i32_of(chip).size();
  if (value.holds_partial()) return value.partial_values_of(chip).size();
  return value.f32_of(chip).size();
}

/// Changes the last bit of one of them; of an exact partial sum, whose last bit may be less than
/// f32 shows, the number by one.
inline void change_element(Sharded& value, int chip, std::size_t at) {
  if (value.stores_int32())
    value.i32_of(chip)[at] ^= 1;
  else if (value.holds_partial())
    value.partial_values_of(chip)[at] += 1.0;
  else
    value.f32_of(chip)[at] =
        std::bit_cast<float>(std::bit_cast<std::uint32_t>(value.f32_of(chip)[at]) ^ 1U);
}

}  // namespace shardproof
