// The orders of the f32 regime, written out by hand for rings of 1 to 5 chips.
#include "engine/collectives/scheduled_sum.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cmath>
#include <random>

#include "engine/collectives/moves.h"
#include "engine/collectives/transfer.h"
#include "engine/ops/einsum.h"
#include "tests/bits.h"
#include "tests/engine/run_program.h"
#include "tests/engine/text_rows.h"
#include "weights/base/bf16.h"

namespace shardproof {
namespace {

// Five partials of sizes far apart: any two orders of them differ in most cases. And five near each
// other: every rounding to bf16 that is left out shows. All have full significands.
constexpr float kParts[] = {1.2345678F, -7.654321e3F, 3.1415927e-2F, 9.87654e5F, -2.7182817e5F};
constexpr float kNear[] = {1.0576336F, -4.1267467F, 5.6778493F, 7.5914450F, -7.9736185F};

float sum(const Summation& how, const float* parts, int K, std::int64_t chunk, ChunkPart part) {
  std::vector<const float*> terms;
  for (int i = 0; i < K; ++i) terms.push_back(&parts[i]);
  float out = NAN;
  scheduled_sum(how, terms, chunk, part, 1, &out);
  return out;
}

/// The value of a sum as sums.txt writes it, from `text[at]` to its end or a closing parenthesis.
float written(const std::string& text, const float* parts, std::size_t& at) {
  float total = 0.0F;
  for (bool first = true;; first = false) {
    if (!first && text.substr(at, 3) != " + ") refuse_word(text.substr(at), text);
    if (!first) at += 3;
    const bool rounds = text.at(at) == 'r';
    if (rounds) ++at;
    float term = 0.0F;
    if (text.at(at) == '(')
      term = written(text, parts, ++at);
    else if (text.at(at) >= '0' && text.at(at) <= '4')
      term = parts[text.at(at) - '0'];
    else
      refuse_word(text.substr(at), text);
    ++at;
    if (rounds) term = round_to_bf16(term);
    total = first ? term : total + term;
    if (at >= text.size() || text[at] == ')') return total;
  }
}
float written(const std::string& text, const float* parts) {
  std::size_t at = 0;
  const float value = written(text, parts, at);
  if (at != text.size()) refuse_word(text.substr(at), text);
  return value;
}

NumberFormat float_type(const std::string& word) {
  if (word != "f32" && word != "bf16") refuse_word(word, "sums.txt");
  return word == "f32" ? NumberFormat::f32 : NumberFormat::bf16;
}

/// How a row of sums.txt sums; a loop hides what the schedule is.
std::vector<Summation> summations(const std::string& orders, const std::string& types) {
  std::vector<Summation> all;
  const std::vector<std::string> two = parts_of(types, " ");
  if (two.size() != 2) refuse_word(types, types);
  const NumberFormat acc = float_type(two[0]), wire = float_type(two[1]);
  for (const std::string& order : parts_of(orders, ","))
    if (order.starts_with("both") || order == "one-way")
      for (const Schedule hidden : {Schedule::tree, Schedule::biring})
        all.push_back({.order = hidden, .acc = acc, .wire = wire, .loop = parse_loop(order)});
    else
      all.push_back({.order = parse_schedule(order), .acc = acc, .wire = wire});
  return all;
}

/// Which half of a chunk a row of sums.txt is of, by the words behind chips and chunk.
ChunkPart part_of(const std::vector<std::string>& of) {
  if (of.size() == 2) return ChunkPart::whole;
  if (of.size() != 3 || (of[2] != "first" && of[2] != "second")) refuse_word(of.back(), "sums.txt");
  return of[2] == "first" ? ChunkPart::first_half : ChunkPart::second_half;
}

TEST(ScheduledSum, UnknownWordsOfARowAreRefused) {
  EXPECT_EQ(written("0 + (1 + 2)", kNear), kNear[0] + (kNear[1] + kNear[2]));
  for (const char* sum : {"0 - 1", "0 + 5", "0 + x", "0 + 1)", "0 + rx", "s0"})
    EXPECT_THROW(written(sum, kNear), std::invalid_argument) << sum;
  EXPECT_ANY_THROW(written("(0 + 1", kNear));
  EXPECT_THROW(part_of({"2", "1", "frist"}), std::invalid_argument);
  EXPECT_THROW(part_of({"2", "1", "first", "second"}), std::invalid_argument);
  EXPECT_THROW(summations("ring", "f32"), std::invalid_argument);
  EXPECT_THROW(summations("ring", "f32 f16"), std::invalid_argument);
  EXPECT_THROW(summations("rnig", "f32 f32"), Error);
}

TEST(ScheduledSum, IsTheOneWrittenByHandAndNoOther) {
  for (const TextRow& row : text_rows(SHARDPROOF_SOURCE "/tests/engine/collectives", "sums.txt")) {
    const std::vector<std::string> of = parts_of(row[2], " ");
    const ChunkPart part = part_of(of);
    const bool rounds = row[1] != "f32 f32";
    for (const Summation& how : summations(row[0], row[1]))
      for (const float* parts : {kParts, kNear}) {
        const float made = sum(how, parts, std::stoi(of[0]), std::stoll(of[1]), part);
        EXPECT_EQ(bits(made), bits(written(row[3], parts))) << row.place;
        if (row[4].empty() || parts != (rounds ? kNear : kParts)) continue;
        for (const std::string& other : parts_of(row[4], ","))
          EXPECT_NE(bits(made), bits(written(other, parts))) << row.place << " " << other;
      }
  }
}

TEST(ScheduledSum, OfOneWayIsThatOfARing) {
  for (const NumberFormat acc : {NumberFormat::f32, NumberFormat::bf16})
    for (const int K : {1, 2, 3, 5})
      for (int chunk = 0; chunk < K; ++chunk) {
        const auto of = [&](Schedule order, Loop loop) {
          return bits(sum({.order = order, .acc = acc, .wire = NumberFormat::bf16, .loop = loop},
                          kNear, K, chunk, ChunkPart::whole));
        };
        EXPECT_EQ(of(Schedule::tree, Loop::one_way), of(Schedule::ring, Loop::none));
      }
}

/// Chip i holds kParts[i]·(1 + element) on a ring of K chips along y.
Sharded partial(int K, std::int64_t F) {
  ChipArrays<float> chips;
  for (int i = 0; i < K; ++i) {
    chips.push_back({});
    for (std::int64_t f = 0; f < F; ++f)
      chips.back().push_back(kParts[i] * static_cast<float>(1 + f));
  }
  return {Torus(1, K, 1), Layout::parse("BF partialsum-y"), {1, F}, std::move(chips)};
}

/// Elements [begin, end) of a chunk's sum, by one loop over the ring: to the next chip, or to the
/// one before.
void add_by_hand(std::vector<float>& out, const Sharded& t, bool back, std::int64_t chunk,
                 std::int64_t begin, std::int64_t end) {
  const std::int64_t K = t.torus().chips(), step = back ? K - 1 : 1;
  for (std::int64_t i = begin; i < end; ++i) {
    const auto part = [&](std::int64_t n) {
      return t.f32()[static_cast<std::size_t>((chunk + step * n) % K)][static_cast<std::size_t>(i)];
    };
    float total = part(1);
    for (std::int64_t n = 2; n <= K; ++n) total += part(n);
    out.push_back(total);
  }
}

/// A whole chunk: of a ring one way, of a biring the first half so and the second the other way.
std::vector<float> chunk_by_hand(const Sharded& t, Schedule order, std::int64_t chunk,
                                 std::int64_t begin, std::int64_t end) {
  std::vector<float> out;
  const std::int64_t half = order == Schedule::ring ? end : begin + (end - begin + 1) / 2;
  add_by_hand(out, t, false, chunk, begin, half);
  add_by_hand(out, t, true, chunk, half, end);
  return out;
}

TEST(ScheduledSum, ReduceScatterGivesEveryChipItsChunk) {
  Threads one(1);
  for (const Schedule order : {Schedule::ring, Schedule::biring})
    for (int K = 1; K <= 5; ++K)
      for (std::int64_t n : {1, 2, 3}) {
        const Sharded t = partial(K, n * K);
        const Moves moves = reduce_scatter_moves(t.torus(), t.local(), 1, Axes::parse("y"));
        const Sharded r =
            reduce(t, moves, Layout::parse("BF_y"), t.shape(), one, {.order = order, .dim = 1});
        for (int c = 0; c < K; ++c)
          EXPECT_EQ(r.f32()[static_cast<std::size_t>(c)],
                    chunk_by_hand(t, order, c, c * n, (c + 1) * n))
              << to_string(order) << ", chip " << c << " of " << K;
      }
}

TEST(ScheduledSum, AllReduceCutsTheShardIntoChunks) {
  Threads one(1);
  // Chunks of ⌊i·K/n⌋: 7 elements on 3 chips are 3 + 2 + 2, on 5 chips 2 + 1 + 2 + 1 + 1.
  const std::vector<std::vector<std::int64_t>> begins{
      {0, 7}, {0, 4, 7}, {0, 3, 5, 7}, {0, 2, 4, 6, 7}, {0, 2, 3, 5, 6, 7}};
  for (const Schedule order : {Schedule::ring, Schedule::biring})
    for (const std::vector<std::int64_t>& of_K : begins) {
      const auto K = static_cast<int>(of_K.size()) - 1;
      const Sharded t = partial(K, 7);
      const Moves moves = all_reduce_moves(t.torus(), t.local(), Axes::parse("y"));
      const Sharded r = reduce(t, moves, Layout::parse("BF"), t.shape(), one, {.order = order});
      std::vector<float> expected;
      for (std::size_t c = 0; c + 1 < of_K.size(); ++c)
        for (float v : chunk_by_hand(t, order, static_cast<std::int64_t>(c), of_K[c], of_K[c + 1]))
          expected.push_back(v);
      for (const auto& chip : r.f32())
        EXPECT_EQ(chip, expected) << to_string(order) << " of " << K << " chips";
    }
}

/// A reduction over some of the partial axes leaves an f32 partial, and threads change nothing.
RC_GTEST_PROP(ScheduledSum, StaysPartialOverTheOtherAxes, ()) {
  const Torus torus(3, 2, 2);
  ChipArrays<float> chips(12);
  std::minstd_rand random(*rc::gen::arbitrary<unsigned>());
  for (auto& chip : chips)
    for (int i = 0; i < 6; ++i) chip.push_back(static_cast<float>(random()) * 0x1p-20F - 0x1p9F);
  const Sharded t{torus, Layout::parse("BF partialsum-xz"), {1, 6}, chips};
  const Moves moves = all_reduce_moves(torus, t.local(), Axes::parse("x"));
  const Schedule schedule = *rc::gen::element(Schedule::group, Schedule::ring, Schedule::tree);
  Threads one(1), three(3);
  const Layout layout = Layout::parse("BF partialsum-z");
  const Sharded r = reduce(t, moves, layout, t.shape(), one, {.order = schedule});
  RC_ASSERT(same_bits(r, reduce(t, moves, layout, t.shape(), three, {.order = schedule})));
  for (int chip = 0; chip < 12; ++chip)
    for (std::size_t i = 0; i < 6; ++i) {
      float part[3];
      for (int x = 0; x < 3; ++x) part[x] = chips[static_cast<std::size_t>(x * 4 + chip % 4)][i];
      const std::size_t c = schedule == Schedule::ring ? (i / 2 + 1) % 3 : 0;
      const float expected = (part[c] + part[(c + 1) % 3]) + part[(c + 2) % 3];
      RC_ASSERT(bits(r.f32()[static_cast<std::size_t>(chip)][i]) == bits(expected));
    }
}

/// Two terms, two contracted letters: one chain over the chip's block, H slow and Q fast, then F.
TEST(F32Einsum, IsOneChainOverTheOwnBlock) {
  const Torus torus(2, 1, 3);
  std::minstd_rand random(7);
  const auto drawn = [&](const Shape& shape) {
    Tensor t(shape);
    for (float& v : t.data) v = static_cast<float>(random()) * 0x1p-31F - 0.5F;
    return t;
  };
  const Tensor a = drawn({1, 1, 4, 2}), w = drawn({4, 2, 5}), h = drawn({1, 1, 6}),
               u = drawn({6, 5});
  const auto value = [&](const Tensor& t, const char* layout) {
    return shared(shard(t, Layout::parse(layout), torus));
  };
  Threads one(1);
  const Sharded out =
      einsum(EinsumSpec::parse("BLHQ,HQE->BLE + BLF,FE->BLE"),
             {{value(a, "BLH_xQ"), value(w, "H_xQE")}, {value(h, "BLF_x"), value(u, "F_xE")}},
             Layout::parse("BLE partialsum-x"), {1, 1, 5}, one, Regime::f32);
  for (int chip = 0; chip < 6; ++chip)
    for (std::size_t e = 0; e < 5; ++e) {
      const auto x = static_cast<std::size_t>(chip / 3);
      float chain = 0.0F;
      for (std::size_t k = 4 * x; k < 4 * x + 4; ++k)
        chain = std::fma(a.data[k], w.data[k * 5 + e], chain);
      for (std::size_t k = 3 * x; k < 3 * x + 3; ++k)
        chain = std::fma(h.data[k], u.data[k * 5 + e], chain);
      EXPECT_EQ(bits(out.f32()[static_cast<std::size_t>(chip)][e]), bits(chain));
    }
}

}  // namespace
}  // namespace shardproof
