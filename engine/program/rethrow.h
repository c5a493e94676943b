#pragma once

#include <string>
#include <string_view>

#include "weights/error.h"

namespace shardproof {

/// The same rule broken, said with its place in front and, behind, where the rule is documented.
[[noreturn]] inline void rethrow_about(const Error& error, std::string_view where,
                                       std::string_view behind = "") {
  throw Error(error.label(), std::string(where) + error.message() + std::string(behind));
}

}  // namespace shardproof
