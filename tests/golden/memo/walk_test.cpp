// The texts of all models of the standard matrix, walked, against the model by hand: every
// checkpoint, statistic and token, bit for bit.
#include <gtest/gtest.h>

#include <cstring>
#include <iostream>
#include <set>

#include "golden/cases/cases.h"
#include "golden/memo/oracle_memo.h"
#include "oracle/graph/run.h"
#include "tests/sanitized.h"
#include "weights/model/softmax.h"
#include "weights/text/writer.h"

namespace shardproof {
namespace {

Tensor last_position(const Tensor& x, const IntTensor& last) {
  const std::int64_t L = x.shape[1], V = x.shape[2];
  Tensor y({x.shape[0], V});
  for (std::int64_t b = 0; b < x.shape[0]; ++b)
    std::copy_n(x.data.begin() + (b * L + last.data[static_cast<std::size_t>(b)]) * V, V,
                y.data.begin() + b * V);
  return y;
}

bool same_bits(const Tensor& a, const Tensor& b) {
  return a.shape == b.shape &&
         std::memcmp(a.data.data(), b.data.data(), a.data.size() * sizeof(float)) == 0;
}

TEST(WalkedMatrix, HasTheBitsOfTheModelByHand) {
  std::set<std::string> seen;
  std::int64_t elements = 0, values = 0, models = 0;
  OneInN walked_too(20, "runs");
  for (const Case& c : cases::standard_matrix()) {
    if (c.numerics.regime == Regime::field) continue;
    Case plain = c;  // what the unsharded model does not read
    plain.torus = Torus::parse("1x1x1");
    plain.prefill = plain.decode = all_strategies().front();
    plain.numerics = {.weights = c.numerics.weights, .act = c.numerics.act};
    if (!seen.insert(print_case(plain)).second || !walked_too()) continue;
    OracleMemo memo;
    const auto known = memo.get(c);
    const ModelText text = parse_model_text(text_of_model(c.model, c.numerics.weights));
    const TextSizes sizes = sizes_of(text);
    const auto walked =
        oracle::graph::run([&](const std::string& id) { return known->stored.find(id); },
                           {.text = text,
                            .sizes = sizes,
                            .act = c.numerics.act,
                            .prompt = known->prompt,
                            .passes = c.passes(),
                            .sampling = c.sampling,
                            .seed = c.seed,
                            .unit = c.model.softmax == Softmax::base2 ? kLn2 : 1.0});
    const auto compare = [&](const std::string& id, const Tensor& by_hand) {
      const Tensor& whole = walked.values.at(id);
      const Tensor own =
          id.ends_with(".logits")
              ? last_position(whole, known->answer.last.at(id.substr(0, id.rfind('.'))))
              : whole;
      EXPECT_TRUE(same_bits(own, by_hand)) << print_case(c) << "\n" << id;
      elements += element_count(by_hand.shape);
      ++values;
    };
    for (const auto& [id, value] : known->answer.checkpoints) compare(id, value);
    for (const auto& [id, value] : known->answer.stats) compare(id, value);
    for (const auto& [id, token] : known->answer.tokens)
      EXPECT_EQ(walked.tokens.at(id).data, token.data) << print_case(c) << "\n" << id;
    ++models;
  }
  std::cout << models << " runs, " << values << " values, " << elements << " elements\n";
  EXPECT_GT(models, 10);
}

}  // namespace
}  // namespace shardproof
