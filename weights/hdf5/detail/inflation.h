#pragma once

#include <hdf5.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace shardproof {

/// Why reading a chunked dataset of these extents and bytes of an element could take more memory
/// than its chunks declare, or "" if it cannot. HDF5 lets a deflated chunk inflate as far as its
/// stream goes, and what other filters give depends on parameters in the file; so the filters are
/// deflate, shuffle and Fletcher32 only, and every deflated chunk is inflated here once, without
/// keeping it.
std::string unbounded_inflation(hid_t dataset, hid_t creation, std::span<const std::int64_t> dims,
                                std::size_t element_bytes);

}  // namespace shardproof
