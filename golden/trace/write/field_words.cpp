#include "golden/trace/write/field_words.h"

#include <fmt/format.h>

#include <charconv>
#include <map>

#include "weights/base/detail/words.h"

namespace shardproof {
namespace {

constexpr std::uint64_t kLow = (std::uint64_t{1} << 31) - 1;

}  // namespace

std::string field_text(const FieldSetting& setting) {
  return fmt::format("seed={} bits={} lanes={} draw={}", setting.seed, setting.bits, setting.lanes,
                     setting.draw);
}

FieldSetting parse_field(std::string_view text) {
  const auto refuse = [&] {
    throw Error("dump_attribute",
                fmt::format("field={:?}: legal: seed=N bits=N lanes=1 to 3 draw=0 or 1",
                            text.substr(0, 200)));
  };
  std::map<std::string_view, std::uint64_t> numbers;
  for (const std::string_view word : split(text, " ")) {
    const std::size_t equals = word.find('=');
    std::uint64_t number = 0;
    const char* const end = word.data() + word.size();
    if (equals == std::string_view::npos) refuse();
    const auto [at, error] = std::from_chars(word.data() + equals + 1, end, number);
    if (error != std::errc() || at != end) refuse();
    numbers[word.substr(0, equals)] = number;
  }
  for (const std::string_view key : {"seed", "bits", "lanes", "draw"})
    if (numbers.size() != 4 || !numbers.contains(key)) refuse();
  if (numbers["bits"] > 61 || numbers["lanes"] < 1 || numbers["lanes"] > 3 || numbers["draw"] > 1)
    refuse();
  return {numbers["seed"], static_cast<int>(numbers["bits"]), static_cast<int>(numbers["lanes"]),
          static_cast<int>(numbers["draw"])};
}

std::vector<std::int32_t> to_words(std::span<const FieldElement> numbers,
                                   const FieldSetting& setting) {
  std::vector<std::int32_t> words;
  words.reserve(numbers.size() * static_cast<std::size_t>(words_of(setting)));
  for (const FieldElement& number : numbers)
    for (std::size_t lane = 0; lane < static_cast<std::size_t>(setting.lanes); ++lane) {
      words.push_back(static_cast<std::int32_t>(number.lane[lane] & kLow));
      words.push_back(static_cast<std::int32_t>(number.lane[lane] >> 31));  // -1: never written
    }
  return words;
}

std::vector<FieldElement> from_words(std::span<const std::int32_t> words,
                                     const FieldSetting& setting) {
  std::vector<FieldElement> numbers;
  const auto each = static_cast<std::size_t>(words_of(setting));
  for (std::size_t i = 0; i + each <= words.size(); i += each) {
    FieldElement number{};
    bool written = true;
    for (std::size_t w = 0; w < each; w += 2) {
      const std::int32_t low = words[i + w], high = words[i + w + 1];
      written = written && low >= 0 && high >= 0;
      number.lane[w / 2] = static_cast<std::uint64_t>(static_cast<std::uint32_t>(low)) |
                           static_cast<std::uint64_t>(static_cast<std::uint32_t>(high)) << 31;
    }
    numbers.push_back(written ? number : Field::unwritten());
  }
  return numbers;
}

}  // namespace shardproof
