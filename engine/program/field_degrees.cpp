#include "engine/program/field_degrees.h"

#include <algorithm>
#include <memory>
#include <stdexcept>

#include "engine/collectives/detail/field_sums.h"
#include "engine/program/ops.h"

namespace shardproof {

FieldDegree product_degree(FieldDegree a, const FieldDegree& b) {
  a.a += b.a;
  for (const auto& [number, e] : b.e) a.e[number] += e;
  for (const auto& [number, e] : b.more) a.more[number] += e;
  return a;
}

FieldDegree greater_degree(FieldDegree a, const FieldDegree& b) {
  a.a = std::max(a.a, b.a);
  for (const auto& [number, e] : b.e) a.e[number] = std::max(a.e[number], e);
  for (const auto& [number, e] : b.more) a.more[number] = std::max(a.more[number], e);
  return a;
}

namespace {

/// The degree of an input or of a function's result.
FieldDegree one() { return {}; }

/// The degree of a result of attention: score, max, exp, denom, attn.
FieldDegree of_attention(const std::vector<SharedValue>& operands, bool prefix, std::size_t r,
                         int layer) {
  const auto of = [&](std::size_t i) { return operands.at(i)->field().degree; };
  // The degree of keys or of values, over a row's own cache and its prefix's.
  const auto cached = [&](std::size_t i) {
    return prefix ? greater_degree(of(i), of(i + 2)) : of(i);
  };
  const std::size_t slopes = prefix ? 6 : 4;
  const FieldDegree exp{2, {}, {}};  // two functions' product
  switch (r) {
    case 0: {
      const FieldDegree scaled = product_degree(product_degree(of(0), cached(1)), one());
      return operands.size() > slopes ? greater_degree(scaled, of(slopes)) : scaled;
    }
    case 1:
      return one();
    case 2:
    case 3:
      return exp;
    default: {
      FieldDegree mean = product_degree(exp, cached(2));
      ++mean.e[layer];
      return mean;
    }
  }
}

}  // namespace

FieldDegree field_degree(const Op& op, const std::vector<SharedValue>& operands,
                         const std::vector<Sharded>& results, std::size_t r, int layer) {
  const auto of = [&](std::size_t i) { return operands.at(i)->field().degree; };
  switch (op.kind) {
    case OpKind::all_gather:
    case OpKind::reduce_scatter:
    case OpKind::all_reduce:
    case OpKind::all_to_all:
    case OpKind::permute_axes:
    case OpKind::slice:
    case OpKind::last:
    case OpKind::split_dim:
    case OpKind::merge_dim:
      return results.at(r).field().degree;  // degree of the operand, or of a function's result
    case OpKind::einsum: {
      FieldDegree most = product_degree(of(0), of(1));
      for (std::size_t i = 2; i + 1 < op.operands(); i += 2)
        most = greater_degree(most, product_degree(of(i), of(i + 1)));
      return most;
    }
    case OpKind::embed_lookup:
      return of(1);
    case OpKind::add:
    case OpKind::center:
      return greater_degree(of(0), of(1));
    case OpKind::bias: {
      FieldDegree most = of(0);
      for (std::size_t i = 1; i < operands.size(); ++i) most = greater_degree(most, of(i));
      return most;
    }
    case OpKind::scale:
      return product_degree(of(0), of(1));
    case OpKind::scale_by:
      return product_degree(of(0), one());
    case OpKind::divide_by:
      return of(0);
    case OpKind::norm: {
      const FieldDegree scaled = product_degree(product_degree(of(0), one()), of(2));
      return operands.size() > 3 ? greater_degree(scaled, of(3)) : scaled;
    }
    case OpKind::rope:
    case OpKind::rope_interleaved:
      return product_degree(of(0), greater_degree(of(2), of(3)));
    case OpKind::swiglu:
    case OpKind::geglu:
      return product_degree(one(), of(1));
    case OpKind::gelu:
    case OpKind::gelu_erf:
    case OpKind::store:
      return one();
    case OpKind::append:
    case OpKind::with_prefix:
      return greater_degree(of(0), of(1));
    case OpKind::attend:
    case OpKind::attend_prefix:
      return of_attention(operands, op.kind == OpKind::attend_prefix, r, layer);
    case OpKind::local_argmax: {
      // The list's last term, for width w, is ρ^(w−1) times a function; the index has a factor
      // more.
      const std::int64_t width = operands.at(0)->local()[1];
      return {width + static_cast<std::int64_t>(r), {}, {}};
    }
    case OpKind::argmax:
    case OpKind::weigh:  // the field regime samples greedily
    case OpKind::top_k:
    case OpKind::top_p:
    case OpKind::masses:
    case OpKind::draw:
    case OpKind::max:
    case OpKind::top:  // the field regime has no order
      return one();
    case OpKind::stored_sum:  // of a function's results and elements, or of elements alone
      return greater_degree(of(0), one());
    case OpKind::mean:  // divided by an integer
    case OpKind::sum:
    case OpKind::turn:
      return of(0);
    case OpKind::gather:
      return of(1);
    case OpKind::map:
      throw std::logic_error("the degree of a map depends on its expression");
  }
  return one();
}

void count_field(const Op& op, const std::vector<SharedValue>& operands,
                 std::vector<Sharded>& results, const FieldScope& scope) {
  constexpr std::size_t kDenom = 3;  // index among attention's results
  for (std::size_t r = 0; r < results.size(); ++r) {
    Sharded& made = results[r];
    if (!made.holds_field()) continue;
    const Field& field = *made.field().field;
    made.set_field_degree(op.kind == OpKind::map
                              ? field_degree_of_map(op, operands, field, scope)
                              : field_degree(op, operands, results, r, scope.layer));
    field.met(made.field().degree);
    // The arguments of argmax's own functions: lists of the whole vocabulary.
    if (op.kind == OpKind::argmax) field.met({scope.V + 1, {}, {}});
    if (is_attention(op.kind) && r == kDenom)
      field.inverted(scope.layer, element_count(made.local()) * made.torus().chips());
  }
}

void operands_of_sort(const Op& op, std::vector<SharedValue>& operands, Threads& threads) {
  if (op_row(op.kind).only_moves || op_row(op.kind).reduces) return;
  for (std::size_t i = 0; i < operands.size(); ++i) {
    const Sharded& operand = *operands[i];
    if (!operand.holds_field()) continue;
    const FieldSort wanted = op.kind != OpKind::argmax ? FieldSort::number
                             : i == 0                  ? FieldSort::candidate
                                                       : FieldSort::index;
    if (operand.field().sort == wanted) continue;
    operands[i] = std::make_shared<Sharded>(operand.torus(), operand.layout(), operand.shape(),
                                            as_numbers(operand.field(), threads));
  }
}

}  // namespace shardproof
