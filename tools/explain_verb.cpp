#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "engine/program/explain.h"
#include "engine/program/picture.h"
#include "golden/case.h"
#include "tools/case_flags.h"
#include "tools/text_file.h"
#include "tools/verbs.h"
#include "weights/error.h"

namespace shardproof::tools {
namespace {

struct Options {
  std::string strategy;
  CaseFlags flags;
  bool paper = false;
  bool json = false;
  std::string svg;
};

/// One program of the phase being explained, type-checked.
struct Explained {
  std::string title;
  const Program* program;
  std::map<std::string, Type> types;
};

/// "wq E_xH_zyQ, wk ..." of a layer program's resident weights.
std::string rest_layouts(const Program& layer) {
  std::string text;
  for (const Result& input : layer.inputs)
    if (input.meaning.kind == Meaning::Kind::weight && input.layout.rank() > 1 &&
        input.layout.letters() != "PJ")
      text += fmt::format("{}{} {}", text.empty() ? "" : ", ", input.meaning.name,
                          input.layout.to_string());
  return text;
}

std::string wrapped(std::string text, std::size_t width, std::string_view indent) {
  std::string out;
  while (text.size() > width) {
    const std::size_t at = text.rfind(' ', width);
    if (at == std::string::npos) break;
    out += text.substr(0, at) + "\n" + std::string(indent);
    text = text.substr(at + 1);
  }
  return out + text;
}

nlohmann::json as_json(const Explained& e, const Case& c, bool paper) {
  const Ledger ledger = count(*e.program, e.types, c.torus, c.numerics);
  nlohmann::json steps = nlohmann::json::array();
  for (std::size_t i = 0; i < e.program->ops.size(); ++i) {
    const Op& op = e.program->ops[i];
    nlohmann::json results = nlohmann::json::array();
    for (const Result& r : op.results)
      results.push_back(
          {{"name", r.name},
           {"layout", r.layout.to_string()},
           {"is", r.meaning.to_string()},
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

/// Draws a decode layer into `file`.
int draw(const Explained& layer, const Case& c, const std::string& file, bool paper) {
  PictureOptions options{fmt::format("{} on torus {}", c.decode.to_string(), c.torus.to_string()),
                         {fmt::format("model {}; one layer of one decode step: a new token for "
                                      "each of {} rows, {} cached positions before it",
                                      print_model(c.model), c.batch, c.prompt)},
                         paper,
                         {}};
  if (!(c.prefill == c.decode))
    options.notes.push_back(
        fmt::format("after prefill by {}; the hand-over is not drawn", c.prefill.to_string()));
  write_text_file(file, picture(*layer.program, layer.types, c.torus, c.numerics, options));
  return 0;
}

int explain_strategy(Options& o) {
  o.flags.load();
  const Strategy strategy = Strategy::parse(o.strategy);
  if (!o.flags.has("prefill")) o.flags.set_default("prefill", o.strategy);
  o.flags.set_default("torus", "4x2x3");
  if (!o.flags.has("batch"))
    o.flags.set_default("batch", std::to_string(o.flags.parse().torus.chips()));
  Case c = o.flags.parse();
  const bool hands_over = o.flags.has("prefill") && !(c.prefill == strategy);
  c.decode = strategy;
  c.gen = 2;
  require_legal(c);

  const InferencePrograms programs = build_programs(c.inference());
  std::vector<Explained> parts;
  const auto part = [&](std::string title, const Program& program, std::int64_t L) {
    parts.push_back(
        {std::move(title), &program, check(program, c.inference(), c.batch, L, c.prompt)});
  };
  if (hands_over)
    part(fmt::format("hand-over of a layer's caches from {}", c.prefill.to_string()),
         programs.hand_over, c.prompt);
  part("embedding", programs.decode.embed, 1);
  part("layer", programs.decode.layer, 1);
  if (!o.svg.empty()) return draw(parts.back(), c, o.svg, o.paper);
  part("head", programs.decode.head, 1);
  part("sampling", programs.decode.sample, 1);

  if (o.json) {
    nlohmann::json out{{"case", print_case(c)}, {"strategy", strategy.to_string()}};
    for (const Explained& e : parts) out["programs"].push_back(as_json(e, c, o.paper));
    fmt::print("{}\n", out.dump(1));
    return 0;
  }
  const std::string rest = rest_layouts(programs.decode.layer);
  fmt::print("{} on torus {}, {}\n", strategy.to_string(), c.torus.to_string(),
             print_model(c.model));
  fmt::print("one decode step: batch {}, {} cached positions\n", c.batch, c.prompt);
  fmt::print("weights rest as {}\n", wrapped(rest, 64, "  "));
  if (!hands_over)
    fmt::print("and are placed so before the run, once\n");
  else if (rest_layouts(programs.prefill.layer) == rest)
    fmt::print("for prefill ({}) and decode alike: placed before the run, once\n",
               c.prefill.to_string());
  else
    fmt::print("for decode; prefill ({}) has them as\n  {}:\nboth are placed before the run\n",
               c.prefill.to_string(), wrapped(rest_layouts(programs.prefill.layer), 76, "  "));
  for (const Explained& e : parts) {
    fmt::print("\n== {} ==\n", e.title);
    if (e.program->ops.empty())
      fmt::print("nothing moves: both phases hold the caches as {}\n",
                 programs.decode.cache.to_string());
    else
      fmt::print("{}", explain(*e.program, e.types, c.torus, c.numerics, {o.paper}));
  }
  return 0;
}

}  // namespace

void add_explain(CLI::App& app, Action& chosen) {
  auto options = std::make_shared<Options>();
  CLI::App* verb = app.add_subcommand("explain", "Print a strategy's steps and what they move");
  verb->add_option("strategy", options->strategy, "ws1d, ws2d, wg-xyz, with :heads or :batch")
      ->required();
  options->flags.add_to(*verb, {"decode", "chunk", "gen", "seed"},
                        {{"torus", "Chips, XxYxZ [4x2x3]"},
                         {"prefill", "The prefill's strategy [the same]"},
                         {"batch", "Rows [as many as chips]"},
                         {"prompt", "Cached positions [4]"}});
  verb->add_flag("--paper", options->paper, "Drop (K-1)/K, as the paper's formulas do");
  CLI::Option* json = verb->add_flag("--json", options->json, "Print JSON");
  verb->add_option("--svg", options->svg, "Draw the layer into a file instead")
      ->excludes(json)
      ->check([](const std::string& file) { return file.empty() ? "no file is named" : ""; });
  verb->footer(
      "Explains one decode step; defaults: torus 4x2x3, palm-tiny, batch = chips.\n"
      "--prefill names another strategy for the prefill: then the hand-over of the\n"
      "caches is shown too.\n"
      "Example: shardproof explain ws2d:batch --torus 4x2x3 --prefill wg-xyz:batch");
  verb->callback([&chosen, options] { chosen = [options] { return explain_strategy(*options); }; });
}

}  // namespace shardproof::tools
