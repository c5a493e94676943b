#include "weights/storage/detail/weight_source.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <span>
#include <string_view>
#include <tuple>
#include <vector>

#include "weights/base/detail/each_part.h"
#include "weights/storage/detail/philox.h"
#include "weights/storage/generator.h"

namespace shardproof {
namespace {

// A matrix element is u·m·2^-s: u from [-R, R], R at most 2^17, times its output channel's
// multiplier m from [8, 80]. |u·m| < 2^24, so the product is exact in f32.
constexpr std::int64_t kLeastMultiplier = 8;
constexpr std::int64_t kMostMultiplier = 80;
constexpr std::uint64_t kMeanSquareMultiplier = 2380;  // mean of m² over 8..80, rounded
constexpr int kElementBits = 17;

// The words of one stream, in order.
class Stream {
 public:
  static constexpr std::size_t kRun = std::tuple_size_v<PhiloxRun>;

  Stream(std::uint64_t seed, std::string_view name) : seed_(seed), hash_(fnv1a(name)) {}

  std::uint32_t operator[](std::int64_t index) {
    const auto i = static_cast<std::uint64_t>(index);
    if (i / kRun != run_) {
      run_ = i / kRun;
      words_ = philox_run(seed_, hash_, run_ * kPhiloxBlocks);
    }
    return words_[i % kRun];
  }
  /// Calls see(index, words) for runs of words that are together those of first to last.
  template <class See>
  void each_run(std::size_t first, std::size_t last, See&& see) const {
    for (std::size_t at = first; at < last;) {
      const std::size_t skipped = at % kRun, count = std::min(kRun - skipped, last - at);
      const PhiloxRun words = philox_run(seed_, hash_, at / kRun * kPhiloxBlocks);
      see(at, std::span(words).subspan(skipped, count));
      at += count;
    }
  }

 private:
  std::uint64_t seed_, hash_;
  std::uint64_t run_ = std::numeric_limits<std::uint64_t>::max();
  PhiloxRun words_{};
};

float scaled(std::int64_t integer, int shift) {
  return std::ldexp(static_cast<float>(integer), -shift);
}

// Mean square of a contraction's result, as a fraction, for inputs of mean square 1.
struct Gain {
  std::uint64_t numerator = 1, denominator = 1;
};

Gain gain_of(std::string_view name) {
  const std::string_view part = name.substr(name.find('.') + 1);
  if (part == "wo") return {1, 4};     // with w_out: a block's addition stays below its input
  if (part == "w_out") return {1, 2};  // the hidden activations are below 1
  return {};
}

// R and s for which u·m·2^-s has mean square gain/fan_in; the mean square of u is about R²/3.
struct Scale {
  std::int64_t range = 0;
  int shift = 0;
};

Scale scale_for(std::int64_t fan_in, Gain gain) {
  std::uint64_t divisor =
      kMeanSquareMultiplier * gain.denominator * static_cast<std::uint64_t>(fan_in);
  std::uint64_t square = 3 * gain.numerator;
  int shift = 0;
  for (; divisor >= (1U << 24); divisor /= 4) ++shift;
  for (; square / divisor < (1ULL << (2 * kElementBits - 2)); square *= 4) ++shift;
  std::int64_t range = 0;
  for (std::int64_t bit = 1LL << kElementBits; bit > 0; bit /= 2) {
    const auto next = static_cast<std::uint64_t>(range + bit);
    if (next * next <= square / divisor) range += bit;
  }
  return {range, shift};
}

Tensor generate_matrix(const WeightSource& source, std::uint64_t seed) {
  Tensor tensor(source.shape);
  const std::int64_t channels = source.letters.front() == 'E'
                                    ? element_count(source.shape) / source.shape.front()
                                    : source.shape.back();
  Stream multiplier_words(seed, source.id + "/channel");
  std::vector<std::int32_t> multipliers(static_cast<std::size_t>(channels));
  for (std::int64_t c = 0; c < channels; ++c) {
    multipliers[static_cast<std::size_t>(c)] =
        static_cast<std::int32_t>(ranged(multiplier_words[c], kLeastMultiplier, kMostMultiplier));
  }
  const Scale scale = scale_for(source.fan_in, gain_of(source.id));
  // Multiplying by a power of two gives the same result as ldexp.
  const float unit = std::ldexp(1.0F, -scale.shift);
  constexpr std::size_t kLeast = std::size_t{1} << 18;  // elements for which a thread is started
  each_part(tensor.data.size(), kLeast, [&](std::size_t first, std::size_t last) {
    const Stream stream(seed, source.id);
    const auto low = static_cast<std::int32_t>(-scale.range);
    const auto count = static_cast<std::uint64_t>(2 * scale.range + 1);
    std::array<std::int32_t, Stream::kRun> elements;
    stream.each_run(first, last, [&](std::size_t at, std::span<const std::uint32_t> words) {
      for (std::size_t i = 0; i < words.size(); ++i)  // as ranged()
        elements[i] = low + static_cast<std::int32_t>((words[i] * count) >> 32);
      std::size_t channel = at % multipliers.size();
      for (std::size_t i = 0; i < words.size();) {
        const std::size_t end = std::min(words.size(), i + multipliers.size() - channel);
        for (; i < end; ++i, ++channel)
          tensor.data[at + i] = static_cast<float>(elements[i] * multipliers[channel]) * unit;
        channel = 0;
      }
    });
  });
  return tensor;
}

// Norm gains: from 0.5 to 1.5 in steps of 2^-17. The final norm's have either sign: with a tied
// table, all-positive gains would make every token predict itself, and hide a stale input.
Tensor generate_gains(const WeightSource& source, std::uint64_t seed) {
  Stream words(seed, source.id);
  Tensor tensor(source.shape);
  std::int64_t index = 0;
  for (float& value : tensor.data) {
    const std::uint32_t word = words[index++];
    const std::int64_t size = ranged(word, 1 << 16, 3 << 16);
    value = scaled(source.either_sign && (word & 1U) != 0 ? -size : size, 17);
  }
  return tensor;
}

// Biases: of either sign, from 1/16 to 1/4 in steps of 2^-25, never zero.
Tensor generate_biases(const WeightSource& source, std::uint64_t seed) {
  Stream words(seed, source.id);
  Tensor tensor(source.shape);
  std::int64_t index = 0;
  for (float& value : tensor.data) {
    const std::uint32_t word = words[index++];
    const std::int64_t size = ranged(word, 1 << 21, 1 << 23);
    value = scaled((word & 1U) != 0 ? -size : size, 25);
  }
  return tensor;
}

Tensor rope_table(const WeightSource& source, double (*wave)(double)) {
  const std::int64_t pairs = source.shape[1];
  std::vector<double> frequency;
  for (std::int64_t j = 0; j < pairs; ++j) {
    frequency.push_back(std::pow(source.theta, -2.0 * static_cast<double>(j) / source.rotated));
  }
  Tensor table(source.shape);
  std::int64_t index = 0;
  for (float& value : table.data) {
    const std::int64_t position = index / pairs;
    const auto pair = static_cast<std::size_t>(index % pairs);
    value = static_cast<float>(wave(static_cast<double>(position) * frequency[pair]));
    ++index;
  }
  return table;
}

// ALiBi's rule: n heads, n a power of two, have 2^(-8(i+1)/n). Any other number has the slopes of
// the next lower power of two, then every second slope of the next higher one.
Tensor alibi_slopes(const WeightSource& source) {
  const std::int64_t heads = source.shape[0];
  std::int64_t n = 1;
  while (2 * n <= heads) n *= 2;
  Tensor tensor(source.shape);
  for (std::int64_t h = 0; h < heads; ++h) {
    const std::int64_t step = h < n ? 2 * (h + 1) : 2 * (h - n) + 1;  // in steps of -4/n
    tensor.data[static_cast<std::size_t>(h)] =
        static_cast<float>(std::exp2(-4.0 * static_cast<double>(step) / static_cast<double>(n)));
  }
  return tensor;
}

}  // namespace

Tensor generate_weight(const WeightSource& source, std::uint64_t seed) {
  switch (source.kind) {
    case TextWeightKind::gain:
      return generate_gains(source, seed);
    case TextWeightKind::bias:
      return generate_biases(source, seed);
    case TextWeightKind::cosines:
      return rope_table(source, std::cos);
    case TextWeightKind::sines:
      return rope_table(source, std::sin);
    case TextWeightKind::slopes:
      return alibi_slopes(source);
    case TextWeightKind::table:
    case TextWeightKind::matrix:
    case TextWeightKind::by_use:
      break;
  }
  return generate_matrix(source, seed);
}

}  // namespace shardproof
