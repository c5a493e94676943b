// Biases and residuals of every chip, and products with weights that are not loaded.
#include <fmt/format.h>

#include "tests/golden/diagnosis/planted.h"

namespace shardproof::diagnosis {
namespace {

const std::string kBiased =
    "model=llama,bias=all,layers=2,E=32,F=48,H=8,K=4,Q=8,V=40 batch=2 prompt=4 gen=2 seed=42";

TEST(CountsOfAddends, ABiasAloneIsAWeightThatIsNotLoaded) {
  Planted p(kBiased);
  for (const auto& [value, bias, matrix] :
       {std::tuple("ffn_out", "b_out", "w_out"), std::tuple("attn_out", "bo", "wo")}) {
    const auto b = p.weight(std::string("layer1.") + bias);
    const std::string id = kAt + value;
    const auto alone = [&](double times) {
      return each(p.value(id),
                  [&](double, std::size_t i) { return times * b.data[i % b.data.size()]; });
    };
    expect_alone(p.ask(kAt + value, alone(1)),
                 fmt::format("never written: {}: zeros, to which {} is added", matrix, bias));
    expect_unexplained(p.ask(kAt + value, alone(1.001)), "not the bias");
  }
}

TEST(CountsOfAddends, AResidualOfEveryChipIsRoundedOnceInBf16) {
  Planted p(with_keys(kModel, ",block=serial") + " seed=43 weights=bf16 act=bf16");
  const auto out = [&](double times) {
    return in_bf16(Planted::sum(p.value(kAt + "ffn_out"), p.value(kAt + "mid"), times));
  };
  expect_right(p.ask(kAt + "out", out(1)));
  expect_first(p.ask(kAt + "out", out(4)),
               "addend not added once [x]: mid is added 4 times, not 1");
  expect_first(p.ask(kAt + "out", out(0)), "addend not added once: mid is added 0 times, not 1");
  expect_unexplained(p.ask(kAt + "out", out(3.9)), "no whole number");
}

// The norm behind the sum shows it, where the dump lacks the sum and what it is added to.
class CountsInMissingSums : public testing::Test {
 protected:
  CountsInMissingSums() {
    p.texts = 0;
    for (const char* name : {"attn_out", "mid", "layer1.out"})  // what is added to mid is right
      std::erase_if(p.dump, [&](const auto& value) {
        return value.first.ends_with(std::string(".") + name);
      });
  }
  /// The norm of what is in the stream and `times` the bias more.
  Planted::Said with(double times) {
    const auto b = p.weight("layer1.bo"), gain = p.weight("layer1.norm2");
    auto x = each(mid, [&](double v, std::size_t i) { return v + times * b.data[i % 32]; });
    for (std::size_t row = 0; row < x.data.size(); row += 32) {
      double squares = 0.0;
      for (std::size_t e = 0; e < 32; ++e) squares += x.data[row + e] * x.data[row + e];
      const double r = 1 / std::sqrt(squares / 32 + p.config().eps);
      for (std::size_t e = 0; e < 32; ++e) x.data[row + e] *= r * gain.data[e];
    }
    return p.ask(kAt + "norm2", x);
  }

  Planted p{kBiased};
  const Planted::Value mid = Planted(kBiased).value(kAt + "mid");
};

TEST_F(CountsInMissingSums, BiasesOfEveryChip) {
  expect_right(with(0));
  expect_first(with(3),
               "addend not added once [x]: bo is added 4 times, not 1, in attn_out, which the dump "
               "lacks");
  expect_first(with(23), "addend not added once [xyz]: bo is added 24 times, not 1, in attn_out");
  expect_first(with(-1), "addend not added once: bo is added 0 times, not 1, in attn_out");
  for (const Hypothesis& h : with(8.5)) EXPECT_FALSE(h.explains) << h.fault << ": " << h.detail;
}

}  // namespace
}  // namespace shardproof::diagnosis
