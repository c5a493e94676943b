// Slots of caches, and heads in them, that hold what belongs elsewhere.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string>

#include "tests/golden/diagnosis/planted.h"

namespace shardproof::diagnosis {
namespace {

/// Caches [B,M,K,Q] of a decode step whose newest slot alone is its own.
class CacheFaults : public testing::Test {
 protected:
  static constexpr std::size_t kB = 2, kM = 9, kH = 8, kK = 2, kQ = 4;
  struct Cell {
    std::size_t row, slot, head;
  };

  /// A cache in which from(cell) says where what each cell holds belongs.
  template <class From>
  static Planted::Value with(const Planted::Value& cache, From&& from) {
    return moved(cache, [&](std::size_t i) {
      const std::size_t cell = i / kQ;
      const Cell other = from(Cell{cell / kK / kM, cell / kK % kM, cell % kK});
      return ((other.row * kM + other.slot) * kK + other.head) * kQ + i % kQ;
    });
  }
  /// Only old slots.
  template <class From>
  static auto old(From&& from) {
    return [from](Cell c) { return c.slot + 1 < kM ? from(c) : c; };
  }

  /// The attention that follows from caches.
  Planted::Value attention(const Planted::Value& k, const Planted::Value& v) const {
    Planted::Value attn(q_rot.shape);
    for (std::size_t n = 0; n < kB * kH; ++n) {
      const auto cell = [&](std::size_t m) {
        return ((n / kH * kM + m) * kK + n % kH * kK / kH) * kQ;
      };
      std::vector<double> e(kM);
      double sum = 0;
      for (std::size_t m = 0; m < kM; ++m) {
        double dot = 0;
        for (std::size_t c = 0; c < kQ; ++c) dot += q_rot.data[n * kQ + c] * k.data[cell(m) + c];
        sum += e[m] = std::exp(dot / 2);
      }
      for (std::size_t m = 0; m < kM; ++m)
        for (std::size_t c = 0; c < kQ; ++c)
          attn.data[n * kQ + c] += e[m] / sum * v.data[cell(m) + c];
    }
    return attn;
  }

  Planted p{"model=llama,layers=2,E=32,F=64,H=8,K=2,Q=4,V=32 batch=2 prompt=8 gen=2 seed=3"};
  const Torus torus{2, 2, 1};
  const std::string layer = "decode.1.layer1.", keys = layer + "k_cache",
                    values = layer + "v_cache";
  const Planted::Value q_rot = p.value(layer + "q_rot");
};

TEST_F(CacheFaults, AnotherHeadInOldSlots) {
  for (const std::string& id : {keys, values}) {
    const auto first = with(p.value(id), old([](Cell c) { return Cell{c.row, c.slot, 0}; }));
    expect_first(p.ask(id, first, torus, "BMK_xQ"),
                 "head order: slot 0 of row 0 holds in head 1 what belongs in head 0; 16 slots of "
                 "18 are wrong, and hold what belongs in head 0");
    expect_first(p.ask(id, first, Torus(3, 1, 1)),
                 "head order: slot 0 of row 0 holds in head 1 what belongs in head 0");
  }
  // Of another slot, in one head alone.
  expect_first(
      p.ask(keys, with(p.value(keys),
                       [](Cell c) {
                         return c.row == 1 && c.slot == 3 && c.head == 0 ? Cell{1, 5, 1} : c;
                       })),
      "stale slot: slot 3 of row 1 holds in head 0 what belongs in head 1, of what "
      "belongs in slot 5");
}

/// Chip (x,y), of kv head x, has that of y.
TEST_F(CacheFaults, AnotherHeadOnSomeChips) {
  const auto cache = p.value(keys);
  auto shards = Planted::cut(cache, "BMK_xQ", torus);
  for (int chip = 0; chip < 4; ++chip) {
    const auto y = at(torus.coordinate(chip, Axis::y));
    shards[at(chip)] = Planted::cut(with(cache, old([&](Cell c) {
                                           return Cell{c.row, c.slot, y};
                                         })),
                                    "BMK_xQ", torus)[at(chip)];
  }
  const auto said = p.ask(keys, "BMK_xQ", torus, shards);
  ASSERT_FALSE(said.empty());
  EXPECT_TRUE(said[0].explains && said[0].fault == "head order" &&
              said[0].detail.find("slot 0 of row 0 holds in head") != std::string::npos)
      << text(said);
  // Each of three chips with the same head, and other slots of it.
  const Torus ring(1, 3, 1);
  auto of_chips = Planted::cut(cache, "BMKQ", ring);
  for (std::size_t chip = 1; chip < 3; ++chip)
    of_chips[chip] = Planted::f32(with(cache, old([&](Cell c) {
                                         return Cell{c.row, (c.slot + chip) % 8, c.head};
                                       })),
                                  cache.shape)
                         .data;
  const auto apart = p.ask(keys, "BMKQ", ring, of_chips);
  ASSERT_FALSE(apart.empty());
  EXPECT_TRUE(apart[0].explains && apart[0].fault == "stale slot") << text(apart);
  EXPECT_NE(apart[0].detail.find("on chip (0,1,0) slots are shifted by 7"), std::string::npos)
      << text(apart);
}

TEST_F(CacheFaults, ShiftedSlots) {
  for (const std::size_t by : {1U, 2U, 5U})
    expect_first(p.ask(keys, with(p.value(keys), old([by](Cell c) {
                                    return Cell{c.row, (c.slot + 8 - by) % 8, c.head};
                                  }))),
                 fmt::format("stale slot: slots are shifted by {}: slot 0 of row 0 holds what "
                             "belongs in slot {}; 16 slots of 18 are wrong",
                             by, 8 - by));
  // One alone is not called so.
  const auto said = p.ask(keys, with(p.value(keys), [](Cell c) {
                            return c.row == 1 && c.slot == 3 ? Cell{1, 1, c.head} : c;
                          }));
  expect_first(said, "stale slot: slot 3 of row 1 holds what belongs in slot 1");
  EXPECT_EQ(said[0].detail.find("shifted"), std::string::npos) << text(said);
}

TEST_F(CacheFaults, NothingElse) {
  Noise noise;
  const auto cache = p.value(keys);
  const double size = rms(cache);
  for (int n = 0; n < 4; ++n)
    expect_unexplained(p.ask(keys, each(cache,
                                        [&](double v, std::size_t i) {
                                          return i / kQ % kK == 1 ? v + size * noise() : v;
                                        })),
                       "noise in a head");
}

/// Keys and values together, or one of them.
TEST_F(CacheFaults, OfCachesThatTheDumpLacks) {
  p.texts = 0;
  const auto k = p.value(keys), v = p.value(values);
  std::erase_if(p.dump, [](const auto& value) {
    for (const char* const name :
         {"score", "max", "exp", "denom", "q_rot", "k_rot", "k_cache", "v_cache"})
      if (value.first.ends_with(std::string(".") + name)) return true;
    return false;
  });
  const std::string attn = layer + "attn";
  expect_right(p.ask(attn, attention(k, v)));
  const auto both = [&](auto&& from) {
    return p.ask(attn, attention(with(k, from), with(v, from)));
  };
  expect_first(both(old([](Cell c) {
                 return Cell{c.row, c.slot, 0};
               })),
               "head order: all heads of old slots hold what belongs in head 0, in ");
  expect_first(both(old([](Cell c) {
                 return Cell{c.row, c.slot, 1 - c.head};
               })),
               "head order: the heads of old slots are rotated by 1, in ");
  expect_first(both(old([](Cell c) {
                 return Cell{1 - c.row, c.slot, c.head};
               })),
               "stale slot: old slots of row b hold what belongs in row (b+1) mod 2, in ");
  // Where all slots are seen, an order that both have is no fault.
  for (const std::size_t by : {1U, 3U}) {
    const auto shifted = old([by](Cell c) { return Cell{c.row, (c.slot + 8 - by) % 8, c.head}; });
    expect_right(both(shifted));
    expect_first(p.ask(attn, attention(k, with(v, shifted))),
                 fmt::format("stale slot: old slots are shifted by {}, in v_cache, which", by));
  }
  const auto zeros = [](const Planted::Value& of, bool newest) {
    return each(of, [newest](double number, std::size_t i) {
      return (i / kQ / kK % kM + 1 == kM) == newest ? 0.0 : number;
    });
  };
  expect_first(p.ask(attn, attention(zeros(k, true), zeros(v, true))),
               "stale slot: new slots hold zeros: they are not written, in ");
  expect_first(p.ask(attn, attention(zeros(k, false), zeros(v, false))),
               "stale slot: old slots hold zeros, in ");
  expect_first(p.ask(attn, attention(k, with(v, old([](Cell c) {
                                               return Cell{c.row, c.slot, 1};
                                             })))),
               "head order: all heads of old slots hold what belongs in head 1, in v_cache, which "
               "the dump lacks");
  Noise noise;
  for (int n = 0; n < 4; ++n)
    expect_unexplained(p.ask(attn, attention(noise.on(k, rms(k)), noise.on(v, rms(v)))), "noise");
}

}  // namespace
}  // namespace shardproof::diagnosis
