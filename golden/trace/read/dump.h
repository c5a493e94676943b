#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "weights/base/error.h"
#include "weights/base/tensor.h"

namespace shardproof::dump {

/// How elements stand in a file, little-endian.
enum class Encoding { f64, f32, f16, bf16, int8, int32, int64 };
std::string_view to_string(Encoding encoding);
std::size_t bytes_of(Encoding encoding);

/// One array of a trace, as somebody wrote it: row-major.
struct Stored {
  Shape shape;
  Encoding encoding = Encoding::f32;
  std::vector<std::byte> bytes;

  std::size_t size() const { return bytes.size() / bytes_of(encoding); }
  /// Exactly; an int64 beyond 2^53 as NaN, which no value of a model is.
  double at(std::size_t i) const;
};

/// Attributes by name: texts as they are, numbers as text, lists and objects of an npz's JSON as
/// their JSON text.
using Attributes = std::map<std::string, std::string, std::less<>>;

/// A value by the name it has in the file.
struct Value {
  Attributes attributes;  ///< of one of its shards, where it stands as shards
  /// The whole tensor or the stacked shards; or a chip's shard under its coordinates.
  std::map<std::array<int, 3>, Stored> chips;
  Stored whole;
  std::string unread;  ///< why its elements are not there: of which type they are
  bool in_shards() const { return !chips.empty(); }
};

/// A trace of version 1 (docs/trace-format.md), as it stands in the file: nothing is looked up,
/// converted or judged yet.
struct Dump {
  Attributes attributes;
  std::map<std::string, Value, std::less<>> values;
  std::vector<std::string> order;    ///< their names, in the file's order
  std::vector<std::string> ignored;  ///< what else there is: groups and folders other than chips
};

/// The place in the run that a value says (`order`, a number); of others nothing.
std::optional<std::int64_t> place_in_run(const Value& value);

/// Names in the order of the run, as far as the file says it (`order`); then in the file's own.
std::vector<std::string> in_order(const Dump& dump);

/// What is done with an array whose elements are of no type that is read.
enum class Unread { refused, left };

/// Reads a trace of anybody's, an HDF5 file or a NumPy archive, by its first bytes. The file is
/// opened in a child process whose memory is limited, so that a file that breaks a library breaks
/// only that process. At most max(64 MiB, 8 times the file) are allocated. Throws Error, one line
/// naming the file: "dump_open" (missing, no regular file, neither container, damaged, or its
/// reader died), "dump_format" (not a trace, or of another version; an npz without `shardproof`, or
/// one that is no JSON object), "dump_value" (an array of an unsupported type, named; attributes
/// of shards that differ; a value both whole and in shards; a chip group that is not X_Y_Z),
/// "dump_size" (declares more than the above). With Unread::left an array of an unsupported type is
/// no error: its value says so.
Dump read_dump(const std::filesystem::path& path, Unread unread = Unread::refused);

}  // namespace shardproof::dump
