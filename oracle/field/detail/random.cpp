#include "oracle/field/detail/random.h"

#include "oracle/field/detail/philox.h"

namespace shardproof::oracle::field {

Tensor Random::stream(std::string_view name, const Shape& shape) const {
  const std::uint64_t hash = fnv1a64(name);
  Tensor t(shape);
  for (std::size_t i = 0; i < t.data.size(); ++i) t.data[i] = numbers({i, 0, 0, 0}, hash);
  return t;
}

Number Random::function(std::uint64_t hash, const Number& v) const {
  return numbers({v.lane[0], v.lane[1], v.lane[2], 0}, hash);
}

Number Random::numbers(std::array<std::uint64_t, 4> counter, std::uint64_t hash) const {
  const std::uint64_t p = (std::uint64_t{1} << setting_.bits) - 1;
  const auto lanes = static_cast<std::size_t>(setting_.lanes);
  for (counter[3] = static_cast<std::uint64_t>(setting_.draw) << 32;; ++counter[3]) {
    const std::array<std::uint64_t, 4> words = philox_words(counter, {setting_.seed, hash});
    Number n;
    bool below = true;
    for (std::size_t j = 0; j < lanes; ++j) {
      n.lane[j] = words[j] >> (64 - setting_.bits);
      below = below && n.lane[j] < p;
    }
    if (below) return n;
  }
}

bool keeps_zero(std::string_view function) {
  return function == "swish" || function == "swish2" || function == "gelu" ||
         function == "gelu_erf" || function == "bf16";
}

}  // namespace shardproof::oracle::field
