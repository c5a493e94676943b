#include "engine/cost/plan/split.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <string_view>
#include <tuple>

namespace shardproof::cost {
namespace {

void require_above_0(std::string_view what, double value) {
  if (!(value > 0.0) || !std::isfinite(value))
    throw Error("split_c3", fmt::format("{}={}: a number above 0 is expected", what, value));
}

/// Throws Error("split_c1", ...) unless fewer than `servers` requests arrive in a prefill's time.
void require_queue(double prefill, double rate, double servers) {
  require_above_0("prefill seconds", prefill);
  if (rate != 0.0) require_above_0("rate", rate);
  if (rate * prefill < servers) return;
  throw Error("split_c1",
              fmt::format("rate={:.6g} requests/s, of which each takes {:.6g} s: the queue grows "
                          "without end; the nearest feasible: below {:.6g} requests/s",
                          rate, prefill / servers, servers / prefill));
}

/// The number of blocks into which a layout cuts B, and all dims together.
struct Blocks {
  double of_batch = 1.0, all = 1.0;
};

Blocks blocks_of(const Layout& layout, const Torus& torus) {
  Blocks blocks;
  for (const Layout::Dim& dim : layout.dims()) {
    const double n = torus.size(dim.axes);
    blocks.all *= n;
    if (dim.letter == 'B') blocks.of_batch = n;
  }
  return blocks;
}

/// Returns the number of chips that hold at least one of these rows.
double taking_part(const Torus& torus, const Blocks& blocks, std::int64_t rows) {
  return torus.chips() * std::min(static_cast<double>(rows), blocks.of_batch) / blocks.of_batch;
}

/// Returns what two slices achieve for a goal; the TTFT is infinite if they cannot keep up with its
/// rate.
Split reached(std::int64_t layers, const PrefillSlice& prefill, const DecodeSlice& decode,
              const SplitGoal& goal) {
  Split split{.prefill = prefill, .decode = decode};
  for (std::size_t i = 0; i < prefill.caches.size(); ++i) {
    const CacheOfLayers& cache = prefill.caches[i];
    const Crossing crossing =
        crossing_of(cache.elements, 1, goal.context, goal.cache_bytes, prefill.torus, cache.layout,
                    decode.torus, decode.caches[i].layout);
    split.cache_bytes += crossing.bytes;
    split.transfer += transfer_seconds(crossing, goal.bandwidth);
  }
  split.exposed = overlapped_seconds(prefill.seconds, split.transfer, layers) - prefill.seconds;
  const auto steps = static_cast<double>(goal.steps);
  split.tpot = decode.seconds + split.exposed / steps;
  // A request occupies one row of the decode for all its steps.
  split.highest_rate = std::min({1.0 / prefill.seconds, 1.0 / split.transfer,
                                 static_cast<double>(decode.rows) / (steps * decode.seconds)});
  const bool keeps_up = goal.rate < split.highest_rate;
  split.ttft =
      keeps_up ? average_ttft(prefill.seconds, goal.rate) : std::numeric_limits<double>::infinity();
  return split;
}

/// Returns the distance from the goal: at most 1 if it is met.
double distance(const Split& split, const SplitGoal& goal) {
  return std::max(split.ttft / goal.ttft, split.tpot / goal.tpot);
}

std::string slices_text(const Split& split) {
  return fmt::format("prefill on {}, decode on {}", split.prefill.torus.to_string(),
                     split.decode.torus.to_string());
}

[[noreturn]] void refuse(const Split& nearest, const Split& fastest, const SplitGoal& goal) {
  if (std::isinf(nearest.ttft))
    throw Error("split_c2",
                fmt::format("no two slices keep up with {:.6g} requests/s; the nearest feasible: "
                            "below {:.6g} requests/s, {}",
                            goal.rate, fastest.highest_rate, slices_text(fastest)));
  throw Error("split_c2",
              fmt::format("no two slices reach ttft={:.6g} s and tpot={:.6g} s; the nearest "
                          "feasible: ttft={:.6g} s and tpot={:.6g} s, {}",
                          goal.ttft, goal.tpot, nearest.ttft, nearest.tpot, slices_text(nearest)));
}

void require_goal(const std::vector<PrefillSlice>& prefills,
                  const std::vector<DecodeSlice>& decodes, const SplitGoal& goal) {
  if (prefills.empty() || decodes.empty())
    throw Error("split_c3", fmt::format("{} slices that prefill and {} that decode: one of each is "
                                        "the least",
                                        prefills.size(), decodes.size()));
  require_above_0("ttft", goal.ttft);
  require_above_0("tpot", goal.tpot);
  if (goal.rate != 0.0) require_above_0("rate", goal.rate);
  require_above_0("steps", static_cast<double>(goal.steps));
  for (const PrefillSlice& slice : prefills) require_above_0("prefill seconds", slice.seconds);
  for (const DecodeSlice& slice : decodes) {
    require_above_0("decode seconds", slice.seconds);
    require_above_0("rows", static_cast<double>(slice.rows));
  }
  const std::size_t caches = prefills.front().caches.size();
  const auto require_caches = [&](std::size_t other) {
    if (caches == 0 || other != caches)
      throw Error("split_c3", fmt::format("a slice of {} caches and one of {}: each has those of "
                                          "the model, and at least 1",
                                          caches, other));
  };
  for (const PrefillSlice& slice : prefills) require_caches(slice.caches.size());
  for (const DecodeSlice& slice : decodes) require_caches(slice.caches.size());
}

}  // namespace

Crossing crossing_of(double elements, std::int64_t rows, std::int64_t context, double bytes,
                     const Torus& source, const Layout& from, const Torus& target,
                     const Layout& to) {
  require_above_0("elements", elements);
  require_above_0("rows", static_cast<double>(rows));
  require_above_0("context", static_cast<double>(context));
  require_above_0("cache bytes", bytes);
  const Blocks there = blocks_of(from, source), here = blocks_of(to, target);
  const double copies = target.chips() / here.all;
  const double once = elements * static_cast<double>(rows) * static_cast<double>(context) * bytes;
  return {once * copies, taking_part(source, there, rows), taking_part(target, here, rows)};
}

double transfer_seconds(const Crossing& crossing, double bandwidth) {
  require_above_0("bandwidth", bandwidth);
  return crossing.bytes / (bandwidth * std::min(crossing.senders, crossing.receivers));
}

double serial_seconds(double prefill, double transfer) { return prefill + transfer; }

double overlapped_seconds(double prefill, double transfer, std::int64_t parts) {
  require_above_0("parts", static_cast<double>(parts));
  return std::max(prefill, transfer) + std::min(prefill, transfer) / static_cast<double>(parts);
}

double average_ttft(double prefill, double rate) {
  return average_ttft_of_stages(prefill, rate, 1);
}

double average_ttft_of_stages(double prefill, double rate, std::int64_t stages) {
  const double D = prefill, R = rate, n = static_cast<double>(stages);
  require_above_0("stages", n);
  require_queue(D, R, n);
  return D + R * D * D / (2.0 * n * (n - R * D));
}

double average_ttft_sped_up(double prefill, double rate, double speedup) {
  const double D = prefill, R = rate, K = speedup;
  require_above_0("speed-up", K);
  require_queue(D, R, K);
  return D / K + R * D * D / (2.0 * K * (K - R * D));
}

double highest_rate(double prefill, double goal) {
  if (goal <= prefill) return 0.0;
  return 2.0 * (goal - prefill) / (prefill * (2.0 * goal - prefill));
}

Split plan_split(std::int64_t layers, const std::vector<PrefillSlice>& prefills,
                 const std::vector<DecodeSlice>& decodes, const SplitGoal& goal) {
  require_goal(prefills, decodes, goal);
  std::optional<Split> best, nearest, fastest;
  const auto order = [](const Split& s) { return std::tuple(s.chips(), s.ttft, s.tpot); };
  for (const PrefillSlice& prefill : prefills)
    for (const DecodeSlice& decode : decodes) {
      const Split split = reached(layers, prefill, decode, goal);
      if (!nearest || distance(split, goal) < distance(*nearest, goal)) nearest = split;
      if (!fastest || split.highest_rate > fastest->highest_rate) fastest = split;
      if (distance(split, goal) > 1.0) continue;
      if (!best || order(split) < order(*best)) best = split;
    }
  if (!best) refuse(*nearest, *fastest, goal);
  return *best;
}

}  // namespace shardproof::cost
