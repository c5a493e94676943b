#pragma once

#include <string>
#include <string_view>

#include "weights/base/error.h"

namespace shardproof {

/// Rethrows the error under its label, with the place before its message and a suffix, where the
/// rule is documented, after it.
[[noreturn]] inline void rethrow_about(const Error& error, std::string_view where,
                                       std::string_view suffix = "") {
  throw Error(error.label(), std::string(where) + error.message() + std::string(suffix));
}

}  // namespace shardproof
