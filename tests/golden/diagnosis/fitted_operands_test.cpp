// Blocks of weights behind operands that the dump lacks, and those that no chip shows alone.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "tests/golden/diagnosis/planted.h"

namespace shardproof::diagnosis {
namespace {

const std::string kPass = "prefill.c0.", kLayer = kPass + "layer0.";
using OrderOfBlocks = std::vector<std::size_t>;

class FittedOperandsTest : public testing::Test {
 protected:
  FittedOperandsTest() { p.texts = 0; }

  void lack(const std::vector<std::string>& names) {
    for (const std::string& name : names)
      std::erase_if(p.dump, [&](const auto& value) { return value.first.ends_with("." + name); });
  }
  /// Blocks of the first dim of a weight in other places.
  Planted::Value in_order(const std::string& weight, const OrderOfBlocks& blocks) const {
    const auto own = p.weight(weight);
    const std::size_t length = own.data.size() / blocks.size();
    return moved(own, [&](std::size_t i) { return blocks[i / length] * length + i % length; });
  }
  /// Rows of x, divided by their root mean square, times a gain.
  Planted::Value norm(const Planted::Value& x, const Planted::Value& gain) const {
    Planted::Value y = x;
    const std::size_t E = gain.data.size();
    for (std::size_t row = 0; row < x.data.size() / E; ++row) {
      double squares = 0;
      for (std::size_t e = 0; e < E; ++e) squares += std::pow(x.data[row * E + e], 2);
      const double root =
          std::sqrt(squares / static_cast<double>(E) + static_cast<double>(p.config().eps));
      for (std::size_t e = 0; e < E; ++e) y.data[row * E + e] *= gain.data[e] / root;
    }
    return y;
  }
  /// A product of a value that is not the dump's.
  Planted::Value product(const std::string& id, const Planted::Value& x,
                         const std::string& matrix) {
    p.dump[id] = Planted::f32(x, x.shape);
    auto y = p.product(id, matrix);
    p.dump.erase(id);
    return y;
  }

  /// Returns the queries of a norm that the dump lacks; its keys and values become those of it,
  /// too.
  Planted::Value queries_of(const Planted::Value& norm) {
    for (const char* name : {"k", "v"}) {
      Planted::Value& value = p.dump.at(kLayer + name);
      value =
          Planted::f32(product(kLayer + "norm", norm, std::string("layer0.w") + name), value.shape);
    }
    return product(kLayer + "norm", norm, "layer0.wq");
  }

  Planted p{"model=llama,layers=1,E=32,F=64,H=8,K=4,Q=4,V=32 batch=3 prompt=8 gen=2 seed=5"};
  const std::vector<OrderOfBlocks> orders{{0, 1, 3, 2}, {1, 3, 0, 2}, {2, 2, 0, 1}};
};

std::string kind_of(const OrderOfBlocks& blocks) {
  return blocks[0] == blocks[1] ? "another chip's block" : "chunks in another order";
}

TEST_F(FittedOperandsTest, BlocksOfAGainBehindAProduct) {
  const auto x = p.value(kPass + "embed");
  lack({"norm"});
  for (const Torus& torus : {Torus(4, 1, 1), Torus(2, 1, 2)})
    for (const OrderOfBlocks& blocks : orders) {
      const auto q = queries_of(norm(x, in_order("layer0.norm", blocks)));
      expect_first(p.ask(kLayer + "q", q, torus),
                   fmt::format("{} [{}]: E of layer0.norm: its blocks are {}, in norm, which the "
                               "dump lacks",
                               kind_of(blocks), torus.size(Axis::x) == 4 ? "x" : "xz",
                               fmt::join(blocks, ",")));
    }
  // Eight blocks of four gains: no counts are determined.
  const OrderOfBlocks many{0, 1, 2, 3, 4, 5, 7, 6};
  const auto q = queries_of(norm(x, in_order("layer0.norm", many)));
  expect_first(p.ask(kLayer + "q", q, Torus(1, 8, 1), "BLH_yQ"),
               "chunks in another order [y]: E of layer0.norm: its blocks are 0,1,2,3,4,5,7,6");
  Noise noise;
  expect_unexplained(p.ask(kLayer + "q", noise.on(q, 0.01 * rms(q)), Torus(1, 8, 1)), "noise");
}

TEST_F(FittedOperandsTest, BlocksOfATableBehindANorm) {
  const auto ids = p.ids.at("prefill.c0");
  const auto gain = p.weight("layer0.norm");
  lack({"norm", "embed"});
  for (const OrderOfBlocks& blocks : orders) {
    const auto table = in_order("embed", blocks);
    Planted::Value x(Shape{3, 8, 32});
    for (std::size_t i = 0; i < x.data.size(); ++i)
      x.data[i] = table.data[at(ids.data[i / 32]) * 32 + i % 32];
    p.dump.at(kLayer + "mid").data = Planted::sum(p.value(kLayer + "attn_out"), x).data;
    const auto said = p.ask(kLayer + "q", queries_of(norm(x, gain)), Torus(1, 1, 4));
    expect_first(said, kind_of(blocks) + " [z]: blocks of 8 rows of embed: " +
                           fmt::format("{}, in embed, which", fmt::join(blocks, ",")));
  }
}

/// What follows shows no blocks: two are exchanged in turn.
TEST_F(FittedOperandsTest, TwoBlocksBehindALayer) {
  const auto x = p.value(kPass + "embed");
  const auto mid = Planted::f32(
      Planted::sum(
          p.product_with(kLayer + "attn", "layer0.wo", in_order("layer0.wo", {0, 1, 3, 2})), x),
      x.shape);
  const auto n = norm(mid, p.weight("layer0.norm2"));
  lack({"attn_out", "mid", "norm2", "gate", "up", "hidden", "ffn_out"});
  const auto gate = product(kLayer + "norm2", n, "layer0.w_gate"),
             up = product(kLayer + "norm2", n, "layer0.w_up");
  const auto hidden =
      each(gate, [&](double v, std::size_t i) { return v / (1 + std::exp(-v)) * up.data[i]; });
  const auto out = Planted::sum(product(kLayer + "hidden", hidden, "layer0.w_out"), mid);
  expect_first(p.ask(kLayer + "out", out, Torus(4, 1, 1)),
               "chunks in another order [x]: H of wo, as attn meets it: its blocks are 0,1,3,2, "
               "in attn_out, which the dump lacks");
}

/// Each chip has fewer elements than a fit of its blocks needs.
TEST_F(FittedOperandsTest, BlocksThatAllChipsShowTogether) {
  const OrderOfBlocks blocks{3, 1, 0, 2, 7, 6, 5, 4};
  const auto gate =
      p.product_with(kLayer + "norm2", "layer0.w_gate", in_order("layer0.w_gate", blocks));
  expect_first(p.ask(kLayer + "gate", gate, Torus(8, 1, 3), "B_zLF_x"),
               "chunks in another order [x]: E of w_gate, as norm2 meets it: its blocks are "
               "3,1,0,2,7,6,5,4");
}

}  // namespace
}  // namespace shardproof::diagnosis
