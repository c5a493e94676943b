// Values that are operands of what follows and are not judged.
#include "golden/trace/claim/given_values.h"

#include <gtest/gtest.h>

#include "tests/golden/trace/written.h"
#include "tests/weights/expect_error.h"

namespace shardproof::dump {
namespace {

TEST(GivenValues, PatternsMatchANameOrItsTail) {
  const std::string name = "prefill.c0.layer1.moe_out";
  for (const char* pattern :
       {"prefill.c0.layer1.moe_out", "moe_out", "layer1.moe_out", "*", "layer*.moe_out",
        "layers.*.moe_out", "layers.1.*", "*.moe_*", "prefill.*.moe_out", "moe_ou?", "*t"})
    EXPECT_TRUE(matches(pattern, name)) << pattern;
  for (const char* pattern : {"", "oe_out", "layer1", "layers.2.moe_out", "moe_out?", "layer2.*",
                              "prefill.c0.moe_out", "moe", "c1.*"})
    EXPECT_FALSE(matches(pattern, name)) << pattern;
  EXPECT_TRUE(matches("layer1.x", "prefill.c0.layers.1.x"));
}

/// The last layer of a model whose feed-forward is another than the product's: `out` is the sum of
/// mid and what it gave.
class OtherModel : public testing::Test {
 protected:
  OtherModel()
      : run_("torus=1x1x1 model=llama,layers=1,E=16,F=24,H=4,K=2,Q=4,V=30 batch=2 prompt=3 gen=1") {
    for (Written w : run_.values()) {
      const std::string name = last_word(w.name);
      if (name == "ffn_out") {
        for (double& v : w.numbers) v = f32(v * -3.0 + 0.125);
        w.name = at_ + "moe_out";
        w.attributes["meaning"] = "ffn_out";
        moe_ = w.numbers;
      } else if (name == "out" || name == "final_norm" || name == "logits" || name == "token") {
        continue;
      }
      values_.push_back(std::move(w));
    }
    const Tensor mid = run_.value(at_ + "mid");
    Written out{at_ + "out", "BLE", mid.shape, {}, {}};
    for (std::size_t i = 0; i < moe_.size(); ++i)
      out.numbers.push_back(static_cast<double>(mid.data[i] + static_cast<float>(moe_[i])));
    values_.push_back(std::move(out));
  }

  dump::Dump trace() const { return run_.trace(values_, "f32"); }
  dump::Attributes& moe(dump::Dump& d) const {
    return d.values.find(at_ + "moe_out")->second.attributes;
  }

  const std::string at_ = "prefill.c0.layer0.";
  ExactRun run_;
  std::vector<Written> values_;
  std::vector<double> moe_;
};

TEST_F(OtherModel, IsDifferentWhereNothingIsSaid) {
  const Verdict v = run_.judged(trace());
  ASSERT_TRUE(v.first);
  EXPECT_EQ(v.rows[*v.first].name, at_ + "moe_out");
  EXPECT_EQ(v.count(Fit::different), 1) << "out follows from it";
}

TEST_F(OtherModel, IsJudgedInAllElse) {
  for (const char* how : {"value", "pattern", "both"}) {
    dump::Dump d = trace();
    if (how[0] != 'p') moe(d)["given"] = "true";
    if (how[0] != 'v') d.attributes["given"] = "layers.*.moe_out, hidden";
    const Verdict v = run_.judged(d);
    EXPECT_EQ(v.count(Fit::different), 0) << how;
    EXPECT_EQ(v.exit_code(), 0) << how;
    for (const Row& row : v.rows) {
      const bool given =
          row.name == at_ + "moe_out" || (how[0] != 'v' && row.name == at_ + "hidden");
      if (row.of_run) {
        EXPECT_EQ(row.fit == Fit::not_judged, given) << how << " " << row.name;
      }
      if (given) {
        EXPECT_EQ(row.why, "given");
      }
    }
    // What follows from it is judged: the last number of its sum.
    dump::StoredArray& out = d.values.find(at_ + "out")->second.whole;
    out.bytes.end()[-1] ^= std::byte{0x80};
    const Verdict wrong = run_.judged(d);
    ASSERT_TRUE(wrong.first) << how;
    EXPECT_EQ(wrong.rows[*wrong.first].name, at_ + "out") << how;
    EXPECT_EQ(wrong.exit_code(), 1);
  }
}

TEST_F(OtherModel, GivenValuesStandForOthersOfTheirName) {
  dump::Dump d = trace();
  moe(d)["given"] = "true";
  // The product's own ffn_out, which the writer computed besides.
  Written w{at_ + "ffn_out", "BLE", run_.value(at_ + "ffn_out").shape, {}, {}};
  const Tensor own = run_.value(w.name);
  w.numbers.assign(own.data.begin(), own.data.end());
  run_.add(d, w, Mesh::parse("x y z", run_.source_case.torus), nullptr);
  std::swap(d.order.front(), d.order.back());
  EXPECT_EQ(run_.judged(d).count(Fit::different), 0);
}

TEST_F(OtherModel, APatternThatMeetsNothingIsAMistake) {
  dump::Dump d = trace();
  d.attributes["given"] = "moe_out,layers.*.router";
  const auto judged = [&] { run_.judged(d); };
  EXPECT_EQ(label_of(judged), "compare_given");
  EXPECT_NE(message_of(judged).find("given=\"layers.*.router\": no value of the trace"),
            std::string::npos)
      << message_of(judged);
  d.attributes.erase("given");
  moe(d)["given"] = "perhaps";
  EXPECT_EQ(label_of(judged), "dump_attribute");
  moe(d)["given"] = "true";
  d.attributes["arithmetic"] = "exact";
  EXPECT_EQ(label_of(judged), "compare_given");
}

TEST_F(OtherModel, WithoutAMeaningItStandsForNothing) {
  dump::Dump d = trace();
  moe(d) = {{"given", "true"}};
  const Verdict v = run_.judged(d);
  ASSERT_EQ(v.unknown.size(), 1U);
  EXPECT_NE(v.unknown[0].why.find("meaning"), std::string::npos) << v.unknown[0].why;
}

TEST(GivenValues, AnyOperandMayBe) {
  // Rotated queries and keys of a model with norms of its own, and what attention gave.
  const ExactRun run(
      "torus=1x1x1 model=llama,layers=1,E=16,F=24,H=4,K=2,Q=4,V=30 batch=2 prompt=3 gen=1");
  const std::string at = "prefill.c0.layer0.";
  for (const char* name : {"q_rot", "k_rot", "attn"}) {
    std::vector<Written> values;
    for (Written w : run.values()) {
      const std::string last = last_word(w.name);
      if (!w.name.starts_with(at) && last != "ids" && last != "embed") continue;
      if (last == name) {
        for (double& v : w.numbers) v *= 2.0;
        w.name = at + "mine";
        w.attributes = {{"meaning", name}, {"given", "true"}};
      }
      values.push_back(std::move(w));
    }
    const Verdict v = run.judged(values, "f32");
    const std::string follows = name[0] == 'q' ? "score" : name[0] == 'k' ? "k_cache" : "attn_out";
    ASSERT_TRUE(v.first) << name << ": the next value is made of another";
    EXPECT_EQ(v.rows[*v.first].name, at + follows) << name;
    EXPECT_EQ(v.count(Fit::different), 1) << name;
  }
}

}  // namespace
}  // namespace shardproof::dump
