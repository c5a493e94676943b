#include "engine/cost/work/work.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "engine/cost/formulas/detail/monomial.h"
#include "engine/cost/formulas/embeddings.h"
#include "engine/layouts/around.h"
#include "engine/program/count.h"
#include "engine/run/plan_types.h"
#include "engine/shards/finding.h"
#include "weights/model/registry.h"

namespace shardproof::cost {
/// Traffic with its buffer as a formula.
struct TrafficFormula {
  Traffic traffic;              ///< its step, kind and group
  Monomial buffer;              ///< elements
  double sent = 0.0, of = 1.0;  ///< one chip sends `sent` elements per `of` of its buffer
  int wire_bytes = 4;
};

struct PartFormulas {
  Polynomial matmul_flops, attention_flops, needed_flops, weight_bytes, weight_reads, cache_bytes,
      cache_reads, activation_bytes;
  std::vector<Polynomial> live;  ///< after each op
  std::vector<TrafficFormula> traffic;

  PartWork at(const Pass& pass) const {
    PartWork work;
    work.matmul_flops = matmul_flops.at(pass);
    work.attention_flops = attention_flops.at(pass);
    work.needed_flops = needed_flops.at(pass);
    work.weight_bytes = weight_bytes.at(pass);
    work.weight_reads = weight_reads.at(pass);
    work.cache_bytes = cache_bytes.at(pass);
    work.cache_reads = cache_reads.at(pass);
    work.activation_bytes = activation_bytes.at(pass);
    for (const Polynomial& values : live)
      work.live_bytes = std::max(work.live_bytes, values.at(pass));
    work.traffic.reserve(traffic.size());
    for (const TrafficFormula& formula : traffic) {
      Traffic t = formula.traffic;
      const double buffer = formula.buffer.at(pass);
      t.elements = buffer * formula.sent / formula.of;
      t.buffer_bytes = buffer * formula.wire_bytes;
      t.sent_bytes = t.elements * formula.wire_bytes;
      work.traffic.push_back(std::move(t));
    }
    return work;
  }
};

namespace {

/// Adds up one chip's work and memory for one program.
class ProgramCosts {
 public:
  ProgramCosts(const Program& program, const ValueTypes& types, const Torus& torus,
               const Numerics& numerics, const ModelConfig& model, const Pass& like)
      : program_(program),
        types_(types),
        torus_(torus),
        numerics_(numerics),
        model_(model),
        like_(like) {
    for (const ValueDecl& input : program.inputs) declared_[input.name] = &input;
    for (const Op& op : program.ops)
      for (const ValueDecl& result : op.results) declared_[result.name] = &result;
  }

  /// Adds the costs to `part`, but weights that all layers share to `ends`. `held` maps each
  /// resident weight counted so far to its bytes on the chip, all layers.
  void add_to(PartFormulas& part, PartFormulas& ends, std::map<std::string, double>& held) const {
    for (const ValueDecl& input : program_.inputs) {
      if (input.role.kind != Role::Kind::weight) continue;
      const auto [at, is_new] = held.emplace(input.role.name + " " + input.layout.to_string(), 0.0);
      if (!is_new) continue;
      const WeightRow* const row = weight_row(input.role.name);
      const bool shared = row != nullptr && !row->per_layer;
      (shared ? ends : part).weight_bytes.add(bytes(input.name));
      at->second =
          bytes(input.name).at(like_) * (shared ? 1.0 : static_cast<double>(model_.layers));
    }
    for (const Op& op : program_.ops) add_op(part, op);
    add_live(part);
  }

 private:
  const ValueDecl& declared(const std::string& value) const { return *declared_.at(value); }

  /// Elements of one chip's shard.
  Monomial elements(const std::string& value) const {
    return local_elements(types_.at(value), torus_, like_);
  }
  /// Bytes per element as the ledger counts them: partial sums are f32 whatever their wire type.
  /// Only the embeddings beside int8 matrices, which the engine keeps as f32, count in the type
  /// that chips would keep.
  int element_bytes(const std::string& value) const {
    const ValueDecl& decl = declared(value);
    if (decl.layout.is_partial()) return bytes_of(NumberFormat::f32);
    if (decl.role.kind == Role::Kind::weight)
      if (const WeightRow* const row = weight_row(decl.role.name))
        return bytes_of_weight(*row, numerics_.weights);
    return bytes_of(wire_type(decl, numerics_, model_));
  }
  Monomial bytes(const std::string& value) const {
    return elements(value).times(element_bytes(value));
  }
  bool is_weight(const std::string& value) const {
    return declared(value).role.kind == Role::Kind::weight;
  }
  bool is_cache(const std::string& value) const {
    const ValueRow* const row = value_row(declared(value).role);
    return row != nullptr && row->cache;
  }

  void add_op(PartFormulas& part, const Op& op) const {
    if (is_collective(op.kind)) part.traffic.push_back(traffic_of(op));
    add_flops(part, op);
    // A pass reads only a few rows of the embedding and of RoPE's tables.
    const bool reads_rows = op.kind == OpKind::embed_lookup || op.kind == OpKind::rope ||
                            op.kind == OpKind::rope_interleaved;
    for (const std::string& arg : op.args) {
      if (is_weight(arg)) {
        if (!reads_rows && !op_row(op.kind).only_moves && !is_collective(op.kind))
          part.weight_reads.add(bytes(arg));
      } else if (is_cache(arg)) {
        if (is_attention(op.kind)) part.cache_reads.add(bytes(arg));
      } else {
        part.activation_bytes.add(bytes(arg));
      }
    }
    for (std::size_t i = 0; i < op.results.size(); ++i) {
      const std::string& name = op.results[i].name;
      if (is_weight(name) || !is_written(op, i)) continue;
      if (is_cache(name)) {
        if (std::find(program_.outputs.begin(), program_.outputs.end(), name) !=
            program_.outputs.end())
          part.cache_bytes.add(bytes(name));
        continue;
      }
      part.activation_bytes.add(bytes(name));
    }
  }

  /// Attention need not store its scores: it can process the cache block by block.
  static bool is_written(const Op& op, std::size_t result) {
    return !is_attention(op.kind) || result + 1 == op.results.size();
  }

  void add_flops(PartFormulas& part, const Op& op) const {
    if (!op_row(op.kind).multiplies) return;
    if (is_attention(op.kind)) {
      const Monomial square = elements(op.results[0].name)
                                  .times(dim_extent(types_.at(op.args[0]), 'Q', torus_, like_))
                                  .times(4.0);
      part.attention_flops.add(square);
      part.needed_flops.add(square.masked());
      return;
    }
    for (std::size_t t = 0; t < op.spec.terms.size(); ++t) {
      Monomial products = elements(op.results[0].name).times(2.0);
      for (const char letter : EinsumSpec::contracted(op.spec.terms[t]))
        products = products.times(dim_extent(types_.at(op.args[2 * t]), letter, torus_, like_));
      part.matmul_flops.add(products);
      if (is_weight(op.args[2 * t + 1])) part.needed_flops.add(products);
    }
  }

  TrafficFormula traffic_of(const Op& op) const {
    TrafficFormula formula;
    Traffic& t = formula.traffic;
    t.step = op.results[0].name;
    t.kind = op.kind;
    t.axes = op.axes;
    t.group = torus_.size(op.axes);
    t.rings = rings_of(op.axes, torus_);
    t.weight = is_weight(op.args[0]);
    const bool result = op.kind == OpKind::all_gather || op_row(op.kind).searches;
    formula.buffer = elements(result ? op.results[0].name : op.args[0]);
    formula.wire_bytes = bytes_of(wire_type(declared(op.args[0]), numerics_, model_));
    // Counting for a buffer of one element per chip of the group keeps D(K−1)/K whole.
    const std::int64_t unit = t.group;
    const std::int64_t moved = moved_elements(op.kind, op.axes, op.as, unit, torus_);
    formula.sent = static_cast<double>(moved);
    formula.of = static_cast<double>(unit * torus_.chips());
    t.times = times_sent(op.kind);
    t.hops = op.kind == OpKind::permute_axes ? 1 : t.times * (t.group - 1);
    return formula;
  }

  /// Records the live bytes after each op: results that a later op uses, and outputs. A complete
  /// value counts in its stored type, not as the f32 that it is rounded from.
  void add_live(PartFormulas& part) const {
    std::unordered_map<std::string_view, std::size_t> last_use;
    for (std::size_t i = 0; i < program_.ops.size(); ++i)
      for (const std::string& arg : program_.ops[i].args) last_use[arg] = i;
    std::vector<std::pair<std::string, std::size_t>> made;  // value and its last use
    for (std::size_t i = 0; i < program_.ops.size(); ++i) {
      const Op& op = program_.ops[i];
      for (std::size_t r = 0; r < op.results.size(); ++r) {
        const std::string& name = op.results[r].name;
        if (is_cache(name) || !is_written(op, r)) continue;
        const auto used = last_use.find(name);
        made.emplace_back(name, used == last_use.end() ? i : used->second);
      }
      Polynomial live;
      for (const auto& [name, until] : made) live.add(elements(name).times(stored_bytes(name)));
      part.live.push_back(std::move(live));
      made.erase(std::remove_if(made.begin(), made.end(),
                                [i](const auto& value) { return value.second <= i; }),
                 made.end());
    }
  }
  int stored_bytes(const std::string& value) const {
    const ValueDecl& decl = declared(value);
    if (!decl.layout.is_partial())
      if (const ValueRow* const row = value_row(decl.role))
        return bytes_of(row->wire(numerics_, model_));
    return element_bytes(value);
  }

  const Program& program_;
  const ValueTypes& types_;
  const Torus& torus_;
  const Numerics& numerics_;
  const ModelConfig& model_;
  const Pass& like_;
  std::unordered_map<std::string, const ValueDecl*> declared_;
};

/// Returns which products of axes' sizes divide B and L: the paths between layouts depend on that.
std::array<bool, 14> divisibility(const Torus& torus, const Pass& pass) {
  std::array<bool, 14> divides{};
  std::size_t i = 0;
  for (unsigned set = 1; set < 8; ++set) {
    std::int64_t blocks = 1;
    for (const Axis axis : {Axis::x, Axis::y, Axis::z})
      if ((set >> static_cast<unsigned>(axis) & 1U) != 0) blocks *= torus.size(axis);
    divides[i++] = pass.B % blocks == 0;
    divides[i++] = pass.L % blocks == 0;
  }
  return divides;
}

void require_extents(const Pass& pass) {
  if (pass.B < 1 || pass.L < 1 || pass.M < 0)
    throw Error("work_c1", fmt::format("B={}, L={}, M={}: a pass has at least 1 row of 1 token, "
                                       "behind 0 or more positions",
                                       pass.B, pass.L, pass.M));
}

ValueTypes typed(const Program& program, const ModelConfig& model, const Torus& torus,
                 const Pass& pass) {
  Findings findings(Findings::Until::first);
  ValueTypes types = check(program, model, torus, {pass.B, pass.L, pass.M}, findings);
  if (!findings.all().empty()) throw FindingsError(findings.all());
  return types;
}

}  // namespace

int rings_of(const Axes& axes, const Torus& torus) {
  int rings = 0;
  for (const Axis axis : axes) rings += torus.size(axis) > 1 ? 1 : 0;
  return std::max(rings, 1);
}

double PartWork::sum(double Traffic::*what) const {
  double all = 0.0;
  for (const Traffic& t : traffic) all += t.*what;
  return all;
}

struct WorkFormulas::Formulas {
  Torus torus;
  int layers = 1;
  std::array<bool, 14> divides{};
  PartFormulas layer, ends;
  std::map<std::string, double> resting;
};

WorkFormulas::WorkFormulas(const ModelConfig& model, const Numerics& numerics, const Torus& torus,
                           const Strategy& strategy, const Pass& like) {
  require_extents(like);
  validate(model);
  validate(numerics);
  if (strategy.program() == nullptr) {
    require_legal(strategy, model, torus, like.B);
    if (like.phase == Phase::decode) require_decodes(strategy);
    require_lengths(strategy, torus, like.L, like.L);
  }
  const Extents extents = extents_of(model, like.B, like.L);
  const PhasePrograms programs =
      strategy.program() != nullptr
          ? programs_around(*strategy.program(), model, extents, torus, numerics.act)
          : programs_around(partition(strategy.table(), model, extents, torus, numerics), model,
                            extents, torus, numerics.act);
  Formulas formulas;
  formulas.torus = torus;
  formulas.layers = static_cast<int>(model.layers);
  formulas.divides = divisibility(torus, like);
  const auto add = [&](const Program& program, PartFormulas& part) {
    const ValueTypes types = typed(program, model, torus, like);
    ProgramCosts(program, types, torus, numerics, model, like)
        .add_to(part, formulas.ends, formulas.resting);
  };
  add(programs.layer, formulas.layer);
  for (const Program* program : {&programs.embed, &programs.head, &programs.sample})
    add(*program, formulas.ends);
  formulas_ = std::make_shared<const Formulas>(std::move(formulas));
}

bool WorkFormulas::hold_for(const Pass& pass) const {
  return pass.B >= 1 && pass.L >= 1 && pass.M >= 0 &&
         divisibility(formulas_->torus, pass) == formulas_->divides;
}

Work WorkFormulas::at(const Pass& pass) const {
  if (!hold_for(pass))
    throw Error("work_c2",
                fmt::format("B={}, L={}, M={}: the blocks of {} divide them otherwise than the "
                            "pass that the formulas were made for",
                            pass.B, pass.L, pass.M, formulas_->torus.to_string()));
  Work work;
  work.chips = formulas_->torus.chips();
  work.layers = formulas_->layers;
  work.layer = formulas_->layer.at(pass);
  work.ends = formulas_->ends.at(pass);
  return work;
}

const std::map<std::string, double>& WorkFormulas::resting() const { return formulas_->resting; }

Work work_of(const ModelConfig& model, const Numerics& numerics, const Torus& torus,
             const Strategy& strategy, const Pass& pass) {
  return WorkFormulas(model, numerics, torus, strategy, pass).at(pass);
}

}  // namespace shardproof::cost
