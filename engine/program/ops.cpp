#include "engine/program/ops.h"

#include <array>

#include "weights/base/detail/word_table.h"

namespace shardproof {
namespace {

constexpr auto kOps = std::to_array<OpRow>({
    {.kind = OpKind::all_gather,
     .name = "all_gather",
     .parameters = Parameters::dim_axes_loop,
     .takes_partial = true,
     .only_moves = true,
     .collective = true,
     .suffix = 'g'},
    {.kind = OpKind::reduce_scatter,
     .name = "reduce_scatter",
     .parameters = Parameters::dim_axes_loop,
     .takes_partial = true,
     .collective = true,
     .reduces = true,
     .depends_on_place = true,
     .suffix = 'r'},
    {.kind = OpKind::all_reduce,
     .name = "all_reduce",
     .parameters = Parameters::axes_by_max,
     .takes_partial = true,
     .collective = true,
     .reduces = true,
     .suffix = 'a'},
    {.kind = OpKind::all_to_all,
     .name = "all_to_all",
     .parameters = Parameters::dim_dim_axes,
     .takes_partial = true,
     .only_moves = true,
     .collective = true,
     .depends_on_place = true,
     .suffix = 't'},
    {.kind = OpKind::permute_axes,
     .name = "permute_axes",
     .parameters = Parameters::dim_axes_to_axes,
     .takes_partial = true,
     .only_moves = true,
     .collective = true,
     .depends_on_place = true,
     .suffix = 'o'},
    {.kind = OpKind::slice,
     .name = "slice",
     .parameters = Parameters::dim_axes,
     .takes_partial = true,
     .only_moves = true,
     .depends_on_place = true,
     .suffix = 's'},
    {.kind = OpKind::last, .name = "last", .takes_partial = true, .only_moves = true},
    {.kind = OpKind::split_dim,
     .name = "split_dim",
     .parameters = Parameters::dim_to_layout,
     .takes_partial = true,
     .only_moves = true},
    {.kind = OpKind::merge_dim,
     .name = "merge_dim",
     .parameters = Parameters::dims_to_dim,
     .takes_partial = true,
     .only_moves = true},
    {.kind = OpKind::einsum,
     .name = "einsum",
     .parameters = Parameters::contraction,
     .operands = {2, 2, true},
     .takes_where = true,
     .multiplies = true},
    {.kind = OpKind::embed_lookup,
     .name = "embed_lookup",
     .operands = {2, 2},
     .integer_operand = 0,
     .depends_on_place = true},  // by its block of the vocabulary
    {.kind = OpKind::add, .name = "add", .operands = {2, 2}},
    {.kind = OpKind::scale, .name = "scale", .operands = {2, 2}},
    {.kind = OpKind::scale_by, .name = "scale_by", .parameters = Parameters::constant},
    {.kind = OpKind::divide_by, .name = "divide_by", .parameters = Parameters::constant},
    {.kind = OpKind::bias, .name = "bias", .operands = {2, Operands::kAny}},
    {.kind = OpKind::center, .name = "center", .operands = {2, 2}},
    {.kind = OpKind::store, .name = "store"},
    {.kind = OpKind::norm, .name = "norm", .operands = {3, 4}},
    {.kind = OpKind::rope, .name = "rope", .operands = {4, 4}, .integer_operand = 1},
    {.kind = OpKind::rope_interleaved,
     .name = "rope_interleaved",
     .operands = {4, 4},
     .integer_operand = 1},
    {.kind = OpKind::swiglu, .name = "swiglu", .operands = {2, 2}},
    {.kind = OpKind::geglu, .name = "geglu", .operands = {2, 2}},
    {.kind = OpKind::gelu, .name = "gelu"},
    {.kind = OpKind::gelu_erf, .name = "gelu_erf"},
    {.kind = OpKind::append,
     .name = "append",
     .parameters = Parameters::slots,
     .operands = {3, 3},
     .integer_operand = 2},
    {.kind = OpKind::attend,
     .name = "attend",
     .operands = {4, 5},
     .results = 5,
     .integer_operand = 3,
     .depends_on_place = true,  // by which of its kv heads its query heads read
     .multiplies = true},
    {.kind = OpKind::attend_prefix,
     .name = "attend_prefix",
     .operands = {6, 7},
     .results = 5,
     .integer_operand = 5,
     .depends_on_place = true,  // by its kv heads, and by which of its prefixes its rows continue
     .multiplies = true},
    {.kind = OpKind::with_prefix,
     .name = "with_prefix",
     .operands = {2, 2},
     .depends_on_place = true},  // by which of its prefixes its rows continue
    {.kind = OpKind::local_argmax,
     .name = "local_argmax",
     .results = 2,
     .depends_on_place = true},  // by its block of the vocabulary
    {.kind = OpKind::argmax, .name = "argmax", .operands = {2, 2}, .integer_operand = 1},
    {.kind = OpKind::weigh, .name = "weigh", .operands = {2, 2}},
    {.kind = OpKind::top_k,
     .name = "top_k",
     .parameters = Parameters::axes,
     .results = 3,
     .collective = true,
     .searches = true,
     .depends_on_place = true},  // by what it keeps of its own block
    {.kind = OpKind::top_p,
     .name = "top_p",
     .parameters = Parameters::axes,
     .results = 3,
     .collective = true,
     .searches = true,
     .depends_on_place = true},
    {.kind = OpKind::masses, .name = "masses"},
    {.kind = OpKind::draw,
     .name = "draw",
     .operands = {2, 2},
     .results = 2,
     .integer_operand = 1,
     .depends_on_place = true},  // by its block of the vocabulary
    {.kind = OpKind::map,
     .name = "map",
     .parameters = Parameters::expression,
     .operands = {1, Operands::kAny},
     .integer_operand = OpRow::kAll,
     .takes_where = true},
    {.kind = OpKind::max, .name = "max", .parameters = Parameters::letters, .takes_where = true},
    {.kind = OpKind::sum, .name = "sum", .parameters = Parameters::letters},
    {.kind = OpKind::stored_sum,
     .name = "stored_sum",
     .parameters = Parameters::letters,
     .takes_where = true},
    {.kind = OpKind::mean, .name = "mean", .parameters = Parameters::letters, .takes_where = true},
    {.kind = OpKind::top,
     .name = "top",
     .parameters = Parameters::letter_count,
     .takes_where = true},
    {.kind = OpKind::turn, .name = "turn", .parameters = Parameters::pairs, .takes_where = true},
    {.kind = OpKind::gather, .name = "gather", .operands = {2, 2}, .integer_operand = 0},
});

constexpr bool in_order() {
  for (std::size_t i = 0; i < kOps.size(); ++i)
    if (kOps[i].kind != static_cast<OpKind>(i)) return false;
  return true;
}
static_assert(in_order(), "the rows are in the order of OpKind, so that it finds them");

}  // namespace

std::span<const OpRow> all_ops() { return kOps; }

const OpRow& op_row(OpKind kind) {
  static constexpr OpRow kNone{.results = 0};
  const auto at = static_cast<std::size_t>(kind);
  return at < kOps.size() ? kOps[at] : kNone;
}

const OpRow* find_op(std::string_view name) { return row_named(kOps, name); }

}  // namespace shardproof
