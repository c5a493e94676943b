// What a writer does in another way without saying so: the first explanation says what to declare.
#include "tests/golden/diagnosis/planted.h"

namespace shardproof::diagnosis {
namespace {

constexpr double kLog2E = 1.4426950408889634;

class Conventions : public testing::Test {
 protected:
  using Names = std::vector<std::string>;

  explicit Conventions(const std::string& line = kModel) : p(line + " seed=31") {}

  /// All values of some names, of all layers and passes, changed: to(id, value, place).
  template <class To>
  void change(const Names& names, To&& to) {
    for (auto& [id, value] : p.dump)
      for (const std::string& name : names)
        if (id.ends_with("." + name)) {
          const Planted::Value was = value;
          value = Planted::f32(
              each(was, [&, &of = id](double, std::size_t i) { return to(of, was, i); }),
              was.shape);
        }
  }
  void scale(const Names& names, double by) {
    change(names, [by](const std::string&, const Planted::Value& v, std::size_t i) {
      return v.data[i] * by;
    });
  }
  /// In place of each of `heads` heads head(h).
  template <class Head>
  void reorder(const Names& names, std::size_t heads, Head&& head) {
    change(names, [&](const std::string&, const Planted::Value& v, std::size_t i) {
      std::size_t inner = 1;
      for (std::size_t d = 3; d < v.shape.size(); ++d) inner *= at(v.shape[d]);
      const std::size_t h = i / inner % heads;
      return v.data[i - h * inner + head(h) * inner];
    });
  }
  void expect_declared(const std::string& name, const std::string& what) {
    for (const char* at : {"prefill.c0.layer0.", "decode.1.layer1."})
      expect_first(p.ask(name == "logits" ? "decode.1.logits" : at + name),
                   "convention: declare " + what);
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
  expect_first(p.ask("decode.1.layer1.norm"), "scale missing: the gain");
  change({"final_norm"}, folded);
  expect_declared("norm", "norm_gain=folded");
}

TEST_F(Conventions, OfBaseTwo) {
  scale({"score", "max"}, kLog2E);
  expect_declared("score", "score_base=2");
  scale({"logits"}, kLog2E);
  expect_declared("logits", "logits_base=2");
}

class ConventionsOfBaseTwo : public Conventions {
 protected:
  ConventionsOfBaseTwo() : Conventions(with_keys(kModel, ",softmax=base2")) {}
};

TEST_F(ConventionsOfBaseTwo, OfBaseE) {
  scale({"score", "max"}, 1 / kLog2E);
  expect_declared("score", "score_base=e");
  scale({"logits"}, 1 / kLog2E);
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
  const auto head = [](std::size_t h) { return h * 7 % 24; };
  reorder({"q", "q_rot", "attn"}, 24, head);
  // Scores that pair the heads as they stand are no convention's: those of a kv head are others.
  const auto said = p.ask("prefill.c0.layer0.q");
  ASSERT_FALSE(said.empty());
  expect_none(said, "convention");
  EXPECT_EQ(said[0].fault, "head order") << text(said);
  reorder({"score", "max", "exp", "denom"}, 24, head);
  expect_declared("q", "heads=0,7,14,21,4");
}

class ConventionsOfMultihead : public Conventions {
 protected:
  ConventionsOfMultihead()
      : Conventions("model=palm-tiny,layers=2,E=24,F=24,H=6,K=6,Q=4,V=24 batch=6 prompt=3 gen=2") {}
};

/// Where each query head has a kv head of its own, that one is in the same place.
TEST_F(ConventionsOfMultihead, KvHeadsGoWithQueryHeads) {
  const auto head = [](std::size_t h) { return (h + 2) % 6; };
  const auto expect = [&](const char* fault) {
    const std::string id = "decode.1.layer1.q";
    const auto said = p.ask(id, Planted::Value(p.value(id)), Torus(5, 1, 1));
    ASSERT_FALSE(said.empty());
    EXPECT_EQ(said[0].fault, fault) << text(said);
  };
  reorder({"q", "q_rot", "score", "max", "exp", "denom", "attn"}, 6, head);
  expect("head order");
  reorder({"k", "v", "k_rot", "k_cache", "v_cache"}, 6, head);
  expect("convention");
}

}  // namespace
}  // namespace shardproof::diagnosis
