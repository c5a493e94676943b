#include "weights/text/ops.h"

#include <utility>

#include "weights/base/detail/word_table.h"

namespace shardproof {
namespace {

constexpr ModelOpRow kOps[] = {
    {ModelOp::einsum, "einsum", ModelForm::contraction,
     "the sum of its terms' contractions, rounded once"},
    {ModelOp::add, "add", ModelForm::binary, "a + b"},
    {ModelOp::sub, "sub", ModelForm::binary, "a - b"},
    {ModelOp::mul, "mul", ModelForm::binary, "a * b"},
    {ModelOp::div, "div", ModelForm::binary, "a / b"},
    {ModelOp::larger, "larger", ModelForm::binary, "the larger of a and b"},
    {ModelOp::exp, "exp", ModelForm::unary, "e to the power x"},
    {ModelOp::exp2, "exp2", ModelForm::unary, "2 to the power x"},
    {ModelOp::log, "log", ModelForm::unary, "the natural logarithm"},
    {ModelOp::sqrt, "sqrt", ModelForm::unary, "the square root"},
    {ModelOp::tanh, "tanh", ModelForm::unary, "the hyperbolic tangent"},
    {ModelOp::sigmoid, "sigmoid", ModelForm::unary, "1 / (1 + exp(-x))"},
    {ModelOp::relu, "relu", ModelForm::unary, "the larger of x and 0"},
    {ModelOp::floor, "floor", ModelForm::unary, "the largest whole number that is not above x"},
    {ModelOp::round, "round", ModelForm::unary, "the nearest whole number; of two the even one"},
    {ModelOp::abs, "abs", ModelForm::unary, "the absolute value"},
    {ModelOp::bf16, "bf16", ModelForm::unary, "rounds to bf16, whatever activations are stored as"},
    {ModelOp::clamp, "clamp", ModelForm::range, "x, but at least LOW and at most HIGH"},
    {ModelOp::silu, "silu", ModelForm::unary, "x * sigmoid(x)"},
    {ModelOp::gelu, "gelu", ModelForm::unary, "x / 2 * (1 + erf(x / sqrt(2)))"},
    {ModelOp::gelu_tanh, "gelu_tanh", ModelForm::unary,
     "x / 2 * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 * x^3)))"},
    {ModelOp::within, "within", ModelForm::range, "1 where LOW <= x <= HIGH, otherwise 0"},
    {ModelOp::sum, "sum", ModelForm::sum,
     "the sum over what exists; stored: one after another, stored after each"},
    {ModelOp::mean, "mean", ModelForm::reduction, "the sum over what exists, by how many exist"},
    {ModelOp::max, "max", ModelForm::reduction, "the largest that exists"},
    {ModelOp::top, "top", ModelForm::top,
     "1 at the NUMBER largest along LETTER, of equals the first, otherwise 0"},
    {ModelOp::gather, "gather", ModelForm::gather, "rows of a table, by their index"},
    {ModelOp::turn, "turn", ModelForm::turn,
     "(-b, a) of channel pairs (a, b) of the first NUMBER channels, beyond them 0"},
    {ModelOp::append, "append", ModelForm::append,
     "the cache with x at its positions; L becomes M"},
    {ModelOp::split_dim, "split_dim", ModelForm::view, "one dim seen as two"},
    {ModelOp::merge_dim, "merge_dim", ModelForm::view, "two neighbouring dims seen as one"},
    {ModelOp::store, "store", ModelForm::unary,
     "rounds to the type in which activations are stored"},
    {ModelOp::before, "before", ModelForm::before,
     "the value one position earlier; `start`, or 0, at position 0"},
};

constexpr std::pair<std::string_view, ModelForm> kUsages[] = {
    {"(SPEC; A, B), one pair of operands for each term", ModelForm::contraction},
    {"(A, B)", ModelForm::binary},
    {"(X)", ModelForm::unary},
    {"(X, LOW, HIGH)", ModelForm::range},
    {"(X, LETTERS)", ModelForm::reduction},
    {"(X, LETTERS) or (X, LETTER, stored)", ModelForm::sum},
    {"(X, LETTER, NUMBER)", ModelForm::top},
    {"(TABLE, INDEX, LETTER)", ModelForm::gather},
    {"(X, LETTER, half NUMBER) or (X, LETTER, interleaved NUMBER)", ModelForm::turn},
    {"(X, pos)", ModelForm::append},
    {"(X, FROM->TO)", ModelForm::view},
    {"(NAME) or (NAME, START)", ModelForm::before},
};

}  // namespace

std::string_view usage(ModelForm form) { return word_in(kUsages, form); }

std::span<const ModelOpRow> model_ops() { return kOps; }

const ModelOpRow& row_of(ModelOp op) { return kOps[static_cast<std::size_t>(op)]; }

const ModelOpRow* find_model_op(std::string_view name) { return row_named(kOps, name); }

}  // namespace shardproof
