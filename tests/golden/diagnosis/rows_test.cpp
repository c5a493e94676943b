// Sums of unlike rows, buffers gathered before another dim, rotations by other frequencies.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <string>
#include <vector>

#include "tests/golden/diagnosis/planted.h"

namespace shardproof::diagnosis {
namespace {

class UnlikeRows : public testing::Test {
 protected:
  /// A product whose blocks' partial sums are those of off(block) rows before, along L or B.
  Planted::Said off(const std::string& id, const std::string& operand, const std::string& matrix,
                    int blocks, bool along_L, const std::function<int(int)>& rows,
                    const std::string& plus = "") {
    const Shape& shape = p.value(id).shape;
    const auto B = static_cast<std::size_t>(shape[0]), L = static_cast<std::size_t>(shape[1]),
               width = p.value(id).data.size() / B / L;
    const auto parts = p.parts(operand, matrix, blocks);
    Planted::Value sum = scaled(parts[0], 0.0);
    for (int r = 0; r < blocks; ++r)
      for (std::size_t i = 0; i < sum.data.size(); ++i) {
        const std::size_t b = i / width / L, l = i / width % L, by = at(rows(r));
        const std::size_t from = along_L ? b * L + (l + L - by) % L : (b + B - by) % B * L + l;
        sum.data[i] += parts[at(r)].data[from * width + i % width];
      }
    if (!plus.empty())
      for (std::size_t i = 0; i < sum.data.size(); ++i)
        sum.data[i] += p.weight(plus).data[i % width];
    return p.ask(id, sum);
  }

  Planted p{kModel + " seed=41"};
};

TEST_F(UnlikeRows, OfHalfTheBlocksOfEveryOtherAndOfOne) {
  const auto expect = [&](const Planted::Said& said, const std::string& words) {
    ASSERT_FALSE(said.empty()) << words;
    EXPECT_TRUE(said[0].explains && said[0].fault == "sum of unlike rows") << text(said);
    EXPECT_EQ(said[0].detail, words);
  };
  const auto gate = [&](int blocks, bool along_L, const std::function<int(int)>& rows) {
    return off(kGate, kAt + "norm", "layer1.w_gate", blocks, along_L, rows);
  };
  for (const int by : {1, 2}) {
    const auto half = [by](int r) { return r >= 2 ? by : 0; };
    expect(gate(4, true, half),
           fmt::format("E_x: partial sums of the second half of the blocks are off by {} along L",
                       by));
    expect(gate(4, true, [by](int r) { return r % 2 * by; }),
           fmt::format("E_x: partial sums of every other block are off by {} along L", by));
    for (const int of : {0, 3})
      expect(gate(4, true, [=](int r) { return r == of ? by : 0; }),
             fmt::format("E_x: partial sums of block {} are off by {} along L", of, by));
  }
  expect(gate(3, true, [](int r) { return r; }),
         "E_z: partial sums of block r are r times off by 1 along L");
  // Halves over x and over y are the same ones.
  expect(gate(2, false, [](int r) { return r == 1 ? 3 : 0; }),
         "E_x: partial sums of the second half of the blocks are off by 3 along B");
}

// Of two products only one adds other rows.
TEST_F(UnlikeRows, OfOneOfTwoProducts) {
  const std::string id = kAt + "block_out";
  const auto whole = p.product(kAt + "attn", "layer1.wo");
  const auto parts = p.parts(kAt + "hidden", "layer1.w_out", 4);
  Planted::Value sum = whole;
  const std::size_t E = 48, L = 3;
  for (std::size_t r = 0; r < 4; ++r)
    for (std::size_t i = 0; i < sum.data.size(); ++i) {
      const std::size_t b = i / E / L, l = (i / E % L + (r >= 2 ? 2 : 0)) % L;
      sum.data[i] += parts[r].data[(b * L + l) * E + i % E];
    }
  const auto said = p.ask(id, sum);
  ASSERT_FALSE(said.empty());
  EXPECT_EQ(said[0].fault + ": " + said[0].detail,
            "sum of unlike rows: F_x: partial sums of the second half of the blocks are off by 1 "
            "along L")
      << text(said);
}

TEST_F(UnlikeRows, OfTheRightRowsAreRight) {
  expect_right(off(kGate, kAt + "norm", "layer1.w_gate", 4, true, [](int) { return 0; }));
}

/// A layer whose sums the dump lacks: the second half of the blocks of both adds other tokens.
class UnlikeRowsOfALayer : public testing::Test {
 protected:
  explicit UnlikeRowsOfALayer(const std::string& line = kSerial) : all(line), p(line) {
    p.texts = 0;
    for (const char* name :
         {"attn_out", "mid", "norm2", "gate", "up", "hidden", "ffn_out", "block_out"})
      std::erase_if(p.dump, [&](const auto& value) {
        return value.first.ends_with(std::string(".") + name);
      });
  }

  /// A product whose second half of four blocks is that of so many rows before, along L or B.
  Planted::Value off(const std::string& operand, const std::string& matrix, std::size_t by,
                     bool along_L = true) const {
    const auto parts = all.parts(kAt + operand, "layer1." + matrix, 4);
    Planted::Value sum = scaled(parts[0], 0.0);
    const std::size_t E = 32;
    for (std::size_t r = 0; r < 4; ++r)
      for (std::size_t i = 0; i < sum.data.size(); ++i) {
        const std::size_t b = i / E / L, l = i / E % L, rows = r < 2 ? 0 : by;
        const std::size_t from = along_L ? b * L + (l + L - rows) % L : (b + B - rows) % B * L + l;
        sum.data[i] += parts[r].data[from * E + i % E];
      }
    return sum;
  }
  /// What a serial layer makes of them.
  Planted::Value out(std::size_t of_attn, std::size_t of_ffn, bool along_L = true) {
    const auto mid = Planted::sum(off("attn", "wo", of_attn, along_L), all.value(kIn));
    const auto gain = all.weight("layer1.norm2");
    auto norm = mid;
    for (std::size_t row = 0; row < norm.data.size(); row += 32) {
      double squares = 0.0;
      for (std::size_t e = 0; e < 32; ++e) squares += mid.data[row + e] * mid.data[row + e];
      for (std::size_t e = 0; e < 32; ++e)
        norm.data[row + e] *= gain.data[e] / std::sqrt(squares / 32 + all.config().eps);
    }
    all.dump.at(kAt + "norm2").data = norm.data;
    const auto gate = all.product(kAt + "norm2", "layer1.w_gate"),
               up = all.product(kAt + "norm2", "layer1.w_up");
    all.dump.at(kAt + "hidden").data = each(gate, [&](double g, std::size_t i) {
                                         return g / (1 + std::exp(-g)) * up.data[i];
                                       }).data;
    return Planted::sum(off("hidden", "w_out", of_ffn, along_L), mid);
  }

  Planted::Said ask(const Planted::Value& out) { return p.ask(kAt + "out", out, Torus(4, 1, 1)); }

  static constexpr std::size_t B = 3, L = 4;
  static inline const std::string kIn = "prefill.c0.layer0.out";
  static inline const std::string kSerial =
      "model=llama,layers=2,E=32,F=48,H=8,K=4,Q=8,V=40 batch=3 prompt=4 gen=2 seed=42";
  Planted all, p;
};

TEST_F(UnlikeRowsOfALayer, OfBothSums) {
  expect_right(ask(out(0, 0)));
  for (const std::size_t by : {1U, 3U})
    expect_first(ask(out(by, by)),
                 fmt::format("sum of unlike rows [x]: partial sums of the second half of the "
                             "blocks are off by {} along L, in attn_out and ffn_out, which the "
                             "dump lacks",
                             by));
  expect_first(ask(out(2, 2, false)),
               "sum of unlike rows [x]: partial sums of the second half of the blocks are off by 2 "
               "along B, in attn_out and ffn_out, which the dump lacks");
  expect_unexplained(ask(out(1, 2)), "other rows in each");
}

/// A lookup has no operand whose rows could be others.
TEST_F(UnlikeRowsOfALayer, WhereTheEmbeddingIsMissingToo) {
  std::erase_if(p.dump, [](const auto& value) { return value.first.ends_with(".embed"); });
  const std::string id = "prefill.c0.layer0.out";
  Noise noise;
  expect_unexplained(
      p.ask(id, each(p.value(id), [&](double v, std::size_t) { return v + noise(); }),
            Torus(4, 1, 1)),
      "noise behind a lookup");
}

class UnlikeRowsOfAParallelLayer : public UnlikeRowsOfALayer {
 protected:
  UnlikeRowsOfAParallelLayer() : UnlikeRowsOfALayer(with_keys(kSerial, ",block=parallel")) {}
};

TEST_F(UnlikeRowsOfAParallelLayer, OfBothProductsOfASum) {
  const auto out = [&](std::size_t of_attn, std::size_t of_ffn) {
    return Planted::sum(Planted::sum(off("attn", "wo", of_attn), off("hidden", "w_out", of_ffn)),
                        all.value(kIn));
  };
  expect_right(ask(out(0, 0)));
  expect_first(ask(out(1, 1)),
               "sum of unlike rows [x]: partial sums of the second half of the blocks are off by 1 "
               "along L, in block_out, which the dump lacks");
  expect_unexplained(ask(out(1, 2)), "other rows in each");
}

class GatheredBuffers : public testing::Test {
 protected:
  /// The buffer [n, dims before, a block's part of dim d, dims after], read in the value's shape.
  static Planted::Value viewed(const Planted::Value& v, std::size_t d, std::size_t n) {
    std::size_t outer = 1, inner = 1;
    for (std::size_t i = 0; i < v.shape.size(); ++i)
      (i < d ? outer : inner) *= i == d ? 1 : static_cast<std::size_t>(v.shape[i]);
    const std::size_t part = static_cast<std::size_t>(v.shape[d]) / n;
    Planted::Value y = v;
    std::size_t to = 0;
    for (std::size_t r = 0; r < n; ++r)
      for (std::size_t o = 0; o < outer; ++o)
        for (std::size_t k = 0; k < part; ++k)
          for (std::size_t i = 0; i < inner; ++i)
            y.data[to++] = v.data[((o * n + r) * part + k) * inner + i];
    return y;
  }

  Planted p{kModel + " seed=42"};
};

TEST_F(GatheredBuffers, BeforeDimZero) {
  struct Gathered {
    std::string id;
    std::size_t dim, blocks;
    char letter;
  };
  for (const auto& [id, dim, n, letter] : {Gathered{"prefill.c1.logits", 1, 4, 'V'},
                                           {"prefill.c1.logits", 1, 3, 'V'},
                                           {kGate, 2, 2, 'F'},
                                           {kGate, 2, 12, 'F'},
                                           {kAt + "attn", 2, 8, 'H'},
                                           {kAt + "attn", 3, 4, 'Q'}}) {
    const auto said = p.ask(id, viewed(p.value(id), dim, n));
    expect_first(said, fmt::format("gathered along another dim: chips' blocks of {}, {} of them, "
                                   "are gathered before dim 0",
                                   letter, n));
  }
}

class Rotations : public testing::Test {
 protected:
  Planted::Said turned(const std::string& name, double theta, double width, bool of_f32 = false) {
    const std::string id = kPass + name;
    const Planted::Value& x = p.value(id);
    const auto f32 = [&](double v) { return of_f32 ? static_cast<float>(v) : v; };
    const auto L = static_cast<std::size_t>(x.shape[1]), Q = at(x.shape.back()),
               heads = static_cast<std::size_t>(x.shape[2]);
    Planted::Value y = x;
    for (std::size_t i = 0; i < x.data.size(); ++i) {
      const auto position = static_cast<double>(i / Q / heads % L);
      const std::size_t j = i % Q % (Q / 2), first = i - i % Q + j;
      const double angle =
          f32(position * f32(std::pow(theta, -2.0 * static_cast<double>(j) / width)));
      const double c = std::cos(angle), s = std::sin(angle);
      y.data[i] = i % Q < Q / 2 ? x.data[i] * c - x.data[first + Q / 2] * s
                                : x.data[i] * c + x.data[first] * s;
    }
    return p.ask(kPass + name + "_rot", y);
  }

  static inline const std::string kPass = "prefill.c0.layer1.";
  Planted p{"model=llama,layers=2,E=16,F=24,H=4,K=2,Q=8,V=48 batch=1 prompt=60 gen=1 seed=43"};
};

TEST_F(Rotations, ByOtherFrequencies) {
  for (const char* name : {"q", "k"}) {
    expect_right(turned(name, 1e4, 8));
    for (const double theta : {5e5, 1e6, 1e3, 7.5e4, 2e5})
      expect_first(turned(name, theta, 8),
                   fmt::format("other frequencies: those of theta {:g}, not of 10000", theta));
    for (const int width : {4, 16})
      expect_first(turned(name, 1e4, width),
                   fmt::format("other frequencies: those of {} channels, not of 8", width));
    // Angles that were rounded.
    expect_first(turned(name, 5e5, 8, true), "other frequencies: those of theta 500000");
    // A theta that nobody has, and widths that no head has.
    expect_unexplained(turned(name, 12345.0, 8), name);
    expect_unexplained(turned(name, 1e4, 10), name);
  }
}

}  // namespace
}  // namespace shardproof::diagnosis
