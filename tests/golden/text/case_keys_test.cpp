// The keys of a case line on models that are texts: the text of a model of keys gives the bits that
// the keys give with the same line, and its programs are equal to it in every regime.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <iterator>
#include <map>
#include <string>

#include "engine/ops/int8_weights.h"
#include "engine/run/dim_padding.h"
#include "golden/verify/verify.h"
#include "tests/golden/text/text_case.h"
#include "weights/model/softmax.h"
#include "weights/storage/generator.h"
#include "weights/text/writer.h"

namespace shardproof {
namespace {

/// A value of the text's model as the model of keys has it: of logits the rows' last positions.
template <class T>
Array<T> as_of_keys(const std::string& id, const Array<T>& value,
                    const std::map<std::string, IntTensor>& last_of_pass) {
  if (!id.ends_with(".logits")) return value;
  const IntTensor& last = last_of_pass.at(id.substr(0, id.rfind('.')));
  const std::int64_t L = value.shape[1], V = value.shape[2];
  Array<T> kept({value.shape[0], V});
  for (std::int64_t b = 0; b < value.shape[0]; ++b)
    std::copy_n(value.data.begin() + (b * L + last.data[static_cast<std::size_t>(b)]) * V, V,
                kept.data.begin() + b * V);
  return kept;
}

/// Returns the first value of the model of keys that its text has otherwise; "" if none.
template <class Answer>
std::string first_other(const Answer& of_keys, const Answer& of_text, int& compared) {
  for (const auto& [id, value] : of_keys.checkpoints) {
    const auto at = of_text.checkpoints.find(id);
    if (at == of_text.checkpoints.end()) {
      if (!id.ends_with("token")) return id + " is missing";
      continue;
    }
    const auto own = as_of_keys(id, at->second, of_keys.last);
    if (own.shape != value.shape) return id + " has another shape";
    if (std::memcmp(own.data.data(), value.data.data(), own.data.size() * sizeof(own.data[0])) != 0)
      return id;
    ++compared;
  }
  return "";
}

struct SameCase {
  Case of_keys, of_text;
};

SameCase same_case(const std::string& model, const std::string& line) {
  const Case of_keys = parse_case("gen=3 model=" + model + " " + line);
  const ModelText text = parse_model_text(text_of_model(of_keys.model));
  return {of_keys, case_with_text(text, line)};
}

void expect_same(const std::string& model, const std::string& line) {
  const auto [of_keys, of_text] = same_case(model, line);
  OracleMemo memo;
  int compared = 0;
  EXPECT_EQ(first_other(memo.get(of_keys)->answer, memo.get(of_text)->answer, compared), "")
      << of_keys;
  EXPECT_GT(compared, 30) << of_keys;
  for (const auto& [id, token] : memo.get(of_keys)->answer.tokens)
    EXPECT_EQ(memo.get(of_text)->answer.tokens.at(id).data, token.data) << id << " " << of_keys;
  compared = 0;
  const RunPlan plan = make_plan(of_keys), plan_of_text = make_plan(of_text);
  const FieldSetting setting{.seed = of_keys.seed};
  EXPECT_EQ(first_other(memo.of_field(plan, setting)->answer,
                        memo.of_field(plan_of_text, setting)->answer, compared),
            "")
      << of_keys;
  EXPECT_GT(compared, 30) << of_keys;
}

void expect_equal(const Case& c) {
  OracleMemo memo;
  const Judgement judgement = verify_case(c, memo);
  EXPECT_EQ(judgement.verdict, Verdict::equal) << c << "\n" << judgement.reason();
}

constexpr const char* kModels[] = {
    "palm-tiny,E=24,F=48,H=12,Q=4,V=24",
    "llama,layers=2,E=24,F=48,H=12,K=6,Q=4,V=24",
    "gptj,layers=2,E=24,F=48,H=12,K=12,Q=8,V=24",
    "falcon,layers=2,E=24,F=48,H=12,Q=4,V=24",
    "palm-tiny,E=24,F=48,H=12,Q=4,V=24,softmax=base2",
    "palm-tiny,E=24,F=48,H=12,Q=4,V=24,rope=alibi,unembed_bias=true,ffn=geglu,bias=all",
    "palm-tiny,E=24,F=48,H=12,K=6,Q=4,V=24,block=serial,norm=layernorm,bias=all,embed_scale=2"};

std::string random_model() {
  return kModels[*rc::gen::inRange<std::size_t>(0, std::size(kModels))];
}

/// Torus, strategies, act and weights of a case that any of the models runs.
std::string random_layout() {
  const auto strategy = [] {
    return *rc::gen::element<std::string>("ws1d:heads", "ws1d:batch", "ws2d:heads", "ws2d:batch",
                                          "wg-xyz:batch", "dp");
  };
  return "torus=" + *rc::gen::element<std::string>("2x1x1", "1x3x1", "2x1x2", "1x1x1") +
         " prefill=" + strategy() + " decode=" + strategy() +
         " act=" + *rc::gen::element<std::string>("f32", "bf16") + " batch=12";
}

/// Compares a line's values with the keys', then its programs in one regime.
void require_key(const std::string& key) {
  const std::string model = random_model();
  const std::string line =
      random_layout() + " " + key +
      " seed=" + std::to_string(*rc::gen::resize(rc::kNominalSize, rc::gen::inRange(1, 1000)));
  RC_LOG() << "model=" << model << " " << line << "\n";
  // The weights of a base-2 model of keys are folded, those of its text are generated as they are.
  if (model.find("base2") == model.npos) expect_same(model, line);
  const std::string regime = *rc::gen::element<std::string>("exact", "f32", "field");
  expect_equal(same_case(model, line + " regime=" + regime).of_text);
  RC_ASSERT(!::testing::Test::HasFailure());
}

constexpr const char* kTexts[] = {"llama-3", "gpt-2", "gemma-2", "cohere", "qwen3"};

/// The texts that somebody else wrote, each in a regime and a layout that `turn` chooses: in three
/// turns a text has all regimes.
void expect_texts_equal(const std::string& line, std::size_t turn) {
  constexpr const char* kRegimes[] = {"exact", "f32", "field"};
  constexpr const char* kLayouts[] = {"torus=2x2x2 prefill=ws2d:batch",
                                      "torus=1x3x1 prefill=ws1d:heads",
                                      "torus=2x1x2 prefill=wg-xyz:batch decode=ws2d:heads"};
  for (std::size_t i = 0; i < std::size(kTexts); ++i)
    expect_equal(case_of_text(
        kTexts[i], fmt::format("{} regime={} {}", kLayouts[(2 * i + turn + turn / 3) % 3],
                               kRegimes[(i + turn) % 3], line)));
}

RC_GTEST_PROP(CaseKeysOfTexts, LengthsGiveTheBitsOfKeys, ()) {
  require_key(*rc::gen::element<std::string>(
      "prompt=5 chunk=2 lengths=ragged", "prompt=6 lengths=6,1,3", "prompt=6 chunk=3 lengths=2,5",
      "prompt=4 chunk=1 lengths=4,1,2,3,1", "prompt=5 chunk=4 lengths=3"));
}
TEST(CaseKeysOfTexts, LengthsOfHandedTextsAreEqual) {
  expect_texts_equal("batch=8 prompt=5 chunk=2 lengths=ragged", 0);
  expect_texts_equal("batch=8 prompt=6 lengths=6,1,4 act=bf16", 1);
}
RC_GTEST_PROP(CaseKeysOfTexts, Int8WeightsGiveTheBitsOfKeys, ()) {
  require_key(*rc::gen::element<std::string>("weights=int8", "weights=int8 chunk=2 prompt=5",
                                             "weights=int8 prompt=6 chunk=3 lengths=2,5,6"));
}
TEST(CaseKeysOfTexts, Int8WeightsOfHandedTextsAreEqual) {
  expect_texts_equal("weights=int8 batch=8 prompt=5", 2);
}
RC_GTEST_PROP(CaseKeysOfTexts, PaddedDimsGiveTheBitsOfKeys, ()) {
  require_key(*rc::gen::element<std::string>(
      "pad_vocab=36", "pad_vocab=60 chunk=2 prompt=5", "pad_heads=24", "pad_heads=36 pad_vocab=48",
      "pad_heads=24 weights=int8", "pad_heads=24 pad_vocab=36 prompt=5 chunk=2 lengths=ragged"));
}
TEST(CaseKeysOfTexts, PaddedDimsOfHandedTextsAreEqual) {
  expect_texts_equal("pad_vocab=288 pad_heads=48 batch=8 prompt=5", 3);
}
/// One kv head has a single group, of as many heads as there are: padding included.
TEST(CaseKeysOfTexts, PaddedHeadsOfOneKvHeadAreEqual) {
  for (const char* text : {"llama-3", "qwen3"})
    for (const char* regime : {"exact", "f32", "field"}) {
      const Case c = parse_case(
          fmt::format("model={},K=1 gen=2 torus=2x2x2 prefill=ws2d:batch decode=ws1d:batch "
                      "regime={} batch=8 pad_heads=48",
                      text_file(text), regime));
      expect_equal(c);
      EXPECT_EQ(text_model(placed_model(c))->sizes().extents.at('G'), 48) << c;
    }
}
/// Tori that divide neither H nor V of the model.
TEST(CaseKeysOfTexts, PaddedDimsRunOnToriThatDivideThemOnly) {
  for (const char* regime : {"exact", "f32", "field"})
    for (const char* layout :
         {"torus=1x5x1 prefill=ws1d:heads", "torus=5x1x1 prefill=ws2d:batch"}) {
      const std::string line =
          fmt::format("{} regime={} batch=10 pad_heads=40 pad_vocab=280", layout, regime);
      for (const char* text : {"llama-3,E=80,F=80", "gpt-2,E=80,F=80"}) {
        const std::string name(text);
        const auto comma = name.find(',');
        expect_equal(parse_case(fmt::format("model={}{} gen=2 {}", text_file(name.substr(0, comma)),
                                            name.substr(comma), line)));
      }
    }
}
TEST(CaseKeysOfTexts, SampleFromAPaddedVocabularyAtRandom) {
  expect_equal(case_of_text("qwen3",
                            "torus=2x2x2 prefill=ws2d:batch batch=8 prompt=5 pad_vocab=288 "
                            "sample=random top_k=5"));
}
/// Codes and scales are those of the keys, by the same names.
TEST(CaseKeysOfTexts, QuantizedWeightsAreThoseOfKeys) {
  for (const std::string model : kModels) {
    if (model.find("base2") != model.npos) continue;
    const auto [of_keys, of_text] = same_case(model, "weights=int8");
    OracleMemo memo;
    const Weights &keys = memo.get(of_keys)->stored, &text = memo.get(of_text)->stored;
    int compared = 0;
    for (const auto& [name, tensor] : keys.tensors()) {
      if (name.starts_with("rope")) continue;  // with a column for each pair
      EXPECT_EQ(text.at(name)->data, tensor.data) << model << " " << name;
      ++compared;
    }
    EXPECT_EQ(std::ssize(text.names()) - compared, rotates(of_keys.model) ? 2 : 0) << model;
    // As `weights quantize` makes them.
    const Weights made = int8_weights(generate_weights(of_text.model, of_text.seed));
    EXPECT_EQ(made.names(), text.names());
    for (const auto& [name, tensor] : made.tensors())
      EXPECT_EQ(tensor.data, text.at(name)->data) << model << " " << name;
  }
}
TEST(CaseKeysOfTexts, RowsOfUnequalLengthSampleAtRandom) {
  expect_equal(case_of_text("qwen3",
                            "torus=2x2x2 prefill=ws2d:batch batch=24 prompt=5 chunk=2 "
                            "lengths=ragged sample=random top_k=5"));
}

}  // namespace
}  // namespace shardproof
