#pragma once

#include <hdf5.h>

#include "weights/hdf5/detail/handle.h"

namespace shardproof {

/// f16 as h5py writes it, of the byte order of `like`, an f32: HDF5 1.10 has no predefined type for
/// it. Returns an invalid handle where HDF5 fails.
inline Hdf5Handle f16_type(hid_t like) {
  Hdf5Handle type(H5Tcopy(like), H5Tclose);
  if (!type || H5Tset_fields(type.get(), 15, 10, 5, 0, 10) < 0 || H5Tset_size(type.get(), 2) < 0 ||
      H5Tset_ebias(type.get(), 15) < 0)
    return {H5I_INVALID_HID, H5Tclose};
  return type;
}

}  // namespace shardproof
