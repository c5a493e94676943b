#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "engine/cost/formulas/paper_formulas.h"
#include "engine/layout/torus.h"
#include "weights/base/error.h"
#include "weights/model/numerics.h"
#include "weights/model/passes.h"

namespace shardproof::cost {

/// The numbers that "Efficiently Scaling Transformer Inference" (Pope et al., arXiv 2211.05102v1)
/// publishes. Measured ones hold for TPU v4.

/// A number as printed, or as read from a figure's curve with as many digits.
struct Printed {
  std::string_view text;  ///< "0.29", "43000"

  double value() const;
  /// Half a unit of the last digit: the largest distance of a number that rounds to the text.
  double half_unit() const;
  /// Returns true if `number` rounds to the text.
  bool rounds(double number) const;
};

/// Table 1: the longest context of variants of PaLM 540B on 64 chips, with 30 % of their memory for
/// the caches.
struct ContextRow {
  std::string_view variant;
  CacheLayout layout;
  std::int64_t Q;  ///< d_head
  Printed batch_128, batch_512;
};
std::span<const ContextRow> table_1();

/// One column of Table 2 (PaLM 540B) or Table 3 (PaLM 62B): a prefill of 2048 tokens, or 64 decode
/// steps that end at a context of 2048.
struct MeasuredPass {
  std::string_view table;   ///< "Table 2"
  std::string_view column;  ///< "low-latency prefill"
  std::string_view model;   ///< preset whose parameters are counted
  std::string_view run_as;  ///< model as run: heads padded from 48 to 64
  double parameters;        ///< nominal number that MFU uses: 540e9
  Phase phase;
  std::string_view torus;  ///< released_torus() of its number of chips
  std::int64_t B;
  FfnLayout ffn;
  AttentionLayout attention;
  WeightType weights;
  Printed mfu;      ///< percent
  Printed seconds;  ///< of the prefill, or of all steps
  int steps;

  /// B·2048 tokens for the prefill, B·64 for the decode steps.
  double tokens() const;
};
std::span<const MeasuredPass> tables_2_and_3();
inline constexpr std::int64_t kMeasuredContext = 2048;

/// Returns the torus of a slice of `chips` chips in the released code (partitioning.py). Throws
/// Error("published_c1", ...) if the code does not name that number.
Torus released_torus(int chips);

/// Section 3.2, for 2D weight-stationary layouts at F = 4E: the best X is 0.5·sqrt(n).
struct BestXRow {
  int chips;
  Printed X;
};
std::span<const BestXRow> best_x_rows();
/// Section A.2, for weight-gathered layouts on 64 chips at F = 65536: the best number of chips to
/// gather weights over is sqrt(BL·n/F).
struct BestGatheredRow {
  double tokens;
  Printed N;
};
std::span<const BestGatheredRow> best_gathered_rows();

/// Figure 3: gigabytes that one chip moves in a feed-forward layer of two matrices in bf16, for
/// X = Y = Z = 4, E = 16384, F = 65536.
struct VolumeRow {
  std::int64_t tokens;
  Printed ws, wg_x, wg_xy, wg_xyz;
  std::string_view least;  ///< "ws2d", or "ws2d wg-x" if equal
};
std::span<const VolumeRow> figure_3();
/// The number of tokens at which the layout that moves least changes from `below` to `above`.
struct CrossoverRow {
  FfnLayout below, above;
  Printed tokens;
};
std::span<const CrossoverRow> figure_3_crossovers();

/// Figure 6: milliseconds of a decode step of PaLM 540B at a batch of 512.
struct StationaryRow {
  int chips;
  Printed ws2d, ws1d;
};
std::span<const StationaryRow> figure_6();

/// Figure 7: MFU, in percent, of prefills of 2048 tokens of PaLM 540B on 64 chips.
struct PrefillRow {
  std::int64_t B;
  Printed ws2d, wg_xyz;
};
std::span<const PrefillRow> figure_7();

/// Figure 8: milliseconds of a decode step of 8 layers of PaLM 540B on 64 chips at a batch of 256.
struct AttentionRow {
  std::int64_t context;
  Printed batch, heads, multihead;
};
std::span<const AttentionRow> figure_8();

/// Parameters in billions (Table D.1; PaLM paper, Table 1).
struct ParametersRow {
  std::string_view preset;  ///< with the overrides that give the printed number
  Printed billions;
  std::string_view source;
};
std::span<const ParametersRow> parameter_counts();

/// A number from the abstract or the text.
struct Headline {
  std::string_view name;
  std::string_view what;
  Printed number;
  std::string_view source;
};
/// Throws std::logic_error if there is no headline of this name.
const Headline& headline(std::string_view name);
std::span<const Headline> headlines();

}  // namespace shardproof::cost
