#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <utility>

#include "engine/collectives/chip_groups.h"
#include "engine/numeric/threads.h"
#include "engine/ops/detail/formulas.h"
#include "engine/shards/sharded.h"

namespace shardproof {

// Operand access and execution of the ops that each chip performs alone.

/// Chip `chip`'s shard of an int32 value.
inline const std::int32_t* ints_of(const Sharded& value, std::int64_t chip) {
  return value.i32()[static_cast<std::size_t>(chip)].data();
}

/// Chip `chip`'s shard of an f32 or field value.
template <class Formulas>
const typename Formulas::Number* numbers_of(const Formulas& f, const Sharded& value,
                                            std::int64_t chip) {
  return f.shards(value)[static_cast<std::size_t>(chip)].data();
}

/// Groups of chips that read the same buffers of every operand; no operand may be null.
inline ChipGroups reading(std::initializer_list<const Sharded*> operands, const Threads& threads) {
  ChipGroups groups((*operands.begin())->torus(), threads);
  for (const Sharded* operand : operands) groups.split(*operand);
  return groups;
}

/// Returns a value of this layout and shape. body(chip, buffer) fills the shard of the first chip
/// of each group; the other chips of the group share it, since all their inputs are the same.
template <class Formulas, class Body>
Sharded map_chips(const Formulas& f, const Torus& torus, const ChipGroups& groups, Layout layout,
                  Shape shape, Threads& threads, Body&& body) {
  const auto count = static_cast<std::size_t>(element_count(local_shape(layout, shape, torus)));
  auto made = made_by<typename Formulas::Number>(groups, static_cast<std::size_t>(torus.chips()),
                                                 count, threads, body);
  return {torus, std::move(layout), std::move(shape), f.data(std::move(made), FieldSort::number)};
}

}  // namespace shardproof
