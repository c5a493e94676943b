#pragma once

#include <fcntl.h>
#include <hdf5.h>
#include <sys/mman.h>

#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <span>

#include "weights/hdf5/detail/handle.h"

namespace shardproof {

/// A new HDF5 file in memory, or in a file that is mapped there and may be larger than the
/// machine's memory, with the bytes that a closed file on disk would have. HDF5 1.10
/// crashes at exit after a failed disk write, so writing to disk is left to the caller; and its
/// H5Fget_file_image leaves a wrong checksum in the superblock of the 1.10 format, so the memory is
/// taken over when the file closes. Metadata in that format carry checksums.
class Hdf5Image {
 public:
  /// `backing`: an empty file to be the memory, which outlives the image; negative: none. What does
  /// not fit on the disk fails like what does not fit in memory.
  explicit Hdf5Image(int backing = -1) : backing_(backing), file_(create()) {}
  Hdf5Image(const Hdf5Image&) = delete;
  Hdf5Image& operator=(const Hdf5Image&) = delete;
  ~Hdf5Image() {
    file_.close();
    release(closed_);
  }

  /// HDF5 identifier of the file; negative if it could not be created.
  hid_t file() const { return file_.get(); }

  /// Returns the system's error because of which the file could not grow; 0 if it could.
  int error() const { return error_; }

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
  /// Returns memory of this size with what was at `old`; null, with errno, if there is none.
  void* resize(void* old, std::size_t size) {
    if (backing_ < 0) return std::realloc(old, size);
    if (size <= mapped_) return old;
    // Reserves the disk: a write to a page without room would end the process.
    if (const int error = ::posix_fallocate(backing_, static_cast<off_t>(mapped_),
                                            static_cast<off_t>(size - mapped_));
        error != 0) {
      errno = error;
      return nullptr;
    }
    void* const at = old == nullptr
                         ? ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, backing_, 0)
                         : ::mremap(old, mapped_, size, MREMAP_MAYMOVE);
    if (at == MAP_FAILED) return nullptr;
    mapped_ = size;
    return at;
  }
  void release(void* memory) {
    if (backing_ < 0)
      std::free(memory);
    else if (memory != nullptr)
      ::munmap(memory, mapped_), mapped_ = 0;
  }

  Hdf5Handle create() {
    constexpr std::size_t kIncrement = std::size_t{1} << 20;
    H5FD_file_image_callbacks_t memory{};
    memory.image_malloc = [](std::size_t size, H5FD_file_image_op_t, void* self) {
      return static_cast<Hdf5Image*>(self)->resize(nullptr, size);
    };
    // Closing may still extend the file, so the length is recorded here.
    memory.image_realloc = [](void* old, std::size_t size, H5FD_file_image_op_t, void* self) {
      auto* const image = static_cast<Hdf5Image*>(self);
      void* const at = image->resize(old, size);
      if (at == nullptr) image->error_ = errno;
      image->size_ = size;
      return at;
    };
    memory.image_free = [](void* image, H5FD_file_image_op_t when, void* self) -> herr_t {
      if (when == H5FD_FILE_IMAGE_OP_FILE_CLOSE) {
        static_cast<Hdf5Image*>(self)->closed_ = image;
      } else {
        static_cast<Hdf5Image*>(self)->release(image);
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

  int backing_;
  int error_ = 0;
  void* closed_ = nullptr;
  std::size_t size_ = 0, mapped_ = 0;
  Hdf5Handle file_;
};

}  // namespace shardproof
