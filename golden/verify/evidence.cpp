#include "golden/verify/evidence.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <bit>
#include <map>
#include <set>

#include "golden/compare/block_map.h"
#include "golden/compare/case_padding.h"
#include "weights/model/registry.h"

namespace shardproof {
namespace {

/// Returns the number of different blocks into which the layout shards the tensor.
std::int64_t block_count(const Layout& layout, const Torus& torus) {
  std::int64_t blocks = 1;
  for (const Layout::Dim& dim : layout.dims()) blocks *= torus.size(dim.axes);
  return blocks;
}

/// Returns true if the two blocks that begin at `a` and `b` hold the same bits.
bool same_block(const Tensor& tensor, const Shape& block, const Shape& a, const Shape& b) {
  Shape index(block.size(), 0);
  const std::int64_t count = element_count(block);
  for (std::int64_t i = 0; i < count; ++i) {
    std::int64_t at_a = 0;
    std::int64_t at_b = 0;
    for (std::size_t d = 0; d < index.size(); ++d) {
      at_a = at_a * tensor.shape[d] + a[d] + index[d];
      at_b = at_b * tensor.shape[d] + b[d] + index[d];
    }
    // Bits, as the judge sees them: +0 and -0 differ.
    if (std::bit_cast<std::uint32_t>(tensor.data[static_cast<std::size_t>(at_a)]) !=
        std::bit_cast<std::uint32_t>(tensor.data[static_cast<std::size_t>(at_b)]))
      return false;
    for (std::size_t d = index.size(); d-- > 0 && ++index[d] == block[d];) index[d] = 0;
  }
  return true;
}

bool all_blocks_alike(const Tensor& tensor, const Layout& layout, const Torus& torus) {
  const Shape block = judged_block(layout, tensor.shape, torus);
  const Shape first = judged_offset(layout, tensor.shape, torus, 0);
  for (int chip = 1; chip < torus.chips(); ++chip)
    if (!same_block(tensor, block, first, judged_offset(layout, tensor.shape, torus, chip)))
      return false;
  return true;
}

/// A layout that cuts a weight into identical blocks.
struct Alike {
  Layout layout;
  std::int64_t blocks;
};

/// Returns the weights whose blocks are all alike, by name.
std::map<std::string, Alike> alike(const RunPlan& plan, const Weights& weights) {
  std::map<std::string, Alike> found;
  std::set<std::string> looked_at;
  const DimPadding padding = dim_padding(plan.source_case);
  const auto look = [&](const std::string& name, const ValueDecl& declared, const Torus& torus) {
    const std::int64_t blocks = block_count(declared.layout, torus);
    if (blocks == 1 ||
        !looked_at
             .insert(fmt::format("{} {} {}", name, declared.layout.to_string(), torus.to_string()))
             .second)
      return;
    const std::shared_ptr<const Tensor> weight = weights.at(name);
    const Tensor& own = *weight;
    if (own.shape.size() != declared.layout.rank()) return;
    Tensor placed;
    const Shape shape = padding.placed(declared.layout.letters(), own.shape);
    if (shape != own.shape) {
      placed.shape = shape;
      placed.data = with_padding(own.data, own.shape, shape, 0.0F);
    }
    if (all_blocks_alike(shape != own.shape ? placed : own, declared.layout, torus))
      found.emplace(name, Alike{declared.layout, blocks});
  };
  const auto look_at_each_layer = [&](const ValueDecl& declared, const Torus& torus) {
    if (declared.role.kind != Role::Kind::weight || declared.layout.is_partial()) return;
    for (std::int64_t layer = 0; layer < plan.source_case.model.layers; ++layer)
      if (const std::string name =
              weight_id(layer, declared.role.name, plan.source_case.model.rows.get());
          weights.contains(name))
        look(name, declared, torus);
  };
  std::vector<const PhasePrograms*> phases{&plan.prefill};
  if (plan.passes.prefix().given()) phases.push_back(&plan.prefix);
  if (plan.passes.decodes()) phases.push_back(&plan.decode);
  for (const PhasePrograms* phase : phases)
    for (const Program* program : phase->all()) {
      for (const ValueDecl& input : program->inputs) look_at_each_layer(input, phase->torus);
      for (const Op& op : program->ops)
        for (const ValueDecl& result : op.results) look_at_each_layer(result, phase->torus);
    }
  return found;
}

/// Returns true if `holds` is true for a row of some pass, or of some prefill pass. A group's first
/// and last pass are enough: the last has the highest positions, the first is where a list
/// restarts.
template <class Holds>
bool has_row(const Passes& passes, bool prefill_only, Holds&& holds) {
  for (const Passes::Group& group : passes.groups())
    for (const std::int64_t i : {group.first, group.last}) {
      const PassPlan pass = passes.at(i);
      if (prefill_only && pass.phase != Phase::prefill) continue;
      if (std::any_of(pass.rows.begin(), pass.rows.end(), holds)) return true;
    }
  return false;
}

/// Returns true if a row continues after tokens of an earlier pass: only then must its queries see
/// slots that were filled before. A row that restarts at position 0 sees only its own tokens.
bool reads_filled_cache(const Passes& passes, bool prefill_only) {
  return has_row(passes, prefill_only, [](const PassRows& rows) { return rows.start > 0; });
}

bool has_position_above_0(const Passes& passes) {
  return has_row(passes, false, [](const PassRows& rows) { return rows.start + rows.tokens > 1; });
}

}  // namespace

Evidence evidence_of_weights(const RunPlan& plan, const Weights& weights) {
  std::set<std::string> matrices;
  for (const WeightSpec& spec : weight_specs(plan.source_case.model))
    if (spec.matrix) matrices.insert(spec.name);
  Evidence evidence;
  std::vector<std::string>& vectors = evidence.noted;
  for (const auto& [name, cut] : alike(plan, weights)) {
    if (!matrices.contains(name)) {
      vectors.push_back(name);
    } else if (evidence.missing.empty()) {
      evidence.missing = fmt::format(
          "weight {}: all {} blocks of {} hold the same bits, so a chip with another's block would "
          "not show",
          name, cut.blocks, cut.layout.to_string());
    }
  }
  if (!vectors.empty())
    evidence.notes.push_back(
        fmt::format("all blocks of {} hold the same bits, so a chip with another's block of "
                    "{} would not show",
                    fmt::join(vectors, ", "), vectors.size() == 1 ? "it" : "them"));
  return evidence;
}

std::vector<std::string> notes_of_passes(const RunPlan& plan) {
  const Case& c = plan.source_case;
  const bool program = c.prefill.program() != nullptr;
  std::vector<std::string> notes;
  if (!plan.passes.decodes() && c.decode.program() == nullptr &&
      (program || !(c.decode == c.prefill)))
    notes.emplace_back("gen=1 has no decode step: decoding is not proved");
  if (program && !(c.decode == c.prefill) && !reads_filled_cache(plan.passes, true))
    notes.emplace_back(
        "the prompt is one chunk: that the prefill reads a filled cache right is not proved");
  const auto looped = [](const PhasePrograms& programs) {
    return std::any_of(programs.layer.ops.begin(), programs.layer.ops.end(), [&](const Op& op) {
      return op.loop != Loop::none && programs.torus.size(op.axes) > 1;
    });
  };
  if (c.lengths.given() && plan.passes.full())
    notes.push_back(
        fmt::format("lengths={}: every row is as long as the prompt, no padding is "
                    "left out",
                    c.lengths.to_string()));
  if (c.numerics.loop != Loop::none && !looped(plan.prefill) && !looped(plan.decode))
    notes.push_back(fmt::format("loop={}: no arrow is a ring of several chips that can be looped",
                                to_string(c.numerics.loop)));
  return notes;
}

std::string missing_of_decode(const RunPlan& plan) {
  const Case& c = plan.source_case;
  const Passes& passes = plan.passes;
  // A layer of the prefill alone proves nothing about decoding.
  if (c.decode.program() == nullptr) return "";
  // A layer of the decode alone runs only in decode steps.
  if (!(c.prefill == c.decode) && !passes.decodes())
    return "not judged as decode: no pass runs it (gen=1)";
  std::string missing;
  if (!reads_filled_cache(passes, false))
    missing =
        fmt::format("no pass reads a filled cache (gen={}, the prompt is one chunk)", passes.gen());
  if (!has_position_above_0(passes))
    missing += fmt::format("{}no position is above 0 (prompt={})", missing.empty() ? "" : ", ",
                           passes.prompt());
  return missing.empty() ? "" : "not judged as decode: " + missing;
}

}  // namespace shardproof
