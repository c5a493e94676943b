// A cause in a value that the dump lacks, held against the other dumped values that follow from it.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/golden/diagnosis/planted.h"

namespace shardproof::diagnosis {
namespace {

/// What is done to the gain of a norm, and what is said of it.
struct Fault {
  double (*gain)(const std::vector<double>& gain, std::size_t e);
  std::string kind, cause;
};
const Fault kFaults[]{
    {[](const auto&, std::size_t) { return 1.0; }, "scale missing",
     "scale missing: the gain, in norm, which"},
    {[](const auto& gain, std::size_t e) { return gain[(e + gain.size() / 2) % gain.size()]; },
     "chunks in another order",
     "chunks in another order [x]: E of layer1.norm: its blocks are 1,0, in norm, which"},
};

/// Queries, keys, values and both parts of the MLP follow from one norm.
class Touched : public testing::TestWithParam<Fault> {
 protected:
  struct Product {
    std::string name, matrix;
  };
  const std::vector<Product> kProducts{
      {"q", "wq"}, {"k", "wk"}, {"v", "wv"}, {"gate", "w_gate"}, {"up", "w_up"}};
  const std::string kSmall =
      "model=palm-tiny,layers=2,E=24,F=24,H=6,K=2,Q=4,V=24 batch=4 prompt=3 gen=2 seed=37";
  Planted p{kSmall}, wrong{kSmall};

  Touched() {
    const Planted::Value gain = wrong.weight("layer1.norm");
    Planted::Value& norm = wrong.dump.at(kAt + "norm");
    norm = each(norm, [&](double v, std::size_t i) {
      const std::size_t e = i % gain.data.size();
      return v / gain.data[e] * GetParam().gain(gain.data, e);
    });
    p.dump.erase(kAt + "norm");
    p.texts = 0;
  }
  Planted::Value faulty(const Product& of) const {
    return Planted::f32(wrong.product(kAt + "norm", "layer1." + of.matrix),
                        p.value(kAt + of.name).shape);
  }
  Planted::Said ask() { return p.ask(kAt + "q", faulty(kProducts[0]), Torus(2, 1, 1)); }
};

TEST_P(Touched, AllThatFollowsHasTheFault) {
  for (const Product& of : kProducts) p.dump.at(kAt + of.name) = faulty(of);
  expect_first(ask(), GetParam().cause);
  // A second fault of another value refutes nothing.
  Noise noise;
  Planted::Value& k = p.dump.at(kAt + "k");
  k = Planted::f32(noise.on(k, rms(k)), k.shape);
  expect_first(ask(), GetParam().cause);
}

/// One that is right shows that the norm was: then the fault is not even near.
TEST_P(Touched, ARightValueRefutesIt) {
  expect_none(ask(), GetParam().kind);
  for (const Product& right : kProducts) {
    if (right.name == "q") continue;
    for (const Product& of : kProducts)
      if (of.name != right.name) p.dump.at(kAt + of.name) = faulty(of);
    p.dump.at(kAt + right.name) = wrong.value(kAt + right.name);
    const Planted::Said said = ask();
    expect_unexplained(said, right.name + " is right");
    expect_none(said, GetParam().kind);
  }
}

INSTANTIATE_TEST_SUITE_P(Gains, Touched, testing::ValuesIn(kFaults));

}  // namespace
}  // namespace shardproof::diagnosis
