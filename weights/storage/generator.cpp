#include "weights/storage/generator.h"

#include <Random123/philox.h>
#include <fmt/format.h>

#include <cmath>
#include <limits>
#include <numeric>
#include <utility>
#include <vector>

#include "weights/base/error.h"
#include "weights/model/registry.h"
#include "weights/storage/fold.h"

namespace shardproof {
namespace {

// A matrix element is u·m·2^-s: u from [-R, R], R at most 2^17, times its output channel's
// multiplier m from [8, 80]. |u·m| < 2^24, so the product is exact in f32.
constexpr std::int64_t kLeastMultiplier = 8;
constexpr std::int64_t kMostMultiplier = 80;
constexpr std::uint64_t kMeanSquareMultiplier = 2380;  // mean of m² over 8..80, rounded
constexpr int kElementBits = 17;

std::uint64_t fnv1a(std::string_view text) {
  std::uint64_t hash = 0xcbf29ce484222325U;
  for (char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3U;
  return hash;
}

// Returns the words of the stream whose name has this hash.
std::array<std::uint32_t, 4> philox_words(std::uint64_t seed, std::uint64_t hash,
                                          std::uint64_t index) {
  const auto low = [](std::uint64_t x) { return static_cast<std::uint32_t>(x); };
  const auto high = [](std::uint64_t x) { return static_cast<std::uint32_t>(x >> 32); };
  const r123::Philox4x32::ctr_type counter{{low(index), high(index), low(hash), high(hash)}};
  const r123::Philox4x32::key_type key{{low(seed), high(seed)}};
  const r123::Philox4x32::ctr_type words = r123::Philox4x32{}(counter, key);
  return {words[0], words[1], words[2], words[3]};
}

// The words of one stream, in order, four per Philox call.
class Stream {
 public:
  Stream(std::uint64_t seed, std::string_view name) : seed_(seed), hash_(fnv1a(name)) {}

  std::uint32_t operator[](std::int64_t index) {
    const auto i = static_cast<std::uint64_t>(index);
    if (i / 4 != block_) {
      block_ = i / 4;
      words_ = philox_words(seed_, hash_, block_);
    }
    return words_[i % 4];
  }

 private:
  std::uint64_t seed_, hash_;
  std::uint64_t block_ = std::numeric_limits<std::uint64_t>::max();
  std::array<std::uint32_t, 4> words_{};
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

Tensor generate_matrix(const WeightSpec& spec, std::uint64_t seed) {
  Tensor tensor(spec.shape);
  const std::int64_t channels =
      spec.dims.front() == 'E' ? element_count(spec.shape) / spec.shape.front() : spec.shape.back();
  Stream multiplier_words(seed, spec.name + "/channel");
  std::vector<std::int64_t> multipliers(static_cast<std::size_t>(channels));
  for (std::int64_t c = 0; c < channels; ++c) {
    multipliers[static_cast<std::size_t>(c)] =
        ranged(multiplier_words[c], kLeastMultiplier, kMostMultiplier);
  }
  const Scale scale = scale_for(spec.fan_in, gain_of(spec.name));
  // Multiplying by a power of two gives the same result as ldexp.
  const float unit = std::ldexp(1.0F, -scale.shift);
  Stream words(seed, spec.name);
  std::int64_t index = 0;
  std::size_t channel = 0;
  for (float& value : tensor.data) {
    const std::int64_t multiplier = multipliers[channel];
    value = static_cast<float>(ranged(words[index], -scale.range, scale.range) * multiplier) * unit;
    ++index;
    channel = channel + 1 == multipliers.size() ? 0 : channel + 1;
  }
  return tensor;
}

// Norm gains: from 0.5 to 1.5 in steps of 2^-17. The final norm's have either sign: with a tied
// table, all-positive gains would make every token predict itself, and hide a stale input.
Tensor generate_gains(const WeightSpec& spec, const WeightRow& row, std::uint64_t seed) {
  Stream words(seed, spec.name);
  const bool signs = !row.per_layer;
  Tensor tensor(spec.shape);
  std::int64_t index = 0;
  for (float& value : tensor.data) {
    const std::uint32_t word = words[index++];
    const std::int64_t size = ranged(word, 1 << 16, 3 << 16);
    value = scaled(signs && (word & 1U) != 0 ? -size : size, 17);
  }
  return tensor;
}

// Biases: of either sign, from 1/16 to 1/4 in steps of 2^-25, never zero.
Tensor generate_biases(const WeightSpec& spec, std::uint64_t seed) {
  Stream words(seed, spec.name);
  Tensor tensor(spec.shape);
  std::int64_t index = 0;
  for (float& value : tensor.data) {
    const std::uint32_t word = words[index++];
    const std::int64_t size = ranged(word, 1 << 21, 1 << 23);
    value = scaled((word & 1U) != 0 ? -size : size, 25);
  }
  return tensor;
}

Tensor rope_table(const ModelConfig& config, const WeightSpec& spec, double (*wave)(double)) {
  const double rotated = config.rotary * static_cast<double>(config.Q);
  const std::int64_t pairs = spec.shape[1];
  std::vector<double> frequency;
  for (std::int64_t j = 0; j < pairs; ++j) {
    frequency.push_back(std::pow(config.theta, -2.0 * static_cast<double>(j) / rotated));
  }
  Tensor table(spec.shape);
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
Tensor alibi_slopes(const WeightSpec& spec) {
  const std::int64_t heads = spec.shape[0];
  std::int64_t n = 1;
  while (2 * n <= heads) n *= 2;
  Tensor tensor(spec.shape);
  for (std::int64_t h = 0; h < heads; ++h) {
    const std::int64_t step = h < n ? 2 * (h + 1) : 2 * (h - n) + 1;  // in steps of -4/n
    tensor.data[static_cast<std::size_t>(h)] =
        static_cast<float>(std::exp2(-4.0 * static_cast<double>(step) / static_cast<double>(n)));
  }
  return tensor;
}

void require_prompt_size(std::int64_t batch, std::int64_t length) {
  constexpr std::int64_t kMost = std::numeric_limits<std::int32_t>::max();
  if (batch < 1 || length < 1 || batch > kMost || length > kMost)
    throw Error("prompt_size",
                fmt::format("batch={} prompt={}: both must be from 1 to {}", batch, length, kMost));
}

Tensor generate(const ModelConfig& config, const WeightSpec& spec, std::uint64_t seed) {
  if (spec.matrix) return generate_matrix(spec, seed);
  if (spec.name == "rope_cos") return rope_table(config, spec, std::cos);
  if (spec.name == "rope_sin") return rope_table(config, spec, std::sin);
  if (spec.name == "alibi_slopes") return alibi_slopes(spec);
  const std::string_view part = std::string_view(spec.name).substr(spec.name.find('.') + 1);
  const WeightRow& row = *weight_row(part);
  return row.kind == WeightKind::gain ? generate_gains(spec, row, seed)
                                      : generate_biases(spec, seed);
}

}  // namespace

std::array<std::uint32_t, 4> counter_random(std::uint64_t seed, std::string_view stream,
                                            std::uint64_t index) {
  return philox_words(seed, fnv1a(stream), index);
}

std::int64_t ranged(std::uint32_t word, std::int64_t low, std::int64_t high) {
  const auto count = static_cast<std::uint64_t>(high - low + 1);
  return low + static_cast<std::int64_t>((word * count) >> 32);
}

Weights generate_weights(const ModelConfig& config, std::uint64_t seed) {
  validate(config);
  if (config.softmax == Softmax::base2) {
    ModelConfig plain = config;
    plain.softmax = Softmax::base_e;
    return fold(generate_weights(plain, seed));
  }
  std::map<std::string, Tensor> tensors;
  for (const WeightSpec& spec : weight_specs(config)) {
    tensors.emplace(spec.name, generate(config, spec, seed));
  }
  return {config, std::move(tensors)};
}

IntTensor generate_prompt(const ModelConfig& config, std::uint64_t seed, std::int64_t batch,
                          std::int64_t length, const SharedPrefix& prefix) {
  require_prompt_size(batch, length);
  IntTensor prompt({batch, length});
  auto out = prompt.data.begin();
  for (std::int64_t row = 0; row < batch; ++row) {
    for (std::int64_t position = 0; position < length; ++position) {
      const bool shared = position < prefix.length;
      const std::int64_t of = shared ? prefix.of_row(row, batch) : row;
      const auto index =
          (static_cast<std::uint64_t>(of) << 32) | static_cast<std::uint64_t>(position);
      const std::uint32_t word = counter_random(seed, shared ? "prefix" : "prompt", index)[0];
      *out++ = static_cast<std::int32_t>(word % static_cast<std::uint64_t>(config.V));
    }
  }
  return prompt;
}

IntTensor generate_ids(const ModelConfig& config, std::uint64_t seed, std::int64_t batch,
                       std::int64_t positions, const SharedPrefix& prefix) {
  require_prompt_size(batch, positions);
  std::vector<std::int32_t> permutation(static_cast<std::size_t>(config.V));
  std::iota(permutation.begin(), permutation.end(), 0);
  for (std::size_t i = permutation.size(); i-- > 1;) {
    const std::uint64_t word = counter_random(seed, "ids", i)[0];
    std::swap(permutation[i], permutation[word % (i + 1)]);
  }
  // If ids must repeat, rows start so far apart that no two of V rows agree at any position.
  std::int64_t apart = positions;
  if (batch > config.V / positions)
    while (std::gcd(apart, config.V) != 1) ++apart;
  IntTensor ids({batch, positions});
  for (std::int64_t b = 0; b < batch; ++b)
    for (std::int64_t t = 0; t < positions; ++t) {
      const std::int64_t row =
          t < prefix.length ? prefix.first_row(prefix.of_row(b, batch), batch) : b;
      ids.data[static_cast<std::size_t>(b * positions + t)] =
          permutation[static_cast<std::size_t>((row * apart + t) % config.V)];
    }
  return ids;
}

}  // namespace shardproof
