#include "golden/trace/read/detail/hdf5_trace.h"

#include <fmt/format.h>
#include <hdf5.h>

#include <algorithm>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "golden/trace/read/detail/element_type.h"
#include "golden/trace/read/detail/hdf5_attributes.h"
#include "golden/trace/read/detail/place.h"
#include "weights/hdf5/detail/handle.h"
#include "weights/hdf5/detail/inflation.h"

namespace shardproof::dump {
namespace {

// Approximate bookkeeping of HDF5 per chunk of a dataset that it reads.
constexpr std::uint64_t kChunkKeeping = 4096;
// HDF5 doubles its buffer while inflating, and keeps it beside the stored chunk.
constexpr std::uint64_t kChunkRooms = 3;
constexpr std::uint64_t kPiece = std::uint64_t{4} << 20;

void need(bool dumped, std::string_view what) {
  if (!dumped)
    throw Error("dump_open",
                fmt::format("{} cannot be read: {}", what, last_hdf5_failure().reason));
}

[[noreturn]] void refuse(std::string_view label, std::string_view path, std::string_view why) {
  throw Error(label, fmt::format("{:?} {}", path, why));
}

/// f16 as h5py writes it: HDF5 1.10 has no predefined type for it.
Hdf5Handle f16_type(hid_t like) {
  Hdf5Handle type(H5Tcopy(like), H5Tclose);
  need(type && H5Tset_fields(type.get(), 15, 10, 5, 0, 10) >= 0 &&
           H5Tset_size(type.get(), 2) >= 0 && H5Tset_ebias(type.get(), 15) >= 0,
       "f16");
  return type;
}

/// Returns nullopt for other types. Requires equality with a known type, because HDF5 reads out of
/// bounds if a type declares its bits elsewhere.
std::optional<ElementType> element_type(hid_t type) {
  using Kind = ElementType::Kind;
  const Hdf5Handle f16 = f16_type(H5T_IEEE_F32LE), big_f16 = f16_type(H5T_IEEE_F32BE);
  const std::pair<hid_t, ElementType> known[] = {
      {H5T_IEEE_F64LE, {Kind::floating, 8, false}},
      {H5T_IEEE_F64BE, {Kind::floating, 8, true}},
      {H5T_IEEE_F32LE, {Kind::floating, 4, false}},
      {H5T_IEEE_F32BE, {Kind::floating, 4, true}},
      {f16.get(), {Kind::floating, 2, false}},
      {big_f16.get(), {Kind::floating, 2, true}},
      {H5T_STD_I8LE, {Kind::signed_integer, 1, false}},
      {H5T_STD_I8BE, {Kind::signed_integer, 1, false}},
      {H5T_STD_I16LE, {Kind::signed_integer, 2, false}},
      {H5T_STD_I16BE, {Kind::signed_integer, 2, true}},
      {H5T_STD_I32LE, {Kind::signed_integer, 4, false}},
      {H5T_STD_I32BE, {Kind::signed_integer, 4, true}},
      {H5T_STD_I64LE, {Kind::signed_integer, 8, false}},
      {H5T_STD_I64BE, {Kind::signed_integer, 8, true}},
      {H5T_STD_U8LE, {Kind::unsigned_integer, 1, false}},
      {H5T_STD_U8BE, {Kind::unsigned_integer, 1, false}},
      {H5T_STD_U16LE, {Kind::unsigned_integer, 2, false}},
      {H5T_STD_U16BE, {Kind::unsigned_integer, 2, true}},
      {H5T_STD_U32LE, {Kind::unsigned_integer, 4, false}},
      {H5T_STD_U32BE, {Kind::unsigned_integer, 4, true}},
      {H5T_STD_U64LE, {Kind::unsigned_integer, 8, false}},
      {H5T_STD_U64BE, {Kind::unsigned_integer, 8, true}},
  };
  for (const auto& [one, element] : known)
    if (H5Tequal(type, one) > 0) return element;
  if (is_boolean(type)) return ElementType{Kind::boolean, 1, false};
  return std::nullopt;
}

struct Link {
  std::string name;
  bool hard;  ///< false: a link to another place
};

std::vector<Link> links_of(hid_t group, std::string_view what) {
  std::vector<Link> found;
  const auto visit = [](hid_t, const char* name, const H5L_info_t* link, void* out) -> herr_t {
    static_cast<std::vector<Link>*>(out)->push_back({name, link->type == H5L_TYPE_HARD});
    return 0;
  };
  // In the file's own order: HDF5 1.10 crashes on corrupt metadata when it sorts.
  need(H5Literate(group, H5_INDEX_NAME, H5_ITER_NATIVE, nullptr, visit, &found) >= 0, what);
  return found;
}

Hdf5Handle open(hid_t group, const Link& link, std::string_view path) {
  if (!link.hard)
    refuse("dump_value", path, "is a link to elsewhere; a value is a dataset of the file itself");
  Hdf5Handle object(H5Oopen(group, link.name.c_str(), H5P_DEFAULT), H5Oclose);
  need(static_cast<bool>(object), fmt::format("{:?}", path));
  return object;
}

/// One dataset, read in pieces of whole rows of its first dim.
class Dataset {
 public:
  Dataset(hid_t id, const std::string& path)
      : id_(id),
        path_(path),
        type_(H5Dget_type(id), H5Tclose),
        space_(H5Dget_space(id), H5Sclose),
        options_(H5Dget_create_plist(id), H5Pclose) {
    hold(type_ && space_ && options_);
  }

  void read(Allowance& allowance, Sink& sink) {
    const std::optional<ElementType> type = element_type(type_.get());
    const Attributes attributes = attributes_of(id_, fmt::format("{:?}", path_), allowance);
    if (!type) {
      sink.unread(path_, attributes,
                  "has elements of another type than floats of 16, 32 or 64 bits and integers");
      return;
    }
    const auto declared = attributes.find("encoding");
    const EncodingOrNot known = encoding_of(
        *type, declared == attributes.end() ? std::nullopt
                                            : std::optional<std::string_view>(declared->second));
    if (!known.encoding) {
      sink.unread(path_, attributes, known.why);
      return;
    }
    const Encoding encoding = *known.encoding;
    learn_shape();
    const std::uint64_t size = product(shape_, std::max(type->bytes, bytes_of(encoding)));
    allowance.take(size, fmt::format("{:?}", path_));
    check_storage(type->bytes, allowance);
    sink.array(path_, attributes, encoding, shape_);
    if (size > 0) read_pieces(*type, encoding, sink);
  }

 private:
  void hold(bool dumped) const { need(dumped, fmt::format("{:?}", path_)); }

  std::uint64_t product(const Shape& extents, std::uint64_t bytes) const {
    for (const std::int64_t extent : extents)
      if (__builtin_mul_overflow(bytes, static_cast<std::uint64_t>(extent), &bytes))
        refuse("dump_size", path_, "declares more bytes than can be counted");
    return bytes;
  }

  void learn_shape() {
    const H5S_class_t kind = H5Sget_simple_extent_type(space_.get());
    if (kind != H5S_SIMPLE && kind != H5S_SCALAR) refuse("dump_value", path_, "has no shape");
    std::vector<hsize_t> dims(
        static_cast<std::size_t>(std::max(0, H5Sget_simple_extent_ndims(space_.get()))));
    if (!dims.empty()) hold(H5Sget_simple_extent_dims(space_.get(), dims.data(), nullptr) >= 0);
    for (const hsize_t extent : dims) {
      if (extent > std::uint64_t{std::numeric_limits<std::int64_t>::max()})
        refuse("dump_size", path_, "declares more elements than can be counted");
      shape_.push_back(static_cast<std::int64_t>(extent));
    }
  }

  /// Checks that the data lie in this file, and that chunks fit in the allowed memory.
  void check_storage(std::size_t element_bytes, const Allowance& allowance) {
    const H5D_layout_t layout = H5Pget_layout(options_.get());
    if ((layout != H5D_CHUNKED && layout != H5D_CONTIGUOUS && layout != H5D_COMPACT) ||
        H5Pget_external_count(options_.get()) != 0)
      refuse("dump_value", path_, "is stored outside of the file, or is a view of others");
    if (layout != H5D_CHUNKED) return;
    std::vector<hsize_t> chunk(shape_.size());
    hold(!chunk.empty() && H5Pget_chunk(options_.get(), static_cast<int>(chunk.size()),
                                        chunk.data()) == static_cast<int>(chunk.size()));
    Shape extents, counts;
    for (std::size_t i = 0; i < chunk.size(); ++i) {
      hold(chunk[i] > 0 && chunk[i] <= std::uint64_t{std::numeric_limits<std::int64_t>::max()});
      extents.push_back(static_cast<std::int64_t>(chunk[i]));
      counts.push_back((shape_[i] - 1) / extents[i] + 1);
      if (shape_[i] == 0) return;
    }
    Allowance room(allowance.whole());
    const std::uint64_t bytes = product(extents, element_bytes);
    room.take(bytes, fmt::format("a chunk of {:?}", path_));
    room.take((kChunkRooms - 1) * bytes, fmt::format("a chunk of {:?}", path_));
    room.take(product(counts, kChunkKeeping), fmt::format("keeping the chunks of {:?}", path_));
    chunk_rows_ = extents.front();
    const std::string fault = unbounded_inflation(id_, options_.get(), shape_, element_bytes);
    if (!fault.empty()) refuse("dump_open", path_, fault);
  }

  void read_pieces(const ElementType& type, Encoding encoding, Sink& sink) const {
    const std::int64_t rows = shape_.empty() ? 1 : shape_.front();
    const std::uint64_t row_bytes = product(shape_, type.bytes) / static_cast<std::uint64_t>(rows);
    // Reads whole chunks, so that none is inflated twice.
    const std::int64_t least = std::min(rows, chunk_rows_);
    const auto fitting = static_cast<std::int64_t>(kPiece / std::min(row_bytes, kPiece));
    const std::int64_t at_once = std::min(rows, std::max<std::int64_t>(1, fitting / least) * least);
    std::vector<std::byte> piece(static_cast<std::uint64_t>(at_once) * row_bytes);
    for (std::int64_t row = 0; row < rows; row += at_once) {
      const std::int64_t now = std::min(at_once, rows - row);
      read_rows(row, now, piece.data());
      const std::span<const std::byte> read(piece.data(),
                                            static_cast<std::uint64_t>(now) * row_bytes);
      convert(read, type, encoding, path_, sink);
    }
  }

  void read_rows(std::int64_t row, std::int64_t count, std::byte* out) const {
    if (shape_.empty()) {
      hold(H5Dread(id_, type_.get(), H5S_ALL, H5S_ALL, H5P_DEFAULT, out) >= 0);
      return;
    }
    std::vector<hsize_t> start(shape_.size(), 0), extents(shape_.begin(), shape_.end());
    start.front() = static_cast<hsize_t>(row);
    extents.front() = static_cast<hsize_t>(count);
    const int rank = static_cast<int>(shape_.size());
    const Hdf5Handle memory(H5Screate_simple(rank, extents.data(), nullptr), H5Sclose);
    // Reads in the file's own type, so HDF5 converts nothing.
    hold(memory &&
         H5Sselect_hyperslab(space_.get(), H5S_SELECT_SET, start.data(), nullptr, extents.data(),
                             nullptr) >= 0 &&
         H5Dread(id_, type_.get(), memory.get(), space_.get(), H5P_DEFAULT, out) >= 0);
  }

  hid_t id_;
  const std::string& path_;
  Hdf5Handle type_, space_, options_;
  Shape shape_;
  std::int64_t chunk_rows_ = 1;
};

class Trace {
 public:
  Trace(const std::filesystem::path& path, std::uint64_t allowance, Sink& sink)
      : file_(H5Fopen(path.c_str(), H5F_ACC_RDONLY, H5P_DEFAULT), H5Fclose),
        allowance_(allowance),
        sink_(sink) {
    if (!file_)
      throw Error("dump_open",
                  "is not an HDF5 file, or is truncated: " + last_hdf5_failure().reason);
  }

  void read() {
    const Attributes attributes = attributes_of(file_.get(), "the file", allowance_);
    require_trace(attributes);
    for (const auto& [name, text] : attributes) sink_.attribute(name, text);
    for (const Link& link : links(file_.get(), "the file")) {
      if (link.name == "chips")
        read_chips(link);
      else
        read_object(file_.get(), link, link.name);
    }
  }

 private:
  std::vector<Link> links(hid_t group, std::string_view what) {
    std::vector<Link> found = links_of(group, what);
    for (const Link& link : found) allowance_.take(link.name.size() + sizeof(Link), what);
    return found;
  }

  Hdf5Handle group(hid_t parent, const Link& link, std::string_view path) const {
    Hdf5Handle found = open(parent, link, path);
    if (H5Iget_type(found.get()) != H5I_GROUP) refuse("dump_value", path, "is not a group");
    return found;
  }

  void read_chips(const Link& link) {
    const Hdf5Handle chips = group(file_.get(), link, link.name);
    for (const Link& chip : links(chips.get(), "chips")) {
      chip_of(chip.name);
      const std::string path = "chips/" + chip.name;
      const Hdf5Handle shards = group(chips.get(), chip, path);
      for (const Link& shard : links(shards.get(), path))
        read_object(shards.get(), shard, path + "/" + shard.name);
    }
  }

  void read_object(hid_t parent, const Link& link, const std::string& path) {
    const Hdf5Handle object = open(parent, link, path);
    if (H5Iget_type(object.get()) != H5I_DATASET) {
      sink_.ignored(path);
      return;
    }
    place_of(path);
    Dataset(object.get(), path).read(allowance_, sink_);
  }

  Hdf5Handle file_;
  Allowance allowance_;
  Sink& sink_;
};

}  // namespace

void read_hdf5(const std::filesystem::path& path, std::uint64_t allowance, Sink& sink) {
  const Hdf5Silence silence;
  Trace(path, allowance, sink).read();
}

}  // namespace shardproof::dump
