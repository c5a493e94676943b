#include "weights/storage/row_lengths.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <charconv>

#include "weights/base/detail/words.h"
#include "weights/storage/generator.h"

namespace shardproof {

std::string RowLengths::to_string() const {
  return ragged ? "ragged" : fmt::format("{}", fmt::join(cycle, ","));
}

RowLengths parse_row_lengths(std::string_view text) {
  if (text == "ragged") return {true, {}};
  RowLengths lengths;
  for (const std::string_view word : split(text, ",")) {
    std::int64_t value = 0;
    const char* const end = word.data() + word.size();
    const auto [at, error] = std::from_chars(word.data(), end, value);
    if (error != std::errc() || at != end)
      throw Error(
          "case_lengths",
          fmt::format("lengths={}: '{}' is not a length; legal: ragged, or numbers with commas "
                      "between them",
                      text, word));
    if (value < 1)
      throw Error("case_lengths",
                  fmt::format("lengths={}: a row has at least 1 token, not {}; nearest legal: 1",
                              text, value));
    lengths.cycle.push_back(value);
  }
  return lengths;
}

std::vector<std::int64_t> lengths_of_rows(const RowLengths& lengths, std::uint64_t seed,
                                          std::int64_t batch, std::int64_t prompt,
                                          std::int64_t prefix) {
  for (const std::int64_t length : lengths.cycle)
    if (length < 1 || length > prompt)
      throw Error("case_lengths",
                  fmt::format("lengths={}: a row has from 1 to prompt={} tokens, not {}; nearest "
                              "legal: {}",
                              lengths.to_string(), prompt, length, length < 1 ? 1 : prompt));
  if (std::ssize(lengths.cycle) > batch)
    throw Error("case_lengths",
                fmt::format("lengths={}: {} lengths for batch={}; nearest legal: {} lengths",
                            lengths.to_string(), lengths.cycle.size(), batch, batch));
  std::vector<std::int64_t> of_rows(static_cast<std::size_t>(batch), prompt);
  for (std::size_t r = 0; r < of_rows.size(); ++r)
    if (lengths.ragged)
      of_rows[r] = prefix + ranged(counter_random(seed, "length", r)[0], 1, prompt - prefix);
    else if (!lengths.cycle.empty())
      of_rows[r] = lengths.cycle[r % lengths.cycle.size()];
  return of_rows;
}

}  // namespace shardproof
