#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "weights/base/error.h"
#include "weights/base/number_format.h"
#include "weights/base/tensor.h"

namespace shardproof::dump {

/// One array of a trace as its writer stored it, row-major.
struct StoredArray {
  Shape shape;
  NumberFormat encoding = NumberFormat::f32;  ///< little-endian
  std::vector<std::byte> bytes;
  /// In place of `bytes` the elements in a caller's own memory, which outlives this and is not
  /// changed.
  std::span<const std::byte> lent = {};

  std::span<const std::byte> elements() const { return lent.empty() ? bytes : lent; }
  std::size_t size() const {
    return elements().size() / static_cast<std::size_t>(bytes_of(encoding));
  }
  /// Returns the exact number; NaN for an int64 beyond 2^53, which is not a value of any model.
  double at(std::size_t i) const;
};

/// Attributes by name: texts unchanged, numbers as text, an npz's lists and objects as JSON.
using Attributes = std::map<std::string, std::string, std::less<>>;
/// Returns the text of an attribute; null if there is none of that name.
const std::string* find(const Attributes& attributes, std::string_view name);

/// A value by its name in the file.
struct Value {
  Attributes attributes;  ///< of one of its shards, if it is in shards
  /// The whole tensor or the stacked shards; or each chip's shard by coordinates.
  std::map<std::array<int, 3>, StoredArray> chips;
  StoredArray whole;
  std::string unread;  ///< why its elements were not read: their type
  bool in_shards() const { return !chips.empty(); }
};

class MappedFile;

/// A trace of version 1 (docs/trace-format.md) as stored in the file, neither interpreted,
/// converted nor judged.
struct Dump {
  Attributes attributes;
  std::map<std::string, Value, std::less<>> values;
  /// Names of the values, in the file's order; that of an HDF5 file is alphabetical, unless their
  /// attributes `listed` say otherwise.
  std::vector<std::string> order;
  std::vector<std::string> ignored;  ///< groups and folders other than chips
  /// The file, if arrays are a part of its own bytes: mapped while the dump or a copy lives.
  std::shared_ptr<const MappedFile> file = {};
};

/// The attribute of a value that says its place in the file's order where the container has none.
inline constexpr std::string_view kListed = "listed";

/// Returns the place in the run that a value declares (`order`, a number); nullopt if none.
std::optional<std::int64_t> place_in_run(const Value& value);

/// Returns the names in the order of the run, as far as the file declares it (`order`); the others
/// follow in the file's order.
std::vector<std::string> in_order(const Dump& dump);

/// How an array of an unsupported element type is treated: rejected, or kept without its elements.
enum class Unread { refused, left };

/// Reads an untrusted trace (HDF5 or NPZ, told apart by its first bytes). A child process with
/// limited memory opens the file, so that a file that crashes a library ends only that process.
/// Allocates at most max(64 MiB, 8 times the file). Throws Error, one line naming the file:
/// "dump_open" (missing, not a regular file, neither container, damaged, or its reader died),
/// "dump_format" (not a trace, or of another version; an npz without `shardproof`, or with one that
/// is not a JSON object), "dump_value" (an array of an unsupported type, named; attributes of
/// shards that differ; a value both whole and in shards; a chip group that is not X_Y_Z),
/// "dump_size" (declares more than the above), "dump_changed" (while it was read). With
/// Unread::left an array of an unsupported type is not an error: its value says so. Large arrays
/// that lie in an HDF5 file as they are read are not copied but mapped. If the file is shortened
/// while the dump is in use, the process gets SIGBUS.
Dump read_dump(const std::filesystem::path& path, Unread unread = Unread::refused);

/// Throws Error("dump_changed") if the file of mapped arrays has another size or time of change
/// than when it was read: what was computed from it may be of neither content.
void require_unchanged(const Dump& dump);

/// Returns the quoted path of the mapped file that has this address; null if there is none. A
/// handler of signals may call it: it does not lock or allocate.
const char* mapped_file_at(const void* address) noexcept;

}  // namespace shardproof::dump
