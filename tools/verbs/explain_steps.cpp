#include "tools/verbs/explain_steps.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "engine/layouts/layer_kinds.h"
#include "engine/program/explain.h"
#include "engine/run/dim_padding.h"
#include "tools/command/layer_files.h"
#include "tools/drawing/picture.h"
#include "tools/text/json_text.h"
#include "tools/text/wrapped.h"
#include "weights/base/detail/replace_file.h"
#include "weights/model/registry.h"

namespace shardproof::tools {
namespace {

/// A type-checked program of the explained phase.
struct Explained {
  std::string title;
  const Program* program;
  std::map<std::string, Type> types;
  std::string without_ops;  ///< text shown if it has no ops
};

/// Returns the layouts of the resident weights of a phase's layers, each once: "wq E_xH_zyQ, wk
/// ...".
std::string resident_layouts(const PhasePrograms& phase) {
  std::vector<std::string> layouts;
  for (const Program* const layer : phase.all())
    if (layer->name == kLayerProgram)
      for (const ValueDecl& input : layer->inputs) {
        if (input.role.kind != Role::Kind::weight || input.layout.rank() < 2 ||
            weight_row(input.role.name, layer->rows.get())->kind != WeightKind::matrix)
          continue;
        std::string one = fmt::format("{} {}", input.role.name, input.layout.to_string());
        if (std::find(layouts.begin(), layouts.end(), one) == layouts.end())
          layouts.push_back(std::move(one));
      }
  return fmt::format("{}", fmt::join(layouts, ", "));
}

nlohmann::json as_json(const Explained& e, const Case& c, bool paper) {
  const Ledger ledger = count(*e.program, e.types, c.torus, c.numerics, c.model);
  nlohmann::json steps = nlohmann::json::array();
  for (std::size_t i = 0; i < e.program->ops.size(); ++i) {
    const Op& op = e.program->ops[i];
    nlohmann::json results = nlohmann::json::array();
    for (const ValueDecl& r : op.results)
      results.push_back(
          {{"name", r.name},
           {"layout", r.layout.to_string()},
           {"is", r.role.to_string()},
           {"local_shape", local_shape(r.layout, e.types.at(r.name).shape, c.torus)}});
    const StepCost& cost = ledger.steps[i];
    nlohmann::json step{{"op", op.to_string()},
                        {"results", results},
                        {"flops", cost.flops},
                        {"hbm_bytes", cost.hbm_bytes}};
    if (is_collective(op.kind))
      step["sends"] = {{"axes", op.axes.to_string()},
                       {"formula", formula(cost, paper)},
                       {"elements_per_chip", elements_per_chip(cost, c.torus.chips(), paper)},
                       {"elements_all_chips", cost.moved},
                       {"bytes_per_element", cost.wire_bytes}};
    steps.push_back(step);
  }
  return {{"program", e.title}, {"steps", steps}};
}

/// Draws a kind of layers to a file.
void draw(const Subject& of, const Explained& layer, const StepsForm& o, const std::string& file) {
  const Case& c = of.c();
  const std::string pass =
      of.prefill ? fmt::format("prefill pass over {} positions of {} rows", c.prompt, c.batch)
                 : fmt::format(
                       "decode step: a new token for each of {} rows, {} cached positions "
                       "before it",
                       c.batch, c.prompt);
  PictureOptions options{
      fmt::format("{} on torus {}", of.title, c.torus.to_string()),
      {fmt::format("model {}; one {} of one {}", model_text(c),
                   layer.title == "layer" ? "layer" : "of " + layer.title, pass)},
      o.paper,
      {}};
  if (of.hands_over)
    options.notes.push_back(
        fmt::format("after prefill by {}; the hand-over is not drawn", c.prefill.to_string()));
  if (c.prefix.given())
    options.notes.push_back(
        fmt::format("the first {} positions are of {}; the passes over them are not drawn",
                    c.prefix.length, of.prefixes()));
  if (!of.row_lengths().empty())
    options.notes.emplace_back("rows of unequal length; which slots are padding is not drawn");
  replace_file(file, picture(*layer.program, layer.types, c.torus, c.numerics, c.model, options),
               "file_write");
}

/// Draws each kind of layers, the first to the file that is given, others beside it: layer.svg,
/// layer.1.svg for layer 1 and those like it.
int draw(const Subject& of, const std::vector<Explained>& layers,
         const std::vector<LayerKind>& kinds, const StepsForm& o) {
  for (std::size_t i = 0; i < layers.size(); ++i) {
    std::filesystem::path file = o.svg;
    if (i > 0) file.replace_extension(fmt::format(".{}{}", kinds[i].layers[0], ".svg"));
    draw(of, layers[i], o, file.string());
    if (layers.size() > 1) fmt::print("{}: {}\n", file.string(), layers[i].title);
  }
  return 0;
}

/// Prints the layer program of a text, which no verb reads.
void print_text(const LayerKind& kind, const Subject& of, const PhasePrograms& phase) {
  const Case& c = of.c();
  std::vector<std::string> caches;
  for (const auto& [name, layout] : phase.caches(kind.layers[0]))
    caches.push_back(fmt::format("{} is {}", name, layout.to_string()));
  const std::string title = title_of(kind, c.model.layers);
  fmt::print("# {} of {} as a program (docs/program.md).\n",
             title == "layer" ? "One layer" : "Each of " + title, of.title);
  fmt::print("# Written for model {}, act={}, torus {}: {}.\n", model_text(c),
             to_string(c.numerics.act), c.torus.to_string(), fmt::join(caches, ", "));
  if (of.prefill) fmt::print("# It shards L, so it is a prefill only.\n");
  fmt::print("{}", print_program(*kind.program));
}

/// Prints the layer program only, as a file that `verify --program` reads.
void print_text(const Program& layer, const Subject& of) {
  const Case& c = of.c();
  std::string cache;
  for (const ValueDecl& input : layer.inputs)
    if (input.role.to_string() == "previous k_cache") cache = input.layout.to_string();
  fmt::print("# One layer of {} as a program (docs/program.md).\n", of.title);
  // A layer for int8 weights has scales; others have none.
  const std::string storage =
      fmt::format("{}act={}", c.numerics.weights == NumberFormat::int8 ? "weights=int8 " : "",
                  to_string(c.numerics.act));
  fmt::print("# Written for model {}, {}.\n", model_text(c), storage);
  fmt::print("# The torus enters by what it divides; the caches of K={} heads on {} are {}.\n",
             placed_model(c).K, c.torus.to_string(), cache);
  if (of.prefill) fmt::print("# It shards L, so it is a prefill only.\n");
  // Uses a model whose embedding differs from its table's row, as verify --program does by default.
  ModelConfig judged = c.model;
  if (judged.embed_scale == 1.0F) judged.embed_scale = kProgramEmbedScale;
  const std::string padding = padding_text(c);
  fmt::print("# Judge it: shardproof verify {} FILE --case \"torus={} model={} {}{}{}\"\n",
             of.prefill ? "--program-prefill" : "--program", c.torus.to_string(),
             print_model(judged), storage, padding.empty() ? "" : " ", padding);
  fmt::print("{}", print_program(layer));
}

/// Adds the layer that computes the caches of prefixes, and the transfer of these caches to the
/// phase that reads them.
void add_prefix_programs(const Subject& of, std::vector<Explained>& parts) {
  const RunPlan& plan = of.typed.plan;
  const std::string by = of.hands_over ? " by " + of.c().prefill.to_string() : "";
  Case alone = of.c();
  alone.batch = alone.prefix.rows;
  alone.prefix = {};
  for (const LayerKind& kind : layer_kinds(plan.prefix, of.c().model.layers))
    parts.push_back(
        {fmt::format("{} of a pass over {} of {} positions{}", title_of(kind, of.c().model.layers),
                     of.prefixes(), of.c().prefix.length, by),
         kind.program,
         check(*kind.program, alone, of.c().prefix.length, 0),
         {}});
  const auto moved = [&](const PhasePrograms& to, std::string_view title, auto&& program_of) {
    for (const LayerKind& kind : layer_kinds(to, of.c().model.layers)) {
      const std::int64_t layer = kind.layers.at(0);
      const Program& program = program_of(layer);
      std::set<std::string> layouts;
      for (const auto& [name, layout] : to.prefix_caches(layer)) layouts.insert(layout.to_string());
      const std::string all = title_of(kind, of.c().model.layers);
      parts.push_back(
          {fmt::format("{}{}", title, all == "layer" ? "" : ", " + all), &program,
           check(program, of.c(), of.L(), of.M()),
           fmt::format("nothing moves: attention reads them as {}", fmt::join(layouts, ", "))});
    }
  };
  moved(plan.prefill, "caches of the prefixes, to the rows' prefill",
        [&](std::int64_t layer) -> const Program& { return plan.prefix_hand_over_program(layer); });
  if (of.hands_over)
    moved(
        plan.decode, "caches of the prefixes, from the prefill to the decode",
        [&](std::int64_t layer) -> const Program& { return plan.prefix_to_decode_program(layer); });
}

}  // namespace

int explain_steps(const Subject& of, const StepsForm& o) {
  const Case& c = of.c();
  const RunPlan& plan = of.typed.plan;
  const PhasePrograms& phase = plan.programs(of.phase());
  const std::vector<LayerKind> kinds = layer_kinds(phase, c.model.layers);
  std::vector<Explained> parts;
  const auto part = [&](std::string title, const Program& program, std::int64_t L) {
    parts.push_back({std::move(title), &program, check(program, c, L, of.M()), {}});
  };
  if (o.text) {
    if (c.model.rows != nullptr)
      for (const LayerKind& kind : kinds) print_text(kind, of, phase);
    else if (of.strategy)
      print_text(phase.layer, of);
    else
      fmt::print("{}", print_program(*c.prefill.program()));
    return 0;
  }
  if (c.prefix.given()) add_prefix_programs(of, parts);
  if (of.hands_over) {
    part(fmt::format("hand-over of a layer's caches from {}", c.prefill.to_string()),
         plan.hand_over, of.own());
    parts.back().without_ops = fmt::format("nothing moves: both phases hold the caches as {}",
                                           plan.decode.cache.to_string());
  }
  part("embedding", phase.embed, of.L());
  if (!o.svg.empty()) parts.clear();
  for (const LayerKind& kind : kinds) part(title_of(kind, c.model.layers), *kind.program, of.L());
  if (!o.svg.empty()) return draw(of, parts, kinds, o);
  part("head", phase.head, of.L());
  part("sampling", phase.sample, of.L());
  if (o.json) {
    nlohmann::json out{{"case", print_case(c)}, {of.strategy ? "strategy" : "program", of.title}};
    if (c.lengths.given()) out["row_lengths"] = of.row_lengths();
    for (const Explained& e : parts) out["programs"].push_back(as_json(e, c, o.paper));
    fmt::print("{}\n", json_text(out));
    return 0;
  }
  const std::string resident = resident_layouts(phase);
  fmt::print("{} on torus {}, {}\n{}\n{}", of.title, c.torus.to_string(), model_text(c), of.pass(),
             rows_text(of, ""));
  fmt::print("resident weights: {}\n", wrapped(resident, 62, "  "));
  if (of.strategy && !of.hands_over)
    fmt::print("placed before the run, once\n");
  else if (of.hands_over && resident_layouts(plan.prefill) == resident)
    fmt::print("same for prefill ({}) and decode: placed before the run, once\n",
               c.prefill.to_string());
  else if (of.hands_over)
    fmt::print("these are for decode; for prefill ({}):\n  {}\nboth are placed before the run\n",
               c.prefill.to_string(), wrapped(resident_layouts(plan.prefill), 76, "  "));
  for (const Explained& e : parts) {
    fmt::print("\n== {} ==\n", e.title);
    if (e.program->ops.empty() && !e.without_ops.empty())
      fmt::print("{}\n", e.without_ops);
    else
      fmt::print("{}", explain(*e.program, e.types, c.torus, c.numerics, c.model, {o.paper}));
  }
  return 0;
}

}  // namespace shardproof::tools
