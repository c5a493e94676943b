#include <fmt/format.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "tools/command/case_flags.h"
#include "tools/command/layer_files.h"
#include "tools/command/output_file.h"
#include "tools/command/verbs.h"
#include "tools/text/json_text.h"
#include "tools/text/table_view.h"
#include "tools/text/wrapped.h"
#include "tools/verbs/explain_rule.h"
#include "tools/verbs/explain_steps.h"
#include "tools/verbs/explain_subject.h"
#include "weights/base/error.h"

namespace shardproof::tools {
namespace {

struct ExplainFlags : StepsForm {
  std::string strategy;
  std::optional<std::string> program, rule;
  std::optional<std::string> layouts;  // "" if given without a file
  CaseFlags flags;
};

/// Prints tables and the volumes that their arrows move.
int explain_tables(const std::vector<Strategy>& tables, const ExplainFlags& o) {
  nlohmann::json entries = nlohmann::json::array();
  std::string text;
  for (const Strategy& table : tables) {
    const Subject of = subject(table, o.flags);
    const TableView view{of.c(), &table, of.phase(), of.L(), of.M(), o.paper};
    if (o.json) {
      for (nlohmann::json entry : table_json(view)) {
        entry["case"] = print_case(of.c());
        if (of.c().lengths.given()) entry["row_lengths"] = of.row_lengths();
        entries.push_back(std::move(entry));
      }
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
void refuse_idle_flags(const ExplainFlags& o) {
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

int explain(ExplainFlags& o) {
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
  auto options = std::make_shared<ExplainFlags>();
  CLI::App* verb =
      app.add_subcommand("explain", "Print a strategy's steps and the bytes they move");
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
          "moves: all tables of FILE, or STRATEGY's")
      ->type_name("[FILE]")
      ->expected(0, 1);
  verb->add_option("--rule", options->rule,
                   "The rule behind an error's label; see shardproof\n"
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
               "their caches go. Of a text (--model FILE.model) each kind of layers is shown\n"
               "once; --svg draws the others beside the first: layer.1.svg for layer 1.\n"
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
