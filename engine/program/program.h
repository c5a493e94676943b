#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/collectives/ring.h"
#include "engine/layout/layout.h"
#include "engine/ops/einsum.h"
#include "engine/ops/map_names.h"
#include "engine/program/ops.h"
#include "weights/base/error.h"
#include "weights/model/registry.h"
#include "weights/text/model_text.h"

namespace shardproof {

/// The meaning of a program's value, hence what the judge compares it with (docs/spec.md section
/// 3). Whether the value is complete or a partial sum is in its layout.
struct Role {
  enum class Kind {
    checkpoint,  ///< "gate": the checkpoint of this pass (and layer)
    raw,         ///< "raw q": a contraction before scale, bias and st
    scaled,      ///< "scaled q": S times its scale (int8; logits), before a bias and st
    unstored,    ///< "unstored q": the f32 value that st is applied to
    stat,    ///< "stat ss": a value that is not a checkpoint (sum, mu, d, ss, candidates, indices)
    weight,  ///< "weight wq": a weight of this layer, or of the model
    input,   ///< "input pos", "input ids": int32 [BL]
    constant,  ///< "constant ones": a vector [E] of ones, for sums
    previous,  ///< "previous k_cache": a checkpoint of the preceding pass
    prefix,    ///< "prefix k_cache": a cache of the prefixes that the rows continue, dims NTKQ
    joined     ///< "joined k_cache": a cache behind the slots of the prefix that the row continues
  };
  Kind kind = Kind::checkpoint;
  std::string name;
  bool last = false;  ///< "last out": only the last position of every row, the L dim dropped

  static Role parse(std::string_view text);
  std::string to_string() const;
  bool operator==(const Role&) const = default;
};

/// The registry's row of a role's value; null for a weight, and where the registry has no value of
/// that kind and name. `rows` are those of a text's model, null of one of keys.
const ValueRow* value_row(const Role& role, const ModelRows* rows = nullptr);
/// The dim letters of a role, as programs declare it: those of its row or weight, with N and T in
/// place of B and M for prefixes, and without L for `last`. Empty if the registry has no row.
std::string dims_of(const Role& role, const ModelRows* rows = nullptr);

/// The origin of a statement or program. For messages only: ignored by comparison.
struct Line {
  int number = 0;  ///< from 1; 0 if it was not read from a text
  bool operator==(const Line&) const { return true; }
};
struct Source {
  std::string file;  ///< empty for a program that the library built
  bool operator==(const Source&) const { return true; }
};

/// One result of an op: its name in the program, its declared layout and role.
struct ValueDecl {
  std::string name;
  Layout layout;
  Role role;
  Line line = {};
  bool operator==(const ValueDecl&) const = default;
};

/// One typed step. The kind decides which of the parameters are used.
struct Op {
  OpKind kind{};
  std::vector<ValueDecl> results;  ///< as many as the op's row says
  std::vector<std::string> args;   ///< names of values
  char dim = 0, to = 0;            ///< all_gather(t, E, zy): E; all_to_all(t, H->B, zyx): H and B
  Axes axes, as;                   ///< all_to_all(t, H->B, zy as yz); permute_axes(t, B, xzy->zyx)
  EinsumSpec spec;                 ///< einsum
  /// all_gather, reduce_scatter: how it is looped with the einsum that takes its result or computes
  /// its operand, if at all.
  Loop loop = Loop::none;
  /// einsum: the indices of the operands whose chunks it takes as they travel around a ring; each
  /// is the result of an all_gather with a loop.
  std::vector<std::size_t> looped = {};
  /// scale_by, divide_by: a constant's name; split_dim: "S_zR_yx"; merge_dim: "SR"; max, sum,
  /// stored_sum, mean: the letters; turn: "half" or "interleaved"; map: the letters in their order,
  /// empty for that of the expression.
  std::string parameter;
  std::int64_t count = 0;  ///< turn: how many channels are in pairs; top: how many it marks
  Shape parts = {};     ///< split_dim: the new dims' extents but the last; empty: as many as blocks
  bool by_max = false;  ///< all_reduce: of partial maxima
  bool zeros = false;   ///< append: unwritten slots hold +0
  /// Ops that take where: so many of `args`, the last ones, are indicators.
  std::size_t indicators = 0;
  /// map: what is computed. `args` are the names in it that are not constants, in the order of
  /// their first appearance, then the other names of the formulas.
  std::optional<Expression> expression = {};
  std::vector<NamedNumber> constants = {};
  std::vector<NamedFormula> formulas = {};

  /// "all_gather(x, E, zy)".
  std::string to_string() const;
  /// The number of operands beside the indicators.
  std::size_t operands() const { return args.size() - indicators; }
  bool loops_over(std::size_t arg) const;
  bool operator==(const Op&) const = default;
};

/// The programs that run once per layer: the layer, and the hand-overs of caches to their next
/// reader: a row's own from prefill to decode, those of prefixes to the prefill and on to decode.
inline constexpr std::string_view kLayerProgram = "layer", kHandOverProgram = "hand_over",
                                  kPrefixHandOverProgram = "prefix_hand_over",
                                  kPrefixToDecodeProgram = "prefix_to_decode";

/// The type in which a value's elements travel between chips. For complete checkpoints (those of
/// the preceding pass too), partial sums and weights it is what the registry says; raw, scaled and
/// unstored values travel as f32.
NumberFormat wire_type(const ValueDecl& value, const Numerics& numerics, const ModelConfig& config);
/// In the f32 regime, the type that a value's sums are accumulated in (acc, for S of a W matrix),
/// and the type that its partial sums travel in (wire). Both are f32 where the registry does not
/// say that acc and wire apply to the value.
NumberFormat acc_type(const Role& role, const Numerics& numerics, const ModelRows* rows = nullptr);
NumberFormat partial_wire_type(const Role& role, const Numerics& numerics,
                               const ModelRows* rows = nullptr);

/// A strategy as data: typed ops over named tensors, in execution order. One program is one layer,
/// or the embedding, the head, the sampling or the hand-over of a cache.
struct Program {
  std::string name;
  std::vector<ValueDecl> inputs;  ///< supplied by the caller; weights by their role
  std::vector<Op> ops;
  std::vector<std::string> outputs;  ///< returned to the caller
  Line output_line = {};
  Source source = {};
  /// Rows of the values of a text's model; null if the model is one of keys.
  std::shared_ptr<const ModelRows> rows = nullptr;

  /// "p.txt line 14: " for a program file, "p.txt: " if no line applies, otherwise "".
  std::string where(const Line& line) const;
  /// Returns true if the program runs once per layer: a layer, or a hand-over of its caches.
  bool of_layer() const {
    return name == kLayerProgram || name == kHandOverProgram || name == kPrefixHandOverProgram ||
           name == kPrefixToDecodeProgram;
  }
  /// The op that returns `value`, or null.
  const Op* producer(std::string_view value) const;
  /// The rings of a contraction's terms, in order. A term that loops over no operand, or over one
  /// that is not the result of an all_gather with a loop, has a ring without a loop.
  std::vector<Ring> rings(const Op& einsum) const;
  /// The declaration of an input or result. Throws Error("program_c1", ...) if it is not defined.
  const ValueDecl& declared(std::string_view value) const;
  bool operator==(const Program&) const = default;
};

/// Reads a program of one statement per line:
///   input x : BLE_xzy is in
///   xg : BLE_x = all_gather(x, E, zy) is in
///   output y, kc
/// Empty lines and text after '#' are skipped; the grammar is in docs/program.md. Throws
/// Error("program_c0", ...) on text that is not a statement, naming the line, and `file` if it is
/// given; layouts, axes and contractions throw their own labels.
Program parse_program(std::string_view name, std::string_view text, std::string_view file = "");

/// The inverse of parse_program: parse_program(p.name, print_program(p)) == p.
std::string print_program(const Program& program);

}  // namespace shardproof
