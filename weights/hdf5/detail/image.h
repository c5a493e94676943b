#pragma once

#include <hdf5.h>

#include <cstdint>
#include <cstdlib>
#include <span>

#include "weights/hdf5/detail/handle.h"

namespace shardproof {

/// A new HDF5 file in memory, with the bytes that a closed file on disk would have. HDF5 1.10
/// crashes at exit after a failed disk write, so writing to disk is left to the caller; and its
/// H5Fget_file_image leaves a wrong checksum in the superblock of the 1.10 format, so the memory is
/// taken over when the file closes. Metadata in that format carry checksums.
class Hdf5Image {
 public:
  Hdf5Image() : file_(create()) {}
  Hdf5Image(const Hdf5Image&) = delete;
  Hdf5Image& operator=(const Hdf5Image&) = delete;
  ~Hdf5Image() {
    file_.close();
    std::free(closed_);
  }

  /// HDF5 identifier of the file; negative if it could not be created.
  hid_t file() const { return file_.get(); }

  /// Closes the file and returns its bytes, or nothing on failure. Every object in it must be
  /// closed.
  std::span<const char> close() {
    constexpr std::size_t kVersionAt = 8, kEndAt = 28;  // in the superblock of version 3
    if (!file_.close() || closed_ == nullptr) return {};
    const auto* bytes = static_cast<const unsigned char*>(closed_);
    if (bytes[kVersionAt] != 3) return {};
    std::uint64_t end = 0;  // the buffer is a multiple of kIncrement
    for (std::size_t i = 8; i-- > 0;) end = end << 8 | bytes[kEndAt + i];
    if (end > size_) return {};
    return {static_cast<const char*>(closed_), static_cast<std::size_t>(end)};
  }

 private:
  Hdf5Handle create() {
    constexpr std::size_t kIncrement = std::size_t{1} << 20;
    H5FD_file_image_callbacks_t memory{};
    memory.image_malloc = [](std::size_t size, H5FD_file_image_op_t, void*) {
      return std::malloc(size);
    };
    // Closing may still extend the file, so the length is recorded here.
    memory.image_realloc = [](void* old, std::size_t size, H5FD_file_image_op_t, void* self) {
      static_cast<Hdf5Image*>(self)->size_ = size;
      return std::realloc(old, size);
    };
    memory.image_free = [](void* image, H5FD_file_image_op_t when, void* self) -> herr_t {
      if (when == H5FD_FILE_IMAGE_OP_FILE_CLOSE) {
        static_cast<Hdf5Image*>(self)->closed_ = image;
      } else {
        std::free(image);
      }
      return 0;
    };
    memory.udata_copy = [](void* self) { return self; };
    memory.udata_free = [](void*) -> herr_t { return 0; };
    memory.udata = this;
    const Hdf5Handle access(H5Pcreate(H5P_FILE_ACCESS), H5Pclose);
    if (!access || H5Pset_fapl_core(access.get(), kIncrement, 0) < 0 ||
        H5Pset_file_image_callbacks(access.get(), &memory) < 0 ||
        H5Pset_libver_bounds(access.get(), H5F_LIBVER_V110, H5F_LIBVER_V110) < 0) {
      return {H5I_INVALID_HID, H5Fclose};
    }
    // Without times, equal content gives equal bytes.
    const Hdf5Handle options(H5Pcreate(H5P_FILE_CREATE), H5Pclose);
    if (!options || H5Pset_obj_track_times(options.get(), false) < 0)
      return {H5I_INVALID_HID, H5Fclose};
    return {H5Fcreate("image", H5F_ACC_TRUNC, options.get(), access.get()), H5Fclose};
  }

  void* closed_ = nullptr;
  std::size_t size_ = 0;
  Hdf5Handle file_;
};

}  // namespace shardproof
