// Constants folded into weights: which weights take which factor, and how far one rounding moves
// them.
#include "weights/storage/fold.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cmath>
#include <cstdint>
#include <map>
#include <string>

#include "tests/weights/expect_error.h"
#include "tests/weights/random_model.h"
#include "weights/model/registry.h"
#include "weights/storage/generator.h"

namespace shardproof {
namespace {

constexpr double kA = 1.4426950408889634;

/// What the specification's table says of a weight, by its name without the layer; 1 of any other.
double factor(const std::string& name, const ModelConfig& c) {
  const double logits =
      static_cast<double>(static_cast<float>(kA * static_cast<double>(c.logit_scale)));
  if (name == "wq" || name == "bq") return kA / std::sqrt(static_cast<double>(c.Q));
  if (name == "alibi_slopes" || name == "unembed_bias") return kA;
  if (name == "w_gate" || name == "b_gate") return c.ffn == Ffn::swiglu ? 0.5 : 1.0;
  if (name == "unembed") return logits;
  for (const char* of_stream : {"embed", "wo", "w_out", "bo", "b_out"})
    if (name == of_stream) return c.tied ? logits : 1.0;
  return 1.0;
}

std::string part(const std::string& name) { return name.substr(name.rfind('.') + 1); }

ModelConfig plain(ModelConfig c) {
  c.softmax = Softmax::base_e;
  return c;
}

RC_GTEST_PROP(Fold, MultipliesEachWeightByItsFactor, ()) {
  const ModelConfig config = plain(draw_model(12));
  const Weights whole = generate_weights(config, *rc::gen::arbitrary<std::uint64_t>());
  const Weights folded = fold(whole);
  RC_ASSERT(folded.config().softmax == Softmax::base2);
  RC_ASSERT(plain(folded.config()) == config);
  RC_ASSERT(folded.names().size() == whole.names().size());
  for (const auto& [name, tensor] : whole.tensors()) {
    const double k = factor(part(name), config);
    const Tensor& made = *folded.at(name);
    RC_ASSERT(made.shape == tensor.shape);
    for (std::size_t i = 0; i < tensor.data.size(); ++i)
      RC_ASSERT(made.data[i] == static_cast<float>(static_cast<double>(tensor.data[i]) * k));
  }
}

TEST(Fold, NamesWhatIsFolded) {
  const auto folded_names = [](const std::string& keys) {
    const ModelConfig c = parse_model("palm-tiny,layers=1,E=8,F=8,H=2,Q=4,V=8,positions=4" + keys);
    const Weights whole = generate_weights(c, 3);
    const Weights made = fold(whole);
    std::string names;
    for (const auto& [name, tensor] : whole.tensors())
      if (made.at(name)->data != tensor.data) names += part(name) + " ";
    return names;
  };
  EXPECT_EQ(folded_names(""), "embed w_gate w_out wo wq ");
  EXPECT_EQ(folded_names(",tied=false"), "w_gate wq unembed ");
  EXPECT_EQ(folded_names(",ffn=geglu"), "embed w_out wo wq ");
  EXPECT_EQ(folded_names(",bias=all,rope=alibi,unembed_bias=true"),
            "alibi_slopes embed b_gate b_out bo bq w_gate w_out wo wq unembed_bias ");
}

/// Codes of every size, with their scales.
Weights as_int8(const Weights& whole) {
  std::map<std::string, Tensor> tensors;
  for (const WeightSpec& spec : weight_specs(whole.config(), NumberFormat::int8)) {
    Tensor made(spec.shape);
    for (std::size_t i = 0; i < made.data.size(); ++i)
      made.data[i] = spec.int8    ? static_cast<float>(static_cast<int>(i * 37 % 255) - 127)
                     : spec.scale ? std::ldexp(1.0F + static_cast<float>(i % 7), -9)
                                  : whole.at(spec.name)->data[i];
    tensors.emplace(spec.name, std::move(made));
  }
  return {whole.config(), std::move(tensors), NumberFormat::int8};
}

RC_GTEST_PROP(Fold, OfCodesTheScalesTakeTheFactorOnce, ()) {
  const ModelConfig config = plain(draw_model(12));
  const Weights codes = as_int8(generate_weights(config, *rc::gen::arbitrary<std::uint64_t>()));
  const Weights folded = fold(codes);
  RC_ASSERT(folded.stored_type() == NumberFormat::int8);
  for (const WeightSpec& spec : weight_specs(config, NumberFormat::int8)) {
    const std::string name = part(spec.name);
    double k = spec.int8 ? 1.0 : factor(name, config);
    if (name == "block_out_scale")
      k = factor("wo", config);
    else if (spec.scale)
      k = factor(name.substr(0, name.rfind("_scale")), config);
    const Tensor& was = *codes.at(spec.name);
    for (std::size_t i = 0; i < was.data.size(); ++i)
      RC_ASSERT(folded.at(spec.name)->data[i] ==
                static_cast<float>(static_cast<double>(was.data[i]) * k));
  }
}

RC_GTEST_PROP(Fold, StaysWithinOneRoundingOfEachProduct, ()) {
  // docs/numerics.md section 10.7: |S(x,w') - k·S(x,w)| <= (u + 2^-52)·k·A.
  const ModelConfig config = parse_model("palm-tiny,layers=1,E=24,F=8,H=2,Q=6,V=8,rotary=1");
  const auto seed = *rc::gen::arbitrary<std::uint64_t>();
  const Weights whole = generate_weights(config, seed);
  const Weights folded = fold(whole);
  const std::vector<float>& w = whole.at("layer0.wq")->data;
  const std::vector<float>& of = folded.at("layer0.wq")->data;
  const long double k = kA / std::sqrt(6.0);
  for (std::size_t column = 0; column < 12; ++column) {
    long double difference = 0.0L, sizes = 0.0L;
    for (std::size_t e = 0; e < 24; ++e) {
      const long double x = whole.at("embed")->data[e];
      difference += x * (static_cast<long double>(of[e * 12 + column]) -
                         k * static_cast<long double>(w[e * 12 + column]));
      sizes += std::abs(x * static_cast<long double>(w[e * 12 + column]));
    }
    RC_ASSERT(std::abs(difference) <= (0x1p-24L + 0x1p-52L) * k * sizes);
  }
}

TEST(Fold, GeneratedWeightsOfABaseTwoModelAreFolded) {
  const ModelConfig c = parse_model("llama,layers=1,softmax=base2");
  const Weights made = generate_weights(c, 7), expected = fold(generate_weights(plain(c), 7));
  EXPECT_EQ(made.config(), c);
  for (const auto& [name, tensor] : expected.tensors()) EXPECT_EQ(made.at(name)->data, tensor.data);
}

TEST(Fold, RefusesWhatIsFolded) {
  const Weights folded = generate_weights(parse_model("palm-tiny,layers=1,softmax=base2"), 1);
  EXPECT_EQ(message_of([&] { fold(folded); }),
            "weights_fold: palm-tiny,layers=1,softmax=base2: its constants are in the weights "
            "already; legal: weights of a model without softmax=base2");
}

TEST(Fold, RefusesWhatIsNotFiniteOrHasNoScaleAfterwards) {
  const ModelConfig c = parse_model(
      "palm-tiny,layers=1,E=4,F=4,H=2,Q=2,V=4,positions=2,"
      "logit_scale=1e30,tied=false");
  const Weights whole = generate_weights(c, 1);
  std::map<std::string, Tensor> tensors = whole.tensors();
  tensors.at("unembed").data[5] = 1e30F;
  const std::string message = message_of([&] { fold(Weights(c, tensors)); });
  EXPECT_EQ(message.substr(0, 31), "weights_value: unembed[1, 1] is") << message;
  const ModelConfig tiny = parse_model(
      "palm-tiny,layers=1,E=4,F=4,H=2,Q=2,V=4,positions=2,"
      "logit_scale=1e-30");
  std::map<std::string, Tensor> scaled;
  const Weights codes = as_int8(generate_weights(tiny, 1));
  for (const auto& [name, tensor] : codes.tensors()) scaled.emplace(name, tensor);
  for (float& v : scaled.at("layer0.block_out_scale").data) v = 1e-30F;
  EXPECT_EQ(label_of([&] { fold(Weights(tiny, scaled, NumberFormat::int8)); }), "weights_value");
}

TEST(Fold, RefusesAConstantThatCannotBeFolded) {
  ModelConfig c = parse_model("palm-tiny,layers=1,logit_scale=3e38");
  const Weights whole = generate_weights(c, 1);
  EXPECT_EQ(label_of([&] { fold(whole); }), "model_value");
}

}  // namespace
}  // namespace shardproof
