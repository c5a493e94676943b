// Which query heads of a model belong together.
#include "weights/text/heads.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "tests/weights/text/plain_model.h"
#include "weights/text/text_model.h"

namespace shardproof {
namespace {

ModelConfig of(const std::string& text, const TextKeys& keys) {
  return model_config(std::make_shared<const TextModel>(parse_model_text(text), keys, "m.model"));
}

TEST(Heads, OfATextAreGroupedByItsView) {
  const ModelConfig model = of(std::string(kPlainModel), {{"H", "6"}, {"K", "2"}});
  EXPECT_EQ(group_letter(*text_model(model)), 'G');
  EXPECT_EQ(heads_per_group(model), 3);
  EXPECT_EQ(kv_heads(model, 12), 4);
}

TEST(Heads, OfKeysAreGroupedByK) {
  EXPECT_EQ(heads_per_group(parse_model("llama,H=12,K=3")), 4);
  EXPECT_EQ(kv_heads(parse_model("llama,H=12,K=3"), 24), 6);
  EXPECT_EQ(heads_per_group(parse_model("palm-tiny")), 1);
  EXPECT_EQ(kv_heads(parse_model("palm-tiny"), 96), 1);
}

/// A text may use the letter K for another dim, larger than H, or without an H.
TEST(Heads, OfATextWithoutSuchAViewAreNotGrouped) {
  const std::string taps =
      "model taps\ndim E d\ndim K taps\ndim V vocab\nsmall E=4, K=12, V=8\nembedding\n"
      "weight table : VE\nembed : BLE = gather(table, ids, V)\nlayer\nweight w : EK\n"
      "zk : BLK = einsum(BLE,EK->BLK; in, w)\nout : BLE = add(in, sum(zk, K))\nhead\n"
      "weight u : VE\nlogits : BLV = einsum(BLE,VE->BLV; in, u)\n";
  const ModelConfig model = of(taps, {});
  EXPECT_EQ(group_letter(*text_model(model)), 0);
  EXPECT_EQ(heads_per_group(model), 1);
  EXPECT_EQ(kv_heads(model, 6), 12);
}

}  // namespace
}  // namespace shardproof
