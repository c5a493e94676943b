#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/collectives/ring.h"
#include "engine/numeric/threads.h"
#include "engine/ops/partial_sums.h"
#include "engine/shards/sharded.h"
#include "weights/base/error.h"
#include "weights/model/numerics.h"

namespace shardproof {

/// One contraction over the concatenated dims of its terms:
/// `BLHQ,HQE->BLE + BLF,FE->BLE` is Σ_hq a1·b1 + Σ_f a2·b2, rounded once.
struct EinsumSpec {
  struct Term {
    std::string a, b, result;
    bool operator==(const Term&) const = default;
  };
  std::vector<Term> terms;

  /// Throws Error("einsum_c0", ...) on a malformed text.
  static EinsumSpec parse(std::string_view text);
  std::string to_string() const;
  /// The letters a term sums over.
  static std::string contracted(const Term& term);
  bool operator==(const EinsumSpec&) const = default;
};

using SharedValue = std::shared_ptr<const Sharded>;

/// Executes a contraction chip by chip, once for chips that read the same buffers. `rings` is empty
/// or has one ring per term. Operands are f32.
///
/// In the exact regime, if `layout` is partial, the result carries f64 partial sums with bounds,
/// and keeps the operands alive as the source of its origins; otherwise every element is rounded
/// once (docs/spec.md section 4). With values = allow_lazy the partial sums are left to the
/// reduction that reads them (Partial::lazy), unless a tile would need a copy of an operand.
///
/// In the f32 regime an element, partial or not, is one f32 fma chain over the chip's own block:
/// contracted letters row-major in the order of EinsumSpec::contracted, terms one after the other.
/// A term with a ring whose dim it contracts takes the chunks of that dim in the order in which
/// they reach the chip (gathered_chunks); inside a chunk, or a half of one, the order is unchanged.
/// With acc=bf16 the chain is rounded to bf16 after each fma.
Sharded einsum(const EinsumSpec& spec,
               const std::vector<std::pair<SharedValue, SharedValue>>& terms, const Layout& layout,
               const Shape& shape, Threads& threads, Regime regime = Regime::exact,
               NumberFormat acc = NumberFormat::f32, const std::vector<Ring>& rings = {},
               PartialSums values = PartialSums::materialize);

}  // namespace shardproof
