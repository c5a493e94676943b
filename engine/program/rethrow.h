#pragma once

#include <string>
#include <string_view>

#include "weights/error.h"

namespace shardproof {

/// The same rule broken, said with its place in front and, behind, where the rule is documented.
[[noreturn]] inline void rethrow_about(const Error& error, std::string_view where,
                                       std::string_view behind = "") {
  const std::string_view what = error.what();
  const std::string_view message = what.substr(error.label().size() + 2);
  throw Error(error.label(), std::string(where) + std::string(message) + std::string(behind));
}

}  // namespace shardproof
