#include "weights/hdf5/detail/inflation.h"

#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <array>
#include <limits>
#include <vector>

namespace shardproof {
namespace {

struct Filters {
  int deflate = -1;  ///< its index in the pipeline, -1 for none
  std::string fault;
};

Filters filters_of(hid_t creation) {
  Filters filters;
  const int count = H5Pget_nfilters(creation);
  if (count < 0) filters.fault = "has filters that cannot be read";
  for (int i = 0; i < count; ++i) {
    unsigned flags = 0;
    unsigned config = 0;
    std::size_t values = 0;
    const H5Z_filter_t filter = H5Pget_filter2(creation, static_cast<unsigned>(i), &flags, &values,
                                               nullptr, 0, nullptr, &config);
    if (filter != H5Z_FILTER_DEFLATE && filter != H5Z_FILTER_SHUFFLE &&
        filter != H5Z_FILTER_FLETCHER32)
      filters.fault = fmt::format(
          "has the filter {}; read are deflate (gzip), shuffle and "
          "Fletcher32",
          static_cast<int>(filter));
    if (filters.deflate >= 0 && filter != H5Z_FILTER_FLETCHER32)
      filters.fault = "has another filter than a checksum after deflate";
    if (filter == H5Z_FILTER_DEFLATE) filters.deflate = i;
  }
  return filters;
}

/// Returns whether a zlib stream ends, or breaks, within `most` bytes of output.
bool inflates_within(std::span<unsigned char> stream, std::uint64_t most) {
  z_stream state{};
  if (::inflateInit(&state) != Z_OK) return false;
  std::array<unsigned char, 1 << 16> thrown_away{};
  std::uint64_t given = 0;
  std::size_t taken = 0;
  int status = Z_OK;
  while (status == Z_OK && given <= most) {
    if (state.avail_in == 0) {
      if (taken == stream.size()) break;
      state.next_in = stream.data() + taken;
      state.avail_in = static_cast<uInt>(
          std::min<std::size_t>(stream.size() - taken, std::numeric_limits<uInt>::max()));
      taken += state.avail_in;
    }
    state.next_out = thrown_away.data();
    state.avail_out = static_cast<uInt>(thrown_away.size());
    status = ::inflate(&state, Z_NO_FLUSH);
    given += thrown_away.size() - state.avail_out;
  }
  ::inflateEnd(&state);
  return given <= most;
}

/// Advances to the offset of the next chunk, row-major; returns false after the last.
bool advance(std::vector<hsize_t>& offset, std::span<const hsize_t> extents,
             std::span<const hsize_t> chunk) {
  for (std::size_t i = offset.size(); i-- > 0;) {
    offset[i] += chunk[i];
    if (offset[i] < extents[i]) return true;
    offset[i] = 0;
  }
  return false;
}

}  // namespace

std::string unbounded_inflation(hid_t dataset, hid_t creation, std::span<const hsize_t> extents,
                                std::span<const hsize_t> chunk, std::uint64_t chunk_bytes) {
  const Filters filters = filters_of(creation);
  if (!filters.fault.empty() || filters.deflate < 0) return filters.fault;
  constexpr std::uint64_t kChecksums = 64;  // bytes that a filter before deflate may have added
  std::vector<unsigned char> stored;
  std::vector<hsize_t> offset(extents.size(), 0);
  do {
    hsize_t size = 0;
    // Size 0: the chunk was never written. Reading reports broken chunks later.
    if (H5Dget_chunk_storage_size(dataset, offset.data(), &size) < 0 || size == 0) continue;
    if (size > chunk_bytes + chunk_bytes / 8 + 4096)
      return fmt::format("stores a chunk of {} bytes in {}", chunk_bytes, size);
    stored.resize(size);
    std::uint32_t left_out = 0;
    if (H5Dread_chunk(dataset, H5P_DEFAULT, offset.data(), &left_out, stored.data()) < 0) continue;
    if ((left_out >> filters.deflate & 1U) != 0) continue;
    if (!inflates_within(stored, chunk_bytes + kChecksums))
      return fmt::format("has a chunk of {} bytes that inflates to more", chunk_bytes);
  } while (advance(offset, extents, chunk));
  return "";
}

}  // namespace shardproof
