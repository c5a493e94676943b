#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <optional>

#include "engine/program/explain.h"
#include "engine/program/picture.h"
#include "golden/case.h"
#include "tools/case_flags.h"
#include "tools/json_text.h"
#include "tools/layer_flag.h"
#include "tools/output_file.h"
#include "tools/verbs.h"
#include "weights/error.h"
#include "weights/replace_file.h"

namespace shardproof::tools {
namespace {

struct Options {
  std::string strategy;
  std::optional<std::string> program;
  CaseFlags flags;
  bool paper = false;
  bool json = false;
  bool text = false;
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

/// Draws a decode layer into `file`; `title` names the strategy or the program.
int draw(const Explained& layer, const Case& c, const std::string& title, const std::string& file,
         bool paper) {
  PictureOptions options{fmt::format("{} on torus {}", title, c.torus.to_string()),
                         {fmt::format("model {}; one layer of one decode step: a new token for "
                                      "each of {} rows, {} cached positions before it",
                                      print_model(c.model), c.batch, c.prompt)},
                         paper,
                         {}};
  if (!(c.prefill == c.decode))
    options.notes.push_back(
        fmt::format("after prefill by {}; the hand-over is not drawn", c.prefill.to_string()));
  replace_file(file, picture(*layer.program, layer.types, c.torus, c.numerics, options),
               "file_write");
  return 0;
}

/// The layer program alone, as a file that `verify --program` reads.
void print_text(const Program& layer, const Case& c, const std::string& title) {
  const Axes kv = kv_axes(c.model, c.torus);
  fmt::print("# One layer of {} as a program (docs/program.md).\n", title);
  fmt::print("# Written for model {}, act={}.\n", print_model(c.model), to_string(c.numerics.act));
  fmt::print("# The torus enters by the axes of the K={} key/value heads alone: on {} {}.\n",
             c.model.K, c.torus.to_string(),
             kv.empty() ? "they are whole" : "they are K_" + kv.to_string());
  fmt::print("# Judge it: shardproof verify --program FILE --case \"torus={} model={} act={}\"\n",
             c.torus.to_string(), print_model(c.model), to_string(c.numerics.act));
  fmt::print("{}", print_program(layer));
}

int explain_program(Options& o) {
  const auto given = load_given_layer(*o.program, o.flags);
  const Case& c = given->c;
  Inference inference = c.inference();
  inference.layer = &given->program;
  require_legal(inference, c.batch, c.prompt);
  const InferencePrograms programs = build_programs(inference);
  check(programs, inference, c.batch, c.prompt);
  std::vector<Explained> parts;
  for (const auto& [title, program] : {std::pair{"embedding", &programs.decode.embed},
                                       {"layer", &programs.decode.layer},
                                       {"head", &programs.decode.head},
                                       {"sampling", &programs.decode.sample}})
    parts.push_back({title, program, check(*program, inference, c.batch, 1, c.prompt)});
  if (o.text) {
    fmt::print("{}", print_program(given->program));
    return 0;
  }
  if (!o.svg.empty()) return draw(parts[1], c, *o.program, o.svg, o.paper);
  if (o.json) {
    nlohmann::json out{{"case", print_without_strategies(c)}, {"program", *o.program}};
    for (const Explained& e : parts) out["programs"].push_back(as_json(e, c, o.paper));
    fmt::print("{}\n", json_text(out));
    return 0;
  }
  fmt::print("{} on torus {}, {}\n", *o.program, c.torus.to_string(), print_model(c.model));
  fmt::print("one decode step: batch {}, {} cached positions\n", c.batch, c.prompt);
  fmt::print("weights rest as {}\n", wrapped(rest_layouts(given->program), 64, "  "));
  for (const Explained& e : parts)
    fmt::print("\n== {} ==\n{}", e.title,
               explain(*e.program, e.types, c.torus, c.numerics, {o.paper}));
  return 0;
}

int explain_strategy(Options& o) {
  if (o.strategy.empty() == !o.program)
    throw Error("explain_c1", "explain takes a strategy or --program FILE, one of the two");
  if (o.text && (o.json || !o.svg.empty()))
    throw Error("explain_c2", "--text is a form of its own; leave --json and --svg out");
  o.flags.load();
  require_not_input({"--svg", o.svg},
                    {{"--program", o.program.value_or("")}, {"--weights", o.flags.weights_file()}});
  if (o.program) return explain_program(o);
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
  if (o.text) {
    print_text(programs.decode.layer, c, strategy.to_string());
    return 0;
  }
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
  if (!o.svg.empty()) return draw(parts.back(), c, strategy.to_string(), o.svg, o.paper);
  part("head", programs.decode.head, 1);
  part("sampling", programs.decode.sample, 1);

  if (o.json) {
    nlohmann::json out{{"case", print_case(c)}, {"strategy", strategy.to_string()}};
    for (const Explained& e : parts) out["programs"].push_back(as_json(e, c, o.paper));
    fmt::print("{}\n", json_text(out));
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
  verb->add_option("strategy", options->strategy, "ws1d, ws2d, wg-xyz, with :heads or :batch");
  verb->add_option("--program", options->program, "A layer program instead (docs/program.md)")
      ->type_name("FILE");
  options->flags.add_to(*verb, {"decode", "chunk", "gen", "seed"},
                        {{"torus", "Chips, XxYxZ [4x2x3]"},
                         {"prefill", "The prefill's strategy [the same]"},
                         {"batch", "Rows [as many as chips]"},
                         {"prompt", "Cached positions [4]"}});
  verb->add_flag("--paper", options->paper, "Drop (K-1)/K, as the paper's formulas do");
  verb->add_flag("--text", options->text, "Print the layer program, for verify --program");
  CLI::Option* json = verb->add_flag("--json", options->json, "Print JSON");
  verb->add_option("--svg", options->svg, "Draw the layer into a file instead")
      ->type_name("FILE")
      ->excludes(json)
      ->check([](const std::string& file) { return file.empty() ? "no file is named" : ""; });
  verb->footer(
      "Explains one decode step; defaults: torus 4x2x3, palm-tiny, batch = chips.\n"
      "--prefill names another strategy for the prefill: then the hand-over of the\n"
      "caches is shown too.\n"
      "Example: shardproof explain ws2d:batch --torus 4x2x3 --prefill wg-xyz:batch\n"
      "         shardproof explain ws2d:batch --text > p.txt\n"
      "         shardproof explain --program p.txt --torus 2x2x3");
  verb->callback([&chosen, options] { chosen = [options] { return explain_strategy(*options); }; });
}

}  // namespace shardproof::tools
