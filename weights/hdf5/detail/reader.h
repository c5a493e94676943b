#pragma once

#include <hdf5.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "weights/base/error.h"
#include "weights/hdf5/detail/handle.h"

namespace shardproof {

/// Reads HDF5 files that may be hostile: nothing that a file declares is trusted before the caller
/// has checked it. Throws Error(`label`, "WHAT cannot be read: ...") where HDF5 fails; what is
/// legal is left to the caller. Hold an Hdf5Silence meanwhile.
class Hdf5Item {
 public:
  Hdf5Item(Hdf5Handle handle, std::string label, std::string what);

  hid_t id() const { return handle_.get(); }
  const std::string& what() const { return what_; }
  /// Throws unless `held`, with HDF5's reason; `part` stands before WHAT.
  void need(bool held, std::string_view part = "") const;

 protected:
  Hdf5Handle needed(hid_t id, Hdf5Handle::Close close) const;
  const std::string& label() const { return label_; }

 private:
  Hdf5Handle handle_;
  std::string label_, what_;
};

class Hdf5Attribute : public Hdf5Item {
 public:
  explicit Hdf5Attribute(Hdf5Item attribute);

  hid_t type() const { return type_.get(); }
  H5T_class_t kind() const { return H5Tget_class(type()); }
  std::size_t count() const;  ///< number of its elements; 0 if it has no shape
  int rank() const { return H5Sget_simple_extent_ndims(space_.get()); }

  /// Returns texts of fixed or variable length, each up to its first NUL; nullopt if one is longer
  /// than `longest`, or all together than 1 MiB.
  std::optional<std::vector<std::string>> texts(std::size_t longest) const;
  /// Returns integers or floats; nullopt if their bits lie so that HDF5 would read out of bounds.
  template <class T>
  std::optional<std::vector<T>> numbers(hid_t in_memory) const {
    if (!fits(sizeof(T))) return std::nullopt;
    std::vector<T> values(count());
    read(in_memory, values.data());
    return values;
  }
  void read(hid_t in_memory, void* values) const;

 private:
  bool fits(std::size_t most_bytes) const;

  Hdf5Handle type_, space_;
};

/// The root, another group, or a dataset.
class Hdf5Object : public Hdf5Item {
 public:
  struct Link {
    std::string name;
    bool hard;  ///< not a soft or external link
  };

  using Hdf5Item::Hdf5Item;

  bool is(H5I_type_t kind) const { return H5Iget_type(id()) == kind; }
  /// Links of a group, and names of attributes, in the file's own order.
  std::vector<Link> links() const;
  std::vector<std::string> attributes() const;
  Hdf5Object object(const std::string& name, std::string what) const;
  bool has(const char* attribute) const { return H5Aexists(id(), attribute) > 0; }
  Hdf5Attribute attribute(const char* name, std::string what) const;
};

class Hdf5Dataset : public Hdf5Object {
 public:
  /// Approximate bytes that HDF5 holds for each chunk of a dataset being read, of any size.
  static constexpr std::uint64_t kChunkKeeping = 4096;

  struct Chunks {
    std::vector<hsize_t> extents;  ///< of one chunk; empty if the dataset is not chunked
    std::uint64_t bytes = 0;       ///< of one chunk; at most 2^50, as the count
    std::uint64_t count = 0;
  };

  explicit Hdf5Dataset(Hdf5Object dataset);

  hid_t type() const { return type_.get(); }
  std::size_t element_bytes() const { return H5Tget_size(type()); }
  bool has_shape() const;
  /// Extents; none for a scalar, and without a shape.
  const std::vector<hsize_t>& extents() const { return extents_; }
  /// Returns whether the data are stored in this file, not in external ones or as a view of others.
  bool is_inside() const;
  std::uint64_t stored_bytes() const { return H5Dget_storage_size(id()); }
  Chunks chunks() const;
  /// Returns where in the file all bytes lie one after the other, as read_rows reads them in the
  /// dataset's own type; nullopt if they do not.
  std::optional<std::uint64_t> first_byte() const;
  /// Returns why reading the chunks could take more memory than they declare, or "" if it cannot;
  /// inflates each chunk once (weights/hdf5/detail/inflation.h).
  std::string inflation_fault() const;

  /// Reads rows of the first dim, all that a scalar has, as the given type; returns the failure, if
  /// any.
  std::optional<Hdf5Failure> read_rows(hsize_t first, hsize_t count, hid_t in_memory,
                                       void* out) const;

 private:
  Hdf5Handle type_, space_, options_;
  std::vector<hsize_t> extents_;
};

}  // namespace shardproof
