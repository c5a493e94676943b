// Columns of a fused weight that are in the place of others.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "tests/golden/diagnosis/fused_run.h"

namespace shardproof::diagnosis {
namespace {

const std::string kColumns = "columns of a fused weight";
const std::string kMany =
    "model=llama,layers=2,E=32,F=64,H=8,K=4,Q=4,V=32 batch=2 prompt=5 gen=2 seed=3";
// Of three chips and heads.
const std::string kOdd =
    "model=llama,layers=2,E=18,F=30,H=6,K=3,Q=4,V=24 batch=2 prompt=5 gen=2 seed=4";

/// A mesh, how many blocks a weight has, the axes that cut them, and what they are for.
struct Mesh {
  std::string keys;
  Torus torus;
  std::size_t n;
  std::string axes, each;
};
const std::vector<Mesh> kMeshes{
    {kMany, Torus(2, 1, 1), 2, "x", "chip over x"},
    {kMany, Torus(1, 4, 1), 4, "y", "chip over y or kv head"},
    {kMany, Torus(2, 1, 2), 4, "xz", "chip over xz or kv head"},
    {kOdd, Torus(1, 1, 3), 3, "z", "chip over z or kv head"},
    {kOdd, Torus(2, 1, 1), 3, "", "kv head"},
};

TEST(FusedColumns, QueriesKeysAndValues) {
  for (const Mesh& mesh : kMeshes)
    for (const char* const name : {"q", "k", "v"}) {
      const std::string cut = mesh.axes.empty() ? "" : "_" + mesh.axes;
      const std::string layout = fmt::format("BL{}{}Q", name[0] == 'q' ? 'H' : 'K', cut);
      const std::string fault =
          mesh.axes.empty() ? kColumns : fmt::format("{} [{}]", kColumns, mesh.axes);
      const std::string blocks =
          fmt::format("{} blocks [wq wk wv], one for each {}", mesh.n, mesh.each);
      FusedRun p(mesh.keys);
      const FusedRun::Parts all = p.qkv();
      const auto said = [&](const FusedRun::From& from) {
        p.plant(all, "norm", from);
        return mesh.axes.empty() ? p.ask(kAt + name, p.value(kAt + name), mesh.torus)
                                 : p.said_of(name, mesh.torus, layout);
      };
      expect_right(said([](const auto& part, std::size_t c) { return part.first + c; }), name);
      expect_first(said([&](const auto& part, std::size_t c) {
                     return FusedRun::out_of_blocks(all, part.first + c, mesh.n);
                   }),
                   fmt::format("{}: stored as {}, read as [wq|wk|wv]", fault, blocks));
      expect_first(said([&](const auto& part, std::size_t c) {
                     return FusedRun::in_blocks(all, part, c, mesh.n);
                   }),
                   fmt::format("{}: stored as [wq|wk|wv], read as {}", fault, blocks));
    }
}

TEST(FusedColumns, GateAndUp) {
  FusedRun p(kMany);
  const FusedRun::Parts all = p.gate_up();
  const Torus torus(2, 2, 1);
  for (const char* const name : {"gate", "up"}) {
    const auto said = [&](const FusedRun::From& from) {
      p.plant(all, "norm2", from);
      return p.said_of(name, torus, "BLF_xy");
    };
    expect_first(
        said([&](const auto& part, std::size_t c) { return FusedRun::in_blocks(all, part, c, 4); }),
        kColumns +
            " [xy]: stored as [w_gate|w_up], read as 4 blocks [w_gate w_up], one for each chip "
            "over xy");
    expect_first(said([&](const auto& part, std::size_t c) {
                   return FusedRun::out_of_blocks(all, part.first + c, 4);
                 }),
                 kColumns + " [xy]: stored as 4 blocks [w_gate w_up], one for each chip over xy");
    // [g0 u0 g1 u1 ...], column by column; of sixteen chips, read by four.
    expect_first(said([&](const auto& part, std::size_t c) {
                   return FusedRun::out_of_blocks(all, part.first + c, 64);
                 }),
                 kColumns + ": stored as 64 blocks [w_gate w_up], one for each column, read as");
    expect_first(said([&](const auto& part, std::size_t c) {
                   return FusedRun::out_of_blocks(all, FusedRun::in_blocks(all, part, c, 4), 16);
                 }),
                 kColumns + ": stored as 16 blocks [w_gate w_up], read as 4 blocks [w_gate w_up]");
  }
}

/// The places of the parts exchanged: column c of keys is of values.
FusedRun::From exchanged(const FusedRun::Parts& all) {
  return [all](const FusedRun::Part& part, std::size_t c) {
    return (part.value == "k" ? all[2] : part.value == "v" ? all[1] : all[0]).first + c;
  };
}

TEST(FusedColumns, KeysAndValuesExchanged) {
  FusedRun p(kMany);
  p.plant(p.qkv(), "norm", exchanged(p.qkv()));
  expect_first(p.ask(kAt + "k", p.value(kAt + "k"), Torus(3, 1, 1)),
               kColumns + ": stored as [wq|wv|wk], read as [wq|wk|wv]");
  // Where values are right, keys are of another weight.
  FusedRun keys(kMany);
  keys.plant(keys.qkv()[1], keys.with(keys.qkv(), keys.qkv()[1], "norm", exchanged(keys.qkv())));
  const auto said = keys.ask(kAt + "k");
  expect_first(said, "another layer's weight: wv in place of layer1.wk");
  expect_none(said, kColumns);
}

TEST(FusedColumns, BiasesToo) {
  for (const bool alone : {false, true})
    for (const char* const name : {"q", "k"}) {
      FusedRun p(with_keys(kMany, ",bias=qkv"));
      p.texts = 0;  // of a text the sum before the bias is a value of its own
      const FusedRun::Parts all = p.qkv();
      const auto moved = [&](const auto& part, std::size_t c) {
        return FusedRun::out_of_blocks(all, part.first + c, 4);
      };
      const auto own = [&](const auto& part, std::size_t c) { return part.first + c; };
      for (const FusedRun::Part& part : all)
        p.plant(part,
                each(p.with(all, part, "norm", alone ? FusedRun::From(own) : FusedRun::From(moved)),
                     [&](double v, std::size_t i) {
                       return v + p.bias(all, moved(part, i % part.columns));
                     }));
      expect_first(
          p.ask(kAt + name, p.value(kAt + name), Torus(1, 1, 3)),
          fmt::format("{}: {}, stored as 4 blocks [wq wk wv], one for each kv head, read", kColumns,
                      alone ? "biases and scales alone" : "with biases and scales"));
      // Likewise without a pattern, of one value alone.
      FusedRun one(with_keys(kMany, ",bias=qkv"));
      one.texts = 0;
      one.plant(all[0], p.value(kAt + "q"));
      if (name[0] == 'q')
        expect_first(
            one.ask(kAt + "q", one.value(kAt + "q"), Torus(1, 1, 3)),
            fmt::format("{}: {}, head 2 of wq is head 0 of wk; head 3 of wq is head 0 of wv",
                        kColumns, alone ? "biases and scales alone" : "with biases and scales"));
    }
}

/// What the dump lacks is wrong in all parts.
TEST(FusedColumns, OfValuesThatTheDumpLacks) {
  FusedRun p(kMany);
  p.texts = 0;
  const FusedRun::Parts all = p.gate_up();
  const auto right = p.value(kAt + "hidden");
  const auto hidden = [&](const FusedRun::From& from) {
    const auto g = p.with(all, all[0], "norm2", from), u = p.with(all, all[1], "norm2", from);
    return FusedRun::f32(
        each(g, [&](double v, std::size_t i) { return v / (1 + std::exp(-v)) * u.data[i]; }),
        right.shape);
  };
  const auto own = [](const auto& part, std::size_t c) { return part.first + c; };
  const auto merged = [&](const auto& part, std::size_t c) {
    return FusedRun::out_of_blocks(all, part.first + c, 64);
  };
  FusedRun shown(kMany);  // with gate and up, which are right
  shown.texts = 0;
  std::erase_if(p.dump, [](const auto& value) {
    return value.first.ends_with(".gate") || value.first.ends_with(".up");
  });
  const Torus torus(2, 1, 1);
  expect_right(p.ask(kAt + "hidden", hidden(own), torus, "BLF_x"));
  expect_first(p.ask(kAt + "hidden", hidden(merged), torus, "BLF_x"),
               kColumns +
                   ": stored as 64 blocks [w_gate w_up], one for each column, read as "
                   "[w_gate|w_up], in ");
  expect_first(p.ask(kAt + "hidden", hidden([&](const auto& part, std::size_t c) {
                       return FusedRun::in_blocks(all, part, c, 2);
                     }),
                     torus, "BLF_x"),
               kColumns +
                   " [x]: stored as 2 blocks [w_gate w_up], one for each chip over x, read as "
                   "[w_gate|w_up], or the other way round, in ");
  // One of both alone is no fused weight.
  expect_none(p.ask(kAt + "hidden", hidden([&](const auto& part, std::size_t c) {
                      return part.value == "gate" ? merged(part, c) : own(part, c);
                    }),
                    torus, "BLF_x"),
              kColumns);
  expect_none(shown.ask(kAt + "hidden", hidden(merged), torus, "BLF_x"), kColumns);
}

/// Where no pattern fits, the columns are told one by one.
class OneByOne : public testing::Test {
 protected:
  FusedRun p{kMany};
  const FusedRun::Parts all = p.qkv(), mlp = p.gate_up();
  const FusedRun::From own = [](const auto& part, std::size_t c) { return part.first + c; };
};

TEST_F(OneByOne, HeadsAndColumns) {
  const auto with = [&](const FusedRun::Part& part, const std::string& operand,
                        const FusedRun::Parts& parts, const FusedRun::From& from) {
    const auto said = p.ask(kAt + part.value, p.with(parts, part, operand, from), Torus(3, 1, 1));
    EXPECT_LE(said.size(), 1U) << text(said);
    return said;
  };
  expect_first(with(all[0], "norm", all,
                    [&](const auto& part, std::size_t c) {
                      return c / 4 == 5 ? all[1].first + c % 4 : own(part, c);
                    }),
               kColumns + ": head 5 of wq is head 0 of wk");
  expect_first(with(all[2], "norm", all,
                    [&](const auto& part, std::size_t c) {
                      return c / 8 == 1 ? all[0].first + c + 12 : own(part, c);
                    }),
               kColumns + ": heads 2 to 3 of wv are heads 5 to 6 of wq");
  expect_first(with(all[1], "norm", all,
                    [&](const auto& part, std::size_t c) {
                      return c == 7 ? all[2].first + 3 : c == 9 ? all[0].first + 1 : own(part, c);
                    }),
               kColumns + ": column 7 of wk is column 3 of wv; column 9 of wk is column 1 of wq");
  expect_first(with(mlp[0], "norm2", mlp,
                    [&](const auto& part, std::size_t c) {
                      return c < 10 ? mlp[1].first + 20 + c : own(part, c);
                    }),
               kColumns + ": columns 0 to 9 of w_gate are columns 20 to 29 of w_up");
}

/// One chip has other columns than its neighbour along an axis that cuts nothing.
TEST_F(OneByOne, OfOneChip) {
  const Torus torus(2, 2, 1);
  const auto wrong = FusedRun::f32(p.with(all, all[0], "norm",
                                          [&](const auto& part, std::size_t c) {
                                            return c / 4 == 6 ? all[2].first + c % 4 : own(part, c);
                                          }),
                                   p.value(kAt + "q").shape);
  const auto right = Planted::cut(p.value(kAt + "q"), "BLH_xQ", torus);
  auto shards = Planted::cut(wrong, "BLH_xQ", torus);
  int chip = 0;
  while (torus.coordinate(chip, Axis::x) != 1 || torus.coordinate(chip, Axis::y) != 1) ++chip;
  for (int c = 0; c < 4; ++c)
    if (c != chip) shards[at(c)] = right[at(c)];
  expect_first(
      p.ask(kAt + "q", "BLH_xQ", torus, shards),
      fmt::format("{}: on chip {} head 6 of wq is head 0 of wv", kColumns, torus.name(chip)));
}

/// What fits no column, or by chance, is not named.
TEST_F(OneByOne, NothingElse) {
  Noise noise;
  const std::string q = kAt + "q", gate = kAt + "gate";
  for (int power = -12; power <= 0; power += 3)
    for (const std::string& id : {q, gate})
      expect_none(p.ask(id, noise.on(p.value(id), std::ldexp(rms(p.value(id)), power))), kColumns);
  // A column of another part with noise on it, or of the sum of two.
  auto wrong = p.with(all, all[0], "norm", [&](const auto& part, std::size_t c) {
    return c < 4 ? all[1].first + c : own(part, c);
  });
  wrong.data[1] += 1e-3 * rms(wrong);
  expect_none(p.ask(q, wrong), kColumns);
  // Columns of the own matrix in another order are of another kind.
  expect_none(p.ask(q,
                    p.with(all, all[0], "norm",
                           [&](const auto& part, std::size_t c) {
                             return c / 4 == 1 ? own(part, c + 4) : own(part, c);
                           }),
                    Torus(3, 1, 1)),
              kColumns);
  // Another layer's columns are not those of this one.
  expect_none(p.ask(q, p.product(kAt + "norm", "layer0.wq")), kColumns);
}

/// Of a single row in bf16 some column of many has any number.
TEST(FusedColumnsOfOneRow, NoiseInBf16IsNone) {
  FusedRun p(
      "model=llama,layers=2,E=16,F=512,H=4,K=2,Q=4,V=32 batch=1 prompt=1 gen=1 seed=3 "
      "act=bf16 weights=bf16");
  Noise noise;
  const auto& gate = p.value(kAt + "gate");
  const double size = rms(gate);
  for (std::size_t n = 0; n < 30; ++n)
    expect_none(
        p.ask(kAt + "gate",
              in_bf16(each(
                  gate, [&](double v, std::size_t i) { return i == 7 * n ? size * noise() : v; }))),
        kColumns);
  // But a block of columns is one.
  const auto mlp = p.gate_up();
  expect_first(p.ask(kAt + "gate",
                     in_bf16(p.with(mlp, mlp[0], "norm2",
                                    [&](const auto& part, std::size_t c) {
                                      return c < 40 ? mlp[1].first + c + 7 : part.first + c;
                                    })),
                     Torus(3, 1, 1)),
               kColumns + ": columns 0 to 39 of w_gate are columns 7 to 46 of w_up");
}

/// Of several rows all have to fit.
TEST(FusedColumnsOfRows, AreFoundInBf16) {
  FusedRun p(
      "model=llama,layers=2,E=16,F=512,H=4,K=2,Q=4,V=32 batch=2 prompt=6 gen=1 seed=3 act=bf16 "
      "weights=bf16");
  const auto mlp = p.gate_up();
  for (const std::size_t column : {5U, 77U, 400U})
    expect_first(p.ask(kAt + "gate",
                       in_bf16(p.with(mlp, mlp[0], "norm2",
                                      [&](const auto& part, std::size_t c) {
                                        return c == column ? mlp[1].first + 500 - c
                                                           : part.first + c;
                                      })),
                       Torus(3, 1, 1)),
                 fmt::format("{}: column {} of w_gate is column {} of w_up", kColumns, column,
                             500 - column));
}

TEST(FusedColumnsOfInt8, TakeTheirScales) {
  FusedRun p(kMany + " weights=int8");
  p.texts = 0;  // as with biases
  const FusedRun::Parts all = p.gate_up();
  for (const bool too : {false, true}) {
    for (const FusedRun::Part& part : all) {
      const auto from = [&](const auto& of, std::size_t c) {
        return FusedRun::out_of_blocks(all, of.first + c, 64);
      };
      p.plant(part, each(p.with(all, part, "norm2", from), [&](double v, std::size_t i) {
                std::size_t c = part.first + i % part.columns;
                if (too) c = FusedRun::out_of_blocks(all, c, 64);
                const FusedRun::Part& of = all[c / 64];
                return v * p.weight(of.matrix + "_scale").data[c % 64];
              }));
    }
    expect_first(p.ask(kAt + "gate"), fmt::format("{}: {}stored as 64 blocks [w_gate w_up]",
                                                  kColumns, too ? "with biases and scales, " : ""));
    // A sum before its scale.
    FusedRun raw(kMany + " weights=int8");
    raw.raw = true;
    expect_first(raw.ask(kAt + "gate", raw.with(all, all[0], "norm2",
                                                [&](const auto& of, std::size_t c) {
                                                  return c == 3 ? all[1].first + 5 : of.first + c;
                                                })),
                 kColumns + ": column 3 of w_gate is column 5 of w_up");
  }
}

}  // namespace
}  // namespace shardproof::diagnosis
