#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/program/typing.h"
#include "weights/model/numerics.h"

namespace shardproof {

/// What one step costs, as exact integers over all chips (docs/spec.md section 5). Elements are
/// logical, times the declared wire dtype; never the simulator's own carriers.
struct StepCost {
  std::string step;  ///< name of the op's first result
  OpKind kind{};
  Axes axes;                   ///< of a collective: its group
  int group = 1;               ///< the product of the axes' sizes
  Layout buffer_layout;        ///< of the larger of a collective's two buffers
  std::int64_t buffer = 0;     ///< its elements on one chip, D of paper §A.1
  std::int64_t moved = 0;      ///< elements sent, over all chips
  int wire_bytes = 4;          ///< of one element, as it travels
  std::int64_t flops = 0;      ///< two a multiply-add, over all chips
  std::int64_t hbm_bytes = 0;  ///< operands read and results written, over all chips
};

/// How often a collective sends its buffer. A sum that every chip of a group gets whole is first
/// reduced by parts, then gathered: all_reduce is reduce_scatter and all_gather.
int times_sent(OpKind kind);

/// Elements that a collective sends over all chips, of D = `buffer` elements on each: D(K−1)/K a
/// chip for all_gather (D of its result), reduce_scatter and all_to_all, twice that for all_reduce;
/// D where it moves for permute_axes, from `axes` to `as` (paper §A.1).
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

/// Counts a checked program; `types` is what check() returned for it.
Ledger count(const Program& program, const std::map<std::string, Type>& types, const Torus& torus,
             const Numerics& numerics, const ModelConfig& config);

/// "BLE/X (1-1/YZ)": the elements one chip sends in this step, symbolically. `paper` drops the
/// factor (K−1)/K, as the paper's tables do.
std::string formula(const StepCost& cost, bool paper);

/// What the formula gives: elements one chip sends. With `paper`, D or twice D.
double elements_per_chip(const StepCost& cost, int chips, bool paper);

}  // namespace shardproof
