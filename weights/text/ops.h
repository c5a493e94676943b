#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace shardproof {

/// The ops of model texts (docs/spec-model-text.md).
enum class ModelOp : std::uint8_t {
  einsum,
  add,
  sub,
  mul,
  div,
  larger,
  exp,
  exp2,
  log,
  sqrt,
  tanh,
  sigmoid,
  relu,
  floor,
  round,
  abs,
  bf16,
  clamp,
  silu,
  gelu,
  gelu_tanh,
  within,
  sum,
  mean,
  max,
  top,
  gather,
  turn,
  append,
  split_dim,
  merge_dim,
  store,
  before
};

/// How an op is written and typed; each op has exactly one.
enum class ModelForm : std::uint8_t {
  contraction,  ///< einsum(BLE,EF->BLF + ...; a, b; ...)
  binary,       ///< add(a, b)
  unary,        ///< exp(x)
  range,        ///< clamp(x, LOW, HIGH)
  reduction,    ///< max(x, LETTERS)
  sum,          ///< sum(x, LETTERS) or sum(x, LETTER, stored)
  top,          ///< top(x, LETTER, NUMBER)
  gather,       ///< gather(table, index, LETTER)
  turn,         ///< turn(x, LETTER, half NUMBER) or turn(x, LETTER, interleaved NUMBER)
  append,       ///< append(x, positions)
  view,         ///< split_dim(x, H->KG)
  before        ///< before(name) or before(name, start)
};

/// Returns how a call of this form is written, as messages print it: "(A, B)".
std::string_view usage(ModelForm form);

struct ModelOpRow {
  ModelOp op;
  std::string_view name;
  ModelForm form;
  std::string_view means;  ///< one line for `shardproof list model-ops`
};

/// Returns the row of every op, in the order of the enumeration.
std::span<const ModelOpRow> model_ops();
const ModelOpRow& row_of(ModelOp op);
/// Returns the row of the op `name`, or null.
const ModelOpRow* find_model_op(std::string_view name);

}  // namespace shardproof
