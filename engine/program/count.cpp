#include "engine/program/count.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

namespace shardproof {
namespace {

class Counter {
 public:
  Counter(const Program& program, const std::map<std::string, Type>& types, const Torus& torus,
          const Numerics& numerics, const ModelConfig& config)
      : types_(types), torus_(torus), numerics_(numerics), config_(config) {
    for (const ValueDecl& input : program.inputs) declared_[input.name] = &input;
    for (const Op& op : program.ops)
      for (const ValueDecl& result : op.results) declared_[result.name] = &result;
  }

  StepCost cost(const Op& op) const {
    StepCost cost;
    cost.step = op.results[0].name;
    cost.kind = op.kind;
    cost.wire_bytes = bytes_of(wire_type(*declared_.at(op.args[0]), numerics_, config_));
    if (is_collective(op.kind)) collective(op, cost);
    cost.flops = torus_.chips() * flops(op);
    for (const std::string& arg : op.args) cost.hbm_bytes += elements(arg) * bytes(arg);
    for (const ValueDecl& r : op.results) cost.hbm_bytes += elements(r.name) * bytes(r.name);
    cost.hbm_bytes *= torus_.chips();
    return cost;
  }

 private:
  std::int64_t elements(const std::string& value) const {
    const Type& type = types_.at(value);
    return element_count(local_shape(type.layout, type.shape, torus_));
  }
  /// Bytes of an element in a chip's memory, where partial sums are f32 however they travel.
  int bytes(const std::string& value) const {
    const ValueDecl& declared = *declared_.at(value);
    if (declared.layout.is_partial()) return bytes_of(NumberFormat::f32);
    return bytes_of(wire_type(declared, numerics_, config_));
  }
  std::int64_t extent(const std::string& value, char letter) const {
    const Type& type = types_.at(value);
    return local_shape(type.layout, type.shape, torus_)[*type.layout.find(letter)];
  }

  void collective(const Op& op, StepCost& cost) const {
    const bool result = op.kind == OpKind::all_gather || op_row(op.kind).searches;
    const std::string& larger = result ? op.results[0].name : op.args[0];
    cost.axes = op.axes;
    cost.group = torus_.size(op.axes);
    cost.buffer_layout = types_.at(larger).layout;
    cost.buffer = elements(larger);
    cost.moved = moved_elements(op.kind, op.axes, op.as, cost.buffer, torus_);
  }

  /// FLOPs on one chip; only contractions count.
  std::int64_t flops(const Op& op) const {
    if (!op_row(op.kind).multiplies) return 0;
    if (is_attention(op.kind))  // the products for the scores and for the weighted values
      return 4 * elements(op.results[0].name) * extent(op.args[0], 'Q');
    std::int64_t total = 0;
    for (std::size_t t = 0; t < op.spec.terms.size(); ++t) {
      std::int64_t products = elements(op.results[0].name);
      for (char c : EinsumSpec::contracted(op.spec.terms[t])) products *= extent(op.args[2 * t], c);
      total += 2 * products;
    }
    return total;
  }

  const std::map<std::string, Type>& types_;
  const Torus& torus_;
  const Numerics& numerics_;
  const ModelConfig& config_;
  std::map<std::string, const ValueDecl*> declared_;
};

std::string upper(const Axes& axes) {
  std::string text;
  for (Axis a : axes.sorted())
    text += static_cast<char>(std::toupper(static_cast<unsigned char>(to_char(a))));
  return text;
}

}  // namespace

int times_sent(OpKind kind) {
  const OpRow& op = op_row(kind);
  return op.searches || (op.reduces && !op.depends_on_place) ? 2 : 1;
}

std::int64_t Ledger::moved() const {
  std::int64_t total = 0;
  for (const StepCost& step : steps) total += step.moved;
  return total;
}

std::int64_t Ledger::moved_bytes() const {
  std::int64_t total = 0;
  for (const StepCost& step : steps) total += step.moved * step.wire_bytes;
  return total;
}

std::int64_t Ledger::flops() const {
  std::int64_t total = 0;
  for (const StepCost& step : steps) total += step.flops;
  return total;
}

std::int64_t moved_elements(OpKind kind, const Axes& axes, const Axes& as, std::int64_t buffer,
                            const Torus& torus) {
  const std::int64_t n = torus.chips();
  if (kind == OpKind::permute_axes) {
    std::int64_t moved = 0;
    for (int chip = 0; chip < n; ++chip)
      if (torus.block(chip, axes) != torus.block(chip, as)) moved += buffer;
    return moved;
  }
  // D(K−1)/K per chip; a whole number over all n chips, since K divides n.
  const int group = torus.size(axes);
  return times_sent(kind) * buffer * (group - 1) * (n / group);
}

Ledger count(const Program& program, const std::map<std::string, Type>& types, const Torus& torus,
             const Numerics& numerics, const ModelConfig& config) {
  const Counter counter(program, types, torus, numerics, config);
  Ledger ledger{torus.chips(), {}};
  for (const Op& op : program.ops) ledger.steps.push_back(counter.cost(op));
  return ledger;
}

std::string formula(const StepCost& cost, bool paper) {
  std::string text = times_sent(cost.kind) == 2 ? "2 " : "";
  text += cost.buffer_layout.letters();
  Axes sharding;
  for (const Layout::Dim& dim : cost.buffer_layout.dims()) sharding = sharding.with(dim.axes);
  if (!sharding.empty()) text += "/" + upper(sharding);
  if (paper || cost.kind == OpKind::permute_axes) return text;
  return text + fmt::format(" (1-1/{})", upper(cost.axes));
}

double elements_per_chip(const StepCost& cost, int chips, bool paper) {
  if (!paper || cost.group == 1) return static_cast<double>(cost.moved) / chips;
  return static_cast<double>(times_sent(cost.kind) * cost.buffer);
}

}  // namespace shardproof
