#pragma once

#include <string>
#include <string_view>

#include "weights/base/error.h"

namespace shardproof {

/// The same rule broken, said with its place in front and, at the end, where the rule is
/// documented.
[[noreturn]] inline void rethrow_about(const Error& error, std::string_view where,
                                       std::string_view suffix = "") {
  throw Error(error.label(), std::string(where) + error.message() + std::string(suffix));
}

}  // namespace shardproof
