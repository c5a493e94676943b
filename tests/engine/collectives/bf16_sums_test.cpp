// acc=bf16 and wire=bf16 (docs/spec.md section 1.2), each rounding written out by hand.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cmath>
#include <random>

#include "engine/collectives/moves.h"
#include "engine/collectives/scheduled_sum.h"
#include "engine/collectives/transfer.h"
#include "engine/numeric/contract.h"
#include "tests/bits.h"
#include "tests/engine/run_program.h"
#include "tests/engine/written_values.h"
#include "weights/base/bf16.h"
#include "weights/base/isa.h"

namespace shardproof {
namespace {

constexpr NumberFormat f32 = NumberFormat::f32, bf16 = NumberFormat::bf16;

float r(float v) { return round_to_bf16(v); }

// Sizes near each other and full significands: every rounding that is left out shows.
constexpr float p0 = 1.0576336F, p1 = -4.1267467F, p2 = 5.6778493F, p3 = 7.5914450F,
                p4 = -7.9736185F;
constexpr float kParts[] = {p0, p1, p2, p3, p4};

/// Partial sums [BF] of what each chip of 1x3x1 has.
Sharded partials(const std::vector<std::vector<float>>& of_chips) {
  ChipArrays<float> chips;
  for (const auto& of_chip : of_chips) chips.push_back(of_chip);
  return {Torus(1, static_cast<int>(of_chips.size()), 1),
          Layout::parse("BF partialsum-y"),
          {1, static_cast<std::int64_t>(of_chips[0].size())},
          std::move(chips)};
}

TEST(WireBf16, AnAllReduceRoundsTheFinishedChunkAReduceScatterDoesNot) {
  const Sharded t = partials({{p0, p1, p2}, {p1, p3, p4}, {p2, p4, p0}});
  const auto at = [&](std::size_t chip, std::size_t i) { return t.f32()[chip][i]; };
  const Axes y = Axes::parse("y");
  for (const Schedule order : {Schedule::group, Schedule::ring, Schedule::tree}) {
    const Summation how{order, f32, bf16};
    const Sharded whole = reduce(t, all_reduce_moves(t.torus(), t.local(), y), Layout::parse("BF"),
                                 t.shape(), one(), how);
    const Sharded parts = reduce(t, reduce_scatter_moves(t.torus(), t.local(), 1, y),
                                 Layout::parse("BF_y"), t.shape(), one(), how);
    for (std::size_t c = 0; c < 3; ++c) {  // the chunk, and its owner
      const float want = order == Schedule::ring
                             ? r(r(at((c + 1) % 3, c)) + at((c + 2) % 3, c)) + at(c, c)
                             : (r(at(0, c)) + r(at(1, c))) + r(at(2, c));
      EXPECT_EQ(bits(parts.f32()[c][0]), bits(want)) << to_string(order);
      for (std::size_t chip = 0; chip < 3; ++chip)
        EXPECT_EQ(bits(whole.f32()[chip][c]), bits(r(want))) << to_string(order);
    }
  }
}

// Chunks of three: of both-half the first two go one way, the third the other.
TEST(WireBf16, AReduceScatterRoundsAsItsLoopDoes) {
  std::vector<std::vector<float>> numbers(3);
  for (std::size_t i = 0; i < 27; ++i)
    numbers[i % 3].push_back(kParts[i % 5] * (1.0F + static_cast<float>(i) * 0x1.1p-7F));
  const Sharded t = partials(numbers);
  const Moves moves = reduce_scatter_moves(t.torus(), t.local(), 1, Axes::parse("y"));
  for (const NumberFormat acc : {f32, bf16})
    for (const Loop loop : {Loop::one_way, Loop::both_full, Loop::both_half}) {
      const Sharded parts = reduce(t, moves, Layout::parse("BF_y"), t.shape(), one(),
                                   {Schedule::tree, acc, bf16, loop, 1});
      const auto a = [acc](float v) { return acc == bf16 ? r(v) : v; };
      for (std::size_t c = 0; c < 3; ++c)
        for (std::size_t i = 0; i < 3; ++i) {
          const auto of = [&](std::size_t chip) { return t.f32()[chip % 3][3 * c + i]; };
          const bool back = loop == Loop::both_half && i == 2;
          const std::size_t from = back ? c + 2 : c + 1, over = back ? c + 1 : c + 2;
          const float want = loop == Loop::both_full ? a(a(r(of(c + 2)) + of(c)) + r(of(c + 1)))
                                                     : a(r(a(r(of(from)) + of(over))) + of(c));
          EXPECT_EQ(bits(parts.f32()[c][i]), bits(want)) << to_string(loop) << " " << c << i;
        }
    }
}

TEST(WireBf16, AGroupOfOneChipRoundsNothing) {
  const Sharded t = partials({{p0, p1, p2}});
  for (const Schedule order : {Schedule::group, Schedule::ring, Schedule::tree}) {
    const Sharded whole = reduce(t, all_reduce_moves(t.torus(), t.local(), Axes::parse("y")),
                                 Layout::parse("BF"), t.shape(), one(), {order, bf16, bf16});
    EXPECT_EQ(whole.f32(), t.f32()) << to_string(order);
  }
}

/// Runs `move` of partial q over y, of two chips or of one, and returns what the chips hold.
ChipArrays<float> moved(const std::string& move, const std::string& role, const Numerics& numerics,
                        int Y) {
  const Program program = parse_program("layer",
                                        "input a : BE_x is in\ninput w : E_xF is weight w_gate\n"
                                        "p : BF partialsum-x = einsum(BE,EF->BF; a, w) is " +
                                            role + "\n" + move);
  const Torus torus(2, Y, 1);
  Tensor a({2, 4}), w({4, 4});
  for (std::size_t i = 0; i < a.data.size(); ++i) a.data[i] = kParts[i % 5] * (1.0F + 0x1p-9F);
  for (std::size_t i = 0; i < w.data.size(); ++i) w.data[i] = kParts[(3 * i + 1) % 5];
  const auto place = [&](const Tensor& t, const char* layout) {
    return std::make_shared<const Sharded>(shard(t, Layout::parse(layout), torus));
  };
  const auto out =
      execute(program, {{"a", place(a, "BE_x")}, {"w", place(w, "E_xF")}},
              {.config = any_config(), .threads = one(), .scope = {}, .numerics = numerics});
  return out.begin()->second->f32();
}

TEST(WireBf16, AMoveOfPartialsRoundsEveryElementASliceNone) {
  const Numerics plain{.regime = Regime::f32};
  Numerics wire = plain;
  wire.wire = bf16;
  struct Of {
    const char* text;
    bool rounds;
  };
  const Of moves[] = {{"s : BF_y partialsum-x = slice(p, F, y) is ROLE\noutput s", false},
                      {"s : BF_y partialsum-x = slice(p, F, y) is ROLE\n"
                       "g : BF partialsum-x = all_gather(s, F, y) is ROLE\noutput g",
                       true},
                      {"s : BF_y partialsum-x = slice(p, F, y) is ROLE\n"
                       "g : B_yF partialsum-x = all_to_all(s, F->B, y) is ROLE\noutput g",
                       true}};
  for (const auto& [text, rounds] : moves)
    for (const char* role : {"raw gate", "stat ss", "raw logits"})
      for (const int Y : {1, 2}) {
        std::string move = text;
        for (std::size_t at; (at = move.find("ROLE")) != std::string::npos;)
          move.replace(at, 4, role);
        ChipArrays<float> want = moved(move, role, plain, Y);
        const ChipArrays<float> got = moved(move, role, wire, Y);
        if (rounds && Y > 1 && std::string(role) == "raw gate") {
          EXPECT_NE(got, want) << move;
          for (auto& chip : want)
            for (float& v : chip) v = r(v);
        }
        EXPECT_EQ(got, want) << move << " Y=" << Y;
      }
}

// 1 + 2^-8 is halfway between 1 and its neighbour in bf16, and ties to the even 1: a sum kept in
// bf16 never leaves 1, one in f32 reaches 1 + 4·2^-8.
TEST(AccBf16, AChainByHand) {
  const float a[] = {1.0F, 0x1p-8F, 0x1p-8F, 0x1p-8F, 0x1p-8F};
  const float ones[] = {1.0F, 1.0F, 1.0F, 1.0F, 1.0F};
  float c = NAN;
  chain(1, 1, {{a, ones, 5}}, &c);
  EXPECT_EQ(c, 1.015625F);
  bf16_chain(1, 1, {{a, ones, 5}}, &c);
  EXPECT_EQ(c, 1.0F);
}

// Two roundings: 1 + 2^-8 + 2^-31 lies above the middle of two bf16, but its f32 is the middle, and
// that goes to the even 1.
TEST(AccBf16, RoundsToF32AndThenToBf16) {
  const float a[] = {1.0F, 1.0F + 0x1p-23F};
  const float b[] = {1.0F, 0x1p-8F};
  float c = NAN;
  bf16_chain(1, 1, {{a, b, 2}}, &c);
  EXPECT_EQ(c, 1.0F);
}

TEST(AccBf16, GoesThroughTheTermsAndStartsFromZero) {
  float c = NAN;
  bf16_chain(1, 1, {}, &c);
  EXPECT_EQ(bits(c), bits(0.0F));
  const float a[] = {p0, p1}, b[] = {p2, p3};
  bf16_chain(1, 1, {{a, b, 2}, {b, a, 1}}, &c);
  EXPECT_EQ(bits(c), bits(r(std::fma(p2, p0, r(std::fma(p1, p3, r(p0 * p2)))))));
}

RC_GTEST_PROP(AccBf16, IsTheRoundedChainOnEveryInstructionSet, ()) {
  const long M = *rc::gen::inRange(1L, 9L), N = *rc::gen::inRange(1L, 40L),
             K = *rc::gen::inRange(1L, 20L);
  std::minstd_rand random(*rc::gen::arbitrary<unsigned>());
  std::vector<float> a(static_cast<std::size_t>(M * K)), b(static_cast<std::size_t>(K * N));
  for (auto* v : {&a, &b})
    for (float& x : *v) x = std::ldexp(static_cast<float>(random() % (1U << 25)) - 0x1p24F, -24);
  std::vector<float> want;
  bool differs = false;
  for (long i = 0; i < M; ++i)
    for (long j = 0; j < N; ++j) {
      float c = 0.0F, once = 0.0F;
      for (long k = 0; k < K; ++k) {
        const float x = a[static_cast<std::size_t>(i * K + k)],
                    y = b[static_cast<std::size_t>(k * N + j)];
        c = r(std::fma(x, y, c));
        once = std::fma(x, y, once);
      }
      want.push_back(c);
      differs = differs || bits(r(once)) != bits(c);
    }
  // Else the rounding of each step would not show; of one step it is that of the sum.
  RC_ASSERT(differs || K == 1 || M * N * K < 100);
  for (Isa isa : {Isa::scalar, Isa::avx2, Isa::avx512}) {
    if (!has_isa(isa)) continue;
    const ForcedIsa forced(isa);
    std::vector<float> got(want.size(), NAN);
    bf16_chain(M, N, {{a.data(), b.data(), K}}, got.data());
    RC_ASSERT(got == want);
  }
}

}  // namespace
}  // namespace shardproof
