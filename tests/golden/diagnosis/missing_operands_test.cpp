// Faults of values that a dump lacks, found at the value that follows from them; and what is read
// off the value itself: blocks in any order, positions of tokens, rows of a table.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "tests/golden/diagnosis/planted.h"

namespace shardproof::diagnosis {
namespace {

const std::string kDecode = "decode.1.layer1.";

class MissingOperands : public testing::Test {
 protected:
  /// Without the values of these names.
  void lack(const std::vector<std::string>& names) {
    for (const std::string& name : names)
      std::erase_if(p.dump, [&](const auto& value) { return value.first.ends_with("." + name); });
    p.texts = 0;
  }

  /// The attention that follows from scores that f(score, query's position, key) is of.
  template <class F>
  Planted::Value attention(const Planted& all, const std::string& at, F&& f) const {
    const auto &q = all.value(at + "q_rot"), &k = all.value(at + "k_cache"),
               &v = all.value(at + "v_cache");
    const auto B = static_cast<std::size_t>(q.shape[0]), L = static_cast<std::size_t>(q.shape[1]),
               M = static_cast<std::size_t>(k.shape[1]);
    const std::size_t H = 24, K = 2, Q = 4;
    Planted::Value attn(q.shape);
    for (std::size_t b = 0; b < B; ++b)
      for (std::size_t l = 0; l < L; ++l)
        for (std::size_t h = 0; h < H; ++h) {
          std::vector<double> e(M);
          double sum = 0.0;
          const std::size_t group = h * K / H, row = ((b * L + l) * H + h) * Q;
          for (std::size_t m = 0; m < M; ++m) {
            double dot = 0.0;
            for (std::size_t c = 0; c < Q; ++c)
              dot += q.data[row + c] * k.data[((b * M + m) * K + group) * Q + c];
            sum += e[m] = f(dot / 2, M - L + l, m);
          }
          for (std::size_t m = 0; m < M; ++m)
            for (std::size_t c = 0; c < Q; ++c)
              attn.data[row + c] += e[m] / sum * v.data[((b * M + m) * K + group) * Q + c];
        }
    return attn;
  }

  static std::string with_batch_of(int rows) {
    std::string line = kModel + " seed=31";
    return line.replace(line.find("batch=24"), 8, fmt::format("batch={}", rows));
  }

  Planted p{kModel + " seed=31"};
};

double seen(double score, std::size_t query, std::size_t key) {
  return key <= query ? std::exp(score) : 0.0;
}

TEST_F(MissingOperands, FaultsOfScoresAreFoundInAttention) {
  const Planted all(kModel + " seed=31");
  lack({"score", "max", "exp", "denom"});
  for (const std::string& at : {kAt, kDecode}) {
    expect_right(p.ask(at + "attn", attention(all, at, seen)), at);
    const auto with = [&](auto&& f) { return p.ask(at + "attn", attention(all, at, f)); };
    expect_first(with([](double s, std::size_t q, std::size_t k) { return seen(2 * s, q, k); }),
                 "scale missing: 1/sqrt(Q), in score, which the dump lacks");
    expect_first(with([](double s, std::size_t q, std::size_t k) { return seen(s / 2, q, k); }),
                 "scale doubled: 1/sqrt(Q), in score, which the dump lacks");
    expect_first(with([](double s, std::size_t q, std::size_t k) {
                   return seen(s * 2 / std::sqrt(48.0), q, k);
                 }),
                 "scale doubled: 1/sqrt(E) in place of 1/sqrt(Q), in score");
    expect_first(
        with([](double s, std::size_t q, std::size_t k) { return k <= q ? std::exp2(s) : 0.0; }),
        "scale missing: log2(e): 2^x in place of e^x, in exp");
  }
  expect_first(p.ask(kDecode + "attn", attention(all, kDecode,
                                                 [](double s, std::size_t q, std::size_t k) {
                                                   return k < q ? std::exp(s) : 0.0;
                                                 })),
               "mask: a query does not see its own key, in exp");
  const auto all_keys = [](double s, std::size_t, std::size_t) { return std::exp(s); };
  expect_first(p.ask(kAt + "attn", attention(all, kAt, all_keys)),
               "mask: no mask: each query sees all keys, in exp");
}

TEST_F(MissingOperands, NoiseIsNotExplained) {
  const Planted all(kModel + " seed=31");
  lack({"score", "max", "exp", "denom", "q_rot", "k_rot", "k_cache", "v_cache"});
  Noise noise;
  const Planted::Value& right = all.value(kAt + "attn");
  for (int power = -10; power <= 0; power += 5)
    for (const Hypothesis& h : p.ask(kAt + "attn", noise.on(right, std::ldexp(rms(right), power))))
      EXPECT_FALSE(h.explains) << h.fault << ": " << h.detail;
  // Nor is what is no number, of the first or the last element.
  for (const std::size_t place : {std::size_t{0}, right.data.size() - 1}) {
    Planted::Value nan = right;
    nan.data[place] = std::nan("");
    for (const Hypothesis& h : p.ask(kAt + "attn", nan))
      EXPECT_FALSE(h.explains) << h.fault << ": " << h.detail;
  }
}

// Queries and keys are rotated at the same wrong positions; neither alone explains what follows.
TEST_F(MissingOperands, PositionsAreThoseOfQueriesAndKeys) {
  for (const int by : {1, 12}) {
    Planted other(kModel + " seed=31");
    const std::size_t position = 4;  // of decode.1
    for (const char* name : {"q", "k"}) {
      const std::string rotated = kDecode + name + "_rot";
      other.dump.at(rotated) =
          Planted::f32(other.turned(kDecode + name, position + at(by)), other.value(rotated).shape);
    }
    const auto& k = other.value(kDecode + "k_rot");
    auto& cache = other.dump.at(kDecode + "k_cache");
    const std::size_t M = position + 1, KQ = 8;
    for (std::size_t b = 0; b < 24; ++b)
      for (std::size_t c = 0; c < KQ; ++c)
        cache.data[(b * M + position) * KQ + c] = k.data[b * KQ + c];
    lack({"score", "max", "exp", "denom", "q_rot", "k_rot", "k_cache", "v_cache"});
    expect_first(p.ask(kDecode + "attn", attention(other, kDecode, seen)),
                 fmt::format("position off: position +{}, in ", by));
  }
}

// Of a prefill whose chips count their own tokens, or have them dealt out or in chunks of both
// ends.
TEST_F(MissingOperands, PositionsOfTokensAsChipsHaveThem) {
  const std::string line =
      "model=palm-tiny,layers=2,E=16,F=24,H=24,K=2,Q=4,V=48 batch=2 prompt=8 gen=1 seed=34";
  const Planted all(line);
  const auto with = [&](const std::function<std::size_t(std::size_t)>& position) {
    Planted lean(line), other(line);
    lean.texts = 0;
    for (const char* name :
         {"score", "max", "exp", "denom", "q_rot", "k_rot", "k_cache", "v_cache"})
      std::erase_if(lean.dump, [&](const auto& value) {
        return value.first.ends_with("." + std::string(name));
      });
    for (const char* name : {"q", "k"}) {
      auto& rotated = other.dump.at(kAt + name + "_rot");
      const std::size_t per_token = rotated.data.size() / 16;
      for (std::size_t l = 0; l < 8; ++l) {
        const auto at_position = other.turned(kAt + name, position(l));
        for (std::size_t b = 0; b < 2; ++b)
          for (std::size_t c = 0; c < per_token; ++c)
            rotated.data[(b * 8 + l) * per_token + c] =
                static_cast<float>(at_position.data[(b * 8 + l) * per_token + c]);
      }
    }
    other.dump.at(kAt + "k_cache").data = other.value(kAt + "k_rot").data;
    return lean.ask(kAt + "attn", attention(other, kAt, seen));
  };
  expect_right(with([](std::size_t l) { return l; }));
  for (const std::size_t n : {2U, 4U}) {
    const std::size_t w = 8 / n;
    expect_first(with([=](std::size_t l) { return l % w; }),
                 n == 4 ? "position off [x]: tokens of 4 chips are each at 0 to 1, in "
                        : "position off [y]: tokens of 2 chips are each at 0 to 3, in ");
    const auto said = with([=](std::size_t l) { return l % n * w + l / n; });
    ASSERT_FALSE(said.empty());
    EXPECT_TRUE(said[0].explains) << text(said);
    EXPECT_TRUE(
        said[0].detail.starts_with(fmt::format("token l is at (l mod {})·{} + ⌊l/{}⌋", n, w, n)))
        << text(said);
  }
  const std::size_t order[] = {0, 3, 1, 2}, place[] = {0, 2, 3, 1};
  expect_first(with([&](std::size_t l) { return order[l / 2] * 2 + l % 2; }),
               "position off [y]: chunks of 2 tokens are at those of 0,3,1,2, in ");
  expect_first(with([&](std::size_t l) { return place[l / 2] * 2 + l % 2; }),
               "position off [y]: chunks of 2 tokens are at those of 0,2,3,1, in ");
}

// The embedding follows from tokens, whether the dump has it or not.
TEST_F(MissingOperands, NormsOfTheEmbeddingInPlaceOfALayer) {
  Planted small(with_batch_of(3));
  small.texts = 0;
  const auto gain0 = small.weight("layer0.norm"), gain1 = small.weight("layer1.norm");
  Planted of_embed(with_batch_of(3));
  of_embed.dump.at(kAt + "norm") = Planted::f32(
      each(small.value("prefill.c0.layer0.norm"),
           [&](double v, std::size_t i) { return v / gain0.data[i % 48] * gain1.data[i % 48]; }),
      small.value(kAt + "norm").shape);
  const auto gate = of_embed.product(kAt + "norm", "layer1.w_gate");
  for (const auto& [name, matrix] :
       {std::pair{"q", "wq"}, {"k", "wk"}, {"v", "wv"}, {"up", "w_up"}}) {
    Planted::Value& value = small.dump.at(kAt + name);
    value =
        Planted::f32(of_embed.product(kAt + "norm", std::string("layer1.") + matrix), value.shape);
  }
  for (const bool embed : {true, false}) {
    std::erase_if(small.dump, [&](const auto& value) {
      return value.first.ends_with("norm") || (!embed && value.first.ends_with(".embed"));
    });
    expect_first(small.ask(kGate, gate),
                 "another layer's or pass's value: made of prefill.c0.embed, not of "
                 "prefill.c0.layer0.out, in norm, which the dump lacks");
  }
}

// A score that a mask hides holds a number far below all others.
TEST_F(MissingOperands, MasksThatScoresShow) {
  const std::string id = "prefill.c1.layer1.score";  // of one token, at position 3
  lack({"max", "exp", "denom"});
  const auto M = static_cast<std::size_t>(p.value(id).shape[3]);
  for (const double hidden : {-1e30, -1e4}) {
    const auto with = [&](auto&& sees) {
      return p.ask(
          id, each(p.value(id), [&](double v, std::size_t i) { return sees(i % M) ? v : hidden; }));
    };
    expect_first(with([](std::size_t m) { return m == 0; }), "mask: positions of the pass from 0");
    expect_first(with([](std::size_t m) { return m < 3; }),
                 "mask: a query does not see its own key");
    expect_unexplained(with([](std::size_t m) { return m % 2 == 1; }), "every other key");
  }
}

// A sum shows the differences of what it adds.
TEST_F(MissingOperands, BlocksOfWeightsAreFoundInASum) {
  Planted serial(with_keys(kModel, ",block=serial") + " seed=32");
  serial.texts = 0;
  std::erase_if(serial.dump, [](const auto& v) { return v.first.ends_with(".ffn_out"); });
  for (const std::vector<std::size_t>& blocks :
       {std::vector<std::size_t>{0, 1, 3, 2}, {1, 3, 0, 2}, {0, 0, 2, 3}}) {
    auto w = serial.weight("layer1.w_out");
    const auto own = w;
    for (std::size_t i = 0; i < w.data.size(); ++i) {
      const std::size_t of_block = w.data.size() / 4;
      w.data[i] = own.data[blocks[i / of_block] * of_block + i % of_block];
    }
    const auto out = Planted::sum(serial.product_with(kAt + "hidden", "layer1.w_out", w),
                                  serial.value(kAt + "mid"));
    const auto said = serial.ask(kAt + "out", out);
    ASSERT_FALSE(said.empty());
    EXPECT_TRUE(said[0].explains && said[0].axes == "x") << text(said);
    EXPECT_EQ(said[0].fault, blocks[1] == 0 ? "another chip's block" : "chunks in another order")
        << text(said);
  }
}

class FittedFaults : public testing::Test {
 protected:
  Planted p{kModel + " seed=33"};
};

TEST_F(FittedFaults, BlocksOfAContractedDimInAnyOrder) {
  const auto own = p.weight("layer1.w_gate");
  for (const std::vector<std::size_t>& blocks :
       {std::vector<std::size_t>{0, 1, 3, 2}, {1, 3, 0, 2}, {3, 0, 2, 1}}) {
    auto w = own;
    const std::size_t of_block = w.data.size() / 4;
    for (std::size_t i = 0; i < w.data.size(); ++i)
      w.data[i] = own.data[blocks[i / of_block] * of_block + i % of_block];
    expect_first(p.ask(kGate, p.product_with(kAt + "norm", "layer1.w_gate", w)),
                 fmt::format("chunks in another order [x]: E of w_gate, as norm meets it: its "
                             "blocks are {},{},{},{}",
                             blocks[0], blocks[1], blocks[2], blocks[3]));
  }
}

TEST_F(FittedFaults, RowsThatAreDealtOutOrOneLate) {
  const auto own = p.weight("layer1.w_gate");
  const std::size_t columns = 96, rows = 48;
  const auto with = [&](auto&& row) {
    return p.ask(kGate,
                 p.product_with(kAt + "norm", "layer1.w_gate", moved(own, [&](std::size_t i) {
                                  return row(i / columns) * columns + i % columns;
                                })));
  };
  expect_first(with([](std::size_t r) { return r % 12 * 4 + r / 12; }),
               "chunks in another order [x]: E of w_gate, as norm meets it: chip r of 4 has the "
               "rows r, r+4, r+8");
  expect_first(with([](std::size_t r) { return r % 24 * 2 + r / 24; }),
               "chunks in another order [y]: E of w_gate, as norm meets it: chip r of 2 has the "
               "rows r, r+2, r+4");
  EXPECT_EQ(with([](std::size_t r) { return (r + rows - 1) % rows; })[0].detail,
            "E of w_gate, as norm meets it: its rows are one late");
}

TEST_F(FittedFaults, BlocksOfAGainInAnyOrder) {
  const auto own = p.weight("layer1.norm");
  for (const std::vector<std::size_t>& blocks :
       {std::vector<std::size_t>{0, 1, 3, 2}, {1, 3, 0, 2}, {3, 0, 2, 1}}) {
    const auto norm = each(p.value(kAt + "norm"), [&](double v, std::size_t i) {
      const std::size_t e = i % 48;
      return v / own.data[e] * own.data[blocks[e / 12] * 12 + e % 12];
    });
    expect_first(p.ask(kAt + "norm", norm),
                 fmt::format("chunks in another order [x]: E of layer1.norm: its blocks are "
                             "{},{},{},{}",
                             blocks[0], blocks[1], blocks[2], blocks[3]));
  }
}

// Each token at another position, alike in all rows, or on one chip of a pair alone.
TEST_F(FittedFaults, PositionsOfTokens) {
  const std::string id = kAt + "q_rot";
  const auto at_positions = [&](const std::vector<std::size_t>& positions) {
    Planted::Value y = p.value(id);
    for (std::size_t l = 0; l < positions.size(); ++l) {
      const auto turned = p.turned(kAt + "q", positions[l]);
      for (std::size_t i = 0; i < y.data.size(); ++i)
        if (i / 96 % 3 == l) y.data[i] = turned.data[i];
    }
    return y;
  };
  expect_first(p.ask(id, at_positions({0, 2, 1})),
               "position off: positions of tokens: row 0 at 0,2,1");
  expect_first(p.ask(id, at_positions({5, 0, 9})),
               "position off: positions of tokens: row 0 at 5,0,9");
  expect_first(p.ask(id, at_positions({30, 31, 32})), "position off: position +30");
  // Cut by z, each chip counts from its own first token on.
  const auto said = p.ask(id, at_positions({0, 0, 0}), kTorus, "BL_zHQ");
  ASSERT_FALSE(said.empty());
  EXPECT_TRUE(said[0].explains && said[0].fault == "position off") << text(said);
}

TEST_F(FittedFaults, RowsOfATable) {
  const std::string id = "prefill.c0.embed";
  const auto table = p.weight("embed");
  const auto ids = p.ids.at("prefill.c0");
  const auto with = [&](auto&& rows) {
    return p.ask(id, each(p.value(id), [&](double, std::size_t i) {
                   const auto token = static_cast<std::size_t>(ids.data[i / 48]);
                   double sum = 0.0;
                   for (const std::size_t row : rows(token)) sum += table.data[row * 48 + i % 48];
                   return sum * static_cast<double>(1.7F);
                 }));
  };
  using Rows = std::vector<std::size_t>;
  const std::size_t of_chip = 12;  // over x
  expect_right(with([](std::size_t t) { return Rows{t}; }));
  expect_first(with([&](std::size_t t) {
                 Rows rows;
                 for (std::size_t c = 0; c < 4; ++c)
                   rows.push_back(std::clamp(t, c * of_chip, (c + 1) * of_chip - 1));
                 return rows;
               }),
               "rows of other shards [x]: each chip adds a row for tokens of other chips, too: "
               "its first or its last one");
  expect_first(with([&](std::size_t t) {
                 Rows rows;
                 for (std::size_t c = 0; c < 4; ++c) rows.push_back(c * of_chip + t % of_chip);
                 return rows;
               }),
               "rows of other shards [x]: each chip adds a row for tokens of other chips, too: "
               "the one at the same place");
  expect_first(
      with([&](std::size_t t) { return Rows{t / of_chip * of_chip + std::min(t, of_chip - 1)}; }),
      "rows of other shards [x]: a chip's first row is not subtracted");
  expect_first(with([&](std::size_t t) {
                 return t % of_chip == 0 && t > 0 ? Rows{t, t - 1} : Rows{t};
               }),
               "rows of other shards [x]: the border counts twice: a chip's first token");
  expect_first(with([&](std::size_t t) {
                 return t % of_chip == of_chip - 1 && t < 47 ? Rows{t, t + 1} : Rows{t};
               }),
               "rows of other shards [x]: the border counts twice: a chip's last token");
  expect_first(with([&](std::size_t t) {
                 const std::size_t blocks[] = {1, 3, 0, 2};
                 return Rows{blocks[t / of_chip] * of_chip + t % of_chip};
               }),
               "chunks in another order [x]: blocks of 12 rows of embed: 1,3,0,2");
}

// A norm, or the sum of a residual, of another value of the pass.
TEST_F(FittedFaults, OperandsThatAreEarlierValues) {
  Planted serial(with_keys(kModel, ",block=serial") + " seed=32");
  expect_first(serial.ask(kAt + "mid",
                          Planted::sum(serial.value(kAt + "norm"), serial.value(kAt + "attn_out"))),
               "another layer's or pass's value: made of prefill.c0.layer1.norm, not of "
               "prefill.c0.layer0.out");
  expect_first(serial.ask(kAt + "mid", Planted::sum(serial.value("prefill.c0.embed"),
                                                    serial.value(kAt + "attn_out"))),
               "another layer's or pass's value: made of prefill.c0.embed, not of "
               "prefill.c0.layer0.out");
}

}  // namespace
}  // namespace shardproof::diagnosis
