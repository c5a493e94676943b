#pragma once

#include <cstdint>
#include <vector>

#include "engine/cost/work/work.h"
#include "engine/layout/layout.h"
#include "engine/layout/torus.h"
#include "weights/base/error.h"

namespace shardproof::cost {

// Prefill and decode on separate slices: bytes and time of the crossing between them, and the pair
// of slices that meets a goal (docs/cost.md, "Phase splitting"; paper §4.4, Splitwise, DistServe).

/// A transfer of caches that lie alike, from one slice to another.
struct Crossing {
  double bytes = 0.0;      ///< received by all target chips, replicas counted separately
  double senders = 1.0;    ///< chips that send at once, in equal shares
  double receivers = 1.0;  ///< chips that receive at once
};

/// Returns the bytes that the engine's hand-over between two tori moves
/// (engine/collectives/crossing.h): caches of `elements` elements of one position of a row, once
/// for each chip of the target that holds them. `rows` is B, `context` the number of cached
/// positions, `bytes` those of an element. If `rows` is below the number of blocks of B, only the
/// chips whose block holds one of these rows take part. Throws Error("split_c3", ...) if elements,
/// rows or context is below 1, or bytes is not above 0.
Crossing crossing_of(double elements, std::int64_t rows, std::int64_t context, double bytes,
                     const Torus& source, const Layout& from, const Torus& target,
                     const Layout& to);

/// Seconds of a crossing in which every chip sends and receives at most `bandwidth` bytes/s between
/// the slices. Throws Error("split_c3", ...) if the bandwidth is not above 0.
double transfer_seconds(const Crossing& crossing, double bandwidth);

/// Seconds from the start of the prefill until all caches have arrived, sent after the prefill.
double serial_seconds(double prefill, double transfer);
/// Seconds from the start of the prefill until all caches have arrived, if each part is sent while
/// the next one is computed: max(prefill, transfer) plus one part of the shorter, which nothing
/// overlaps. `parts` is the number of layers, times the number of chunks for a prefill in chunks.
/// Throws Error("split_c3", ...) if parts is below 1.
double overlapped_seconds(double prefill, double transfer, std::int64_t parts);

/// Average seconds from a request's arrival to its first token, if `rate` requests a second arrive
/// at random (M/D/1) and each takes `prefill` seconds: D + R·D²/(2(1 − R·D)). Throws
/// Error("split_c1", ...), naming the highest rate, if the queue would grow without bound.
double average_ttft(double prefill, double rate);
/// Average time to the first token with a pipeline of `stages` stages, each 1/stages of the model:
/// D + R·D²/(2n(n − R·D)); with two stages D + R·D²/(4(2 − R·D)).
double average_ttft_of_stages(double prefill, double rate, std::int64_t stages);
/// Average time to the first token if partitioning over more chips makes a prefill `speedup` times
/// as fast: D/K + R·D²/(2K(K − R·D)).
double average_ttft_sped_up(double prefill, double rate, double speedup);
/// Returns the highest rate at which average_ttft() is at most `goal`; 0 if the prefill exceeds it.
double highest_rate(double prefill, double goal);

/// A candidate slice for prefill: one request at a time, each taking `seconds`.
struct PrefillSlice {
  Torus torus;
  std::vector<CacheOfLayers> caches;  ///< as the prefill leaves them
  double seconds = 0.0;
};

/// A candidate slice for decode: one step of `rows` rows takes `seconds`.
struct DecodeSlice {
  Torus torus;
  std::vector<CacheOfLayers> caches;  ///< as decode steps read them, in the prefill's order
  double seconds = 0.0;
  std::int64_t rows = 1;
};

/// The targets that a pair of slices must meet.
struct SplitGoal {
  double ttft = 0.0;         ///< maximum average seconds to the first token
  double tpot = 0.0;         ///< maximum average seconds per further token
  double rate = 0.0;         ///< requests a second; 0: a single request
  std::int64_t context = 1;  ///< prompt tokens of a request, all cached
  std::int64_t steps = 1;    ///< further tokens of a request
  double cache_bytes = 2.0;  ///< bytes of one element of a cache
  double bandwidth = 0.0;    ///< bytes/s that a chip sends and receives between the slices
};

/// A pair of slices and its predicted performance.
struct Split {
  PrefillSlice prefill;
  DecodeSlice decode;
  double cache_bytes = 0.0;  ///< of a request's caches, received by all target chips
  double transfer = 0.0;     ///< seconds to transfer them, one after the other
  double exposed = 0.0;      ///< seconds of the transfer not hidden by the prefill
  double ttft = 0.0;
  double tpot = 0.0;          ///< seconds per step, plus its share of `exposed`
  double highest_rate = 0.0;  ///< requests a second that every stage sustains
  int chips() const { return prefill.torus.chips() + decode.torus.chips(); }
};

/// Returns the pair of slices with the fewest chips that meets the goal; of equals the one with the
/// smaller TTFT, then TPOT. A model has `layers` layers. Throws Error: "split_c2" (no pair meets
/// it; the message names the nearest feasible rate, or the nearest TTFT and TPOT, with their
/// slices), "split_c3" (no candidates, a number that is not above 0, or slices with another number
/// of caches).
Split plan_split(std::int64_t layers, const std::vector<PrefillSlice>& prefills,
                 const std::vector<DecodeSlice>& decodes, const SplitGoal& goal);

}  // namespace shardproof::cost
