// What a writer does in another way without saying so: the first explanation says what to declare.
#include "tests/golden/diagnosis/planted.h"

namespace shardproof::diagnosis {
namespace {

constexpr double kLog2E = 1.4426950408889634;
const Torus kTorus(4, 2, 3);

/// kModel with more keys of the model.
std::string with_keys(const std::string& keys) {
  std::string line = kModel;
  return line.insert(line.find(" batch"), keys) + " seed=31";
}

class Conventions : public testing::Test {
 protected:
  explicit Conventions(const std::string& keys = "") : p(with_keys(keys)) {}

  /// All values of some names, of all layers and passes, changed.
  template <class To>
  void change(const std::vector<std::string>& names, To&& to) {
    for (auto& [id, value] : p.dump)
      for (const std::string& name : names)
        if (id.ends_with("." + name)) {
          const Planted::Value was = value;
          for (std::size_t i = 0; i < value.data.size(); ++i)
            value.data[i] = static_cast<float>(to(id, was, i));
        }
  }
  /// Heads in another order.
  static double in_order(const std::string&, const Planted::Value& v, std::size_t i) {
    std::size_t inner = 1;
    for (std::size_t d = 3; d < v.shape.size(); ++d) inner *= static_cast<std::size_t>(v.shape[d]);
    const std::size_t h = i / inner % 24;
    return v.data[i - h * inner + h * 7 % 24 * inner];
  }
  void expect_declared(const std::string& name, const std::string& what) {
    for (const char* at : {"prefill.c0.layer0.", "decode.1.layer1."}) {
      const std::string id = name == "logits" ? "decode.1.logits" : at + name;
      expect_first(p.ask(id, Planted::Value(p.value(id)), kTorus), "convention", "",
                   "declare " + what);
    }
  }
  Planted p;
};

TEST_F(Conventions, GainsInTheNextWeight) {
  const auto folded = [&](const std::string& id, const Planted::Value& v, std::size_t i) {
    const std::string layer = id.find("layer0") != std::string::npos ? "layer0" : "layer1";
    const bool last = id.ends_with("final_norm");
    return v.data[i] / p.weight(last ? "final_norm" : layer + ".norm").data[i % 48];
  };
  change({"norm"}, folded);
  // Where the last norm has its gain, none is in the next weight by convention.
  const std::string id = "decode.1.layer1.norm";
  expect_first(p.ask(id, Planted::Value(p.value(id)), kTorus), "scale missing", "", "the gain");
  change({"final_norm"}, folded);
  expect_declared("norm", "norm_gain=folded");
}

TEST_F(Conventions, ScoresOfBaseTwo) {
  change({"score", "max"}, [](const std::string&, const Planted::Value& v, std::size_t i) {
    return v.data[i] * kLog2E;
  });
  expect_declared("score", "score_base=2");
}

TEST_F(Conventions, LogitsOfBaseTwo) {
  change({"logits"}, [](const std::string&, const Planted::Value& v, std::size_t i) {
    return v.data[i] * kLog2E;
  });
  expect_declared("logits", "logits_base=2");
}

class ConventionsOfBaseTwo : public Conventions {
 protected:
  ConventionsOfBaseTwo() : Conventions(",softmax=base2") {}
};

TEST_F(ConventionsOfBaseTwo, ScoresOfBaseE) {
  change({"score", "max"}, [](const std::string&, const Planted::Value& v, std::size_t i) {
    return v.data[i] / kLog2E;
  });
  expect_declared("score", "score_base=e");
}

TEST_F(ConventionsOfBaseTwo, LogitsOfBaseE) {
  change({"logits"}, [](const std::string&, const Planted::Value& v, std::size_t i) {
    return v.data[i] / kLog2E;
  });
  expect_declared("logits", "logits_base=e");
}

TEST_F(Conventions, OtherPairsOfChannels) {
  change({"q", "k", "q_rot", "k_rot", "k_cache"},
         [](const std::string&, const Planted::Value& v, std::size_t i) {
           const std::size_t c = i % 4;
           return v.data[i - c + c % 2 * 2 + c / 2];
         });
  for (const char* name : {"q", "k"}) expect_declared(name, "rope_pairs=interleaved");
}

TEST_F(Conventions, HeadsInAnotherOrder) {
  change({"q", "q_rot", "attn", "score", "max", "exp", "denom"}, in_order);
  expect_declared("q", "heads=0,7,14,21,4");
}

/// Scores that pair the heads as they stand are no convention's: those of a kv head are others.
TEST_F(Conventions, HeadsThatReadOtherKvHeadsAreNone) {
  change({"q", "q_rot", "attn"}, in_order);
  const std::string id = "prefill.c0.layer0.q";
  const auto said = p.ask(id, Planted::Value(p.value(id)), kTorus);
  ASSERT_FALSE(said.empty());
  for (const Hypothesis& h : said) EXPECT_NE(h.fault, "convention") << text(said);
  EXPECT_EQ(said[0].fault, "head order") << text(said);
}

/// Where each query head has a kv head of its own, that one is in the same place.
TEST(ConventionsOfMultihead, KvHeadsGoWithQueryHeads) {
  for (const bool all : {true, false}) {
    Planted p("model=palm-tiny,layers=2,E=24,F=24,H=6,K=6,Q=4,V=24 batch=6 prompt=3 gen=2 seed=31");
    std::vector<std::string> names{"q", "q_rot", "score", "max", "exp", "denom", "attn"};
    if (all) names.insert(names.end(), {"k", "v", "k_rot", "k_cache", "v_cache"});
    for (auto& [id, value] : p.dump)
      for (const std::string& name : names) {
        if (!id.ends_with("." + name)) continue;
        const Planted::Value was = value;
        const bool cache = name.ends_with("_cache");
        std::size_t inner = 1;
        for (std::size_t d = 3; d < was.shape.size(); ++d)
          inner *= static_cast<std::size_t>(was.shape[d]);
        if (cache) inner = 4;
        for (std::size_t i = 0; i < value.data.size(); ++i) {
          const std::size_t h = i / inner % 6;
          value.data[i] = was.data[i - h * inner + (h + 2) % 6 * inner];
        }
      }
    const std::string id = "decode.1.layer1.q";
    const auto said = p.ask(id, Planted::Value(p.value(id)), Torus(5, 1, 1));
    ASSERT_FALSE(said.empty());
    EXPECT_EQ(said[0].fault, all ? "convention" : "head order") << text(said);
  }
}

}  // namespace
}  // namespace shardproof::diagnosis
