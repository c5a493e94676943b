#pragma once

#include <cstdint>
#include <functional>
#include <span>

#include "golden/trace/read/detail/sink.h"

namespace shardproof::dump {

/// Resource limits of a child that reads a file.
struct Limits {
  std::uint64_t bytes;         ///< beyond those that this process already has
  int processor_seconds = 60;  ///< the system kills it after these
  int silent_seconds = 300;    ///< this process kills it after these
};

/// Limits for a file of this size: max(64 MiB, 8 times the file), and a minute per 128 MiB.
Limits limits_of(std::uint64_t file_bytes);

/// Reads one file into a sink. Runs in the child; the parent rethrows its Error.
using Reader = std::function<void(Sink&)>;

/// Runs `reader` in a child process under these limits, and assembles its output. The child is a
/// fork of this process without an exec: it has no file open but the pipe and those that the reader
/// opens, no standard streams, default signal handlers, and skips this process's exit handlers. It
/// has this thread alone, so a library lock that another thread holds at that moment stays locked
/// in it for ever: no other thread may be in HDF5 or zlib's libzip then (malloc is safe in glibc's
/// forks); the child is killed after `silent_seconds`. The memory limit is on address space,
/// RLIMIT_AS; under a sanitizer, which reserves terabytes, there is none, and only the readers' own
/// counts limit memory.
/// Throws Error: what the reader threw; "dump_open" if the child died, was too slow or sent invalid
/// records: the message begins with the cause, as in "the reader ended by signal 11".
/// `file`: the bytes of the file, which outlive the dump; arrays that lie in them are lent.
Dump read_in_child(const Reader& reader, const Limits& limits,
                   std::span<const std::byte> file = {});

}  // namespace shardproof::dump
