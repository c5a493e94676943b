// Streams and functions are Philox as docs/field.md section 1.2 says, here that of Random123; and
// no two of them share a key.
#include "oracle/field/detail/random.h"

#include <Random123/philox.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <map>
#include <set>
#include <string>

#include "oracle/field/detail/philox.h"
#include "tests/oracle/field/small_run.h"
#include "weights/model/presets.h"

namespace shardproof::oracle::field {
namespace {

/// The words of the first r, from `first` on, whose lanes are all below p.
Number expected(const FieldSetting& setting, std::array<std::uint64_t, 3> counter,
                const std::string& name, std::uint64_t first) {
  const std::uint64_t p = (std::uint64_t{1} << setting.bits) - 1;
  for (std::uint64_t r = first;; ++r) {
    const auto words = r123::Philox4x64()({{counter[0], counter[1], counter[2], r}},
                                          {{setting.seed, fnv1a64(name)}});
    Number n;
    bool good = true;
    for (int j = 0; j < setting.lanes; ++j) {
      n.lane[static_cast<std::size_t>(j)] =
          words[static_cast<std::size_t>(j)] / (std::uint64_t{1} << (64 - setting.bits));
      good = good && n.lane[static_cast<std::size_t>(j)] != p;
    }
    if (good) return n;
  }
}

RC_GTEST_PROP(FieldRandom, IsPhiloxOfSeedNameAndCounter,
              (const std::array<std::uint64_t, 3>& counter, const std::string& name)) {
  FieldSetting setting;
  setting.seed = *rc::gen::arbitrary<std::uint64_t>();
  setting.bits = *rc::gen::element(61, 31, 19, 17, 13, 7, 5, 3);
  setting.lanes = *rc::gen::element(1, 2, 3);
  setting.draw = *rc::gen::element(0, 1);
  const Random random(setting);
  const std::uint64_t first = setting.draw == 0 ? 0 : 0x100000000U;
  RC_ASSERT(random.function(fnv1a64(name), {counter}) == expected(setting, counter, name, first));
  const Tensor stream = random.stream(name, {2, 3});
  RC_ASSERT((stream.shape == Shape{2, 3}));
  for (std::uint64_t i = 0; i < 6; ++i)
    RC_ASSERT(stream.data[i] == expected(setting, {i, 0, 0}, name, first));
}

TEST(FieldRandom, TriesAgainWhereALaneWouldBeP) {
  FieldSetting setting;
  setting.bits = 3;
  const Random random(setting);
  int again = 0;
  for (std::uint64_t i = 0; i < 200; ++i) {
    const auto words = philox_words({i, 0, 0, 0}, {0, fnv1a64("x")});
    bool p = false;
    for (std::size_t j = 0; j < 3; ++j) p = p || words[j] >> 61 == 7;
    const Number n = random.function(fnv1a64("x"), {{i, 0, 0}});
    for (const std::uint64_t lane : n.lane) EXPECT_LT(lane, 7U);
    EXPECT_EQ(n == (Number{{words[0] >> 61, words[1] >> 61, words[2] >> 61}}), !p);
    again += p ? 1 : 0;
  }
  EXPECT_GT(again, 20);
}

TEST(FieldRandom, DependsOnEverythingThatItIsOf) {
  const Number v{{1, 2, 3}};
  const auto of = [&](const FieldSetting& setting, const char* name, const Number& n) {
    return Random(setting).function(fnv1a64(name), n).lane;
  };
  const std::set<std::array<std::uint64_t, 3>> all{
      of({}, "swish", v),           of({.seed = 1}, "swish", v),
      of({.draw = 1}, "swish", v),  of({}, "gelu", v),
      of({}, "swish", {{0, 2, 3}}), of({}, "swish", {{1, 0, 3}}),
      of({}, "swish", {{1, 2, 0}}),
  };
  EXPECT_EQ(all.size(), 7U);
}

TEST(FieldRandom, TheKeysOfAllNamesDiffer) {
  std::set<std::string> names{"constant embed_scale",
                              "constant logit_scale",
                              "constant rho",
                              "swish",
                              "swish2",
                              "gelu",
                              "gelu_erf",
                              "bf16",
                              "score to max",
                              "logit",
                              "score to exp",
                              "max to exp",
                              "score to exp2",
                              "max to exp2",
                              "id",
                              "candidate to token",
                              "index to token",
                              "number of max",
                              "number of candidate",
                              "number of index",
                              "number of token"};
  EXPECT_EQ(names.size(), 21U);
  for (int Q = 1; Q <= 4096; ++Q) names.insert("constant attend_scale Q=" + std::to_string(Q));
  for (int E = 1; E <= 20000; ++E)
    for (const char* eps : {"0x1.0c6f7a0b5ed8dp-20", "0x1.4f8b588e368f1p-17"})
      names.insert("norm E=" + std::to_string(E) + " eps=" + eps);
  for (const Preset& preset : all_presets()) {
    if (preset.published) continue;  // its weights have the names that those of the others have
    ModelConfig config = parse_model(preset.name);
    config.layers = 500;
    for (const Block block : {Block::parallel, Block::serial})
      for (const Norm norm : {Norm::rmsnorm, Norm::layernorm})
        for (const Rope rope : {Rope::half, Rope::alibi}) {
          config.block = block;
          config.norm = norm;
          config.rope = rope;
          config.bias = Bias::all;
          for (const WeightSpec& spec : weight_specs(config, NumberFormat::int8))
            names.insert("weight " + spec.name);
        }
  }
  EXPECT_GT(names.size(), 54000U);
  std::set<std::uint64_t> keys;
  for (const std::string& name : names) keys.insert(fnv1a64(name));
  EXPECT_EQ(keys.size(), names.size());
}

}  // namespace
}  // namespace shardproof::oracle::field
