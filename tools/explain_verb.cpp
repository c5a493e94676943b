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
#include "tools/rules.h"
#include "tools/verbs.h"
#include "tools/wrapped.h"
#include "weights/error.h"
#include "weights/replace_file.h"

namespace shardproof::tools {
namespace {

struct Options {
  std::string strategy;
  std::optional<std::string> program, rule;
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
  std::string cache;
  for (const Result& input : layer.inputs)
    if (input.meaning.to_string() == "previous k_cache") cache = input.layout.to_string();
  fmt::print("# One layer of {} as a program (docs/program.md).\n", title);
  fmt::print("# Written for model {}, act={}.\n", print_model(c.model), to_string(c.numerics.act));
  fmt::print("# The torus enters by what it divides; the caches of K={} heads on {} are {}.\n",
             c.model.K, c.torus.to_string(), cache);
  // On a model whose embedding is not its table's row, as verify --program has it by default.
  ModelConfig judged = c.model;
  if (judged.embed_scale == 1.0F) judged.embed_scale = kProgramEmbedScale;
  fmt::print("# Judge it: shardproof verify --program FILE --case \"torus={} model={} act={}\"\n",
             c.torus.to_string(), print_model(judged), to_string(c.numerics.act));
  fmt::print("{}", print_program(layer));
}

int explain_program(Options& o) {
  const auto given = load_given_layer(*o.program, o.flags);
  const Case& c = given->c;
  const Inference inference = c.inference({&given->program, &given->program});
  require_legal(inference);
  const InferencePrograms programs = build_programs(inference);
  check(programs, inference);
  std::vector<Explained> parts;
  for (const auto& [title, program] : {std::pair{"embedding", &programs.decode.embed},
                                       {"layer", &programs.decode.layer},
                                       {"head", &programs.decode.head},
                                       {"sampling", &programs.decode.sample}})
    parts.push_back({title, program, check(*program, inference, 1, c.prompt)});
  if (o.text) {
    fmt::print("{}", print_program(given->program));
    return 0;
  }
  if (!o.svg.empty()) return draw(parts[1], c, *o.program, o.svg, o.paper);
  if (o.json) {
    nlohmann::json out{{"case", print_case(c, {&given->program, &given->program})},
                       {"program", *o.program}};
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

/// One rule, beside the others of its op.
int explain_rule(const Options& o) {
  const Rule& rule = find_rule(*o.rule);
  if (o.json) {
    fmt::print("{}\n", json_text({{"label", rule.label},
                                  {"of", rule.subject},
                                  {"says", rule.says},
                                  {"document", rule.document}}));
    return 0;
  }
  fmt::print("{} ({})\n  {}\n", rule.label, rule.document, wrapped(rule.says, 76, "  "));
  for (const OpText& op : all_op_texts()) {
    if (!rule.label.starts_with(op.name + "_c") || rule.label.size() != op.name.size() + 3)
      continue;
    fmt::print("\nThe op {}: {}\n", op.name, wrapped(op.does, 72 - op.name.size(), "  "));
    fmt::print("  form     {}\n", wrapped(op.form, 68, "           "));
    fmt::print("  result   {}\n", wrapped(op.result, 68, "           "));
    fmt::print("  example  {}\nIts rules\n", wrapped(op.example, 68, "           "));
    for (const Rule& other : all_rules())
      if (other.subject == rule.subject && other.document == rule.document &&
          other.label.starts_with(op.name + "_c"))
        fmt::print(
            "  {}  {}\n", other.label,
            wrapped(other.says, 74 - other.label.size(), std::string(other.label.size() + 4, ' ')));
  }
  return 0;
}

/// Refuses what would change nothing of what is printed.
void refuse_idle_flags(const Options& o) {
  const auto refuse = [](std::string_view flag, std::string_view what) {
    throw Error("flag_c6",
                fmt::format("{} has no effect on {}, leave it out (see shardproof explain "
                            "--help)",
                            flag, what));
  };
  if (o.rule) {
    if (o.flags.given()) refuse("a case flag", "--rule");
    if (o.paper) refuse("--paper", "--rule");
    return;
  }
  if (!o.text) return;
  if (o.paper) refuse("--paper", "--text, which has no formulas");
  if (o.flags.has("weights")) refuse("--weights as a type", "--text");
  if (o.program) return;  // the rest is the case that the program is checked against
  for (const char* key : {"prefill", "batch", "prompt"})
    if (o.flags.has(key)) refuse(fmt::format("--{}", key), "--text, which is the decode layer");
}

int explain(Options& o) {
  if (int{!o.strategy.empty()} + int{o.program.has_value()} + int{o.rule.has_value()} != 1)
    throw Error("explain_c1",
                "explain takes one of: a strategy (shardproof list strategies), --program FILE, "
                "--rule LABEL (shardproof list rules)");
  if ((o.text || o.rule) && ((o.json && !o.rule) || !o.svg.empty() || (o.text && o.rule)))
    throw Error("explain_c2",
                fmt::format("{} is a form of its own; leave {} out", o.rule ? "--rule" : "--text",
                            o.rule ? "--text and --svg" : "--json and --svg"));
  if (o.rule) refuse_idle_flags(o);  // before a file is looked for
  o.flags.load();
  require_not_input({"--svg", o.svg},
                    {{"--program", o.program.value_or("")}, {"--weights", o.flags.weights_file()}});
  refuse_idle_flags(o);
  if (o.rule) return explain_rule(o);
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
    parts.push_back({std::move(title), &program, check(program, c.inference(), L, c.prompt)});
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
  verb->add_option("STRATEGY", options->strategy,
                   "ws1d or ws2d, with :heads or :batch, or\n"
                   "wg-xyz:batch; see shardproof list strategies")
      ->type_name("");
  verb->add_option("--program", options->program, "A layer program instead (docs/program.md)")
      ->type_name("FILE");
  verb->add_option("--rule", options->rule,
                   "What the rule of an error says; see shardproof\n"
                   "list rules")
      ->type_name("LABEL");
  // No sum is made, so none has a regime.
  options->flags.add_to(*verb, {"decode", "chunk", "gen", "seed", "regime", "schedule"},
                        {{"torus", "Chips, XxYxZ [4x2x3]"},
                         {"prefill", "The prefill's strategy [the same]"},
                         {"batch", "Rows [as many as chips]"},
                         {"prompt", "Cached positions [4]"}});
  verb->add_flag("--paper", options->paper, "Drop (K-1)/K, as the paper's formulas do");
  verb->add_flag("--text", options->text, "Print the layer program, for verify --program");
  CLI::Option* json = verb->add_flag("--json", options->json, "Print JSON (docs/json.md)");
  verb->add_option("--svg", options->svg, "Draw the layer into a file instead")
      ->type_name("FILE")
      ->excludes(json);
  verb->footer(
      "Explains one decode step; defaults: torus 4x2x3, palm-tiny, batch = chips.\n"
      "--prefill names another strategy for the prefill: then the hand-over of the\n"
      "caches is shown too.\n"
      "Example: shardproof explain ws2d:batch --torus 4x2x3 --prefill wg-xyz:batch\n"
      "         shardproof explain ws2d:batch --text > p.txt\n"
      "         shardproof explain ws2d:batch --svg layer.svg\n"
      "         shardproof explain --program p.txt --torus 2x2x3\n"
      "         shardproof explain --rule all_gather_c3");
  verb->callback([&chosen, options] { chosen = [options] { return explain(*options); }; });
}

}  // namespace shardproof::tools
