// Rings: the order in which a chip uses chunks, or a chunk's sum is made, is what buffers that move
// from neighbour to neighbour bring.
#include "engine/collectives/ring.h"

#include <gtest/gtest.h>

#include <map>
#include <set>
#include <utility>
#include <vector>

namespace shardproof {
namespace {

constexpr Loop kLoops[] = {Loop::one_way, Loop::both_full, Loop::both_half};

std::vector<std::int64_t> chunks(Loop loop, std::int64_t K, std::int64_t chip) {
  std::vector<std::int64_t> all;
  for (const RingChunk& one : gathered_chunks(loop, K, chip)) all.push_back(one.chunk);
  return all;
}

using List = std::vector<std::int64_t>;

TEST(Ring, GathersInTheOrderOfThePaper) {
  EXPECT_EQ(chunks(Loop::one_way, 5, 1), (List{1, 0, 4, 3, 2}));
  EXPECT_EQ(chunks(Loop::both_full, 5, 1), (List{1, 0, 2, 4, 3}));
  EXPECT_EQ(chunks(Loop::both_full, 4, 1), (List{1, 0, 2, 3}));
  EXPECT_EQ(chunks(Loop::both_half, 3, 1), (List{1, 0, 2, 2, 0}));
  EXPECT_EQ(chunks(Loop::none, 3, 1), (List{0, 1, 2}));
  for (Loop loop : kLoops) EXPECT_EQ(chunks(loop, 1, 0), List{0});
}

TEST(Ring, ScattersInTheOrderOfThePaper) {
  using Part = ChunkPart;
  EXPECT_EQ(scattered_sum(Loop::one_way, 5, 1, Part::whole).first, (List{2, 3, 4, 0, 1}));
  EXPECT_EQ(scattered_sum(Loop::both_half, 5, 1, Part::first_half).first, (List{2, 3, 4, 0, 1}));
  EXPECT_EQ(scattered_sum(Loop::both_half, 5, 1, Part::second_half).first, (List{0, 4, 3, 2, 1}));
  EXPECT_EQ(scattered_sum(Loop::both_full, 5, 1, Part::whole).first, (List{4, 0, 1}));
  EXPECT_EQ(scattered_sum(Loop::both_full, 5, 1, Part::whole).second, (List{3, 2}));
  EXPECT_EQ(scattered_sum(Loop::both_full, 4, 1, Part::whole).first, (List{3, 0, 1}));
  EXPECT_EQ(scattered_sum(Loop::both_full, 4, 1, Part::whole).second, (List{2}));
}

/// What moves: one buffer a chip and direction.
struct Stream {
  std::int64_t step = 1;  ///< to the next chip, or to the one before
  ChunkPart part = ChunkPart::whole;
  std::int64_t rounds = 0;
};

std::vector<Stream> streams(Loop loop, std::int64_t K) {
  if (loop == Loop::one_way) return {{1, ChunkPart::whole, K - 1}};
  if (loop == Loop::both_full)
    return {{1, ChunkPart::whole, K / 2}, {-1, ChunkPart::whole, (K - 1) / 2}};
  return {{1, ChunkPart::first_half, K - 1}, {-1, ChunkPart::second_half, K - 1}};
}

/// The chunk that a stream has brought to a chip after each round, buffer by buffer.
List brought(const Stream& stream, std::int64_t K, std::int64_t chip) {
  List buffers(static_cast<std::size_t>(K)), all;
  for (std::int64_t c = 0; c < K; ++c) buffers[static_cast<std::size_t>(c)] = c;
  for (std::int64_t round = 1; round <= stream.rounds; ++round) {
    List moved(buffers.size());
    for (std::int64_t c = 0; c < K; ++c)
      moved[static_cast<std::size_t>((c + stream.step + K) % K)] =
          buffers[static_cast<std::size_t>(c)];
    buffers = moved;
    all.push_back(buffers[static_cast<std::size_t>(chip)]);
  }
  return all;
}

TEST(Ring, GathersWhatNeighboursSend) {
  for (Loop loop : kLoops)
    for (std::int64_t K = 1; K <= 24; ++K)
      for (std::int64_t chip = 0; chip < K; ++chip) {
        std::vector<RingChunk> expected{{chip, ChunkPart::whole, 0}};
        for (std::int64_t round = 1; round < K; ++round)
          for (const Stream& stream : streams(loop, K))
            if (round <= stream.rounds)
              expected.push_back({brought(stream, K, chip)[static_cast<std::size_t>(round - 1)],
                                  stream.part, round});
        ASSERT_EQ(gathered_chunks(loop, K, chip), expected) << to_string(loop) << " " << K;
      }
}

/// Each chip sends K−1 chunks in all, as an all_gather that is not looped.
TEST(Ring, TakesEachChunkOnce) {
  for (Loop loop : kLoops)
    for (std::int64_t K = 1; K <= 24; ++K)
      for (std::int64_t chip = 0; chip < K; ++chip) {
        std::map<std::int64_t, int> halves;
        for (const RingChunk& one : gathered_chunks(loop, K, chip))
          halves[one.chunk] += one.part == ChunkPart::whole ? 2 : 1;
        ASSERT_EQ(std::ssize(halves), K);
        for (const auto& [chunk, n] : halves) ASSERT_EQ(n, 2) << chunk;
      }
}

/// A sum that moves is on a neighbour's chip in every round, and ends on the chunk's owner; every
/// chip adds its partial once.
TEST(Ring, ScattersOverNeighbours) {
  for (Loop loop : kLoops)
    for (std::int64_t K = 1; K <= 24; ++K)
      for (std::int64_t chunk = 0; chunk < K; ++chunk)
        for (ChunkPart part : {ChunkPart::first_half, ChunkPart::second_half}) {
          const RingSum sum = scattered_sum(loop, K, chunk, part);
          const bool back = loop == Loop::both_half && part == ChunkPart::second_half;
          const std::int64_t step = back ? K - 1 : 1;
          ASSERT_EQ(sum.first.back(), chunk);
          for (std::size_t i = 1; i < sum.first.size(); ++i)
            ASSERT_EQ(sum.first[i], (sum.first[i - 1] + step) % K);
          for (std::size_t i = 1; i < sum.second.size(); ++i)
            ASSERT_EQ(sum.second[i], (sum.second[i - 1] + K - 1) % K);
          if (!sum.second.empty()) {
            ASSERT_EQ(sum.second.back(), (chunk + 1) % K);
          }
          std::multiset<std::int64_t> chips(sum.first.begin(), sum.first.end());
          chips.insert(sum.second.begin(), sum.second.end());
          ASSERT_EQ(std::ssize(chips), K);
          for (std::int64_t chip = 0; chip < K; ++chip) ASSERT_EQ(chips.count(chip), 1U);
        }
}

TEST(Ring, AChipAddsToTheChunksWhoseSumsAreOnIt) {
  for (Loop loop : kLoops)
    for (std::int64_t K = 1; K <= 9; ++K)
      for (std::int64_t chip = 0; chip < K; ++chip) {
        std::map<std::int64_t, int> halves;
        for (const RingChunk& one : scattered_chunks(loop, K, chip)) {
          halves[one.chunk] += one.part == ChunkPart::whole ? 2 : 1;
          const RingSum sum = scattered_sum(loop, K, one.chunk, one.part);
          const auto at = static_cast<std::size_t>(one.round);
          ASSERT_TRUE((at < sum.first.size() && sum.first[at] == chip) ||
                      (at < sum.second.size() && sum.second[at] == chip));
        }
        ASSERT_EQ(std::ssize(halves), K);
        for (const auto& [chunk, n] : halves) ASSERT_EQ(n, 2) << to_string(loop) << " " << K;
      }
  // One-way: in round s chip j adds to chunk j−1−s.
  EXPECT_EQ(scattered_chunks(Loop::one_way, 4, 0),
            (std::vector<RingChunk>{{3, ChunkPart::whole, 0},
                                    {2, ChunkPart::whole, 1},
                                    {1, ChunkPart::whole, 2},
                                    {0, ChunkPart::whole, 3}}));
}

// A ring of two hides which way it goes; one of three does not.
TEST(Ring, OfThreeShowsItsDirection) {
  EXPECT_EQ(chunks(Loop::one_way, 2, 0), (List{0, 1}));
  EXPECT_EQ(chunks(Loop::both_full, 2, 0), (List{0, 1}));
  EXPECT_NE(chunks(Loop::one_way, 3, 0), (List{0, 1, 2}));
}

}  // namespace
}  // namespace shardproof
