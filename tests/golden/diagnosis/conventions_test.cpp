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
  change({"norm"}, [&](const std::string& id, const Planted::Value& v, std::size_t i) {
    const std::string layer = id.find("layer0") != std::string::npos ? "layer0" : "layer1";
    return v.data[i] / p.weight(layer + ".norm").data[i % 48];
  });
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
  change({"q", "q_rot", "attn"}, [](const std::string&, const Planted::Value& v, std::size_t i) {
    const std::size_t h = i / 4 % 24;
    return v.data[i - h * 4 + h * 7 % 24 * 4];
  });
  expect_declared("q", "heads=0,7,14,21,4");
}

}  // namespace
}  // namespace shardproof::diagnosis
