#pragma once

// What every fuzz target is: a text goes in, and an Error of one line may come out.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>

#include "weights/base/error.h"

namespace shardproof {

/// Ends the process, which libFuzzer takes for a finding, if `held` is not so.
inline void must(bool held) {
  if (!held) std::abort();
}

/// Calls `read` and takes its Error, whose message must be one line.
template <class Read>
void fuzzed(Read&& read) {
  try {
    read();
  } catch (const Error& error) {
    must(std::strchr(error.what(), '\n') == nullptr);
    must(!error.label().empty());
  }
}

inline std::string text_of(const std::uint8_t* data, std::size_t size) {
  return {reinterpret_cast<const char*>(data), size};
}

}  // namespace shardproof

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);
