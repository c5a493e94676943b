#pragma once

#include <cstdint>
#include <functional>

#include "golden/trace/read/detail/sink.h"

namespace shardproof::dump {

/// What a child that reads a file may take.
struct Limits {
  std::uint64_t bytes;         ///< beyond what this process has already
  int processor_seconds = 60;  ///< then the system ends it
  int silent_seconds = 300;    ///< then this process does
};

/// Of a file of so many bytes: max(64 MiB, 8 times the file), and a minute for each 128 MiB.
Limits limits_of(std::uint64_t file_bytes);

/// Reads one file and tells what it finds. Runs in the child, where an Error that it throws is
/// passed on.
using Reader = std::function<void(Sink&)>;

/// Runs `reader` in a child process under these limits, and puts together what it tells. The child
/// is a fork of this process without an exec: it has no other file than the pipe and what the
/// reader opens, no standard streams, default signal handlers, and ends without running what this
/// process has for its exit. It has this thread alone, so a library whose lock another thread holds
/// at that moment is locked for ever in it: no other thread may be in HDF5 or zlib's libzip then
/// (malloc is safe in glibc's forks); the child is given up after `silent_seconds`. The limit on
/// memory is on address space, RLIMIT_AS; under a sanitizer, which reserves terabytes, there is
/// none, and only what the readers count is held back.
/// Throws Error: what the reader threw; "dump_open" if the child died, was too slow or told what
/// cannot be understood: the message begins with what became of it, as "the reader ended by signal
/// 11".
Dump read_in_child(const Reader& reader, const Limits& limits);

}  // namespace shardproof::dump
