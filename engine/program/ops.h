#pragma once

#include <limits>
#include <span>
#include <string_view>

namespace shardproof {

/// The ops of programs. What is known of each of them is its row, below.
enum class OpKind {
  all_gather,
  reduce_scatter,
  all_reduce,
  all_to_all,
  permute_axes,
  slice,
  last,
  split_dim,
  merge_dim,
  einsum,
  embed_lookup,
  add,
  scale,
  scale_by,
  divide_by,
  bias,
  center,
  store,
  norm,
  rope,
  rope_interleaved,
  swiglu,
  geglu,
  gelu,
  gelu_erf,
  append,
  attend,
  attend_prefix,
  local_argmax,
  argmax,
  weigh,
  top_k,
  top_p,
  masses,
  draw
};

/// What is between the brackets of a call, "all_gather(x, E, zy)".
enum class Parameters {
  none,              ///< operands only: "add(a, b)"
  dim_axes,          ///< "(x, E, zy)"
  dim_axes_loop,     ///< the same, or "(x, E, zy loop one-way)"
  axes,              ///< "(x, zy)"
  dim_dim_axes,      ///< "(x, H->B, zy)", "(x, H->B, zy as yz)"
  dim_axes_to_axes,  ///< "(x, B, xzy->zyx)"
  dim_to_layout,     ///< "(x, H->S_zR_yx)"
  dims_to_dim,       ///< "(x, SR->H)"
  constant,          ///< "(x, embed_scale)", of engine/program/constants.h
  contraction        ///< "(BLE,EF->BLF; x, w)", a pair of operands for each term; "loop x"
};

/// How many operands an op takes.
struct Operands {
  int least = 1;
  int most = 1;
  bool per_term = false;  ///< of a contraction: this many for each of its terms

  static constexpr int kAny = std::numeric_limits<int>::max();
};

/// What is known of an op beside its rules and its arithmetic. Parser and printer, type checker,
/// executor, ledger, liveness and writer read it.
struct OpRow {
  OpKind kind{};
  std::string_view name = {};
  Parameters parameters = Parameters::none;
  Operands operands = {};
  int results = 1;
  bool takes_partial = false;   ///< operands may be partial sums; of other ops they are complete
  int integer_operand = kNone;  ///< of an op on complete operands, that which may be int32
  bool only_moves = false;      ///< copies, drops or rearranges the elements of its one operand
  bool collective = false;      ///< moves data between chips, over a group given by axes
  bool reduces = false;         ///< sums over the partial axes of its operand
  /// Adds up numbers of its own over its axes, round after round: those of its first result.
  bool searches = false;
  /// What a chip gets depends on its place: two chips with equal operands (of a collective:
  /// two chips of one group) get different results.
  bool depends_on_place = false;
  bool multiplies = false;  ///< it has contractions: the ledger counts its FLOPs
  /// What a generated program adds to the name of a value that this op brings to another layout
  /// ("hr": h, reduced); 0 for an op that no path between layouts has.
  char suffix = 0;

  static constexpr int kNone = -1;
};

/// The rows of all ops, in the order of OpKind.
std::span<const OpRow> all_ops();

/// A row without a name for what is not an op.
const OpRow& op_row(OpKind kind);
/// Null if there is no op of this name.
const OpRow* find_op(std::string_view name);

inline std::string_view to_string(OpKind kind) { return op_row(kind).name; }
inline bool is_collective(OpKind kind) { return op_row(kind).collective; }
/// Attention, over a row's own cache or over that of its prefix, too.
inline bool is_attention(OpKind kind) {
  return kind == OpKind::attend || kind == OpKind::attend_prefix;
}

}  // namespace shardproof
