#include "engine/collectives/ring.h"

namespace shardproof {
namespace {

/// Chunks of a two-way ring that come from chips chip−i (forward) and chip+i (backward).
std::int64_t forward(std::int64_t K) { return K / 2; }
std::int64_t backward(std::int64_t K) { return (K - 1) / 2; }

std::int64_t around(std::int64_t i, std::int64_t K) { return ((i % K) + K) % K; }

}  // namespace

std::vector<RingChunk> gathered_chunks(Loop loop, std::int64_t K, std::int64_t chip) {
  std::vector<RingChunk> chunks;
  if (loop == Loop::none) {
    for (std::int64_t c = 0; c < K; ++c) chunks.push_back({c, ChunkPart::whole, 0});
    return chunks;
  }
  chunks.push_back({chip, ChunkPart::whole, 0});
  for (std::int64_t i = 1; i < K; ++i) {
    const std::int64_t behind = around(chip - i, K);
    const std::int64_t ahead = around(chip + i, K);
    switch (loop) {
      case Loop::none:
      case Loop::one_way:
        chunks.push_back({behind, ChunkPart::whole, i});
        break;
      case Loop::both_full:
        if (i <= forward(K)) chunks.push_back({behind, ChunkPart::whole, i});
        if (i <= backward(K)) chunks.push_back({ahead, ChunkPart::whole, i});
        break;
      case Loop::both_half:
        chunks.push_back({behind, ChunkPart::first_half, i});
        chunks.push_back({ahead, ChunkPart::second_half, i});
        break;
    }
  }
  return chunks;
}

RingSum scattered_sum(Loop loop, std::int64_t K, std::int64_t chunk, ChunkPart part) {
  RingSum sum;
  if (loop == Loop::none)
    for (std::int64_t chip = 0; chip < K; ++chip) sum.first.push_back(chip);
  if (loop == Loop::both_full) {
    for (std::int64_t i = forward(K); i >= 0; --i) sum.first.push_back(around(chunk - i, K));
    for (std::int64_t i = backward(K); i >= 1; --i) sum.second.push_back(around(chunk + i, K));
  }
  if (loop == Loop::one_way || loop == Loop::both_half) {
    const bool back = loop == Loop::both_half && part == ChunkPart::second_half;
    for (std::int64_t i = 1; i <= K; ++i)
      sum.first.push_back(around(back ? chunk - i : chunk + i, K));
  }
  return sum;
}

std::vector<RingChunk> scattered_chunks(Loop loop, std::int64_t K, std::int64_t chip) {
  std::vector<RingChunk> chunks;
  const bool halves = loop == Loop::both_half && K > 1;
  for (std::int64_t round = 0; round < K; ++round)
    for (std::int64_t chunk = 0; chunk < K; ++chunk)
      for (ChunkPart part : {ChunkPart::first_half, ChunkPart::second_half}) {
        if (!halves && part == ChunkPart::second_half) continue;
        const RingSum sum = scattered_sum(loop, K, chunk, part);
        const auto at = static_cast<std::size_t>(round);
        const bool adds = (at < sum.first.size() && sum.first[at] == chip) ||
                          (at < sum.second.size() && sum.second[at] == chip);
        if (adds) chunks.push_back({chunk, halves ? part : ChunkPart::whole, round});
      }
  return chunks;
}

}  // namespace shardproof
