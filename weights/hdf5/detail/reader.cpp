#include "weights/hdf5/detail/reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "weights/hdf5/detail/inflation.h"

namespace shardproof {

Hdf5Item::Hdf5Item(Hdf5Handle handle, std::string label, std::string what)
    : handle_(std::move(handle)), label_(std::move(label)), what_(std::move(what)) {
  need(static_cast<bool>(handle_));
}

void Hdf5Item::need(bool held, std::string_view part) const {
  if (!held)
    throw Error(label_,
                fmt::format("{}{} cannot be read: {}", part, what_, last_hdf5_failure().reason));
}

Hdf5Handle Hdf5Item::needed(hid_t id, Hdf5Handle::Close close) const {
  Hdf5Handle handle(id, close);
  need(static_cast<bool>(handle));
  return handle;
}

// ---- an attribute ----

Hdf5Attribute::Hdf5Attribute(Hdf5Item attribute)
    : Hdf5Item(std::move(attribute)),
      type_(needed(H5Aget_type(id()), H5Tclose)),
      space_(needed(H5Aget_space(id()), H5Sclose)) {}

std::size_t Hdf5Attribute::count() const {
  const hssize_t count = H5Sget_simple_extent_npoints(space_.get());
  return count < 0 ? 0 : static_cast<std::size_t>(count);
}

void Hdf5Attribute::read(hid_t in_memory, void* values) const {
  need(H5Aread(id(), in_memory, values) >= 0);
}

bool Hdf5Attribute::fits(std::size_t most_bytes) const {
  const std::size_t size = H5Tget_size(type());
  return size <= most_bytes && H5Tget_precision(type()) <= 8 * size && H5Tget_offset(type()) == 0;
}

std::optional<std::vector<std::string>> Hdf5Attribute::texts(std::size_t longest) const {
  constexpr std::size_t kMostBytes = std::size_t{1} << 20;
  std::vector<std::string> texts(count());
  if (H5Tis_variable_str(type()) > 0) {
    std::vector<char*> read_texts(texts.size(), nullptr);
    read(type(), read_texts.data());
    for (std::size_t i = 0; i < texts.size(); ++i)
      if (read_texts[i] != nullptr)
        texts[i].assign(read_texts[i], ::strnlen(read_texts[i], longest + 1));
    H5Dvlen_reclaim(type(), space_.get(), H5P_DEFAULT, read_texts.data());
  } else {
    const std::size_t size = H5Tget_size(type());
    if (size > longest || size * texts.size() > kMostBytes) return std::nullopt;
    std::vector<char> bytes(size * texts.size());
    read(type(), bytes.data());
    for (std::size_t i = 0; i < texts.size(); ++i) {
      const char* const from = bytes.data() + i * size;
      texts[i].assign(from, ::strnlen(from, size));
      if (H5Tget_strpad(type()) == H5T_STR_SPACEPAD)
        texts[i].erase(texts[i].find_last_not_of(' ') + 1);
    }
  }
  const auto too_long = [&](const std::string& text) { return text.size() > longest; };
  if (std::any_of(texts.begin(), texts.end(), too_long)) return std::nullopt;
  return texts;
}

// ---- a group or dataset ----

// Iteration is in native order: HDF5 1.10 crashes on corrupt metadata when it sorts.

std::vector<Hdf5Object::Link> Hdf5Object::links() const {
  std::vector<Link> found;
  const auto visit = [](hid_t, const char* name, const H5L_info_t* link, void* out) -> herr_t {
    static_cast<std::vector<Link>*>(out)->push_back({name, link->type == H5L_TYPE_HARD});
    return 0;
  };
  need(H5Literate(id(), H5_INDEX_NAME, H5_ITER_NATIVE, nullptr, visit, &found) >= 0);
  return found;
}

std::vector<std::string> Hdf5Object::attributes() const {
  std::vector<std::string> found;
  const auto visit = [](hid_t, const char* name, const H5A_info_t*, void* out) -> herr_t {
    static_cast<std::vector<std::string>*>(out)->emplace_back(name);
    return 0;
  };
  need(H5Aiterate2(id(), H5_INDEX_NAME, H5_ITER_NATIVE, nullptr, visit, &found) >= 0,
       "the attributes of ");
  return found;
}

Hdf5Object Hdf5Object::object(const std::string& name, std::string what) const {
  return {Hdf5Handle(H5Oopen(id(), name.c_str(), H5P_DEFAULT), H5Oclose), label(), std::move(what)};
}

Hdf5Attribute Hdf5Object::attribute(const char* name, std::string what) const {
  return Hdf5Attribute(
      {Hdf5Handle(H5Aopen(id(), name, H5P_DEFAULT), H5Aclose), label(), std::move(what)});
}

// ---- a dataset ----

Hdf5Dataset::Hdf5Dataset(Hdf5Object dataset)
    : Hdf5Object(std::move(dataset)),
      type_(needed(H5Dget_type(id()), H5Tclose)),
      space_(needed(H5Dget_space(id()), H5Sclose)),
      options_(needed(H5Dget_create_plist(id()), H5Pclose)) {
  const int rank = has_shape() ? H5Sget_simple_extent_ndims(space_.get()) : 0;
  need(rank >= 0);
  extents_.resize(static_cast<std::size_t>(rank));
  need(rank == 0 || H5Sget_simple_extent_dims(space_.get(), extents_.data(), nullptr) >= 0);
}

bool Hdf5Dataset::has_shape() const {
  const H5S_class_t kind = H5Sget_simple_extent_type(space_.get());
  return kind == H5S_SIMPLE || kind == H5S_SCALAR;
}

bool Hdf5Dataset::is_inside() const {
  const H5D_layout_t layout = H5Pget_layout(options_.get());
  const bool plain = layout == H5D_CHUNKED || layout == H5D_CONTIGUOUS || layout == H5D_COMPACT;
  return plain && H5Pget_external_count(options_.get()) == 0;
}

Hdf5Dataset::Chunks Hdf5Dataset::chunks() const {
  if (H5Pget_layout(options_.get()) != H5D_CHUNKED) return {};
  constexpr std::uint64_t kMost = std::uint64_t{1} << 50;
  const auto grow = [](std::uint64_t& product, std::uint64_t factor) {
    if (__builtin_mul_overflow(product, factor, &product) || product > kMost) product = kMost;
  };
  const int rank = static_cast<int>(extents_.size());
  Chunks chunks{std::vector<hsize_t>(extents_.size()), element_bytes(), 1};
  need(rank > 0 && H5Pget_chunk(options_.get(), rank, chunks.extents.data()) == rank);
  for (std::size_t i = 0; i < extents_.size(); ++i) {
    const hsize_t extent = chunks.extents[i];
    need(extent > 0);
    grow(chunks.bytes, extent);
    grow(chunks.count, extents_[i] / extent + (extents_[i] % extent == 0 ? 0 : 1));
  }
  return chunks;
}

std::optional<std::uint64_t> Hdf5Dataset::first_byte() const {
  if (H5Pget_layout(options_.get()) != H5D_CONTIGUOUS || !is_inside()) return std::nullopt;
  std::uint64_t bytes = element_bytes();
  for (const hsize_t extent : extents_)
    if (__builtin_mul_overflow(bytes, extent, &bytes)) return std::nullopt;
  const haddr_t first = H5Dget_offset(id());
  if (first == HADDR_UNDEF || stored_bytes() != bytes) return std::nullopt;
  return first;
}

std::string Hdf5Dataset::inflation_fault() const {
  const Chunks split = chunks();
  if (split.count == 0) return "";
  return unbounded_inflation(id(), options_.get(), extents_, split.extents, split.bytes);
}

std::optional<Hdf5Failure> Hdf5Dataset::read_rows(hsize_t first, hsize_t count, hid_t in_memory,
                                                  void* out) const {
  std::vector<hsize_t> start(extents_.size(), 0), rows = extents_;
  if (!rows.empty()) start.front() = first, rows.front() = count;
  const Hdf5Handle memory(H5Screate_simple(static_cast<int>(rows.size()), rows.data(), nullptr),
                          H5Sclose);
  const bool selected =
      rows.empty() || H5Sselect_hyperslab(space_.get(), H5S_SELECT_SET, start.data(), nullptr,
                                          rows.data(), nullptr) >= 0;
  if (memory && selected &&
      H5Dread(id(), in_memory, memory.get(), space_.get(), H5P_DEFAULT, out) >= 0)
    return std::nullopt;
  return last_hdf5_failure();
}

}  // namespace shardproof
