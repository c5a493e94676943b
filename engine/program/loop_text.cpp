#include "engine/program/loop_text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <vector>

namespace shardproof {
namespace {

/// "j-1": a chip or chunk of a ring of K, by how far `from` it is in [0, K), the shorter way round.
std::string at(char from, std::int64_t ahead, std::int64_t K) {
  if (ahead == 0) return std::string(1, from);
  return ahead <= (K - 1) / 2 ? fmt::format("{}+{}", from, ahead)
                              : fmt::format("{}-{}", from, K - ahead);
}

std::string in_short(std::vector<std::string> all, std::string_view by) {
  constexpr std::size_t kMost = 9, kFirst = 4;
  if (all.size() > kMost) {
    all[kFirst] = "...";
    all.erase(all.begin() + kFirst + 1, all.end() - 2);
  }
  return fmt::format("{}", fmt::join(all, by));
}

std::string taken(Loop loop, std::int64_t K) {
  std::vector<std::string> chunks;
  for (const RingChunk& one : gathered_chunks(loop, K, 0)) {
    const std::string_view half = one.part == ChunkPart::first_half    ? "1st half of "
                                  : one.part == ChunkPart::second_half ? "2nd half of "
                                                                       : "";
    chunks.push_back(fmt::format("{}{}", half, at('j', one.chunk, K)));
  }
  return "chip j takes chunks " + in_short(chunks, ", ");
}

std::string added(const std::vector<std::int64_t>& chips, std::int64_t K) {
  std::vector<std::string> partials;
  for (const std::int64_t chip : chips) partials.push_back(fmt::format("p[{}]", at('c', chip, K)));
  return in_short(partials, " + ");
}

std::string summed(Loop loop, std::int64_t K) {
  const RingSum first = scattered_sum(loop, K, 0, ChunkPart::first_half);
  if (loop == Loop::both_half && K > 1)
    return fmt::format("1st half of chunk c = {}; 2nd half = {}", added(first.first, K),
                       added(scattered_sum(loop, K, 0, ChunkPart::second_half).first, K));
  if (first.second.empty()) return "chunk c = " + added(first.first, K);
  return fmt::format("chunk c = ({}) + ({})", added(first.first, K), added(first.second, K));
}

}  // namespace

std::string loop_text(const Op& op, const Torus& torus) {
  const std::int64_t K = torus.size(op.axes);
  return fmt::format("ring of {} over {}, {}: {}", K, op.axes.to_string(), to_string(op.loop),
                     op_row(op.kind).reduces ? summed(op.loop, K) : taken(op.loop, K));
}

}  // namespace shardproof
