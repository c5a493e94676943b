#pragma once

#include <hdf5.h>

#include <cstdint>
#include <span>
#include <string>

namespace shardproof {

/// Returns why reading a chunked dataset could take more memory than its chunks declare, or "" if
/// it cannot. HDF5 lets a deflated chunk inflate as far as its stream goes, and the output of other
/// filters depends on parameters in the file; so only deflate, shuffle and Fletcher32 are accepted,
/// and every deflated chunk is inflated here once, its output discarded.
std::string unbounded_inflation(hid_t dataset, hid_t creation, std::span<const hsize_t> extents,
                                std::span<const hsize_t> chunk, std::uint64_t chunk_bytes);

}  // namespace shardproof
