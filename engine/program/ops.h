#pragma once

#include <limits>
#include <span>
#include <string_view>

namespace shardproof {

/// The ops of programs; each has a row in the table of ops (OpRow).
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
  with_prefix,
  local_argmax,
  argmax,
  weigh,
  top_k,
  top_p,
  masses,
  draw,
  map,
  max,
  sum,
  stored_sum,
  mean,
  top,
  turn,
  gather
};

/// The form of a call's arguments, as in "all_gather(x, E, zy)".
enum class Parameters {
  none,              ///< operands only: "add(a, b)"
  dim_axes,          ///< "(x, E, zy)"
  dim_axes_loop,     ///< "(x, E, zy)" or "(x, E, zy loop one-way)"
  axes,              ///< "(x, zy)"
  axes_by_max,       ///< "(x, zy)" or "(x, zy by max)"
  dim_dim_axes,      ///< "(x, H->B, zy)", "(x, H->B, zy as yz)"
  dim_axes_to_axes,  ///< "(x, B, xzy->zyx)"
  dim_to_layout,     ///< "(x, H->S_zR_yx)", "(x, H->K_zG, 4)", "(x, H->AKG, 2 4)"
  dims_to_dim,       ///< "(x, SR->H)"
  constant,          ///< "(x, embed_scale)", a constant of engine/program/constants.h
  contraction,   ///< "(BLE,EF->BLF; x, w)", a pair of operands per term; "loop x" for a looped one
  expression,    ///< "(div(in, sqrt(add(ss, eps))); eps = 1e-05)", over operands by their names
  letters,       ///< "(x, EF)", or "(x where w, EF)" for the elements where w is not 0
  letter_count,  ///< "(x, X, 2)", or "(x where w, X, 2)"
  pairs,         ///< "(x, Q, half 4)" or "(x, Q, interleaved 4)"
  slots          ///< "(cache, x, pos)", or "(cache, x, pos zeros)": unwritten slots hold +0
};

/// How many operands an op takes, beside the indicators of `where`.
struct Operands {
  int least = 1;
  int most = 1;
  bool per_term = false;  ///< for a contraction: this many per term

  static constexpr int kAny = std::numeric_limits<int>::max();
};

/// The properties of an op other than its typing rules and its arithmetic. Read by parser and
/// printer, type checker, executor, ledger, liveness and writer.
struct OpRow {
  OpKind kind{};
  std::string_view name = {};
  Parameters parameters = Parameters::none;
  Operands operands = {};
  int results = 1;
  bool takes_partial = false;   ///< operands may be partial sums; if false they must be complete
  int integer_operand = kNone;  ///< index of the complete operand that is int32; kAll: any may be
  bool only_moves = false;      ///< copies, drops or rearranges the elements of its one operand
  bool collective = false;      ///< moves data between chips, over a group given by axes
  bool reduces = false;         ///< sums over the partial axes of its operand
  /// Sums its own numbers over its axes in rounds; its first result holds the sums.
  bool searches = false;
  /// A chip's result depends on its place: two chips with equal operands (for a collective: two
  /// chips of one group) get different results.
  bool depends_on_place = false;
  bool takes_where = false;  ///< may have indicators of the elements that exist
  bool multiplies = false;   ///< it has contractions: the ledger counts its FLOPs
  /// The letter that a generated program appends to the name of a value that this op brings to
  /// another layout ("hr": h, reduced); 0 for an op that is in no path between layouts.
  char suffix = 0;

  static constexpr int kNone = -1, kAll = -2;
};

/// The rows of all ops, in the order of OpKind.
std::span<const OpRow> all_ops();

/// Returns a row with an empty name if `kind` is not a valid op.
const OpRow& op_row(OpKind kind);
/// Returns null if there is no op of this name.
const OpRow* find_op(std::string_view name);

inline std::string_view to_string(OpKind kind) { return op_row(kind).name; }
inline bool is_collective(OpKind kind) { return op_row(kind).collective; }
/// Returns true for attention, over a row's own cache alone or also over its prefix's.
inline bool is_attention(OpKind kind) {
  return kind == OpKind::attend || kind == OpKind::attend_prefix;
}

}  // namespace shardproof
