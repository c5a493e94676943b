#include "engine/program/step.h"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "engine/collectives/transfer.h"
#include "engine/ops/map.h"
#include "engine/ops/rearrange.h"
#include "engine/program/constants.h"
#include "engine/program/field_degrees.h"
#include "engine/program/rethrow.h"
#include "engine/program/typing.h"
#include "weights/model/softmax.h"

namespace shardproof {

/// Infers the result types from the operands. Declared layouts play no part: without the type check
/// they may fit no data.
std::vector<Type> Step::inferred() const {
  if (to_string(op_.kind).empty()) throw std::logic_error("this op is not implemented");
  std::vector<Type> operands;
  for (const SharedValue& arg : args_) operands.push_back(arg->type());
  const Torus torus = args_.empty() ? Torus() : arg(0).torus();
  std::vector<Type> types;
  std::string why;
  try {
    types = infer(op_, operands, torus);
    for (const Type& type : types) local_shape(type.layout, type.shape, torus);
    if (std::ssize(op_.results) == op_row(op_.kind).results) return types;
    why = fmt::format("{} results, not {}", types.size(), op_.results.size());
  } catch (const Error& error) {
    why = error.what();
  }
  throw Error("engine_types",
              fmt::format("{} = {}: {}", execution_.scope.step(program_, op_.results.at(0).name),
                          op_.to_string(), why));
}

Moves Step::moves() const {
  const Sharded& t = arg(0);
  const Shape& local = t.local();
  switch (op_.kind) {
    case OpKind::all_gather:
      return all_gather_moves(t.torus(), local, dim(op_.dim), op_.axes);
    case OpKind::reduce_scatter:
      return reduce_scatter_moves(t.torus(), local, dim(op_.dim), op_.axes);
    case OpKind::all_reduce:
      return all_reduce_moves(t.torus(), local, op_.axes);
    case OpKind::all_to_all:
      return all_to_all_moves(t.torus(), local, dim(op_.dim), dim(op_.to), op_.axes, op_.as);
    case OpKind::permute_axes:
      return permute_axes_moves(t.torus(), local, op_.axes, op_.as);
    default:
      return slice_moves(t.torus(), local, dim(op_.dim), op_.axes);
  }
}

/// The result of moves(), from the memo if it has it.
std::shared_ptr<const Moves> Step::plan() {
  if (memo_ != nullptr && memo_->plan() != nullptr) return memo_->plan();
  auto made = std::make_shared<const Moves>(moves());
  if (memo_ != nullptr) memo_->keep(made);
  return made;
}

/// The plan, changed by the fault hook if there is one.
std::shared_ptr<const Moves> Step::as_executed(std::shared_ptr<const Moves> plan) {
  if (execution_.faults != nullptr && execution_.faults->plan) {
    Moves changed = *plan;
    try {
      execution_.faults->plan(execution_.scope, program_, op_, changed);
    } catch (...) {
      throw HookFailed{std::current_exception()};
    }
    require_executable(changed, *plan);
    return std::make_shared<const Moves>(std::move(changed));
  }
  return plan;
}

Sharded Step::collective() {
  const std::shared_ptr<const Moves> executed = as_executed(plan());
  const Moves& m = *executed;
  for (int chip = 0; chip < arg(0).torus().chips(); ++chip) received_ += m.received(chip);
  if (op_.by_max) return largest_of_chips(m);
  const Summation how = summation();
  if (op_row(op_.kind).reduces) return reduce(arg(0), m, to().layout, to().shape, threads_, how);
  Sharded moved = transfer(arg(0), m, to().layout, to().shape, threads_);
  // All elements are rounded, including those that stay on their chip.
  const bool rounds = how.wire == NumberFormat::bf16 && is_collective(op_.kind) &&
                      arg(0).layout().is_partial() && !arg(0).holds_partial() &&
                      arg(0).torus().size(op_.axes) > 1;
  return rounds ? store(moved, threads_) : std::move(moved);
}

Sharded Step::largest_of_chips(const Moves& m) const {
  try {
    return reduce_by_max(arg(0), m, to().layout, to().shape, threads_);
  } catch (const Error& error) {
    rethrow_about(error, execution_.scope.step(program_, op_.results[0].name) + ": ");
  }
}

/// How sums of the op's result are computed in the f32 regime.
Summation Step::summation() const {
  const Role& role = op_.results[0].role;
  const bool scatters = op_row(op_.kind).reduces && op_row(op_.kind).depends_on_place;
  const ModelRows* const rows = execution_.config.rows.get();
  return {execution_.numerics.schedule, acc_type(role, execution_.numerics, rows),
          partial_wire_type(role, execution_.numerics, rows), op_.loop,
          scatters ? dim(op_.dim) : 0};
}

/// Returns true if some row has fewer tokens than the pass.
bool Step::has_padding(std::int64_t L) const {
  return std::any_of(execution_.rows.begin(), execution_.rows.end(),
                     [L](const PassRows& group) { return group.tokens != L; });
}

std::optional<RowTokens> Step::row_tokens(std::int64_t L) const {
  if (!has_padding(L)) return std::nullopt;
  RowTokens all;
  for (const PassRows& group : execution_.rows) {
    all.tokens.insert(all.tokens.end(), static_cast<std::size_t>(group.rows), group.tokens);
    all.ends.insert(all.ends.end(), static_cast<std::size_t>(group.rows), group.end());
  }
  return all;
}

/// The indices of the rows' last tokens; nullopt if all are the last of L. A row without tokens
/// keeps index 0, whose result nothing uses.
std::optional<KeptPlaces> Step::last_tokens() const {
  const auto batch = arg(0).layout().find('B');
  const std::int64_t L = arg(0).shape()[dim('L')];
  if (!batch || !has_padding(L)) return std::nullopt;
  KeptPlaces kept{*batch, arg(0).layout().dims()[*batch].axes, {}};
  for (const PassRows& group : execution_.rows)
    kept.of_row.insert(kept.of_row.end(), static_cast<std::size_t>(group.rows),
                       std::max<std::int64_t>(group.tokens - 1, 0));
  return kept;
}

Sharded Step::last() {
  const auto m = as_executed(std::make_shared<const Moves>(
      last_moves(arg(0).torus(), arg(0).local(), dim('L'), last_tokens())));
  return transfer(arg(0), *m, to().layout, to().shape, threads_);
}

PartialSums Step::partial_values() const {
  return reduced_ && reduced_->has_all(to().layout.partial()) && op_.indicators == 0
             ? PartialSums::allow_lazy
             : PartialSums::materialize;
}

Sharded Step::product() const {
  std::vector<std::pair<SharedValue, SharedValue>> terms;
  for (std::size_t i = 0; i + 1 < op_.operands(); i += 2)
    terms.emplace_back(args_[i], args_[i + 1]);
  return einsum(op_.spec, terms, to().layout, to().shape, threads_, execution_.numerics.regime,
                summation().acc, op_.looped.empty() ? std::vector<Ring>() : program_.rings(op_),
                partial_values());
}

/// The first operand, with the indicators of `where`.
Present Step::present() const {
  Present x{arg(0)};
  for (std::size_t i = op_.operands(); i < args_.size(); ++i) x.indicators.push_back(&arg(i));
  return x;
}

/// The value with +0 where it does not exist.
Sharded Step::where(Sharded value) const {
  for (std::size_t i = op_.operands(); i < args_.size(); ++i)
    value = where_present(value, arg(i), threads_);
  return value;
}

Sharded Step::local_reduction() const {
  try {
    if (op_.kind == OpKind::max)
      return largest(present(), op_.parameter, to().layout, to().shape, threads_);
    if (op_.kind == OpKind::mean)
      return mean_of(present(), op_.parameter, to().layout, to().shape, threads_,
                     execution_.numerics.regime);
    return stored_sum(present(), op_.parameter, to().layout, to().shape, threads_,
                      execution_.numerics.act);
  } catch (const Error& error) {
    rethrow_about(error, execution_.scope.step(program_, op_.results[0].name) + ": ");
  }
}

Sharded Step::mapped() const {
  std::vector<const Sharded*> operands;
  for (std::size_t i = 0; i < op_.operands(); ++i) operands.push_back(args_[i].get());
  const MapNames names(*op_.expression, op_.constants, op_.formulas);
  std::shared_ptr<const Field> field = execution_.field;
  for (const Sharded* operand : operands)
    if (operand->holds_field()) field = operand->field().field;
  return map_elements({*op_.expression, names, execution_.numerics.act}, operands, to().layout,
                      to().shape, field, threads_);
}

/// Attention over one cache, or over a prefix's and the row's own.
Attention Step::attention() {
  const Regime regime = execution_.numerics.regime;
  const Softmax softmax = execution_.config.softmax;
  const std::optional<RowTokens> padded = row_tokens(arg(0).shape()[1]);
  const RowTokens* const rows = padded ? &*padded : nullptr;
  const auto slopes = [&](std::size_t i) { return args_.size() > i ? args_[i].get() : nullptr; };
  if (op_.kind == OpKind::attend)
    return attend(arg(0), arg(1), arg(2), arg(3), threads_, regime, slopes(4), rows, softmax);
  return attend_prefix(arg(0), arg(1), arg(2), {arg(3), arg(4)}, arg(5), threads_, regime,
                       slopes(6), rows, softmax);
}

/// The sums, floor and kept elements of a search. Every round sums over the group by one plan.
Threshold Step::threshold() {
  const bool counts = op_.kind == OpKind::top_k;
  const Shape round{arg(0).local()[0], counts ? kCountWords : std::int64_t{kSumWords}};
  const std::shared_ptr<const Moves> executed =
      as_executed(std::make_shared<const Moves>(all_reduce_moves(arg(0).torus(), round, op_.axes)));
  const Moves& m = *executed;
  const std::int64_t rounds = (counts ? kTopKWords : kTopPWords) / round[1];
  for (int chip = 0; chip < arg(0).torus().chips(); ++chip) received_ += rounds * m.received(chip);
  const Sampling& how = execution_.draws.sampling;
  return counts ? top_k(arg(0), how.top_k, m, threads_) : top_p(arg(0), how.top_p, m, threads_);
}

/// The biases: all operands after the first.
std::vector<const Sharded*> Step::vectors() const {
  std::vector<const Sharded*> all;
  for (std::size_t i = 1; i < args_.size(); ++i) all.push_back(args_[i].get());
  return all;
}

namespace {

/// Moves values into a vector; an initializer list would copy every shard.
template <class... Value>
std::vector<Sharded> results(Value&&... values) {
  std::vector<Sharded> all;
  all.reserve(sizeof...(values));
  (all.push_back(std::move(values)), ...);
  return all;
}

}  // namespace

std::vector<Sharded> Step::run() {
  if (execution_.types != nullptr)
    memo_ = nullptr;
  else if (memo_ == nullptr)
    types_ = inferred();
  else if (!memo_->is_of(args_))
    memo_->begin(args_, inferred());
  operands_of_sort(op_, args_, threads_);
  std::vector<Sharded> made = values();
  count_field(op_, args_, made,
              {execution_.scope.layer, execution_.config.V,
               fmt::format("{}{}.{}", program_.name, execution_.scope.layer, op_.results[0].name),
               execution_.numerics.act});
  return made;
}

std::vector<Sharded> Step::values() {
  switch (op_.kind) {
    case OpKind::all_gather:
    case OpKind::reduce_scatter:
    case OpKind::all_reduce:
    case OpKind::all_to_all:
    case OpKind::permute_axes:
    case OpKind::slice:
      return results(collective());
    case OpKind::last:
      return results(last());
    case OpKind::split_dim:
    case OpKind::merge_dim:
      return results(arg(0).relabelled(to().layout, to().shape));
    case OpKind::einsum:
      return results(where(product()));
    case OpKind::embed_lookup:
      return results(embed_lookup(arg(0), args_[1], to().layout, threads_,
                                  execution_.numerics.regime, V(), partial_values()));
    case OpKind::add:
      return results(add(arg(0), arg(1), threads_));
    case OpKind::scale:
      return results(scale(arg(0), arg(1), threads_));
    case OpKind::scale_by:
      return results(scale_by(arg(0), static_cast<float>(constant_of(op_, execution_.config)),
                              threads_, op_.parameter));
    case OpKind::divide_by:
      return results(divide_by(arg(0), constant_of(op_, execution_.config), threads_));
    case OpKind::bias:
      return results(bias(arg(0), vectors(), threads_));
    case OpKind::center:
      return results(center(arg(0), arg(1), threads_));
    case OpKind::store:
      return results(store(arg(0), threads_));
    case OpKind::norm:
      return results(norm(arg(0), arg(1), arg(2), args_.size() > 3 ? args_[3].get() : nullptr,
                          eps_of_norms(execution_.config), threads_));
    case OpKind::rope:
      return results(rope(RopePairs::half_split, arg(0), arg(1), arg(2), arg(3), threads_));
    case OpKind::rope_interleaved:
      return results(rope(RopePairs::interleaved, arg(0), arg(1), arg(2), arg(3), threads_));
    case OpKind::swiglu:
      return results(swiglu(arg(0), arg(1), threads_, execution_.config.softmax));
    case OpKind::geglu:
      return results(geglu(arg(0), arg(1), threads_));
    case OpKind::gelu:
      return results(gelu(arg(0), threads_));
    case OpKind::gelu_erf:
      return results(gelu_erf(arg(0), threads_));
    case OpKind::append: {
      const std::optional<RowTokens> rows = row_tokens(arg(1).shape()[*arg(1).layout().find('L')]);
      return results(append(arg(0), arg(1), arg(2), threads_, execution_.config.cache,
                            rows ? &*rows : nullptr, execution_.prefix, op_.zeros));
    }
    case OpKind::attend:
    case OpKind::attend_prefix: {
      Attention a = attention();
      return results(std::move(a.score), std::move(a.max), std::move(a.exp), std::move(a.denom),
                     std::move(a.attn));
    }
    case OpKind::with_prefix:
      return results(with_prefix(arg(0), arg(1), to().shape, threads_));
    case OpKind::local_argmax: {
      Candidates c = local_argmax(arg(0), threads_, V());
      return results(std::move(c.value), std::move(c.index));
    }
    case OpKind::argmax:
      return results(argmax(arg(0), arg(1), threads_, block_of_ids(), V()));
    case OpKind::weigh:
      return results(weigh(arg(0), arg(1), execution_.draws.sampling.temperature, threads_,
                           execution_.draws.unit, execution_.config.V));
    case OpKind::top_k:
    case OpKind::top_p: {
      Threshold t = threshold();
      return results(std::move(t.sums), std::move(t.floor), std::move(t.kept));
    }
    case OpKind::masses:
      return results(masses(arg(0), threads_));
    case OpKind::draw: {
      TokenDraw d = draw(arg(0), arg(1), execution_.draws, threads_);
      return results(std::move(d.hit), std::move(d.index));
    }
    case OpKind::map:
      return results(where(mapped()));
    case OpKind::max:
    case OpKind::stored_sum:
    case OpKind::mean:
      return results(local_reduction());
    case OpKind::top:
      return results(mark_top(present(), op_.dim, op_.count, threads_));
    case OpKind::sum:
      return results(sum_over(args_[0], op_.parameter, to().layout, to().shape, threads_,
                              execution_.numerics.regime, summation().acc, partial_values()));
    case OpKind::turn:
      return results(where(turn_pairs(
          arg(0), op_.dim, op_.parameter == "half" ? RopePairs::half_split : RopePairs::interleaved,
          op_.count, threads_)));
    case OpKind::gather:
      return results(gather_rows(arg(0), arg(1), to().layout, to().shape, threads_));
  }
  throw std::logic_error("this op is not implemented");
}

}  // namespace shardproof
