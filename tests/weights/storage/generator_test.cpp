#include "weights/storage/generator.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "tests/weights/expect_error.h"
#include "tests/weights/random_model.h"
#include "weights/model/registry.h"
#include "weights/storage/detail/weight_source.h"

namespace shardproof {
namespace {

using Words = std::array<std::uint32_t, 4>;

// Philox4x32-10 as its paper writes it, not the library the generator uses.
Words philox(Words c, std::uint32_t k0, std::uint32_t k1) {
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t a = std::uint64_t{0xD2511F53U} * c[0];
    const std::uint64_t b = std::uint64_t{0xCD9E8D57U} * c[2];
    c = {static_cast<std::uint32_t>(b >> 32) ^ c[1] ^ k0, static_cast<std::uint32_t>(b),
         static_cast<std::uint32_t>(a >> 32) ^ c[3] ^ k1, static_cast<std::uint32_t>(a)};
    k0 += 0x9E3779B9U;
    k1 += 0xBB67AE85U;
  }
  return c;
}

double rms(const std::vector<float>& values, std::size_t first, std::size_t stride) {
  double sum = 0.0;
  std::size_t count = 0;
  for (std::size_t i = first; i < values.size(); i += stride, ++count) {
    sum += static_cast<double>(values[i]) * static_cast<double>(values[i]);
  }
  return std::sqrt(sum / static_cast<double>(count));
}

std::size_t channels_of(const WeightSpec& spec) {
  const std::int64_t all = element_count(spec.shape);
  return static_cast<std::size_t>(spec.dims[0] == 'E' ? all / spec.shape[0] : spec.shape.back());
}

TEST(Philox, MeetsThePublishedVectors) {
  EXPECT_EQ(philox({0, 0, 0, 0}, 0, 0),
            (Words{0x6627e8d5U, 0xe169c58dU, 0xbc57ac4cU, 0x9b00dbd8U}));
  const std::uint32_t f = 0xffffffffU;
  EXPECT_EQ(philox({f, f, f, f}, f, f),
            (Words{0x408f276dU, 0x41c83b0eU, 0xa20bc7c6U, 0x6d5451fdU}));
  EXPECT_EQ(philox({0x243f6a88U, 0x85a308d3U, 0x13198a2eU, 0x03707344U}, 0xa4093822U, 0x299f31d0U),
            (Words{0xd16cfe09U, 0x94fdccebU, 0x5001e420U, 0x24126ea1U}));
}

RC_GTEST_PROP(Philox, IsKeyedBySeedIndexAndFnvOfTheName, ()) {
  const auto seed = *rc::gen::arbitrary<std::uint64_t>();
  const auto index = *rc::gen::arbitrary<std::uint64_t>();
  const auto name = *rc::gen::arbitrary<std::string>();
  std::uint64_t hash = 14695981039346656037U;
  for (char c : name) hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211U;
  const auto low = [](std::uint64_t x) { return static_cast<std::uint32_t>(x & 0xffffffffU); };
  const auto high = [](std::uint64_t x) { return static_cast<std::uint32_t>(x >> 32); };
  RC_ASSERT(counter_random(seed, name, index) ==
            philox({low(index), high(index), low(hash), high(hash)}, low(seed), high(seed)));
}

// Threads share a large matrix, in parts that depend on its size: its beginning does not.
TEST(Generator, LargeMatricesBeginAsSmallerOnes) {
  const auto drawn = [](std::int64_t rows) {
    return generate_weight(
        {.id = "layer0.w_in", .letters = "EF", .shape = {rows, 701}, .fan_in = 96}, 5);
  };
  const Tensor small = drawn(300), large = drawn(1031), largest = drawn(2003);
  EXPECT_TRUE(std::equal(small.data.begin(), small.data.end(), large.data.begin()));
  EXPECT_TRUE(std::equal(large.data.begin(), large.data.end(), largest.data.begin()));
  EXPECT_EQ(std::count(largest.data.begin(), largest.data.end(), 0.0F) / 701, 0);
}

// The expected values are those that read_back.py computes.
TEST(Generator, GivesTheSameValuesOnEveryMachine) {
  const Weights w = generate_weights(parse_model("palm-tiny"), 1);
  const auto value = [&w](const char* name, std::size_t index) { return w.at(name)->data[index]; };
  EXPECT_EQ(value("embed", 0), -0x1.de7a9p-1F);
  EXPECT_EQ(value("embed", 25343), -0x1.2b33p-2F);
  EXPECT_EQ(value("layer0.wq", 1000), -0x1.790c5p-3F);
  EXPECT_EQ(value("layer0.wo", 7), -0x1.838p-14F);
  EXPECT_EQ(value("layer1.w_out", 36863), -0x1.0aa748p-5F);
  EXPECT_EQ(value("layer1.norm", 5), 0x1.5c2p-1F);
  EXPECT_EQ(value("final_norm", 95), -0x1.9349p-1F);
  EXPECT_EQ(value("rope_cos", 0), 1.0F);
  EXPECT_EQ(value("rope_sin", 0), 0.0F);
  EXPECT_EQ(value("rope_sin", 4), 0x1.aed548p-1F);  // sin 1
  EXPECT_EQ(value("rope_cos", 9), 0x1.f5cb4ap-1F);  // cos(2 / 10)
  EXPECT_EQ(generate_prompt(parse_model("palm-tiny"), 1, 2, 3).data,
            (std::vector<std::int32_t>{263, 170, 252, 113, 98, 208}));
  EXPECT_EQ(generate_prompt(parse_model("palm-tiny"), 1, 2, 3, {2, 2}).data,
            (std::vector<std::int32_t>{147, 246, 252, 78, 189, 208}));
}

// Pair j of J turns by position · theta^(-j/J), where only the first 2J of the Q channels turn; by
// another way round than the generator's: the angle's logarithm, in long double.
TEST(Generator, RopeTablesTurnTheRotatedPairsAlone) {
  for (const auto& [keys, J, theta] : std::vector<std::tuple<std::string, int, double>>{
           {"Q=8", 4, 10000},
           {"Q=8,rotary=0.5", 2, 10000},
           {"Q=8,rotary=0.25", 1, 10000},
           {"Q=8,rotary=0.5,theta=100", 2, 100},
           {"Q=16,rotary=0.75,rope=interleaved", 6, 10000}}) {
    const Weights w = generate_weights(parse_model("palm-tiny,layers=1,positions=50," + keys), 1);
    const Tensor& cos = *w.at("rope_cos");
    const Tensor& sin = *w.at("rope_sin");
    ASSERT_EQ(cos.shape, (Shape{50, J})) << keys;
    ASSERT_EQ(sin.shape, (Shape{50, J})) << keys;
    for (int p = 0; p < 50; ++p)
      for (int j = 0; j < J; ++j) {
        const long double turn = p == 0
                                     ? 0.0L
                                     : std::exp(std::log(static_cast<long double>(p)) -
                                                std::log(static_cast<long double>(theta)) * j / J);
        const auto at = static_cast<std::size_t>(p * J + j);
        EXPECT_NEAR(cos.data[at], static_cast<double>(std::cos(turn)), 0x1p-23) << keys << p << j;
        EXPECT_NEAR(sin.data[at], static_cast<double>(std::sin(turn)), 0x1p-23) << keys << p << j;
      }
  }
  // Of two pairs the second turns by a hundredth, of four by a tenth.
  const auto second = [](const char* keys) {
    return generate_weights(parse_model(std::string("palm-tiny,layers=1,Q=8,") + keys), 1)
        .at("rope_sin")
        ->data;
  };
  EXPECT_NEAR(second("rotary=0.5")[3], 0.0099998333, 1e-9);
  EXPECT_NEAR(second("rotary=1")[5], 0.0998334166, 1e-8);
}

// By the recursion of the ALiBi paper, in Python: s(n) = p(n) for a power of two n, else
// p(m) + s(2m)[0::2][:n-m] with the power of two m below n; p(n)[i] = 2^(-8(i+1)/n).
TEST(Generator, AlibiSlopesAreThoseOfThePaper) {
  const auto slopes = [](int H) {
    const ModelConfig config = parse_model("palm-tiny,layers=1,rope=alibi,H=" + std::to_string(H));
    return generate_weights(config, 1).at("alibi_slopes");
  };
  using Slopes = std::vector<float>;
  EXPECT_EQ(slopes(1)->data, (Slopes{0x1p-8F}));
  EXPECT_EQ(slopes(2)->data, (Slopes{0x1p-4F, 0x1p-8F}));
  EXPECT_EQ(slopes(3)->data, (Slopes{0x1p-4F, 0x1p-8F, 0x1p-2F}));
  EXPECT_EQ(slopes(6)->data, (Slopes{0x1p-2F, 0x1p-4F, 0x1p-6F, 0x1p-8F, 0x1p-1F, 0x1p-3F}));
  EXPECT_EQ(slopes(8)->data,
            (Slopes{0x1p-1F, 0x1p-2F, 0x1p-3F, 0x1p-4F, 0x1p-5F, 0x1p-6F, 0x1p-7F, 0x1p-8F}));
  EXPECT_EQ(slopes(12)->data,
            (Slopes{0x1p-1F, 0x1p-2F, 0x1p-3F, 0x1p-4F, 0x1p-5F, 0x1p-6F, 0x1p-7F, 0x1p-8F,
                    0x1.6a09e6p-1F, 0x1.6a09e6p-2F, 0x1.6a09e6p-3F, 0x1.6a09e6p-4F}));
  EXPECT_EQ(slopes(12)->shape, (Shape{12}));
}

RC_GTEST_PROP(Generator, ValuesAreSmallIntegersTimesAPowerOfTwo, ()) {
  ModelConfig config = draw_model(40);
  config.softmax = Softmax::base_e;  // what is folded is no such number
  const Weights weights = generate_weights(config, *rc::gen::arbitrary<std::uint64_t>());
  validate(weights);
  for (const WeightSpec& spec : weight_specs(config)) {
    if (spec.dims == "PJ" || spec.name == "alibi_slopes") continue;
    // One power of two for the whole tensor: every value a multiple of it, below 2^24 of them.
    double least = 1.0;
    const auto multiple = [&](float v) { return std::fmod(static_cast<double>(v), least) == 0.0; };
    const auto& data = weights.at(spec.name)->data;
    while (!std::all_of(data.begin(), data.end(), multiple)) least /= 2.0;
    RC_ASSERT(least >= 0x1p-50);
    for (float v : data) RC_ASSERT(std::abs(static_cast<double>(v)) < 0x1p24 * least);
  }
}

TEST(Generator, ChannelScalesSpreadOverAboutTenTimes) {
  for (const char* text : {"palm-tiny,K=24", "palm-mini,K=8"}) {
    const ModelConfig config = parse_model(text);
    const Weights weights = generate_weights(config, 3);
    for (const WeightSpec& spec : weight_specs(config)) {
      if (!spec.matrix) continue;
      const std::size_t channels = channels_of(spec);
      double least = INFINITY;
      double most = 0.0;
      for (std::size_t c = 0; c < channels; ++c) {
        const double scale = rms(weights.at(spec.name)->data, c, channels);
        least = std::min(least, scale);
        most = std::max(most, scale);
      }
      EXPECT_GT(most, 5.0 * least) << text << ' ' << spec.name;
      EXPECT_LT(most, 20.0 * least) << text << ' ' << spec.name;
    }
  }
}

TEST(Generator, ScalesByFanIn) {
  for (const char* text : {"palm-tiny,K=24", "palm-mini,K=64", "palm-tiny,E=100,F=300,K=12"}) {
    const ModelConfig config = parse_model(text);
    const Weights weights = generate_weights(config, 5);
    for (const WeightSpec& spec : weight_specs(config)) {
      if (!spec.matrix) continue;
      const std::string part = spec.name.substr(spec.name.find('.') + 1);
      const double gain = part == "wo" ? 0.25 : part == "w_out" ? 0.5 : 1.0;
      const double got = rms(weights.at(spec.name)->data, 0, 1);
      EXPECT_NEAR(got * got * static_cast<double>(spec.fan_in) / gain, 1.0, 0.25)
          << text << ' ' << spec.name;
    }
  }
}

TEST(Generator, RowsAndColumnsAreDistinct) {
  const ModelConfig config = parse_model("palm-tiny,K=3");
  const Weights weights = generate_weights(config, 7);
  for (const WeightSpec& spec : weight_specs(config)) {
    if (!spec.matrix) continue;
    const auto& data = weights.at(spec.name)->data;
    const auto columns = static_cast<std::size_t>(spec.shape.back());
    const std::size_t rows = data.size() / columns;
    std::set<std::vector<float>> distinct;
    for (std::size_t r = 0; r < rows; ++r) {
      const auto row = data.begin() + static_cast<std::ptrdiff_t>(r * columns);
      distinct.emplace(row, row + static_cast<std::ptrdiff_t>(columns));
    }
    EXPECT_EQ(distinct.size(), rows) << spec.name;
    distinct.clear();
    for (std::size_t c = 0; c < columns; ++c) {
      std::vector<float> column;
      for (std::size_t r = 0; r < rows; ++r) column.push_back(data[r * columns + c]);
      distinct.insert(column);
    }
    EXPECT_EQ(distinct.size(), columns) << spec.name;
  }
}

TEST(Generator, VectorsLieInTheirRanges) {
  const ModelConfig config =
      parse_model("palm-tiny,block=serial,norm=layernorm,bias=all,tied=false");
  const Weights weights = generate_weights(config, 9);
  for (const WeightSpec& spec : weight_specs(config)) {
    if (spec.matrix || spec.dims == "PJ") continue;
    const auto& data = weights.at(spec.name)->data;
    const bool bias =
        spec.name.find("bias") != std::string::npos || spec.name.find(".b") != std::string::npos;
    const bool signs = bias || spec.name == "final_norm";
    for (float v : data) {
      EXPECT_GE(std::abs(v), bias ? 0x1p-4F : 0.5F) << spec.name;
      EXPECT_LE(std::abs(v), bias ? 0.25F : 1.5F) << spec.name;
    }
    const bool negative = std::any_of(data.begin(), data.end(), [](float v) { return v < 0; });
    EXPECT_EQ(negative, signs) << spec.name;
    const std::set<float> distinct(data.begin(), data.end());
    EXPECT_GT(distinct.size(), data.size() * 9 / 10) << spec.name;
  }
}

TEST(Generator, DependsOnTheSeedAndTheNameOnly) {
  const ModelConfig config = parse_model("palm-tiny");
  const Weights one = generate_weights(config, 1);
  EXPECT_EQ(one.at("layer0.wq")->data, generate_weights(config, 1).at("layer0.wq")->data);
  EXPECT_NE(one.at("layer0.wq")->data, generate_weights(config, 2).at("layer0.wq")->data);
  EXPECT_NE(one.at("layer0.wq")->data, one.at("layer1.wq")->data);
  // A deeper model has the same first layer.
  EXPECT_EQ(one.at("layer0.wq")->data,
            generate_weights(parse_model("palm-tiny,layers=3"), 1).at("layer0.wq")->data);
}

TEST(Prompt, RowsDifferAndDoNotDependOnTheBatch) {
  const ModelConfig config = parse_model("palm-tiny");
  const IntTensor prompt = generate_prompt(config, 11, 24, 4);
  EXPECT_EQ(prompt.shape, (Shape{24, 4}));
  std::set<std::vector<std::int32_t>> rows;
  for (auto row = prompt.data.begin(); row != prompt.data.end(); row += 4) {
    rows.emplace(row, row + 4);
    for (auto id = row; id != row + 4; ++id) {
      EXPECT_GE(*id, 0);
      EXPECT_LT(*id, config.V);
    }
  }
  EXPECT_EQ(rows.size(), 24U);
  const IntTensor shorter = generate_prompt(config, 11, 1, 2);
  EXPECT_TRUE(std::equal(shorter.data.begin(), shorter.data.end(), prompt.data.begin()));
  EXPECT_EQ(label_of([&] { generate_prompt(config, 1, 0, 4); }), "prompt_size");
  EXPECT_EQ(label_of([&] { generate_prompt(config, 1, 4, -1); }), "prompt_size");
}

TEST(Prompt, RowsBeginWithTheIdsOfTheirPrefix) {
  const ModelConfig config = parse_model("palm-tiny");
  const SharedPrefix prefix{.length = 2, .rows = 3};
  const IntTensor shared = generate_prompt(config, 11, 7, 5, prefix);
  const IntTensor own = generate_prompt(config, 11, 7, 5);
  const std::vector<std::uint64_t> of_rows{0, 0, 0, 1, 1, 2, 2};
  for (std::size_t row = 0; row < 7; ++row)
    for (std::size_t p = 0; p < 5; ++p) {
      const auto word = counter_random(11, "prefix", of_rows[row] << 32 | p)[0];
      const auto expected = p < 2 ? static_cast<std::int32_t>(word % 264) : own.data[row * 5 + p];
      EXPECT_EQ(shared.data[row * 5 + p], expected) << row << " " << p;
    }
  // The ids of a prefix do not depend on the batch.
  const IntTensor fewer = generate_prompt(config, 11, 3, 5, prefix);
  for (const std::size_t p : {0U, 1U}) EXPECT_EQ(fewer.data[2 * 5 + p], shared.data[6 * 5 + p]);
}

/// Rows that share a prefix have there the ids of the first of them, all others their own.
RC_GTEST_PROP(Generator, IdsOfTheFieldAreEqualWhereRowsShareAPrefix, ()) {
  ModelConfig config;
  config.V = *rc::gen::inRange(1, 80);
  const auto batch = *rc::gen::inRange<std::int64_t>(1, 8);
  const auto positions = *rc::gen::inRange<std::int64_t>(2, 9);
  const SharedPrefix prefix{*rc::gen::inRange<std::int64_t>(1, positions),
                            *rc::gen::inRange<std::int64_t>(1, batch + 1)};
  const IntTensor own = generate_ids(config, 3, batch, positions);
  const IntTensor ids = generate_ids(config, 3, batch, positions, prefix);
  for (std::int64_t b = 0; b < batch; ++b)
    for (std::int64_t t = 0; t < positions; ++t) {
      const std::int64_t row =
          t < prefix.length ? prefix.first_row(prefix.of_row(b, batch), batch) : b;
      RC_ASSERT(ids.data[static_cast<std::size_t>(b * positions + t)] ==
                own.data[static_cast<std::size_t>(row * positions + t)]);
    }
  const std::set<std::int32_t> all(ids.data.begin(), ids.data.end());
  if (batch * positions <= config.V)
    RC_ASSERT(std::ssize(all) == prefix.rows * prefix.length + batch * (positions - prefix.length));
}

// docs/field.md section 1.5.
RC_GTEST_PROP(Generator, IdsOfTheFieldAreDifferentWhileThereAreEnough, ()) {
  ModelConfig config;
  config.V = *rc::gen::inRange(1, 40);
  const std::int64_t batch = *rc::gen::inRange(1, 12);
  const std::int64_t positions = *rc::gen::inRange(1, 12);
  const IntTensor ids = generate_ids(config, 3, batch, positions);
  const auto id = [&](std::int64_t b, std::int64_t t) {
    return ids.data[static_cast<std::size_t>(b * positions + t)];
  };
  const std::set<std::int32_t> all(ids.data.begin(), ids.data.end());
  RC_ASSERT(*all.begin() >= 0 && *all.rbegin() < config.V);
  RC_ASSERT(std::ssize(all) <= config.V);
  if (batch * positions <= config.V) RC_ASSERT(all.size() == ids.data.size());
  for (std::int64_t t = 0; t < positions; ++t) {
    std::set<std::int32_t> at_t;
    for (std::int64_t b = 0; b < batch; ++b) at_t.insert(id(b, t));
    RC_ASSERT(std::ssize(at_t) == std::min(batch, config.V));
  }
}

}  // namespace
}  // namespace shardproof
