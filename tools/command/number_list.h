#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "weights/base/error.h"

namespace shardproof::tools {

/// Numbers of a flag: "64", "1,8,64", and ranges with a dash, "8-256". `all_of_range` says whether
/// a range means every number, or the first and its doublings up to the last.
struct NumberList {
  std::vector<std::int64_t> numbers;  ///< in the order given, without repetition
  bool range = false;                 ///< a range was given
};

/// Parses a list. Throws Error("flag_c10", ...) on any other text, and on numbers outside [1,
/// most].
NumberList parse_numbers(std::string_view flag, std::string_view text, std::int64_t most,
                         bool all_of_range);

}  // namespace shardproof::tools
