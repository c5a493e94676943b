// The order of a chip's chain in a looped einsum (docs/spec.md section 1.2, paper §3.5), written
// out by hand for rings of three and five chips.
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <random>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "engine/ops/einsum.h"
#include "tests/engine/run_program.h"
#include "tests/engine/written_values.h"
#include "weights/base/bf16.h"

namespace shardproof {
namespace {

constexpr Loop kLoops[] = {Loop::one_way, Loop::both_full, Loop::both_half};

/// In which order each chip of a ring takes the chunks: 2a is the first half of chunk 2, 2b the
/// second.
const std::vector<std::string>& orders(Loop loop, int K) {
  static const std::map<std::pair<Loop, int>, std::vector<std::string>> all{
      {{Loop::none, 3}, {"0 1 2", "0 1 2", "0 1 2"}},
      {{Loop::one_way, 3}, {"0 2 1", "1 0 2", "2 1 0"}},
      {{Loop::both_full, 3}, {"0 2 1", "1 0 2", "2 1 0"}},
      {{Loop::both_half, 3}, {"0 2a 1b 1a 2b", "1 0a 2b 2a 0b", "2 1a 0b 0a 1b"}},
      {{Loop::none, 5}, {"0 1 2 3 4", "0 1 2 3 4", "0 1 2 3 4", "0 1 2 3 4", "0 1 2 3 4"}},
      {{Loop::one_way, 5}, {"0 4 3 2 1", "1 0 4 3 2", "2 1 0 4 3", "3 2 1 0 4", "4 3 2 1 0"}},
      {{Loop::both_full, 5}, {"0 4 1 3 2", "1 0 2 4 3", "2 1 3 0 4", "3 2 4 1 0", "4 3 0 2 1"}},
      {{Loop::both_half, 5},
       {"0 4a 1b 3a 2b 2a 3b 1a 4b", "1 0a 2b 4a 3b 3a 4b 2a 0b", "2 1a 3b 0a 4b 4a 0b 3a 1b",
        "3 2a 4b 1a 0b 0a 1b 4a 2b", "4 3a 0b 2a 1b 1a 2b 0a 3b"}}};
  return all.at({loop, K});
}

struct Span {
  int begin, end;
};
/// The indices of a dim whose chunks have n: of three the first half has two, of one that one.
std::vector<Span> spans(const std::string& order, int n) {
  std::vector<Span> all;
  std::istringstream words(order);
  for (std::string word; words >> word;) {
    const int from = (word[0] - '0') * n, half = from + (n == 3 ? 2 : 1);
    all.push_back({word.back() == 'b' ? half : from, word.back() == 'a' ? half : from + n});
  }
  return all;
}

/// Full significands, sizes near each other.
Tensor drawn(const Shape& shape, unsigned seed) {
  std::minstd_rand random(seed);
  Tensor t(shape);
  for (float& v : t.data)
    v = std::ldexp(static_cast<float>(random() % (1U << 25)) - 0x1p24F, -24) + 0x1p-30F;
  return t;
}

/// Places in a chip's two shards.
using Places = std::vector<std::pair<int, int>>;

float chain(const Places& places, const float* a, const float* b,
            NumberFormat acc = NumberFormat::f32, float c = 0.0F) {
  for (const auto& [i, j] : places) {
    c = std::fma(a[i], b[j], c);
    if (acc == NumberFormat::bf16) c = round_to_bf16(c);
  }
  return c;
}

const float* shard_of(const SharedValue& value, int chip) {
  return value->f32()[static_cast<std::size_t>(chip)].data();
}

using Row = std::vector<float>;
Row row_of(const Sharded& value, int chip) {
  const auto& numbers = value.f32()[static_cast<std::size_t>(chip)];
  return {numbers.begin(), numbers.end()};
}

// So many rows that no two orders agree in all of them; F is that of one chip.
constexpr int B = 32, F = 2, Q = 4;

/// One contraction, on a ring of K chips along y that each have two columns of their own.
struct Ringed {
  std::string spec;
  Shape a, b;  ///< b without F
  char dim;
  int K, n;

  Torus torus() const { return {1, K, 1}; }
  SharedValue operand_a() const {
    return shared(shard(drawn(a, 1), Layout::parse(spec.substr(0, spec.find(','))), torus()));
  }
  SharedValue operand_b() const {
    Shape shape = b;
    shape.push_back(F * K);
    const std::string letters = spec.substr(spec.find(',') + 1, b.size() + 1);
    return shared(shard(drawn(shape, 2), Layout::parse(letters + "_y"), torus()));
  }
  Sharded run(Loop loop, NumberFormat acc = NumberFormat::f32, Regime regime = Regime::f32) const {
    return einsum(EinsumSpec::parse(spec), {{operand_a(), operand_b()}}, Layout::parse("BF_y"),
                  {B, F * K}, one(), regime, acc, {{dim, Axes::parse("y"), loop}});
  }
  /// Every element of a chip by the same list of contracted places: k of a's row, k of b's column.
  Row by(const std::vector<int>& list, int chip, NumberFormat acc = NumberFormat::f32) const {
    const SharedValue left = operand_a(), right = operand_b();
    const auto size = static_cast<int>(element_count(b));
    Row all;
    for (int row = 0; row < B; ++row)
      for (int f = 0; f < F; ++f) {
        Places places;
        for (const int k : list) places.emplace_back(row * size + k, k * F + f);
        all.push_back(chain(places, shard_of(left, chip), shard_of(right, chip), acc));
      }
    return all;
  }
};

using List = std::vector<int>;

/// A ring of K chips over one of the contracted letters, which has n of each chip's, between
/// letters of `outer` and of `inner` elements together.
struct Letters {
  const char *a, *b;
  char dim;
  int outer, inner;
  std::vector<int> n = {1, 3};

  Ringed ringed(int K, int of_chip) const {
    Shape shape;
    if (outer > 1) shape.push_back(outer);
    shape.push_back(K * of_chip);
    if (inner > 1) shape.push_back(inner);
    Shape rows = shape;
    rows.insert(rows.begin(), B);
    return {std::string(a) + "," + b + "->BF", rows, shape, dim, K, of_chip};
  }
  /// Chunks as they come, of each chunk all outer letters, and inside them the inner ones.
  List list(const std::vector<Span>& chunks, int extent) const {
    List all;
    for (const Span& chunk : chunks)
      for (int o = 0; o < outer; ++o)
        for (int k = chunk.begin; k < chunk.end; ++k)
          for (int i = 0; i < inner; ++i) all.push_back((o * extent + k) * inner + i);
    return all;
  }
};

constexpr Loop kAll[] = {Loop::none, Loop::one_way, Loop::both_full, Loop::both_half};

/// The result is that of the order on every chip, and of no other order that a loop or another chip
/// has.
void expect_orders(const Letters& letters, const Ringed& ringed) {
  const auto list = [&](const std::vector<Span>& chunks) {
    return letters.list(chunks, ringed.K * ringed.n);
  };
  for (const NumberFormat acc : {NumberFormat::f32, NumberFormat::bf16})
    for (const Loop loop : kAll) {
      const Sharded got = ringed.run(loop, acc);
      for (int chip = 0; chip < ringed.K; ++chip) {
        const auto at = static_cast<std::size_t>(chip);
        const List right = list(loop == Loop::none ? std::vector<Span>{{0, ringed.K * ringed.n}}
                                                   : spans(orders(loop, ringed.K)[at], ringed.n));
        SCOPED_TRACE(std::string(to_string(loop)) + " of " + ringed.spec + ", chip " +
                     std::to_string(chip));
        EXPECT_EQ(static_cast<std::int64_t>(right.size()), element_count(ringed.b));
        EXPECT_EQ(row_of(got, chip), ringed.by(right, chip, acc));
        for (const Loop other : kAll)
          for (const std::string& order : orders(other, ringed.K))
            if (const List wrong = list(spans(order, ringed.n)); wrong != right) {
              EXPECT_NE(row_of(got, chip), ringed.by(wrong, chip, acc)) << order;
            }
      }
    }
}

TEST(LoopedEinsum, TakesTheChunksInTheOrderOfThePaper) {
  // The one letter, the first, the second, and one in the middle.
  for (const Letters& letters :
       {Letters{"BE", "EF", 'E', 1, 1}, Letters{"BHQ", "HQF", 'H', 1, Q},
        Letters{"BHQ", "HQF", 'Q', 2, 1}, Letters{"BHQE", "HQEF", 'Q', 2, 3, {3}}})
    for (const int K : {3, 5})
      for (const int n : letters.n) expect_orders(letters, letters.ringed(K, n));
}

// A chunk of rows, or of columns, is elements of its own.
TEST(LoopedEinsum, OfALetterThatIsNotContractedChangesNothing) {
  for (const int K : {3, 5})
    for (const int n : {1, 3})
      for (const Loop loop : kLoops) {
        const Torus torus(1, K, 1);
        const auto place = [&](const Shape& shape, const char* layout, unsigned seed) {
          return shared(shard(drawn(shape, seed), Layout::parse(layout), torus));
        };
        const int E = 7;
        // B gathered of the first operand, F of the second.
        const SharedValue rows = place({K * n, E}, "BE", 1), some = place({E, K * F}, "EF_y", 2);
        const SharedValue mine = place({K * B, E}, "B_yE", 3), all = place({E, K * n}, "EF", 4);
        const EinsumSpec spec = EinsumSpec::parse("BE,EF->BF");
        const Axes y = Axes::parse("y");
        const Sharded of_b = einsum(spec, {{rows, some}}, Layout::parse("BF_y"), {K * n, K * F},
                                    one(), Regime::f32, NumberFormat::f32, {{'B', y, loop}});
        const Sharded of_f = einsum(spec, {{mine, all}}, Layout::parse("B_yF"), {K * B, K * n},
                                    one(), Regime::f32, NumberFormat::f32, {{'F', y, loop}});
        for (int chip = 0; chip < K; ++chip) {
          Row want_b, want_f;
          for (int b = 0; b < K * n; ++b)
            for (int f = 0; f < F; ++f) {
              Places places;
              for (int e = 0; e < E; ++e) places.emplace_back(b * E + e, e * F + f);
              want_b.push_back(chain(places, shard_of(rows, chip), shard_of(some, chip)));
            }
          for (int b = 0; b < B; ++b)
            for (int f = 0; f < K * n; ++f) {
              Places places;
              for (int e = 0; e < E; ++e) places.emplace_back(b * E + e, e * K * n + f);
              want_f.push_back(chain(places, shard_of(mine, chip), shard_of(all, chip)));
            }
          EXPECT_EQ(row_of(of_b, chip), want_b) << to_string(loop);
          EXPECT_EQ(row_of(of_f, chip), want_f) << to_string(loop);
        }
      }
}

// Five chips along z for the first term, three along y for the second: 15 columns.
TEST(LoopedEinsum, HasARingForEachTerm) {
  constexpr int Y = 3, Z = 5, E = Z * 3, H = Y * 3;
  const Torus torus(1, Y, Z);
  const auto place = [&](const Shape& shape, const char* layout, unsigned seed) {
    return shared(shard(drawn(shape, seed), Layout::parse(layout), torus));
  };
  const SharedValue a1 = place({B, E}, "BE", 1), b1 = place({E, Y * Z}, "EF_yz", 2);
  const SharedValue a2 = place({B, H}, "BH", 3), b2 = place({H, Y * Z}, "HF_yz", 4);
  const auto run = [&](Loop first, Loop second) {
    return einsum(EinsumSpec::parse("BE,EF->BF + BH,HF->BF"), {{a1, b1}, {a2, b2}},
                  Layout::parse("BF_yz"), {B, Y * Z}, one(), Regime::f32, NumberFormat::f32,
                  {{'E', Axes::parse("z"), first}, {'H', Axes::parse("y"), second}});
  };
  /// The chain of a chip at (y, z) whose terms have the orders of the ring's chips j1 and j2.
  const auto by = [&](Loop first, std::size_t j1, Loop second, std::size_t j2, int chip) {
    Row row;
    for (int b = 0; b < B; ++b) {
      Places of_first, of_second;
      for (const Span& chunk : spans(orders(first, Z)[j1], 3))
        for (int e = chunk.begin; e < chunk.end; ++e) of_first.emplace_back(b * E + e, e);
      for (const Span& chunk : spans(orders(second, Y)[j2], 3))
        for (int h = chunk.begin; h < chunk.end; ++h) of_second.emplace_back(b * H + h, h);
      const float c = chain(of_first, shard_of(a1, chip), shard_of(b1, chip));
      row.push_back(chain(of_second, shard_of(a2, chip), shard_of(b2, chip), NumberFormat::f32, c));
    }
    return row;
  };
  for (const Loop first : kAll)
    for (const Loop second : kAll) {
      const Sharded got = run(first, second);
      for (int chip = 0; chip < torus.chips(); ++chip) {
        const auto y = static_cast<std::size_t>(torus.block(chip, Axes::parse("y")));
        const auto z = static_cast<std::size_t>(torus.block(chip, Axes::parse("z")));
        SCOPED_TRACE(std::string(to_string(first)) + " and " + std::string(to_string(second)) +
                     ", chip " + std::to_string(chip));
        EXPECT_EQ(row_of(got, chip), by(first, z, second, y, chip));
        if (first != Loop::none) {
          EXPECT_NE(row_of(got, chip), by(first, (z + 1) % Z, second, y, chip));
        }
        if (second != Loop::none) {
          EXPECT_NE(row_of(got, chip), by(first, z, second, (y + 1) % Y, chip));
        }
      }
    }
}

// A ring over zy: chip (y, z) of 1x3x2 is its number 3z + y.
TEST(LoopedEinsum, OfTwoAxesNumbersItsChipsMajorToMinor) {
  const Torus torus(1, 3, 2);
  const SharedValue a = shared(shard(drawn({B, 6}, 1), Layout::parse("BE"), torus));
  const SharedValue b = shared(shard(drawn({6, 6}, 2), Layout::parse("EF_zy"), torus));
  const Sharded got =
      einsum(EinsumSpec::parse("BE,EF->BF"), {{a, b}}, Layout::parse("BF_zy"), {B, 6}, one(),
             Regime::f32, NumberFormat::f32, {{'E', Axes::parse("zy"), Loop::one_way}});
  const std::vector<List> lists{{0, 5, 4, 3, 2, 1}, {1, 0, 5, 4, 3, 2}, {2, 1, 0, 5, 4, 3},
                                {3, 2, 1, 0, 5, 4}, {4, 3, 2, 1, 0, 5}, {5, 4, 3, 2, 1, 0}};
  const auto by = [&](const List& list, int chip) {
    Row row;
    for (int r = 0; r < B; ++r) {
      Places places;
      for (const int e : list) places.emplace_back(r * 6 + e, e);
      row.push_back(chain(places, shard_of(a, chip), shard_of(b, chip)));
    }
    return row;
  };
  for (int chip = 0; chip < 6; ++chip) {
    const int y = torus.block(chip, Axes::parse("y")), z = torus.block(chip, Axes::parse("z"));
    EXPECT_EQ(row_of(got, chip), by(lists[static_cast<std::size_t>(3 * z + y)], chip));
    if (y != 0 || z != 0) {
      EXPECT_NE(row_of(got, chip), by(lists[0], chip));
    }
  }
}

TEST(LoopedEinsum, OfOneChipIsTheChainItself) {
  const Ringed alone{"BE,EF->BF", {B, 5}, {5}, 'E', 1, 5};
  for (const Loop loop : kLoops)
    EXPECT_EQ(row_of(alone.run(loop), 0), alone.by({0, 1, 2, 3, 4}, 0)) << to_string(loop);
}

TEST(LoopedEinsum, HasNoOrderInTheExactRegime) {
  const Ringed ringed{"BE,EF->BF", {B, 15}, {15}, 'E', 5, 3};
  const Sharded plain = ringed.run(Loop::none, NumberFormat::f32, Regime::exact);
  for (const Loop loop : kLoops)
    EXPECT_TRUE(same_bits(ringed.run(loop, NumberFormat::f32, Regime::exact), plain));
}

}  // namespace
}  // namespace shardproof
