#pragma once

#include <hdf5.h>

#include <exception>
#include <string>
#include <utility>

namespace shardproof {

/// Owns one HDF5 identifier and closes it with the given function.
class Hdf5Handle {
 public:
  using Close = herr_t (*)(hid_t);

  Hdf5Handle(hid_t id, Close closer) : id_(id), close_(closer) {}
  Hdf5Handle(Hdf5Handle&& other) noexcept
      : id_(std::exchange(other.id_, H5I_INVALID_HID)), close_(other.close_) {}
  Hdf5Handle(const Hdf5Handle&) = delete;
  Hdf5Handle& operator=(const Hdf5Handle&) = delete;
  Hdf5Handle& operator=(Hdf5Handle&&) = delete;
  ~Hdf5Handle() { close(); }

  explicit operator bool() const { return id_ >= 0; }
  hid_t get() const { return id_; }

  /// Closes now; returns false on failure, which for a file means unwritten data.
  bool close() { return id_ < 0 || close_(std::exchange(id_, H5I_INVALID_HID)) >= 0; }

 private:
  hid_t id_;
  Close close_;
};

/// Keeps HDF5 from printing its error stack on stderr during its lifetime, and permanently if an
/// exception ends it: HDF5 1.10 leaks when it refuses corrupt metadata, its closing at exit then
/// fails, and printing that failure loops forever or crashes.
class Hdf5Silence {
 public:
  Hdf5Silence() {
    H5Eget_auto2(H5E_DEFAULT, &print_, &data_);
    H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr);
  }
  Hdf5Silence(const Hdf5Silence&) = delete;
  Hdf5Silence& operator=(const Hdf5Silence&) = delete;
  ~Hdf5Silence() {
    if (std::uncaught_exceptions() == exceptions_) H5Eset_auto2(H5E_DEFAULT, print_, data_);
  }

 private:
  int exceptions_ = std::uncaught_exceptions();
  H5E_auto2_t print_ = nullptr;
  void* data_ = nullptr;
};

/// Innermost cause of the last failed HDF5 call, and whether a filter (a checksum or a
/// decompression) failed, which means corrupt data.
struct Hdf5Failure {
  std::string reason = "unknown HDF5 error";
  bool filter = false;
};

inline Hdf5Failure last_hdf5_failure() {
  Hdf5Failure failure;
  const auto visit = [](unsigned depth, const H5E_error2_t* error, void* data) -> herr_t {
    auto* out = static_cast<Hdf5Failure*>(data);
    if (depth == 0 && error->desc != nullptr) out->reason = error->desc;
    out->filter = out->filter || error->maj_num == H5E_PLINE;
    return 0;
  };
  H5Ewalk2(H5E_DEFAULT, H5E_WALK_UPWARD, visit, &failure);
  for (char& c : failure.reason) {
    if (static_cast<unsigned char>(c) < ' ') c = ' ';
  }
  return failure;
}

}  // namespace shardproof
