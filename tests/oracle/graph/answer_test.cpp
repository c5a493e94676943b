// A run of a model's text, pass by pass: the tokens that each takes, their places, and what it
// samples.
#include "oracle/graph/answer.h"

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "weights/storage/generator.h"
#include "weights/text/text_model.h"

namespace shardproof::oracle {
namespace {

using Ints = std::vector<std::int32_t>;

ModelConfig small_model() {
  return model_config(std::make_shared<const TextModel>(
      parse_model_text("model small\ndim E channels\ndim V words\nsmall E=3, V=8\n"
                       "embedding\nweight table : VE\nembed : BLE = gather(table, ids, V)\n"
                       "layer\nout : BLE = add(in, in)\n"
                       "head\nlogits : BLV = einsum(BLE,VE->BLV; in, table)\n"),
      TextKeys{}, "small"));
}

// Two rows of three tokens in chunks of two, the last of which samples, and two decode steps.
const Passes kPasses(2, 3, 2, 3);
const std::vector<std::string> kNames{"prefill.c0", "prefill.c1", "decode.1", "decode.2"};

/// Expects the ids, positions and cache slots of each pass, row by row.
void expect_inputs(const std::map<std::string, IntTensor>& inputs, const std::vector<Ints>& ids) {
  const std::vector<Ints> positions{{0, 1, 0, 1}, {2, 2}, {3, 3}, {4, 4}};
  const std::vector<std::size_t> slots{2, 3, 4, 5};
  for (std::size_t p = 0; p < kNames.size(); ++p) {
    ASSERT_TRUE(inputs.contains(kNames[p] + ".ids")) << kNames[p];
    EXPECT_EQ(inputs.at(kNames[p] + ".ids").data, ids[p]) << kNames[p];
    EXPECT_EQ(inputs.at(kNames[p] + ".pos").data, positions[p]) << kNames[p];
    Ints all(slots[p]);
    std::iota(all.begin(), all.end(), 0);
    EXPECT_EQ(inputs.at(kNames[p] + ".slot").data, all) << kNames[p];
  }
}

TEST(GraphAnswer, HasEveryPassAndTheDrawsOfThoseThatSample) {
  const Weights weights = generate_weights(small_model(), 1);
  IntTensor prompt({2, 3});
  prompt.data = {5, 1, 2, 0, 7, 3};
  const oracle::Answer answer = graph::answer(
      weights, {.numerics = {}, .prompt = prompt, .passes = kPasses, .row_ids = {4, 9}});
  EXPECT_EQ(answer.passes, kNames);
  std::vector<Ints> ids{{5, 1, 0, 7}, {2, 3}};
  for (const char* sampled : {"prefill.c1", "decode.1"})
    ids.push_back(answer.tokens.at(std::string(sampled) + ".token").data);
  expect_inputs(answer.inputs, ids);
  // Of row 4 and row 9 of a larger batch the first, second and third token.
  ASSERT_EQ(answer.draws.size(), 3U);
  for (std::int64_t t = 0; t < 3; ++t) {
    const std::string& name = kNames[static_cast<std::size_t>(t) + 1];
    EXPECT_EQ(answer.draws.at(name).rows, (std::vector<Draw>{{4, t}, {9, t}})) << name;
    EXPECT_TRUE(answer.tokens.contains(name + ".token"));
  }
}

TEST(GraphAnswerInTheField, HasEveryPassAndTheTokensOfThoseThatSample) {
  field::Request request;
  request.config = small_model();
  request.passes = kPasses;
  request.ids = IntTensor({2, 5});
  request.ids.data = {5, 1, 2, 6, 4, 0, 7, 3, 1, 2};
  const field::Answer answer = graph::answer_in_field(request);
  expect_inputs(answer.inputs, {{5, 1, 0, 7}, {2, 3}, {6, 1}, {4, 2}});
  for (const std::string& name : kNames)
    EXPECT_EQ(answer.checkpoints.contains(name + ".token"), name != "prefill.c0") << name;
}

}  // namespace
}  // namespace shardproof::oracle
