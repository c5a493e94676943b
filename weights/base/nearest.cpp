#include "weights/base/nearest.h"

#include <algorithm>
#include <cctype>
#include <cstdint>
#include <limits>
#include <utility>

namespace shardproof {

std::string nearest(std::string_view word, const std::vector<std::string>& legal) {
  constexpr std::size_t kLongest = 64;
  if (word.size() > kLongest) return "";
  const auto lower = [](char c) { return std::tolower(static_cast<unsigned char>(c)); };
  std::string best;
  std::size_t least = std::numeric_limits<std::size_t>::max();
  for (const std::string& candidate : legal) {
    std::vector<std::size_t> row(candidate.size() + 1);
    for (std::size_t j = 0; j < row.size(); ++j) row[j] = j;
    for (std::size_t i = 1; i <= word.size(); ++i) {
      std::size_t diagonal = row[0];
      row[0] = i;
      for (std::size_t j = 1; j < row.size(); ++j) {
        const std::size_t change = lower(word[i - 1]) == lower(candidate[j - 1]) ? 0 : 1;
        const std::size_t edits = std::min({row[j] + 1, row[j - 1] + 1, diagonal + change});
        diagonal = std::exchange(row[j], edits);
      }
    }
    // Two swapped letters are two edits: "torsu" is near "torus".
    const bool near = 5 * row.back() <= 2 * std::max(word.size(), candidate.size());
    if (near && row.back() < least) {
      least = row.back();
      best = candidate;
    }
  }
  return best;
}

}  // namespace shardproof
