#include "weights/storage/detail/weight_source.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <span>
#include <string_view>
#include <vector>

#include "weights/base/detail/each_part.h"
#include "weights/random/detail/kernels.h"
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

// The words of one stream, by their numbers.
class Stream {
 public:
  Stream(std::uint64_t seed, std::string_view name) : stream_{seed, fnv1a(name)} {}

  std::uint32_t operator[](std::int64_t number) {
    if (number / kRunWords != run_) {
      run_ = number / kRunWords;
      random_kernels().words(stream_, static_cast<RandomPair>(run_) * kRunIndices, 1,
                             words_.data());
    }
    return words_[static_cast<std::size_t>(number % kRunWords)];
  }

 private:
  RandomStream stream_;
  std::int64_t run_ = -1;
  std::array<std::uint32_t, kRunWords> words_{};
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

// The elements of a matrix, by their row-major numbers.
class Elements {
 public:
  Elements(const WeightSource& source, std::uint64_t seed) : stream_{seed, fnv1a(source.id)} {
    const Scale scale = scale_for(source.fan_in, gain_of(source.id));
    range_ = {static_cast<std::int32_t>(-scale.range),
              static_cast<std::uint32_t>(2 * scale.range + 1)};
    channels_ = source.letters.front() == 'E' ? element_count(source.shape) / source.shape.front()
                                              : source.shape.back();
    Stream words(seed, source.id + "/channel");
    for (std::int64_t c = 0; c < channels_; ++c)
      factors_.push_back(scaled(ranged(words[c], kLeastMultiplier, kMostMultiplier), scale.shift));
    for (std::size_t i = 0; i + 1 < kRunWords; ++i) factors_.push_back(factors_[i]);
  }

  void generate(std::size_t first, std::span<float> out) const {
    const auto at = static_cast<std::int64_t>(first);
    const std::size_t before = std::min(out.size(), (kRunWords - first % kRunWords) % kRunWords);
    const std::size_t runs = (out.size() - before) / kRunWords, after = before + runs * kRunWords;
    generate_in_run(at, out.first(before));
    generate_runs(at + static_cast<std::int64_t>(before), runs, out.data() + before);
    generate_in_run(at + static_cast<std::int64_t>(after), out.subspan(after));
  }

 private:
  void generate_runs(std::int64_t first, std::size_t runs, float* out) const {
    random_kernels().products(stream_, static_cast<RandomPair>(first / 4), static_cast<long>(runs),
                              range_, {factors_.data(), channels_}, first % channels_, out);
  }
  void generate_in_run(std::int64_t first, std::span<float> out) const {
    if (out.empty()) return;
    std::array<float, kRunWords> run;
    const std::int64_t skipped = first % kRunWords;
    generate_runs(first - skipped, 1, run.data());
    std::copy_n(run.begin() + skipped, out.size(), out.begin());
  }

  RandomStream stream_;
  RandomRange range_{};
  std::vector<float> factors_;  // m·2^-s, as RepeatedFactors
  std::int64_t channels_ = 0;
};

Tensor generate_matrix(const WeightSource& source, std::uint64_t seed) {
  Tensor tensor(source.shape);
  const Elements elements(source, seed);
  constexpr std::size_t kLeast = std::size_t{1} << 18;  // elements for which a thread is started
  each_part(tensor.data.size(), kLeast, [&](std::size_t first, std::size_t last) {
    elements.generate(first, std::span(tensor.data).subspan(first, last - first));
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
