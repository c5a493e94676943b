#include "golden/trace/pair/places.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "golden/trace/claim/arithmetic_declaration.h"
#include "golden/trace/layout/arrays.h"
#include "weights/base/detail/index.h"
#include "weights/base/detail/words.h"

namespace shardproof::dump {
namespace {

/// Reads a list of whole numbers, one for each of `count` rows; empty if there is no attribute.
std::vector<std::int64_t> numbers_of(const Dump& dump, std::string_view name, std::int64_t count) {
  std::vector<std::int64_t> numbers;
  const std::string* const text = find(dump.attributes, name);
  if (text == nullptr) return numbers;
  for (const std::string_view word : split(*text, ",")) {
    const char* const end = word.data() + word.size();
    const auto [at, error] = std::from_chars(word.data(), end, numbers.emplace_back());
    if (word.empty() || error != std::errc() || at != end)
      reject_attribute(name, *text, fmt::format("{:?} is not a whole number", word));
  }
  if (std::ssize(numbers) != count)
    reject_attribute(name, *text, fmt::format("{} numbers, of {} rows", numbers.size(), count));
  return numbers;
}

/// Returns the whole numbers of an array [count]; empty if the trace has none of that name.
std::vector<std::int64_t> array_of(const Dump& dump, const std::string& name, std::int64_t count) {
  std::vector<std::int64_t> numbers;
  const auto found = dump.values.find(name);
  if (found == dump.values.end()) return numbers;
  const StoredArray& array = found->second.whole;
  if (found->second.in_shards() || std::ssize(array.shape) > 2 ||
      static_cast<std::int64_t>(array.size()) != count)
    reject_attribute(name, in_brackets(array.shape),
                     fmt::format("a map has one number for each of {}", count));
  for (std::size_t i = 0; i < array.size(); ++i) {
    const double v = array.at(i);
    if (!(v >= -1 && v <= 0x1p40) || v != std::floor(v))
      reject_attribute(name, fmt::format("{}", v), "legal: whole numbers from -1");
    numbers.push_back(static_cast<std::int64_t>(v));
  }
  return numbers;
}

/// Replaces what the trace's own arrays say.
void take_arrays(const Dump& dump, const std::string& pass, PassPlaces& places) {
  const auto rows = array_of(dump, pass + ".rows", places.B);
  for (std::size_t b = 0; b < rows.size(); ++b) {
    places.rows[b].clear();
    if (rows[b] >= 0) places.rows[b].push_back(rows[b]);
  }
  const auto positions = array_of(dump, pass + ".positions", places.B * places.L);
  if (!positions.empty()) places.positions = positions;
}

/// Finds the last token of each row.
void find_last(PassPlaces& places) {
  for (std::int64_t b = 0; b < places.B; ++b) {
    std::int64_t& last = places.last.emplace_back(-1);
    for (std::int64_t l = 0; l < places.L; ++l)
      if (places.positions[at(b * places.L + l)] >= 0) last = l;
  }
}

}  // namespace

TokenPlaces places_of(const Claim& claim, const Dump& dump) {
  const Passes passes = claim.source_case.passes();
  const SharedPrefix prefix = passes.prefix();
  const std::int64_t batch = passes.batch();
  std::vector<std::int64_t> numbers = claim.rows;
  for (std::int64_t b = 0; numbers.empty() ? true : std::ssize(numbers) < batch; ++b)
    numbers.push_back(b);
  const std::vector<std::int64_t> shifts = numbers_of(dump, "positions", batch);
  TokenPlaces all;
  for (std::int64_t i = 0; i < passes.size(); ++i) {
    const PassPlan pass = passes.at(i);
    PassPlaces& places = all[pass.name];
    places.B = pass.batch(), places.L = pass.L;
    places.first_slot = pass.prefix.given() ? pass.prefix.length : 0;
    const bool shared = pass.phase == Phase::prefix;
    places.rows.resize(at(places.B));
    for (std::int64_t b = 0; b < batch; ++b)
      places.rows[at(shared ? prefix.of_row(b, batch) : b)].push_back(numbers[at(b)]);
    for (const PassRows& group : pass.rows)
      for (std::int64_t n = 0; n < group.rows; ++n) {
        const auto row = std::ssize(places.positions) / std::max<std::int64_t>(pass.L, 1);
        const std::int64_t shift = shifts.empty() || shared ? 0 : shifts[at(row)];
        for (std::int64_t l = 0; l < pass.L; ++l) {
          places.own.push_back(l < group.tokens ? group.start + l : -1);
          places.positions.push_back(l < group.tokens ? group.start + l + shift : -1);
        }
      }
    find_last(places);  // of the case: what has no L is of this one, also if it was rejected
    take_arrays(dump, pass.name, places);
  }
  return all;
}

TokenPlaces places_of(const std::vector<std::pair<std::string, Shape>>& passes, const Dump& dump) {
  TokenPlaces all;
  std::int64_t start = 0, prefix = 0, batch = 0;
  for (const auto& [name, extents] : passes)
    if (!name.starts_with("prefix.") && batch == 0) batch = extents[0];
  for (const auto& [name, extents] : passes) {
    PassPlaces& places = all[name];
    places.B = extents[0], places.L = extents[1];
    // Neighbouring rows of the batch share a prefix.
    const bool shared = name.starts_with("prefix.") && batch > 0;
    const std::int64_t rows = shared ? batch : places.B;
    const auto numbers = numbers_of(dump, "rows", rows);
    const auto shifts = numbers_of(dump, "positions", rows);
    places.rows.resize(at(places.B));
    for (std::int64_t b = 0; b < rows && places.B > 0; ++b)
      places.rows[at(shared ? SharedPrefix{places.L, places.B}.of_row(b, batch) : b)].push_back(
          numbers.empty() ? b : numbers[at(b)]);
    for (std::int64_t b = 0; b < places.B; ++b)
      for (std::int64_t l = 0; l < places.L; ++l)
        places.positions.push_back(start + l + (shifts.empty() || shared ? 0 : shifts[at(b)]));
    start += places.L;
    if (name.starts_with("prefix.")) prefix = start;
    places.first_slot = name.starts_with("prefix.") ? 0 : prefix;
    take_arrays(dump, name, places);
    find_last(places);
  }
  return all;
}

std::string without_pass(std::string name, const std::string& pass) {
  const std::size_t at = pass.empty() ? std::string::npos : name.find(pass + ".");
  return at == std::string::npos ? name : name.erase(at, pass.size() + 1);
}

std::int64_t place_of_pass(std::string_view name) {
  constexpr std::int64_t kMost = 1 << 30;
  std::int64_t phase = 0;
  for (const std::string_view begin : {"prefix.c", "prefill.c", "decode."}) {
    std::int64_t number = -1;
    if (name.starts_with(begin)) {
      const char* const end = name.data() + name.size();
      const auto [at, error] = std::from_chars(name.data() + begin.size(), end, number);
      return error == std::errc() && at == end && number >= 0 && number < kMost
                 ? phase * kMost + number
                 : -1;
    }
    ++phase;
  }
  return -1;
}

}  // namespace shardproof::dump
