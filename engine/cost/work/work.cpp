#include "engine/cost/work/work.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <utility>

#include "engine/cost/graph/graph.h"
#include "engine/cost/work/detail/part_formulas.h"
#include "engine/layouts/around.h"
#include "engine/layouts/layer_kinds.h"
#include "engine/layouts/text_programs.h"
#include "engine/run/plan_types.h"
#include "engine/shards/finding.h"
#include "weights/text/text_model.h"

namespace shardproof::cost {
namespace {

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

int Work::alike() const {
  int n = layers;
  for (const LayersWork& kind : others) n -= kind.layers;
  return n;
}

double Work::live_bytes_of_layer() const {
  double most = layer.live_bytes;
  for (const LayersWork& kind : others) most = std::max(most, kind.layer.live_bytes);
  return most;
}

double elements_of_layer(const Work& work) {
  const double first = work.layer.sum(&Traffic::elements);
  if (work.others.empty()) return first;
  return work.over_layers([](const PartWork& part) { return part.sum(&Traffic::elements); }) /
         work.layers;
}

struct WorkFormulas::Formulas {
  /// Layers of one kind, by the first of them.
  struct Kind {
    std::int64_t first = 0;
    int layers = 1;
    PartFormulas layer;
  };
  Torus torus;
  int layers = 1;
  std::array<bool, 14> divides{};
  std::vector<Kind> kinds;
  PartFormulas ends;
  std::map<std::string, double> resting;
  std::vector<CacheOfLayers> caches;
  ModelConfig model;  // keeps the text alive
};

WorkFormulas::WorkFormulas(const ModelConfig& given, const Numerics& numerics, const Torus& torus,
                           const Strategy& strategy, const Pass& like) {
  require_extents(like);
  validate(given);
  validate(numerics);
  const ModelConfig model = model_with_weights(given, numerics.weights);
  const bool of_text = model.rows != nullptr;
  if (strategy.program() == nullptr) {
    if (!of_text) require_legal(strategy, model, torus, like.B);
    if (like.phase == Phase::decode) require_decodes(strategy);
    require_lengths(strategy, torus, like.L, like.L);
  }
  const Extents extents = extents_of(model, like.B, like.L);
  const auto programs_of = [&]() -> PhasePrograms {
    if (of_text) return text_programs(strategy.table(), model, extents, torus, {});
    if (strategy.program() != nullptr)
      return programs_around(*strategy.program(), model, extents, torus, numerics.act);
    return programs_around(partition(strategy.table(), model, extents, torus, numerics), model,
                           extents, torus, numerics.act);
  };
  const PhasePrograms programs = programs_of();
  Formulas formulas;
  formulas.torus = torus;
  formulas.layers = static_cast<int>(model.layers);
  formulas.divides = divisibility(torus, like);
  formulas.model = model;
  const CostSetting setting{torus, numerics, model, like};
  const auto add = [&](const Program& program, double layers, bool last, PartFormulas& part) {
    add_costs(program, typed(program, model, torus, like), setting, layers, last, part,
              formulas.ends, formulas.resting);
  };
  for (const LayerKind& kind : layer_kinds(programs, model.layers)) {
    const int layers = static_cast<int>(kind.layers.size());
    formulas.kinds.push_back({kind.layers[0], layers, {}});
    PartFormulas& layer = formulas.kinds.back().layer;
    add(*kind.program, layers, false, layer);
    for (CacheOfLayers cache : layer.caches) {
      cache.elements *= layers;
      formulas.caches.push_back(std::move(cache));
    }
  }
  add(programs.embed, 1.0, false, formulas.ends);
  // A text's program makes the logits of every position; a run needs those of the last.
  add(programs.head, 1.0, of_text, formulas.ends);
  add(programs.sample, 1.0, false, formulas.ends);
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
  const TextModel* const text = text_model(formulas_->model);
  std::vector<GraphProduct> products, of_ends;
  if (text != nullptr) of_ends = graph_products(*text, pass);
  for (const Formulas::Kind& kind : formulas_->kinds) {
    if (text != nullptr) products = layer_products(*text, kind.first, pass);
    PartWork layer = kind.layer.at(pass, products);
    if (kind.first == 0)
      work.layer = std::move(layer);
    else
      work.others.push_back({kind.layers, std::move(layer)});
  }
  work.ends = formulas_->ends.at(pass, of_ends);
  return work;
}

const std::map<std::string, double>& WorkFormulas::resting() const { return formulas_->resting; }
const std::vector<CacheOfLayers>& WorkFormulas::caches() const { return formulas_->caches; }

Work work_of(const ModelConfig& model, const Numerics& numerics, const Torus& torus,
             const Strategy& strategy, const Pass& pass) {
  return WorkFormulas(model, numerics, torus, strategy, pass).at(pass);
}

}  // namespace shardproof::cost
