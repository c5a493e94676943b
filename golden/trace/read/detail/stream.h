#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "golden/trace/read/detail/allowance.h"
#include "golden/trace/read/detail/sink.h"

namespace shardproof::dump {

/// Writes a reader's output to a pipe. Each record is a byte for its kind, then numbers of 8 bytes,
/// and texts as length and bytes; an array is followed by its pieces, between which an error record
/// may come. Throws std::runtime_error if the pipe breaks.
class StreamWriter : public Sink {
 public:
  explicit StreamWriter(int pipe) : pipe_(pipe) {}

  void attribute(std::string_view name, std::string_view text) override;
  void array(std::string_view path, const Attributes& attributes, NumberFormat encoding,
             const Shape& shape) override;
  void bytes(std::span<const std::byte> piece) override;
  void in_file(std::uint64_t first) override;
  void unread(std::string_view path, const Attributes& attributes, std::string_view why) override;
  void ignored(std::string_view name) override;

  /// Writes the last record: success, or the error.
  void end();
  void end(const Error& error);

 private:
  void number(std::uint64_t value);
  void text(std::string_view value);
  void kind(char value);
  void all(const Attributes& attributes);
  void raw(const void* bytes, std::size_t size);
  void send(const char* bytes, std::size_t size) const;
  void flush();

  int pipe_;
  std::vector<char> buffer_;
};

/// The stream was not written by a StreamWriter, or it stalled.
struct BrokenStream : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// The stream ends before its last record: the writer died.
struct EndOfStream : BrokenStream {
  using BrokenStream::BrokenStream;
};

/// Reads such a stream to its end and assembles the trace. Trusts no length in it: each must fit in
/// the allowance. Throws BrokenStream, EndOfStream; the writer's Error, or "dump_value" (a
/// duplicate value, a value both whole and in shards, shards with different attributes, a chip
/// group that is not X_Y_Z), "dump_size".
class StreamReader {
 public:
  /// Waits at most `seconds` for each piece of the stream. `file`: the bytes of the file, of which
  /// arrays may be a part.
  StreamReader(int pipe, std::uint64_t allowance, int seconds,
               std::span<const std::byte> file = {});

  Dump read();

 private:
  bool record(Dump& dump);
  void array(Dump& dump);
  void unread(Dump& dump);
  Attributes attributes();
  void content(StoredArray& array, std::uint64_t bytes);
  void pieces(std::span<std::byte> rest, char kind);
  [[noreturn]] void error();
  /// Returns whether the attributes were kept.
  bool place(Dump& dump, const std::string& path, Attributes attributes, StoredArray stored);
  std::uint64_t number();
  std::string text(std::size_t longest = kLongestText);
  void raw(void* bytes, std::size_t size);
  std::size_t some(void* bytes, std::size_t size) const;

  int pipe_;
  int seconds_;
  std::span<const std::byte> file_;
  Allowance allowance_;
  std::vector<char> buffer_;
  std::size_t at_ = 0, filled_ = 0;
};

}  // namespace shardproof::dump
