#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/program/typing.h"
#include "weights/model/numerics.h"

namespace shardproof {

/// The cost of one step, as exact integers over all chips (docs/spec.md section 5). Elements are
/// logical, times the declared wire dtype; never the simulator's own storage types.
struct StepCost {
  std::string step;  ///< name of the op's first result
  OpKind kind{};
  Axes axes;                   ///< axes of a collective's group
  int group = 1;               ///< the product of the axes' sizes
  Layout buffer_layout;        ///< layout of the larger of a collective's two buffers
  std::int64_t buffer = 0;     ///< elements of that buffer on one chip, D of paper §A.1
  std::int64_t moved = 0;      ///< elements sent, over all chips
  int wire_bytes = 4;          ///< bytes of one element on the wire
  std::int64_t flops = 0;      ///< two per multiply-add, over all chips
  std::int64_t hbm_bytes = 0;  ///< operands read and results written, over all chips
};

/// How often a collective sends its buffer. all_reduce is counted as reduce_scatter and all_gather:
/// a sum that every chip of a group receives is first reduced in parts, then gathered.
int times_sent(OpKind kind);

/// Elements that a collective sends over all chips, where each chip's larger buffer has D =
/// `buffer` elements. Per chip: D(K−1)/K for all_gather (D of its result), reduce_scatter and
/// all_to_all, twice that for all_reduce; for permute_axes, from `axes` to `as`, D on each chip
/// whose block moves (paper §A.1).
std::int64_t moved_elements(OpKind kind, const Axes& axes, const Axes& as, std::int64_t buffer,
                            const Torus& torus);

/// The ledger of one execution of a program.
struct Ledger {
  int chips = 1;
  std::vector<StepCost> steps;

  std::int64_t moved() const;        ///< elements, over all chips
  std::int64_t moved_bytes() const;  ///< over all chips
  std::int64_t flops() const;
};

/// Counts the costs of a checked program; `types` is what check() returned for it.
Ledger count(const Program& program, const std::map<std::string, Type>& types, const Torus& torus,
             const Numerics& numerics, const ModelConfig& config);

/// The elements that one chip sends in this step, as a formula: "BLE/X (1-1/YZ)". `paper` drops the
/// factor (K−1)/K, as the paper's tables do.
std::string formula(const StepCost& cost, bool paper);

/// The value of formula(): elements that one chip sends. With `paper`, D or twice D.
double elements_per_chip(const StepCost& cost, int chips, bool paper);

}  // namespace shardproof
