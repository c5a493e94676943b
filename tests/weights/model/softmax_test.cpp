// What a base-2 model changes of a model's constants.
#include "weights/model/softmax.h"

#include <gtest/gtest.h>

#include <cmath>

namespace shardproof {
namespace {

TEST(Softmax, APlainModelHasItsConstants) {
  const ModelConfig c = parse_model("palm-tiny,eps=0.5,logit_scale=0.25");
  EXPECT_EQ(eps_of_norms(c), 0.5);
  EXPECT_EQ(scale_of_logits(c), 0.25F);
  EXPECT_EQ(scale_of_scores(c.softmax, 16.0), 0.25);
  EXPECT_EQ(natural_logit(c, 3.0F), 3.0);
}

TEST(Softmax, ABaseTwoModelHasThemInItsWeights) {
  const ModelConfig c = parse_model("palm-tiny,softmax=base2,eps=0.5,logit_scale=0.25");
  EXPECT_EQ(folded_scale(c), 0.36067376F);  // log2(e)/4
  const double scale = static_cast<double>(0.36067376F);
  EXPECT_EQ(eps_of_norms(c), 0.5 * (scale * scale));
  EXPECT_EQ(scale_of_logits(c), 1.0F);
  EXPECT_EQ(scale_of_scores(c.softmax, 16.0), 1.0);
  EXPECT_EQ(natural_logit(c, 3.0F), 3.0 * 0.6931471805599453);
}

TEST(Softmax, AnUntiedTableLeavesTheStreamAndEpsAlone) {
  EXPECT_EQ(eps_of_norms(parse_model("palm-tiny,softmax=base2,tied=false,eps=0.5")), 0.5);
}

TEST(Softmax, TheConstantsAreEachOthersInverse) {
  EXPECT_EQ(kLog2E, 1.0 / std::log(2.0));
  EXPECT_EQ(kLn2, std::log(2.0));
}

}  // namespace
}  // namespace shardproof
