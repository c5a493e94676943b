#include <bit>
#include <cstring>
#include <limits>

#include "golden/trace/read/dump.h"

namespace shardproof::dump {

static_assert(std::endian::native == std::endian::little, "arrays are kept as files have them");

double StoredArray::at(std::size_t i) const {
  constexpr std::int64_t kExact = std::int64_t{1} << 53;
  const auto width = static_cast<std::size_t>(bytes_of(encoding));
  std::uint64_t bits = 0;
  std::memcpy(&bits, elements().data() + i * width, width);
  const auto whole = std::bit_cast<std::int64_t>(bits);
  if (encoding == NumberFormat::int64 && (whole < -kExact || whole > kExact))
    return std::numeric_limits<double>::quiet_NaN();
  return number_of_bits(encoding, bits);
}

}  // namespace shardproof::dump
