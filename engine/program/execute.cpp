#include "engine/program/execute.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <exception>
#include <new>
#include <stdexcept>

#include "engine/local_ops.h"
#include "engine/program/constants.h"
#include "engine/program/field_degrees.h"
#include "engine/program/liveness.h"
#include "engine/program/overflow.h"
#include "engine/program/typing.h"
#include "engine/sampling.h"
#include "engine/transfer.h"
#include "weights/error.h"
#include "weights/ieee.h"
#include "weights/softmax.h"

namespace shardproof {
namespace {

/// A fault hook's own exception, which is the caller's and no finding of the step it ends.
struct HookFailed {
  std::exception_ptr error;
};

/// One op of a program being run.
class Step {
 public:
  Step(const Program& program, const Op& op, std::vector<SharedValue> args,
       const Execution& execution)
      : program_(program),
        op_(op),
        args_(std::move(args)),
        execution_(execution),
        threads_(execution.threads) {}

  std::vector<Sharded> run();

  /// Elements that crossed between chips.
  std::int64_t received() const { return received_; }

 private:
  const Sharded& arg(std::size_t i) const { return *args_[i]; }
  const Type& to() const {
    return execution_.types == nullptr ? types_[0] : execution_.types->at(op_.results[0].name);
  }
  std::size_t dim(char letter) const { return arg(0).layout().find(letter).value(); }
  std::int64_t V() const { return execution_.config.V; }
  /// Ids that a candidate is the best of, padded ones included.
  std::int64_t block_of_ids() const {
    return (execution_.placed == nullptr ? V() : execution_.placed->V) / arg(0).local()[1];
  }

  std::vector<Type> inferred() const;
  std::vector<Sharded> values();
  Moves moves() const;
  Moves as_executed(Moves plan);
  Summation summation() const;
  Sharded collective();
  bool has_padding(std::int64_t L) const;
  std::optional<KeptPlaces> last_tokens() const;
  std::optional<RowTokens> row_tokens(std::int64_t L) const;
  Sharded last();
  Sharded product() const;
  Attention attention();
  Threshold threshold();
  std::vector<const Sharded*> vectors() const;

  const Program& program_;
  const Op& op_;
  std::vector<SharedValue> args_;
  const Execution& execution_;
  Threads& threads_;
  std::vector<Type> types_;  ///< of the results, where they are inferred
  std::int64_t received_ = 0;
};

/// What the operands make of it. The declared layouts play no part: without the type check they may
/// be what no data fits.
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

/// The plan with the fault that is planted in it, if there is one.
Moves Step::as_executed(Moves plan) {
  if (execution_.faults != nullptr && execution_.faults->plan) {
    Moves changed = plan;
    try {
      execution_.faults->plan(execution_.scope, program_, op_, changed);
    } catch (...) {
      throw HookFailed{std::current_exception()};
    }
    require_executable(changed, plan);
    plan = std::move(changed);
  }
  return plan;
}

Sharded Step::collective() {
  const Moves m = as_executed(moves());
  for (int chip = 0; chip < arg(0).torus().chips(); ++chip) received_ += m.received(chip);
  const Summation how = summation();
  if (op_row(op_.kind).reduces) return reduce(arg(0), m, to().layout, to().shape, threads_, how);
  Sharded moved = transfer(arg(0), m, to().layout, to().shape, threads_);
  // Every element, also one that stays on its chip.
  const bool rounds = how.wire == FloatType::bf16 && is_collective(op_.kind) &&
                      arg(0).layout().is_partial() && !arg(0).holds_partial() &&
                      arg(0).torus().size(op_.axes) > 1;
  return rounds ? store(moved, threads_) : std::move(moved);
}

/// How sums of what the op yields are made in the f32 regime.
Summation Step::summation() const {
  const Role& role = op_.results[0].role;
  const bool scatters = op_row(op_.kind).reduces && op_row(op_.kind).depends_on_place;
  return {execution_.numerics.schedule, acc_type(role, execution_.numerics),
          partial_wire_type(role, execution_.numerics), op_.loop, scatters ? dim(op_.dim) : 0};
}

/// Whether a row has fewer tokens than the pass.
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

/// The places of the rows' last tokens; none where they are the last of L. A row without a token
/// keeps its first place, of which nothing is asked.
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
  const Moves m = as_executed(last_moves(arg(0).torus(), arg(0).local(), dim('L'), last_tokens()));
  return transfer(arg(0), m, to().layout, to().shape, threads_);
}

Sharded Step::product() const {
  std::vector<std::pair<SharedValue, SharedValue>> terms;
  for (std::size_t i = 0; i + 1 < args_.size(); i += 2) terms.emplace_back(args_[i], args_[i + 1]);
  return einsum(op_.spec, terms, to().layout, to().shape, threads_, execution_.numerics.regime,
                summation().acc, op_.looped.empty() ? std::vector<Ring>() : program_.rings(op_));
}

/// Over one cache, or over a prefix's and the row's own.
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

/// A search's sums, floor and what is kept. Each round is one sum over the group by the one plan.
Threshold Step::threshold() {
  const bool counts = op_.kind == OpKind::top_k;
  const Shape round{arg(0).local()[0], counts ? kCountWords : std::int64_t{kSumWords}};
  const Moves m = as_executed(all_reduce_moves(arg(0).torus(), round, op_.axes));
  const std::int64_t rounds = (counts ? kTopKWords : kTopPWords) / round[1];
  for (int chip = 0; chip < arg(0).torus().chips(); ++chip) received_ += rounds * m.received(chip);
  const Sampling& how = execution_.draws.sampling;
  return counts ? top_k(arg(0), how.top_k, m, threads_) : top_p(arg(0), how.top_p, m, threads_);
}

/// The biases, after the first operand.
std::vector<const Sharded*> Step::vectors() const {
  std::vector<const Sharded*> all;
  for (std::size_t i = 1; i < args_.size(); ++i) all.push_back(args_[i].get());
  return all;
}

/// Moved into a vector; braces would copy every shard.
template <class... Value>
std::vector<Sharded> results(Value&&... values) {
  std::vector<Sharded> all;
  all.reserve(sizeof...(values));
  (all.push_back(std::move(values)), ...);
  return all;
}

std::vector<Sharded> Step::run() {
  if (execution_.types == nullptr) types_ = inferred();
  operands_of_sort(op_, args_, threads_);
  std::vector<Sharded> made = values();
  count_field(op_, args_, made, execution_.scope.layer, execution_.config.V);
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
      return results(product());
    case OpKind::embed_lookup:
      return results(
          embed_lookup(arg(0), args_[1], to().layout, threads_, execution_.numerics.regime, V()));
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
      const std::optional<RowTokens> rows = row_tokens(arg(1).shape()[1]);
      return results(append(arg(0), arg(1), arg(2), threads_, execution_.config.cache,
                            rows ? &*rows : nullptr, execution_.prefix));
    }
    case OpKind::attend:
    case OpKind::attend_prefix: {
      Attention a = attention();
      return results(std::move(a.score), std::move(a.max), std::move(a.exp), std::move(a.denom),
                     std::move(a.attn));
    }
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
      Drawn d = draw(arg(0), arg(1), execution_.draws, threads_);
      return results(std::move(d.hit), std::move(d.index));
    }
  }
  throw std::logic_error("this op is not implemented");
}

bool is_activation(const Role& m) {
  return m.kind != Role::Kind::weight && m.kind != Role::Kind::input &&
         m.kind != Role::Kind::constant && m.kind != Role::Kind::prefix;
}

/// What ended a step by an exception, as a finding; memory that ran out is none.
Finding broken_step(const Scope& scope, const Program& program, const Op& op) {
  Finding found{.detector = Detector::run};
  found.pass = scope.pass;
  found.step = op.results.empty() ? program.name : scope.step(program, op.results[0].name);
  found.op = op.to_string();
  try {
    throw;
  } catch (const Error& error) {
    found.label = error.label();
    found.message = error.message();
    // Only where the type check is off is it the run that finds what does not fit.
    if (found.label == "engine_types" || found.label == "sharded_c1")
      found.detector = Detector::types;
    if (found.label == "field_zero")
      found.message = fmt::format("{} = {}: {}", found.step, found.op, error.what());
  } catch (const std::bad_alloc&) {
    throw;
  } catch (const std::exception& error) {  // an error of the engine's own: say where
    found.message = fmt::format("{} = {}: {}", found.step, found.op, error.what());
  }
  return found;
}

}  // namespace

std::string Scope::step(const Program& program, const std::string& value) const {
  if (!program.of_layer()) return fmt::format("{}.{}.{}", pass, program.name, value);
  const std::string within = program.name == kLayerProgram ? "" : program.name + ".";
  return fmt::format("{}.layer{}.{}{}", pass, layer, within, value);
}

std::map<std::string, SharedValue> execute(const Program& program,
                                           std::map<std::string, SharedValue> inputs,
                                           const Execution& execution) {
  require_ieee();
  const HazardScope hazards(execution.hazards, execution.threads);
  std::map<std::string, SharedValue> values = std::move(inputs);
  const auto report = [&](Finding found) {
    if (execution.findings == nullptr) {
      if (found.label.empty()) throw std::runtime_error(found.message);
      throw Error(found.label, found.message);
    }
    found.pass = execution.scope.pass;
    execution.findings->add(std::move(found));
  };
  const auto ended = [&] { return execution.findings != nullptr && execution.findings->ended(); };
  // Whether the run goes on.
  const auto seen = [&](const Op* op, const ValueDecl& declared, const Sharded& value) {
    if (execution.observer != nullptr)
      execution.observer->observe(execution.scope, program, op, declared, value);
    if (!ended() && op != nullptr && !op_row(op->kind).only_moves)
      if (auto found = overflow(execution.scope, program, declared, value))
        report(std::move(*found));
    if (!ended() && execution.hazards.replicas)
      if (auto found = replica_difference(execution.scope.step(program, declared.name),
                                          declared.layout, value))
        report(std::move(*found));
    return !ended();
  };
  for (const ValueDecl& input : program.inputs)
    if (!seen(nullptr, input, *values.at(input.name))) return {};

  std::map<std::string, std::size_t> last_use;
  for (std::size_t i = 0; i < program.ops.size(); ++i)
    for (const std::string& name : program.ops[i].args) last_use[name] = i;
  for (const std::string& name : program.outputs) last_use[name] = program.ops.size();

  std::map<std::string, std::size_t> until;
  if (execution.hazards.poison) until = needed_until(program);
  std::vector<std::pair<std::string, std::weak_ptr<Sharded>>> poisonable;
  if (execution.hazards.poison && execution.donate_inputs)
    for (const ValueDecl& input : program.inputs)
      if (is_activation(input.role) && until.contains(input.name))
        poisonable.emplace_back(input.name,
                                std::const_pointer_cast<Sharded>(values.at(input.name)));

  for (std::size_t i = 0; i < program.ops.size(); ++i) {
    const Op& op = program.ops[i];
    std::vector<SharedValue> args;
    for (const std::string& name : op.args) args.push_back(values.at(name));
    Step step(program, op, std::move(args), execution);
    std::vector<Sharded> results;
    try {
      results = step.run();
    } catch (const HookFailed& hook) {
      std::rethrow_exception(hook.error);
    } catch (...) {
      report(broken_step(execution.scope, program, op));
      execution.findings->end();  // it has no value to go on with
      return {};
    }
    if (execution.observer != nullptr && is_collective(op.kind))
      execution.observer->moved(execution.scope, program, op, step.received());
    for (std::size_t r = 0; r < results.size(); ++r) {
      if (execution.faults != nullptr && execution.faults->result)
        execution.faults->result(execution.scope, program, op, op.results[r], results[r]);
      if (!seen(&op, op.results[r], results[r])) return {};
      const auto made = std::make_shared<Sharded>(std::move(results[r]));
      if (execution.hazards.poison) poisonable.emplace_back(op.results[r].name, made);
      values[op.results[r].name] = made;
    }
    for (const std::string& name : op.args)
      if (last_use.at(name) == i) values.erase(name);
    for (const ValueDecl& result : op.results)
      if (!last_use.contains(result.name)) values.erase(result.name);
    // What is past its last use may still be referred to, but not read.
    std::erase_if(poisonable, [&](const auto& made) {
      if (until.at(made.first) > i) return false;
      if (const auto value = made.second.lock()) poison(*value);
      return true;
    });
  }
  std::map<std::string, SharedValue> outputs;
  for (const std::string& name : program.outputs) outputs[name] = values.at(name);
  return outputs;
}

}  // namespace shardproof
