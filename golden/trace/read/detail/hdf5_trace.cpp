#include "golden/trace/read/detail/hdf5_trace.h"

#include <fmt/format.h>
#include <hdf5.h>

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "golden/trace/read/detail/element_type.h"
#include "golden/trace/read/detail/hdf5_attributes.h"
#include "golden/trace/read/detail/place.h"
#include "weights/hdf5/detail/f16_type.h"
#include "weights/hdf5/detail/reader.h"

namespace shardproof::dump {
namespace {

// HDF5 doubles its buffer while inflating, and keeps it beside the stored chunk.
constexpr std::uint64_t kChunkRooms = 3;
constexpr std::uint64_t kPiece = std::uint64_t{4} << 20;
// A smaller array is copied: a few pages are not worth being read one by one.
constexpr std::uint64_t kLeastInFile = std::uint64_t{1} << 16;

[[noreturn]] void refuse(std::string_view label, std::string_view path, std::string_view why) {
  throw Error(label, fmt::format("{:?} {}", path, why));
}

/// Returns nullopt for other types. Requires equality with a known type, because HDF5 reads out of
/// bounds if a type declares its bits elsewhere.
std::optional<ElementType> element_type(hid_t type) {
  using Kind = ElementType::Kind;
  const Hdf5Handle f16 = f16_type(H5T_IEEE_F32LE), big_f16 = f16_type(H5T_IEEE_F32BE);
  if (!f16 || !big_f16)
    throw Error("dump_open", "f16 cannot be read: " + last_hdf5_failure().reason);
  const struct {
    Kind kind;
    std::size_t bytes;
    hid_t little, big;
  } known[] = {
      {Kind::floating, 8, H5T_IEEE_F64LE, H5T_IEEE_F64BE},
      {Kind::floating, 4, H5T_IEEE_F32LE, H5T_IEEE_F32BE},
      {Kind::floating, 2, f16.get(), big_f16.get()},
      {Kind::signed_integer, 1, H5T_STD_I8LE, H5T_STD_I8BE},
      {Kind::signed_integer, 2, H5T_STD_I16LE, H5T_STD_I16BE},
      {Kind::signed_integer, 4, H5T_STD_I32LE, H5T_STD_I32BE},
      {Kind::signed_integer, 8, H5T_STD_I64LE, H5T_STD_I64BE},
      {Kind::unsigned_integer, 1, H5T_STD_U8LE, H5T_STD_U8BE},
      {Kind::unsigned_integer, 2, H5T_STD_U16LE, H5T_STD_U16BE},
      {Kind::unsigned_integer, 4, H5T_STD_U32LE, H5T_STD_U32BE},
      {Kind::unsigned_integer, 8, H5T_STD_U64LE, H5T_STD_U64BE},
  };
  for (const auto& one : known) {
    if (H5Tequal(type, one.little) > 0) return ElementType{one.kind, one.bytes, false};
    if (H5Tequal(type, one.big) > 0) return ElementType{one.kind, one.bytes, one.bytes > 1};
  }
  if (is_boolean(type)) return ElementType{Kind::boolean, 1, false};
  return std::nullopt;
}

/// Reads one dataset, in pieces of whole rows of its first dim.
class Array {
 public:
  Array(Hdf5Dataset data, const std::string& path) : data_(std::move(data)), path_(path) {}

  void read(Allowance& allowance, Sink& sink) {
    const std::optional<ElementType> type = element_type(data_.type());
    const Attributes attributes = attributes_of(data_, allowance);
    const EncodingOrNot known =
        type ? encoding_of(*type, attributes)
             : EncodingOrNot{std::nullopt,
                             "has elements of another type than floats of 16, 32 or "
                             "64 bits and integers"};
    if (!known.encoding) {
      sink.unread(path_, attributes, known.why);
      return;
    }
    const Shape shape = checked_shape();
    const std::uint64_t size = bytes_of_all(static_cast<std::size_t>(bytes_of(*known.encoding)));
    allowance.take(size, data_.what());
    check_storage(allowance);
    sink.array(path_, attributes, *known.encoding, shape);
    if (size == 0) return;
    const auto first = data_.first_byte();
    if (first && size >= kLeastInFile && keeps_bytes(*type, *known.encoding))
      sink.in_file(*first);
    else
      read_pieces(*type, *known.encoding, sink);
  }

 private:
  std::uint64_t bytes_of_all(std::uint64_t bytes) const {
    for (const hsize_t extent : data_.extents())
      if (__builtin_mul_overflow(bytes, extent, &bytes))
        refuse("dump_size", path_, "declares more bytes than can be counted");
    return bytes;
  }

  Shape checked_shape() const {
    if (!data_.has_shape()) refuse("dump_value", path_, "has no shape");
    Shape shape;
    for (const hsize_t extent : data_.extents()) {
      if (!std::in_range<std::int64_t>(extent))
        refuse("dump_size", path_, "declares more elements than can be counted");
      shape.push_back(static_cast<std::int64_t>(extent));
    }
    return shape;
  }

  /// Checks that the data lie in this file, and that chunks fit in the allowed memory.
  void check_storage(const Allowance& allowance) {
    if (!data_.is_inside())
      refuse("dump_value", path_, "is stored outside of the file, or is a view of others");
    const Hdf5Dataset::Chunks chunks = data_.chunks();
    if (chunks.count == 0) return;
    Allowance room(allowance.whole());
    room.take(kChunkRooms * chunks.bytes, "a chunk of " + data_.what());
    room.take(Hdf5Dataset::kChunkKeeping * chunks.count, "keeping the chunks of " + data_.what());
    chunk_rows_ = chunks.extents.front();
    const std::string fault = data_.inflation_fault();
    if (!fault.empty()) refuse("dump_open", path_, fault);
  }

  void read_pieces(const ElementType& type, NumberFormat encoding, Sink& sink) const {
    const hsize_t rows = data_.extents().empty() ? 1 : data_.extents().front();
    const std::uint64_t row_bytes = bytes_of_all(type.bytes) / rows;
    // Reads whole chunks, so that none is inflated twice.
    const hsize_t least = std::min(rows, chunk_rows_);
    const hsize_t fitting = kPiece / std::min(row_bytes, kPiece);
    const hsize_t at_once = std::min(rows, std::max<hsize_t>(1, fitting / least) * least);
    std::vector<std::byte> piece(at_once * row_bytes);
    for (hsize_t row = 0; row < rows; row += at_once) {
      const hsize_t now = std::min(at_once, rows - row);
      // Reads in the file's own type, so HDF5 converts nothing.
      if (const auto failure = data_.read_rows(row, now, data_.type(), piece.data()))
        throw Error("dump_open",
                    fmt::format("{} cannot be read: {}", data_.what(), failure->reason));
      convert(std::span(piece).first(now * row_bytes), type, encoding, path_, sink);
    }
  }

  Hdf5Dataset data_;
  const std::string& path_;
  hsize_t chunk_rows_ = 1;
};

/// Opens a file's root.
Hdf5Object root_of(const std::filesystem::path& path) {
  Hdf5Handle file(H5Fopen(path.c_str(), H5F_ACC_RDONLY, H5P_DEFAULT), H5Fclose);
  if (!file)
    throw Error("dump_open", "is not an HDF5 file, or is truncated: " + last_hdf5_failure().reason);
  return {std::move(file), "dump_open", "the file"};
}

class Trace {
 public:
  Trace(const std::filesystem::path& path, std::uint64_t allowance, Sink& sink)
      : root_(root_of(path)), allowance_(allowance), sink_(sink) {}

  void read() {
    const Attributes attributes = attributes_of(root_, allowance_);
    require_trace(attributes);
    for (const auto& [name, text] : attributes) sink_.attribute(name, text);
    for (const Hdf5Object::Link& link : links(root_)) {
      if (link.name == "chips")
        read_chips(link);
      else
        read_object(root_, link, link.name);
    }
  }

 private:
  std::vector<Hdf5Object::Link> links(const Hdf5Object& group) {
    std::vector<Hdf5Object::Link> found = group.links();
    for (const Hdf5Object::Link& link : found)
      allowance_.take(link.name.size() + sizeof(link), group.what());
    return found;
  }

  static Hdf5Object open(const Hdf5Object& group, const Hdf5Object::Link& link,
                         std::string_view path) {
    if (!link.hard)
      refuse("dump_value", path, "is a link to elsewhere; a value is a dataset of the file itself");
    return group.object(link.name, fmt::format("{:?}", path));
  }

  static Hdf5Object group(const Hdf5Object& parent, const Hdf5Object::Link& link,
                          std::string_view path) {
    Hdf5Object found = open(parent, link, path);
    if (!found.is(H5I_GROUP)) refuse("dump_value", path, "is not a group");
    return found;
  }

  void read_chips(const Hdf5Object::Link& link) {
    const Hdf5Object chips = group(root_, link, link.name);
    for (const Hdf5Object::Link& chip : links(chips)) {
      chip_of(chip.name);
      const std::string path = "chips/" + chip.name;
      const Hdf5Object shards = group(chips, chip, path);
      for (const Hdf5Object::Link& shard : links(shards))
        read_object(shards, shard, path + "/" + shard.name);
    }
  }

  void read_object(const Hdf5Object& parent, const Hdf5Object::Link& link,
                   const std::string& path) {
    Hdf5Object object = open(parent, link, path);
    if (!object.is(H5I_DATASET)) {
      sink_.ignored(path);
      return;
    }
    place_of(path);
    Array(Hdf5Dataset(std::move(object)), path).read(allowance_, sink_);
  }

  Hdf5Object root_;
  Allowance allowance_;
  Sink& sink_;
};

}  // namespace

void read_hdf5(const std::filesystem::path& path, std::uint64_t allowance, Sink& sink) {
  const Hdf5Silence silence;
  Trace(path, allowance, sink).read();
}

}  // namespace shardproof::dump
