#include "golden/judge/sampling_value.h"

#include <algorithm>
#include <bit>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "oracle/model/detail/sampling.h"
#include "weights/model/registry.h"

namespace shardproof {
namespace {

/// The values of random sampling that follow from one row of logits.
struct Row {
  Row(std::span<const float> logits, const Draws& draws)
      : chances(oracle::chances(logits, draws.sampling.temperature, draws.unit)),
        in_top_k(chances) {
    const Sampling& how = draws.sampling;
    if (how.top_k > 0) {
      top_k_floor = oracle::top_k_floor(chances, how.top_k);
      in_top_k = oracle::kept(chances, top_k_floor);
    }
    kept = in_top_k;
    if (how.top_p < 1) {
      top_p_floor = oracle::top_p_floor(in_top_k, how.top_p);
      kept = oracle::kept(in_top_k, top_p_floor);
    }
  }

  std::vector<float> chances, in_top_k, kept;
  float top_k_floor = 0.0F, top_p_floor = 0.0F;
};

void put(std::vector<std::uint32_t>& bits, std::span<const float> numbers) {
  for (const float v : numbers) bits.push_back(std::bit_cast<std::uint32_t>(v));
}

/// Returns a value's bits for one row. Blocks have `width` ids; the last may have fewer, or none.
std::vector<std::uint32_t> of_row(std::string_view name, const Row& row, const Draws& draws,
                                  std::size_t b, std::int64_t blocks, std::int64_t width) {
  std::vector<std::uint32_t> bits;
  const auto block = [&](std::int64_t c) {
    const std::int64_t V = std::ssize(row.kept), first = std::min(c * width, V);
    return std::span<const float>(row.kept).subspan(
        static_cast<std::size_t>(first), static_cast<std::size_t>(std::min(width, V - first)));
  };
  if (name == "chances") {
    put(bits, row.chances);
  } else if (name == "top_k_floor") {
    put(bits, {&row.top_k_floor, 1});
  } else if (name == "top_k_counts") {
    bits = oracle::search_counts(row.chances, row.top_k_floor);
  } else if (name == "top_k_chances") {
    put(bits, row.in_top_k);
  } else if (name == "top_p_floor") {
    put(bits, {&row.top_p_floor, 1});
  } else if (name == "top_p_sums") {
    bits = oracle::search_sums(row.in_top_k, row.top_p_floor);
  } else if (name == "top_p_chances") {
    put(bits, row.kept);
  } else if (name == "masses") {
    for (std::int64_t c = 0; c < blocks; ++c) {
      const std::vector<std::uint32_t> words = oracle::words_of(oracle::sum_of_chances(block(c)));
      bits.insert(bits.end(), words.begin(), words.end());
    }
  } else {
    const std::int64_t token = oracle::drawn(row.kept, draws.seed, draws.of(b));
    for (std::int64_t c = 0; c < blocks; ++c) {
      const bool hit = token / width == c;
      bits.push_back(name == "hits" ? std::bit_cast<std::uint32_t>(hit ? 1.0F : 0.0F)
                                    : static_cast<std::uint32_t>(hit ? token : c * width));
    }
  }
  return bits;
}

}  // namespace

bool has_drawing(const Draws& draws, std::string_view name) {
  const ValueRow* const row = value_row(name);
  const Sampling& how = draws.sampling;
  return row != nullptr && row->drawing && how.sample == Sample::random &&
         (how.top_k > 0 || !name.starts_with("top_k")) &&
         (how.top_p < 1 || !name.starts_with("top_p"));
}

ExpectedBits sampling_value(std::string_view name, const Tensor& logits, const Draws& draws,
                            std::int64_t blocks, std::int64_t placed_V) {
  const ValueRow* const known = value_row(name);
  const std::int64_t B = logits.shape.at(0), V = logits.shape.at(1);
  const std::int64_t placed = std::max(V, placed_V);
  if (!has_drawing(draws, name) || blocks < 1 || placed % blocks != 0)
    throw std::out_of_range("this sampling has no " + std::string(name));
  ExpectedBits all{.shape = {}, .bits = {}, .integer = known->integer};
  for (const char letter : known->dims)
    all.shape.push_back(letter == 'B'   ? B
                        : letter == 'V' ? V
                        : letter == 'C' ? blocks
                                        : known->words);
  std::vector<std::uint32_t> of_rows;
  for (std::int64_t b = 0; b < B; ++b) {
    const Row row({logits.data.data() + b * V, static_cast<std::size_t>(V)}, draws);
    const std::vector<std::uint32_t> bits =
        of_row(name, row, draws, static_cast<std::size_t>(b), blocks, placed / blocks);
    of_rows.insert(of_rows.end(), bits.begin(), bits.end());
  }
  all.bits = std::move(of_rows);
  return all;
}

}  // namespace shardproof
