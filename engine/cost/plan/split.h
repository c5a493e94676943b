#pragma once

#include <cstdint>
#include <vector>

#include "engine/layout/layout.h"
#include "engine/layout/torus.h"
#include "weights/base/error.h"
#include "weights/model/model_config.h"

namespace shardproof::cost {

// Prefill and decode on slices of their own: what crosses between them, how long that takes, and
// which two slices meet a goal (docs/cost.md, "Phase splitting"; paper §4.4, Splitwise, DistServe).

/// The caches of all layers, in bytes: 2·layers·K·Q·B·ctx·bytes. `rows` is B, `context` the cached
/// positions, `bytes` those of one element. `model` as placed on chips.
double cache_bytes(const ModelConfig& model, std::int64_t rows, std::int64_t context, double bytes);

/// The caches on their way from one slice to another.
struct Crossing {
  double bytes = 0.0;      ///< that all chips of the target pull, what several hold once for each
  double senders = 1.0;    ///< chips that send at once, if each sends as much
  double receivers = 1.0;  ///< chips that receive at once
};

/// What the engine's hand-over between two tori moves (engine/collectives/crossing.h), in bytes:
/// the caches once for each chip of the target that holds them. `rows` may be fewer than the blocks
/// of B: then only the chips whose block has one of these rows take part. Throws Error("split_c3",
/// ...) on rows, a context or bytes below 1 (bytes: not above 0).
Crossing crossing_of(const ModelConfig& model, std::int64_t rows, std::int64_t context,
                     double bytes, const Torus& source, const Layout& from, const Torus& target,
                     const Layout& to);

/// Seconds that a crossing takes where every chip sends and receives at most `bandwidth` bytes/s
/// between the slices. Throws Error("split_c3", ...) on a bandwidth that is not above 0.
double transfer_seconds(const Crossing& crossing, double bandwidth);

/// Seconds from the begin of the prefill until all caches are there, if the transfer begins when
/// the prefill has ended.
double serial_seconds(double prefill, double transfer);
/// The same if each part goes as soon as it is there, while the next is computed: of two stages
/// with equal parts max(prefill, transfer) and one part of the shorter of both, which nothing
/// overlaps. `parts` is the number of layers, of a prefill in chunks times the number of chunks.
/// Throws Error("split_c3", ...) on parts below 1.
double overlapped_seconds(double prefill, double transfer, std::int64_t parts);

/// The average seconds from a request's arrival to its first token, where `rate` requests a second
/// arrive at random (M/D/1) and each takes `prefill` seconds: D + R·D²/(2(1 − R·D)).
/// Throws Error("split_c1", ...) naming the highest rate, where the queue would grow without end.
double average_ttft(double prefill, double rate);
/// The same with so many stages one after the other, each of 1/stages of the model:
/// D + R·D²/(2n(n − R·D)), of two stages D + R·D²/(4(2 − R·D)).
double average_ttft_of_stages(double prefill, double rate, std::int64_t stages);
/// The same with the layers cut over more chips, by which a prefill is `speedup` times as fast:
/// D/K + R·D²/(2K(K − R·D)).
double average_ttft_sped_up(double prefill, double rate, double speedup);
/// The highest rate at which average_ttft() is at most `goal`; 0 if the prefill alone takes that.
double highest_rate(double prefill, double goal);

/// A slice that could prefill: one request at a time, in so many seconds.
struct PrefillSlice {
  Torus torus;
  Layout cache;  ///< as the prefill leaves it
  double seconds = 0.0;
};

/// A slice that could decode: one step of `rows` rows takes so many seconds.
struct DecodeSlice {
  Torus torus;
  Layout cache;  ///< as decode steps take it
  double seconds = 0.0;
  std::int64_t rows = 1;
};

/// What is asked of two slices.
struct SplitGoal {
  double ttft = 0.0;         ///< seconds to the first token, on the average, at most
  double tpot = 0.0;         ///< seconds of each further token, on the average, at most
  double rate = 0.0;         ///< requests a second; 0: one request alone
  std::int64_t context = 1;  ///< tokens of a request's prompt, which are cached
  std::int64_t steps = 1;    ///< further tokens of a request
  double cache_bytes = 2.0;  ///< bytes of one element of a cache
  double bandwidth = 0.0;    ///< bytes/s that a chip sends and receives between the slices
};

/// Two slices, and what they reach.
struct Split {
  PrefillSlice prefill;
  DecodeSlice decode;
  double transfer = 0.0;  ///< seconds of a request's caches on their way
  double exposed = 0.0;   ///< of these, what the prefill does not overlap
  double ttft = 0.0;
  double tpot = 0.0;          ///< of a step, with the share of what is exposed
  double highest_rate = 0.0;  ///< that prefill, transfer and decode can each keep up with
  int chips() const { return prefill.torus.chips() + decode.torus.chips(); }
};

/// The two slices of the fewest chips that meet the goal, of equals those of the smaller TTFT, then
/// TPOT. Throws Error: "split_c2" (none meets it: the message names the nearest feasible rate, or
/// the nearest TTFT and TPOT, with its slices), "split_c3" (no candidates, or a number that is not
/// above 0).
Split plan_split(const ModelConfig& model, const std::vector<PrefillSlice>& prefills,
                 const std::vector<DecodeSlice>& decodes, const SplitGoal& goal);

}  // namespace shardproof::cost
