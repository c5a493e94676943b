#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "engine/program/explain.h"
#include "engine/run/dim_padding.h"
#include "engine/run/plan_types.h"
#include "tools/command/case_flags.h"
#include "tools/command/layer_files.h"
#include "tools/command/output_file.h"
#include "tools/command/verbs.h"
#include "tools/drawing/picture.h"
#include "tools/text/json_text.h"
#include "tools/text/table_view.h"
#include "tools/text/wrapped.h"
#include "tools/verbs/explain_rule.h"
#include "weights/base/detail/replace_file.h"
#include "weights/base/error.h"
#include "weights/model/registry.h"

namespace shardproof::tools {
namespace {

struct Options {
  std::string strategy;
  std::optional<std::string> program, rule;
  std::optional<std::string> layouts;  // "" if given without a file
  CaseFlags flags;
  bool paper = false;
  bool json = false;
  bool text = false;
  std::string svg;
};

/// A type-checked program of the explained phase.
struct Explained {
  std::string title;
  const Program* program;
  std::map<std::string, Type> types;
  std::string without_ops;  ///< text shown if it has no ops
};

/// Returns the layouts of a layer program's resident weights: "wq E_xH_zyQ, wk ...".
std::string resident_layouts(const Program& layer) {
  std::string text;
  for (const ValueDecl& input : layer.inputs)
    if (input.role.kind == Role::Kind::weight && input.layout.rank() > 1 &&
        weight_row(input.role.name)->kind == WeightKind::matrix)
      text += fmt::format("{}{} {}", text.empty() ? "" : ", ", input.role.name,
                          input.layout.to_string());
  return text;
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

/// The explained object: a strategy or a program as one pass of a case.
struct Subject {
  std::string title;  // name of the strategy or of the program's file
  std::optional<Strategy> strategy;
  TypedPlan typed;
  bool prefill = false;  // a prefill pass, because L is sharded; otherwise a decode step
  bool hands_over = false;

  const Case& c() const { return typed.plan.given; }
  Phase phase() const { return prefill ? Phase::prefill : Phase::decode; }
  /// Number of positions of a row after its prefix.
  std::int64_t own() const { return c().prompt - c().prefix.length; }
  std::int64_t L() const { return prefill ? own() : 1; }
  std::int64_t M() const { return prefill ? 0 : own(); }
  std::string pass() const {
    const std::string shared =
        c().prefix.given() ? fmt::format(", the first {} of {}", c().prefix.length, prefixes())
                           : "";
    if (!prefill)
      return fmt::format("one decode step: batch {}, {} cached positions{}", c().batch, c().prompt,
                         shared);
    return fmt::format(
        "one prefill pass (L is sharded, so it cannot decode): batch {}, {} positions{}", c().batch,
        c().prompt, shared);
  }
  /// Returns "3 prefixes".
  std::string prefixes() const {
    return fmt::format("{} prefix{}", c().prefix.rows, c().prefix.rows == 1 ? "" : "es");
  }
  /// Returns the tokens of each row; empty if all have the whole prompt.
  std::vector<std::int64_t> row_lengths() const {
    if (!c().lengths.given()) return {};
    return lengths_of_rows(c().lengths, c().seed, c().batch, c().prompt, c().prefix.length);
  }
};

/// Returns the model and its padding: "palm-tiny,H=20,V=250, pad_heads=24".
std::string model_text(const Case& c) {
  const std::string padding = padding_text(c);
  return print_model(c.model) + (padding.empty() ? "" : ", " + padding);
}

/// Returns the rows' token counts, in lines that begin with `indent`; empty if all have the whole
/// prompt.
std::string rows_text(const Subject& of, std::string_view indent) {
  constexpr std::size_t kShown = 8;
  std::vector<std::int64_t> lengths = of.row_lengths();
  if (lengths.empty()) return "";
  const bool more = lengths.size() > kShown;
  lengths.resize(std::min(lengths.size(), kShown));
  return std::string(indent) +
         wrapped(fmt::format("rows have {}{} tokens, padded on the right; padding is not cached "
                             "and never read: what follows a row stands right behind its tokens",
                             fmt::join(lengths, ", "), more ? ", ..." : ""),
                 78, indent) +
         "\n";
}

/// Draws a layer to a file; returns the exit code.
int draw(const Subject& of, const Explained& layer, const Options& o) {
  const Case& c = of.c();
  const std::string pass =
      of.prefill ? fmt::format("prefill pass over {} positions of {} rows", c.prompt, c.batch)
                 : fmt::format(
                       "decode step: a new token for each of {} rows, {} cached positions "
                       "before it",
                       c.batch, c.prompt);
  PictureOptions options{fmt::format("{} on torus {}", of.title, c.torus.to_string()),
                         {fmt::format("model {}; one layer of one {}", model_text(c), pass)},
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
  replace_file(o.svg, picture(*layer.program, layer.types, c.torus, c.numerics, c.model, options),
               "file_write");
  return 0;
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
      fmt::format("{}act={}", c.numerics.weights == WeightType::int8 ? "weights=int8 " : "",
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

/// Makes the subject of a strategy and the case on which it is explained.
Subject subject(const Strategy& strategy, CaseFlags flags) {
  Subject of;
  of.title = strategy.to_string();
  of.strategy = strategy;
  of.prefill = !decodes(strategy);
  if (of.prefill && flags.has("prefill"))
    throw Error("flag_c6", fmt::format("--prefill has no effect on {}, which is a prefill itself, "
                                       "leave it out (see shardproof explain --help)",
                                       of.title));
  flags.set_default("prefill", strategy.to_string());
  flags.set_default("torus", "4x2x3");
  if (!flags.has("batch")) flags.set_default("batch", std::to_string(flags.parse().torus.chips()));
  Case c = flags.parse();
  of.hands_over = !(c.prefill == strategy);
  c.decode = strategy;
  c.gen = of.prefill ? 1 : 2;
  of.typed = make_typed_plan(c);
  return of;
}

/// Makes the subject of a user's program: as a prefill if L is sharded on this torus, otherwise as
/// both phases.
Subject subject(const std::string& program, CaseFlags& flags) {
  if (flags.has("prefill"))
    throw Error("program_f4", fmt::format("--program {} is both prefill and decode; leave prefill "
                                          "out of the case",
                                          program));
  Subject of;
  of.title = program;
  LayerFiles files;
  files.program_prefill = program;
  Case c = load_given_case(files, flags);
  of.prefill = smallest_length(c.prefill, c.torus) > 1;
  if (!of.prefill) {
    c.decode = c.prefill;
    c.gen = 3;  // as in verify --program
  }
  of.typed = make_typed_plan(c);
  return of;
}

/// Adds the layer that computes the caches of prefixes, and the transfer of these caches to the
/// phase that reads them.
void add_prefix_programs(const Subject& of, std::vector<Explained>& parts) {
  const RunPlan& plan = of.typed.plan;
  const std::string by = of.hands_over ? " by " + of.c().prefill.to_string() : "";
  Case alone = of.c();
  alone.batch = alone.prefix.rows;
  alone.prefix = {};
  parts.push_back({fmt::format("layer of a pass over {} of {} positions{}", of.prefixes(),
                               of.c().prefix.length, by),
                   &plan.prefix.layer,
                   check(plan.prefix.layer, alone, of.c().prefix.length, 0),
                   {}});
  const auto moved = [&](std::string title, const Program& program, const Layout& stays) {
    parts.push_back({std::move(title), &program, check(program, of.c(), of.L(), of.M()),
                     fmt::format("nothing moves: attention reads them as {}", stays.to_string())});
  };
  moved("caches of the prefixes, to the rows' prefill", plan.prefix_hand_over,
        plan.prefill.prefix_cache);
  if (of.hands_over)
    moved("caches of the prefixes, from the prefill to the decode", plan.prefix_to_decode,
          plan.decode.prefix_cache);
}

/// Prints the steps of one subject, in every form except a table.
int explain_steps(const Subject& of, const Options& o) {
  const Case& c = of.c();
  const RunPlan& plan = of.typed.plan;
  const PhasePrograms& phase = plan.programs(of.phase());
  std::vector<Explained> parts;
  const auto part = [&](std::string title, const Program& program, std::int64_t L) {
    parts.push_back({std::move(title), &program, check(program, c, L, of.M()), {}});
  };
  if (o.text) {
    if (of.strategy)
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
  part("layer", phase.layer, of.L());
  if (!o.svg.empty()) return draw(of, parts.back(), o);
  part("head", phase.head, of.L());
  part("sampling", phase.sample, of.L());
  if (o.json) {
    nlohmann::json out{{"case", print_case(c)}, {of.strategy ? "strategy" : "program", of.title}};
    if (c.lengths.given()) out["row_lengths"] = of.row_lengths();
    for (const Explained& e : parts) out["programs"].push_back(as_json(e, c, o.paper));
    fmt::print("{}\n", json_text(out));
    return 0;
  }
  const std::string resident = resident_layouts(of.strategy ? phase.layer : *c.prefill.program());
  fmt::print("{} on torus {}, {}\n{}\n{}", of.title, c.torus.to_string(), model_text(c), of.pass(),
             rows_text(of, ""));
  fmt::print("resident weights: {}\n", wrapped(resident, 62, "  "));
  if (of.strategy && !of.hands_over)
    fmt::print("placed before the run, once\n");
  else if (of.hands_over && resident_layouts(plan.prefill.layer) == resident)
    fmt::print("same for prefill ({}) and decode: placed before the run, once\n",
               c.prefill.to_string());
  else if (of.hands_over)
    fmt::print("these are for decode; for prefill ({}):\n  {}\nboth are placed before the run\n",
               c.prefill.to_string(), wrapped(resident_layouts(plan.prefill.layer), 76, "  "));
  for (const Explained& e : parts) {
    fmt::print("\n== {} ==\n", e.title);
    if (e.program->ops.empty() && !e.without_ops.empty())
      fmt::print("{}\n", e.without_ops);
    else
      fmt::print("{}", explain(*e.program, e.types, c.torus, c.numerics, c.model, {o.paper}));
  }
  return 0;
}

/// Prints tables and the volumes that their arrows move.
int explain_tables(const std::vector<Strategy>& tables, const Options& o) {
  nlohmann::json entries = nlohmann::json::array();
  std::string text;
  for (const Strategy& table : tables) {
    const Subject of = subject(table, o.flags);
    const TableView view{of.c(), &table, of.phase(), of.L(), of.M(), o.paper};
    if (o.json) {
      entries.push_back(table_json(view));
      entries.back()["case"] = print_case(of.c());
      if (of.c().lengths.given()) entries.back()["row_lengths"] = of.row_lengths();
      continue;
    }
    const std::string where =
        fmt::format("{} on torus {}, {}", of.title, of.c().torus.to_string(), model_text(of.c()));
    text += fmt::format("{}# {}\n# {}\n{}# numbers: elements that one chip sends in a layer\n",
                        text.empty() ? "" : "\n", wrapped(where, 78, "# "), of.pass(),
                        rows_text(of, "# "));
    text += table_text(view);
  }
  if (!o.json) {
    fmt::print("{}", text);
    return 0;
  }
  nlohmann::json out{{"tables", entries}};
  if (!o.layouts->empty()) out["file"] = *o.layouts;
  fmt::print("{}\n", json_text(out));
  return 0;
}

/// Refuses flags that have no effect on the output.
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
  if (o.layouts && o.layouts->empty() && (o.text || !o.svg.empty()))
    refuse("--layouts without a FILE", o.text ? "--text" : "--svg");
  if (o.text) {
    if (o.paper) refuse("--paper", "--text, which has no formulas");
    if (o.flags.has("wire")) refuse("--wire", "--text, which counts no bytes");
    if (o.program) return;  // the other flags define the case for the check
    for (const char* key : {"prefill", "batch", "prompt", "lengths", "prefix"})
      if (o.flags.has(key)) refuse(CaseFlags::flag_of(key), "--text, which is one layer");
  } else if (o.layouts && o.svg.empty() && o.flags.has("prefill")) {
    refuse("--prefill", "--layouts, which is one layer");
  }
}

int explain(Options& o) {
  // `--layouts NAME`: the name of a shipped strategy follows the flag.
  if (o.layouts && o.strategy.empty() && !std::filesystem::exists(*o.layouts))
    for (const Strategy& shipped : all_strategies())
      if (shipped.to_string() == *o.layouts) o.strategy = std::exchange(*o.layouts, "");
  const bool file = o.layouts && !o.layouts->empty();
  if (int{!o.strategy.empty() || file} + int{o.program.has_value()} + int{o.rule.has_value()} != 1)
    throw Error("explain_c1",
                "explain takes one of: a strategy (shardproof list strategies), --layouts FILE, "
                "--program FILE, --rule LABEL (shardproof list rules)");
  if (o.layouts && (o.program || o.rule))
    throw Error("explain_c1", "--layouts goes with a strategy, or with a file of tables");
  if ((o.text || o.rule) && ((o.json && !o.rule) || !o.svg.empty() || (o.text && o.rule)))
    throw Error("explain_c2", fmt::format("{} has its own form of output; leave {} out",
                                          o.rule ? "--rule" : "--text",
                                          o.rule ? "--text and --svg" : "--json and --svg"));
  if (o.rule) refuse_idle_flags(o);  // before any file is opened
  o.flags.load();
  require_not_input({"--svg", o.svg}, {{"--program", o.program.value_or("")},
                                       {"--layouts", o.layouts.value_or("")},
                                       {"--weights", o.flags.weights_file()}});
  refuse_idle_flags(o);
  if (o.rule) return explain_rule(*o.rule, o.json);
  if (o.program) return explain_steps(subject(*o.program, o.flags), o);
  const bool as_table = o.layouts && !o.text && o.svg.empty();
  std::vector<Strategy> tables;
  if (file) {
    tables = load_strategies(*o.layouts);
    o.flags.know(tables);
    if (!as_table || !o.strategy.empty()) tables = {table_named(o.strategy, tables, *o.layouts)};
  } else {
    tables = {Strategy::parse(o.strategy)};
  }
  if (as_table) return explain_tables(tables, o);
  return explain_steps(subject(tables[0], o.flags), o);
}

}  // namespace

void add_explain(CLI::App& app, Action& chosen) {
  auto options = std::make_shared<Options>();
  CLI::App* verb = app.add_subcommand("explain", "Print a strategy's steps and what they move");
  verb->add_option("STRATEGY", options->strategy,
                   "ws2d:batch, wg-xyz:natural, sp:1d, ...; see\n"
                   "shardproof list strategies")
      ->type_name("");
  verb->add_option("--program", options->program, "A layer program instead (docs/program.md)")
      ->type_name("FILE");
  // The value is optional: CLI11 passes the default, an empty text, if none is given.
  verb->add_option_function<std::string>(
          "--layouts", [options](const std::string& file) { options->layouts = file; },
          "The table of layouts, and what each arrow\n"
          "moves; of FILE all tables, or STRATEGY's")
      ->type_name("[FILE]")
      ->expected(0, 1);
  verb->add_option("--rule", options->rule,
                   "What the rule of an error says; see shardproof\n"
                   "list rules")
      ->type_name("LABEL");
  // explain computes no sums, so that it has no regime.
  options->flags.add_to(
      *verb, {"decode_torus", "decode", "chunk", "gen", "seed", "regime", "schedule", "acc"},
      {{"torus", "Chips, XxYxZ [4x2x3]"},
       {"prefill", "The prefill's strategy [the same]"},
       {"batch", "Rows [as many as chips]"},
       {"prompt",
        "Cached positions [4]; of a prefill pass its\npositions [the smallest legal from 4]"}});
  verb->add_flag("--paper", options->paper, "Drop (K-1)/K, as the paper's formulas do");
  verb->add_flag("--text", options->text, "Print the layer program, for verify --program");
  CLI::Option* json = verb->add_flag("--json", options->json, "Print JSON (docs/json.md)");
  verb->add_option("--svg", options->svg, "Draw the layer into a file instead")
      ->type_name("FILE")
      ->excludes(json);
  verb->footer(strategies_text() +
               "Explains one decode step; defaults: torus 4x2x3, palm-tiny, batch = chips. Of a\n"
               "strategy that shards L, the positions, it explains a prefill pass: it cannot\n"
               "decode.\n"
               "--prefill names another strategy for the prefill: then the hand-over of the\n"
               "caches is shown too. With --prefix the layer over the prefixes is, and where\n"
               "their caches go.\n"
               "Example: shardproof explain ws2d:batch --torus 4x2x3 --prefill wg-xyz:batch\n"
               "         shardproof explain ws2d:batch --layouts\n"
               "         shardproof explain --layouts my.layouts\n"
               "         shardproof explain ws2d:batch --text > p.txt\n"
               "         shardproof explain ws2d:batch --svg layer.svg\n"
               "         shardproof explain --program p.txt --torus 2x2x3\n"
               "         shardproof explain --rule all_gather_c3");
  verb->callback([&chosen, options] { chosen = [options] { return explain(*options); }; });
}

}  // namespace shardproof::tools
