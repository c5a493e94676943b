#include "engine/program/execute.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <exception>
#include <new>
#include <optional>
#include <span>
#include <stdexcept>

#include "engine/collectives/chip_groups.h"
#include "engine/program/detail/overflow.h"
#include "engine/program/step.h"
#include "weights/base/error.h"
#include "weights/base/ieee.h"

namespace shardproof {
namespace {

/// Returns true if a caller that donates its inputs no longer needs one of this role. What the
/// embedding of a text's model returns, all layers read.
bool is_activation(const Role& m, const ModelRows* rows) {
  if (rows != nullptr && m.kind == Role::Kind::checkpoint)
    if (const ValueRow* const row = value_row(m, rows); row != nullptr && !row->per_layer)
      return false;
  return m.kind != Role::Kind::weight && m.kind != Role::Kind::input &&
         m.kind != Role::Kind::constant && m.kind != Role::Kind::prefix;
}

/// Converts the exception that ended a step to a finding; rethrows std::bad_alloc.
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
    // These labels are the type check's; the run reports them only if the type check is off.
    if (found.label == "engine_types" || found.label == "sharded_c1")
      found.detector = Detector::types;
    if (found.label == "field_zero")
      found.message = fmt::format("{} = {}: {}", found.step, found.op, error.what());
  } catch (const std::bad_alloc&) {
    throw;
  } catch (const std::exception& error) {  // an internal error: say where
    found.message = fmt::format("{} = {}: {}", found.step, found.op, error.what());
  }
  return found;
}

/// Shows a hook what each chip that computed by itself has of a step's result, to be changed in
/// place: chips that share a result share the change.
void show_to_chips(const FaultHooks& hooks, const Scope& scope, const Program& program,
                   const Op& op, const ValueDecl& declared, const Sharded& value) {
  const auto bytes = [](const auto& buffer) {
    auto* const data = const_cast<std::remove_cvref_t<decltype(buffer[0])>*>(buffer.data());
    return std::as_writable_bytes(std::span(data, buffer.size()));
  };
  ChipGroups computed(value.torus());
  computed.split(value);
  for (const int chip : computed.first_chips()) {
    const auto c = static_cast<std::size_t>(chip);
    const std::span<std::byte> made = value.holds_partial()  ? bytes(value.partial().values[c])
                                      : value.holds_field()  ? bytes(value.field().values[c])
                                      : value.stores_int32() ? bytes(value.i32()[c])
                                                             : bytes(value.f32()[c]);
    hooks.computed(scope, program, op, declared, chip, made);
  }
}

/// Returns true if nothing but the program's own ops reads the elements of partial sums, and no
/// hazard or fault hook needs them where they are computed.
bool partials_unseen(const Execution& execution) {
  const Hazards& h = execution.hazards;
  const FaultHooks* const f = execution.faults;
  return (execution.observer == nullptr || !execution.observer->reads_partials()) &&
         (f == nullptr || (!f->plan && !f->computed && !f->result)) && !h.fresh_nan && !h.poison &&
         !h.order && !h.replicas && !h.alone;
}

/// The only reader of the result of op i if it is a reduction; otherwise null.
const Op* only_reduction(const Program& program, std::size_t i) {
  if (program.ops[i].results.size() != 1) return nullptr;
  const ValueDecl& result = program.ops[i].results[0];
  const auto& outputs = program.outputs;
  if (!result.layout.is_partial() ||
      std::find(outputs.begin(), outputs.end(), result.name) != outputs.end())
    return nullptr;
  const Op* reader = nullptr;
  for (std::size_t j = i + 1; j < program.ops.size(); ++j) {
    const Op& op = program.ops[j];
    if (std::find(op.args.begin(), op.args.end(), result.name) == op.args.end()) continue;
    if (reader != nullptr || !op_row(op.kind).reduces) return nullptr;
    reader = &op;
  }
  return reader;
}

}  // namespace

std::string Scope::step(const Program& program, const std::string& value) const {
  std::string text = pass + ".";
  const bool of_layer = program.of_layer();
  if (of_layer) (text += "layer" + std::to_string(layer)) += '.';
  if (!of_layer || program.name != kLayerProgram) (text += program.name) += '.';
  return text += value;
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
  // Observes and checks a value. Returns false if the run has ended.
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

  std::optional<Liveness> own;
  if (execution.liveness == nullptr) own.emplace(program);
  const Liveness& live = own ? *own : *execution.liveness;
  const std::map<std::string, std::size_t>& last_use = live.last_use;
  std::vector<std::pair<std::string, std::weak_ptr<Sharded>>> poisonable;
  if (execution.hazards.poison && execution.donate_inputs)
    for (const ValueDecl& input : program.inputs)
      if (is_activation(input.role, program.rows.get()) && live.needed.contains(input.name))
        poisonable.emplace_back(input.name,
                                std::const_pointer_cast<Sharded>(values.at(input.name)));

  const bool unseen = partials_unseen(execution);
  for (std::size_t i = 0; i < program.ops.size(); ++i) {
    const Op& op = program.ops[i];
    std::vector<SharedValue> args;
    for (const std::string& name : op.args) args.push_back(values.at(name));
    Step step(program, op, std::move(args), execution,
              execution.memo == nullptr ? nullptr : &execution.memo->ops[i]);
    if (const Op* const reader = unseen ? only_reduction(program, i) : nullptr; reader != nullptr)
      step.allow_lazy_over(reader->axes);
    std::vector<Sharded> results;
    try {
      results = step.run();
    } catch (const HookFailed& hook) {
      std::rethrow_exception(hook.error);
    } catch (...) {
      report(broken_step(execution.scope, program, op));
      execution.findings->end();  // there is no value to continue with
      return {};
    }
    if (execution.observer != nullptr && is_collective(op.kind))
      execution.observer->moved(execution.scope, program, op, step.received());
    for (std::size_t r = 0; r < results.size(); ++r) {
      // No chip computes a result that is only relabelled.
      const bool relabelled = op.kind == OpKind::split_dim || op.kind == OpKind::merge_dim;
      if (execution.faults != nullptr && execution.faults->computed && !relabelled)
        show_to_chips(*execution.faults, execution.scope, program, op, op.results[r], results[r]);
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
    // A value past its last use may still be referenced, but not read.
    std::erase_if(poisonable, [&](const auto& made) {
      if (live.needed.at(made.first) > i) return false;
      if (const auto value = made.second.lock()) value->poison();
      return true;
    });
  }
  std::map<std::string, SharedValue> outputs;
  for (const std::string& name : program.outputs) outputs[name] = values.at(name);
  return outputs;
}

}  // namespace shardproof
