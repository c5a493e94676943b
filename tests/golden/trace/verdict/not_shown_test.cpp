// What a run hides is said, each kind where it is and nowhere else.
#include "golden/trace/verdict/not_shown.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>

#include "tests/golden/trace/written.h"

namespace shardproof::dump {
namespace {

using InWeights = std::function<void(std::map<std::string, Tensor>&)>;

/// What is said of a whole trace of the case, with these weights, without what `absent` says.
std::vector<std::string> said(
    const std::string& line, const InWeights& change = [](auto&) {},
    const std::function<bool(const Written&)>& absent = [](const Written&) { return false; },
    const dump::Attributes& attributes = {}) {
  const ExactRun run(line);
  std::map<std::string, Tensor> tensors = run.weights().tensors();
  change(tensors);
  const Weights weights(run.weights().config(), std::move(tensors), run.weights().stored_type());
  std::vector<Written> values = run.values();
  std::erase_if(values, absent);
  dump::Dump d = run.trace(values, "f32");
  for (const auto& [name, text] : attributes) d.attributes[name] = text;
  const Claim claim = read_claim(d.attributes, std::nullopt);
  return not_shown(claim, read_values(d, claim, weights), weights, calling_thread());
}

bool has(const std::vector<std::string>& sentences, const std::string& words) {
  return std::any_of(sentences.begin(), sentences.end(),
                     [&](const std::string& s) { return s.find(words) != std::string::npos; });
}

/// Nothing is hidden but by an axis of one chip, unless the keys say so.
const std::string kShownPasses = "batch=6 prompt=5 chunk=3 gen=3 seed=5 ";
const std::string kShownDims = "model=palm-tiny,layers=2,E=24,F=36,H=6,K=2,Q=4,V=30";
const std::string kShown = "torus=3x2x1 " + kShownPasses + kShownDims;

void fill(Tensor& t, float value) { std::fill(t.data.begin(), t.data.end(), value); }

TEST(NotShown, NothingIsSaidOfWhatEveryGeneratedRunShows) {
  for (const char* keys :
       {"", ",bias=all,norm=layernorm block=serial", " weights=int8", " weights=bf16 act=bf16",
        ",tied=false,unembed_bias=true", ",rope=alibi", ",softmax=base2", " prefix=2:2"}) {
    const std::vector<std::string> all = said(kShown + keys);
    ASSERT_EQ(all.size(), 1U) << keys << ": " << all.back();
    EXPECT_EQ(all[0], "axes of one chip (z): what is cut over them, or summed, does not show");
  }
}

TEST(NotShown, OfWeights) {
  const std::string biased = kShown + ",norm=layernorm,bias=all block=serial";
  const struct {
    const char* words;
    InWeights change;
  } kCases[] = {
      {"biases are zero (layer1.bo): whether they are added, and how often, does not show",
       [](auto& w) { fill(w.at("layer1.bo"), 0.0F); }},
      {"biases are zero (layer0.bk, layer0.bo and 2 more)",
       [](auto& w) {
         for (const char* n : {"layer0.bk", "layer0.bo", "layer1.b_out", "final_norm_bias"})
           fill(w.at(n), 0.0F);
       }},
      {"biases are equal (layer0.bq)", [](auto& w) { fill(w.at("layer0.bq"), 0.5F); }},
      {"gains of norms are one (final_norm)", [](auto& w) { fill(w.at("final_norm"), 1.0F); }},
      {"gains of norms are equal (layer0.norm2)",
       [](auto& w) { fill(w.at("layer0.norm2"), 1.25F); }},
      {"matrices are zero (layer1.w_out)", [](auto& w) { fill(w.at("layer1.w_out"), 0.0F); }},
      {"weights repeat (layer0.w_gate along E, layer0.w_gate along F)",
       [](auto& w) { fill(w.at("layer0.w_gate"), 0.25F); }},
      {"weights repeat (layer0.wq along H)",  // the last head is the first
       [](auto& w) {
         Tensor& t = w.at("layer0.wq");
         for (std::size_t e = 0; e < 24; ++e)
           std::copy_n(t.data.begin() + static_cast<std::ptrdiff_t>(e * 24), 4,
                       t.data.begin() + static_cast<std::ptrdiff_t>(e * 24 + 20));
       }},
  };
  for (const auto& c : kCases) {
    const std::vector<std::string> all = said(biased, c.change);
    EXPECT_EQ(all.size(), 2U) << c.words;
    EXPECT_TRUE(has(all, c.words)) << c.words << ": " << all[0];
  }
}

/// As libraries initialise a model: a bias that every chip adds is as right as one.
TEST(NotShown, OfADefaultInitialisation) {
  const std::vector<std::string> all =
      said(kShown + ",norm=layernorm,bias=all block=serial", [](auto& w) {
        for (auto& [name, tensor] : w) {
          const std::string part = name.substr(name.rfind('.') + 1);
          if (part[0] == 'b' || part.ends_with("_bias")) fill(tensor, 0.0F);
          if (part == "norm" || part == "norm2" || part == "final_norm") fill(tensor, 1.0F);
        }
      });
  EXPECT_EQ(all.size(), 3U);
  EXPECT_TRUE(has(all,
                  "biases are zero (layer0.norm_bias, layer0.norm2_bias and 17 more): whether they "
                  "are added, and how often, does not show"))
      << all[0];
  EXPECT_TRUE(has(all, "gains of norms are one (")) << all[1];
}

TEST(NotShown, OfModelBatchAndTorus) {
  const auto model = [](const std::string& keys) {
    return "model=palm-tiny,E=24,F=36,Q=4,V=30," + keys;
  };
  EXPECT_TRUE(has(said("torus=3x2x1 " + kShownPasses + model("H=6,K=1")),
                  "there is one kv head: an order of kv heads, and who reads which, do not show"));
  EXPECT_TRUE(has(said("torus=3x2x1 " + kShownPasses + model("H=6,K=2,layers=1")),
                  "there is one layer: what goes from layer to layer does not show"));
  EXPECT_TRUE(has(said("torus=1x1x1 batch=1 prompt=5 gen=3 " + kShownDims),
                  "the batch is one row: a wrong order of rows does not show"));
  EXPECT_TRUE(has(said("torus=1x1x1 " + kShownPasses + kShownDims),
                  "the torus is one chip: a wrong cut or reduction does not show"));
  EXPECT_TRUE(has(said("torus=2x1x2 " + kShownPasses + kShownDims),
                  "axes of one size (x, z of 2): that one is taken for another may not show"));
  EXPECT_FALSE(has(said("torus=1x1x1 " + kShownPasses + kShownDims), "axes of one"));
}

TEST(NotShown, OfPasses) {
  const auto not_in = [](const std::string& pass) {
    return [pass](const Written& w) { return !w.name.starts_with(pass); };
  };
  const InWeights none = [](auto&) {};
  EXPECT_TRUE(has(said(kShown, none, not_in("prefill.c1")),
                  "there is one pass: caches that a later pass reads do not show"));
  EXPECT_TRUE(has(said(kShown, none, not_in("prefill")),
                  "there is no decode step: its positions and caches do not show"));
  EXPECT_FALSE(has(said(kShown), "decode"));
  EXPECT_TRUE(has(said(kShown, none, not_in("decode")), "every pass has one token a row"));
  const std::vector<std::string> first = said("torus=3x2x1 batch=6 prompt=1 gen=1 " + kShownDims);
  EXPECT_TRUE(has(first, "every token is at position 0: rotation, mask and softmax do not show"));
  EXPECT_FALSE(has(first, "every pass has one token"));
}

TEST(NotShown, OfRowsWithTheSameIds) {
  const ExactRun run(kShown);
  std::vector<Written> values = run.values();
  for (Written& w : values)
    if (w.name == "prefill.c0.ids" || w.name == "prefill.c1.ids") {
      const auto L = static_cast<std::ptrdiff_t>(w.numbers.size() / 6);
      std::copy_n(w.numbers.begin(), L, w.numbers.end() - L);
    }
  const auto of = [&](const std::vector<Written>& written) {
    const dump::Dump d = run.trace(written, "f32");
    const Claim claim = read_claim(d.attributes, std::nullopt);
    return not_shown(claim, read_values(d, claim, run.weights()), run.weights(), calling_thread());
  };
  EXPECT_TRUE(has(of(values), "rows 0 and 5 of the batch have the same ids"));
  // In one chunk alone they are not the same.
  for (Written& w : values)
    if (w.name == "prefill.c1.ids") w.numbers.back() = w.numbers.front() == 3 ? 4 : 3;
  EXPECT_FALSE(has(of(values), "the same ids"));
}

TEST(NotShown, OfRopeTablesThatAreNotOfTheDeclaredTheta) {
  const InWeights other = [](auto& w) {
    for (float& v : w.at("rope_sin").data) v = -v;
  };
  const auto whole = [](const Written&) { return false; };
  const dump::Attributes file{{"weights", "file"}};
  EXPECT_TRUE(has(said(kShown, other, whole, file),
                  "RoPE tables are the weights file's, and not those of theta=10000: a wrong "
                  "theta does not show"));
  EXPECT_FALSE(has(said(kShown, other, whole), "RoPE"));
  // As a library makes them: frequencies and angles in f32.
  const InWeights f32 = [](auto& w) {
    Tensor &cosines = w.at("rope_cos"), &sines = w.at("rope_sin");
    const auto pairs = static_cast<std::size_t>(cosines.shape[1]);
    for (std::size_t i = 0; i < cosines.data.size(); ++i) {
      const float frequency =
          1.0F / std::pow(10000.0F, static_cast<float>(i % pairs) / static_cast<float>(pairs));
      const float angle = static_cast<float>(i / pairs) * frequency;
      cosines.data[i] = std::cos(angle);
      sines.data[i] = std::sin(angle);
    }
  };
  EXPECT_FALSE(has(said(kShown, f32, whole, file), "RoPE"));
}

}  // namespace
}  // namespace shardproof::dump
