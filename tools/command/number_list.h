#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "weights/base/error.h"

namespace shardproof::tools {

/// Numbers as a flag lists them: "64", "1,8,64", and with a dash from one number to another. Of a
/// range `all_of_range` says whether every number is meant, or the first and its doubles up to the
/// last.
struct NumberList {
  std::vector<std::int64_t> numbers;  ///< in the order given, without repetition
  bool range = false;                 ///< a range was given
};

/// Throws Error("flag_c10", ...) on any other text, and on numbers that are not 1 to `most`.
NumberList parse_numbers(std::string_view flag, std::string_view text, std::int64_t most,
                         bool all_of_range);

}  // namespace shardproof::tools
