#include "tools/command/number_list.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

namespace shardproof::tools {
namespace {

[[noreturn]] void refuse_numbers(std::string_view flag, std::string_view text, std::int64_t most) {
  if (most == 1) throw Error("flag_c10", fmt::format("{} '{}': legal is 1 alone", flag, text));
  // The message's examples must be legal, too.
  const bool few = most < 256;
  throw Error(
      "flag_c10",
      fmt::format("{} '{}': legal are whole numbers from 1 to {}, as {} or, from one to "
                  "another, {}",
                  flag, text, most, few ? fmt::format("{}, 1,{}", most, most) : "64, 1,8,64",
                  few ? fmt::format("1-{}", most) : "8-256"));
}

}  // namespace

NumberList parse_numbers(std::string_view flag, std::string_view text, std::int64_t most,
                         bool all_of_range) {
  NumberList list;
  const auto number = [&](std::string_view word) {
    std::int64_t value = 0;
    const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
    if (error != std::errc() || end != word.data() + word.size() || value < 1 || value > most)
      refuse_numbers(flag, text, most);
    return value;
  };
  const auto add = [&](std::int64_t value) {
    if (std::find(list.numbers.begin(), list.numbers.end(), value) == list.numbers.end())
      list.numbers.push_back(value);
  };
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t comma = std::min(text.find(',', begin), text.size());
    const std::string_view word = text.substr(begin, comma - begin);
    begin = comma + 1;
    const std::size_t dash = word.find('-');
    if (dash == std::string_view::npos) {
      add(number(word));
      continue;
    }
    list.range = true;
    const std::int64_t first = number(word.substr(0, dash)), last = number(word.substr(dash + 1));
    if (first > last) refuse_numbers(flag, text, most);
    if (all_of_range)
      for (std::int64_t n = first; n <= last; ++n) add(n);
    else
      for (std::int64_t n = first; n <= last; n *= 2) add(n);
  }
  return list;
}

}  // namespace shardproof::tools
