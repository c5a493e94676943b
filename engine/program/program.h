#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "engine/collectives/ring.h"
#include "engine/layout/layout.h"
#include "engine/ops/einsum.h"
#include "engine/program/ops.h"
#include "weights/base/error.h"
#include "weights/model/registry.h"

namespace shardproof {

/// What a value of a program is: what the judge compares it with (docs/spec.md section 3). Whether
/// it is complete or a partial sum is told by its layout.
struct Role {
  enum class Kind {
    checkpoint,  ///< "gate": the checkpoint of this pass (and layer)
    raw,         ///< "raw q": a contraction before scale, bias and st
    scaled,      ///< "scaled q": S times its scale (of int8; of logits), before a bias and st
    unstored,    ///< "unstored q": the f32 value that st is applied to
    stat,    ///< "stat ss": a value that is not a checkpoint (sum, mu, d, ss, candidates, indices)
    weight,  ///< "weight wq": a weight of this layer, or of the model
    input,   ///< "input pos", "input ids": int32 [BL]
    constant,  ///< "constant ones": a vector [E] of ones, for sums
    previous,  ///< "previous k_cache": a checkpoint of the pass before
    prefix     ///< "prefix k_cache": a cache of the prefixes that the rows go on from, dims NTKQ
  };
  Kind kind = Kind::checkpoint;
  std::string name;
  bool last = false;  ///< "last out": of every row its last position only, the L dim dropped

  static Role parse(std::string_view text);
  std::string to_string() const;
  bool operator==(const Role&) const = default;
};

/// What the registry knows of the value that is meant; null if it is a weight, or nothing of that
/// kind is called so.
const ValueRow* value_row(const Role& role);
/// The dim letters of what is meant, as programs declare it: those of its row or of the weight, of
/// prefixes N and T in place of B and M, with `last` without L. Empty if nothing is known of it.
std::string dims_of(const Role& role);

/// Where a statement or a program was read from. For messages only: it never tells two programs
/// apart.
struct Line {
  int number = 0;  ///< from 1; 0 for what no text says
  bool operator==(const Line&) const { return true; }
};
struct Source {
  std::string file;  ///< empty for a program of the library's own
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

/// One typed step. Which of the parameters are in use depends on the kind.
struct Op {
  OpKind kind{};
  std::vector<ValueDecl> results;  ///< as many as the op's row says
  std::vector<std::string> args;   ///< names of values
  char dim = 0, to = 0;            ///< all_gather(t, E, zy): E; all_to_all(t, H->B, zyx): H and B
  Axes axes, as;                   ///< all_to_all(t, H->B, zy as yz); permute_axes(t, B, xzy->zyx)
  EinsumSpec spec;                 ///< einsum
  /// all_gather, reduce_scatter: whether, and how, the einsum that takes the result or made the
  /// operand is looped with it.
  Loop loop = Loop::none;
  /// einsum: the places of those operands whose chunks it takes as they come round a ring; each is
  /// the result of an all_gather with a loop.
  std::vector<std::size_t> looped = {};
  /// scale_by, divide_by: a constant's name; split_dim: "S_zR_yx"; merge_dim: "SR".
  std::string parameter;

  /// "all_gather(x, E, zy)".
  std::string to_string() const;
  bool loops_over(std::size_t arg) const;
  bool operator==(const Op&) const = default;
};

/// The programs that run once for each layer: itself, and what brings caches to where they are read
/// next, a row's own from prefill to decode and those of prefixes to the one and to the other.
inline constexpr std::string_view kLayerProgram = "layer", kHandOverProgram = "hand_over",
                                  kPrefixHandOverProgram = "prefix_hand_over",
                                  kPrefixToDecodeProgram = "prefix_to_decode";

/// What its elements travel as between chips: what its row says of a complete checkpoint, of the
/// pass before too, of partial sums, and of a weight; raw, scaled and unstored values as f32.
WireType wire_type(const ValueDecl& value, const Numerics& numerics, const ModelConfig& config);
/// In the f32 regime: what sums of what is meant are kept as while they grow, of S of a W matrix as
/// acc says; and what its partial sums travel as. Both are f32 where the registry does not say that
/// acc and wire are about it.
FloatType acc_type(const Role& role, const Numerics& numerics);
FloatType partial_wire_type(const Role& role, const Numerics& numerics);

/// A strategy as data: typed ops over named tensors, in execution order. One program is one layer,
/// or the embedding, the head, the sampling or the hand-over of a cache.
struct Program {
  std::string name;
  std::vector<ValueDecl> inputs;  ///< what the caller supplies; weights by their role
  std::vector<Op> ops;
  std::vector<std::string> outputs;  ///< what the caller takes
  Line output_line = {};
  Source source = {};

  /// "p.txt line 14: " of a program file, "p.txt: " where no line is to blame, else "".
  std::string where(const Line& line) const;
  /// Whether it runs once for each layer: the layer itself, or a hand-over of its caches.
  bool of_layer() const {
    return name == kLayerProgram || name == kHandOverProgram || name == kPrefixHandOverProgram ||
           name == kPrefixToDecodeProgram;
  }
  /// The op that returns `value`, or null.
  const Op* producer(std::string_view value) const;
  /// The rings of a contraction's terms, in their order; a term that loops over no operand, or over
  /// one that no all_gather with a loop returns, has a ring without loop.
  std::vector<Ring> rings(const Op& einsum) const;
  /// The declaration of a value, an input's or a step's. Throws Error("program_c1", ...) if nothing
  /// defines it.
  const ValueDecl& declared(std::string_view value) const;
  bool operator==(const Program&) const = default;
};

/// Reads a program of one statement a line:
///   input x : BLE_xzy is in
///   xg : BLE_x = all_gather(x, E, zy) is in
///   output y, kc
/// Empty lines and text after '#' are skipped; docs/program.md has the grammar. Throws
/// Error("program_c0", ...) on text that is not a statement, naming the line, and `file` if the
/// text is one's content; layouts, axes and contractions throw their own labels.
Program parse_program(std::string_view name, std::string_view text, std::string_view file = "");

/// The inverse of parse_program: parse_program(p.name, print_program(p)) == p.
std::string print_program(const Program& program);

}  // namespace shardproof
