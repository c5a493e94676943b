#include <fmt/format.h>

#include <memory>
#include <nlohmann/json.hpp>

#include "engine/cost/plan/capacity.h"
#include "tools/command/command_line.h"
#include "tools/command/output_file.h"
#include "tools/command/verbs.h"
#include "tools/plan/capacity_report.h"
#include "tools/plan/frontier_report.h"
#include "tools/plan/plan_options.h"
#include "tools/plan/plan_report.h"
#include "tools/plan/plan_search.h"
#include "tools/plan/plan_split.h"
#include "tools/runner/progress.h"
#include "tools/text/json_text.h"
#include "weights/base/detail/replace_file.h"

namespace shardproof::tools {
namespace {

/// Makes the plan while showing progress on the terminal.
cost::Plan planned(cost::PlanRequest request) {
  Progress progress(cost::plan_parts(request), "tori");
  request.progress = [&progress] { progress.step(); };
  return cost::make_plan(request);
}

int show_capacity(const PlanOptions& o, const cost::PlanRequest& request) {
  const std::optional<double> share = cache_share(o);
  const CapacityReport report{&request, cost::longest_contexts(request, share), share,
                              shown_choices(o)};
  cost::require_capacity(report.found, request, share);
  if (o.json)
    fmt::print("{}\n", json_text(capacity_json(report)));
  else
    fmt::print("{}", capacity_text(report));
  return 0;
}

int show_frontier(const PlanOptions& o, const cost::PlanRequest& request) {
  FrontierReport report{&request, {}, o.csv.empty() ? "plan.csv" : o.csv};
  require_not_input({"--csv", report.csv},
                    {{"--layouts", o.layouts}, {"--chips-file", o.chips_file}});
  require_replaceable(report.csv, "file_write");
  cost::PlanRequest by_phase = request;
  if (request.phase == cost::PlanPhase::both) by_phase.phase = cost::PlanPhase::each;
  const cost::Plan found = planned(by_phase);
  cost::require_choice(found, by_phase);
  report.parameters = found.parameters;
  for (const bool prefills : {true, false}) {
    std::vector<const cost::Choice*> points = cost::fastest_of_each(found.choices, prefills);
    if (!points.empty()) report.phases.push_back({prefills, std::move(points)});
  }
  replace_file(report.csv, frontier_csv(report), "file_write");
  if (o.json)
    fmt::print("{}\n", json_text(frontier_json(report)));
  else
    fmt::print("{}", frontier_text(report));
  return 0;
}

int show_split(const PlanOptions& o, const cost::PlanRequest& request) {
  const SplitPlan plan = plan_two_slices(request, split_goal(o, request.chip));
  if (o.json)
    fmt::print("{}\n", json_text(split_json(plan, request, o.layouts)));
  else
    fmt::print("{}", split_text(plan, request, o.layouts));
  return 0;
}

int plan(const PlanOptions& o) {
  const cost::PlanRequest request = plan_request(o);
  if (o.capacity) return show_capacity(o, request);
  if (o.pareto) return show_frontier(o, request);
  if (o.split) return show_split(o, request);
  if (!o.out.empty()) {
    require_not_input({"--out", o.out}, {{"--layouts", o.layouts}, {"--chips-file", o.chips_file}});
    require_replaceable(o.out, "file_write");
  }
  const cost::Plan found = planned(request);
  cost::require_choice(found, request);
  PlanReport report{&request, &found, shown_choices(o), o.skipped, o.layouts};
  if (request.volumes == cost::Volumes::paper)
    report.volumes = cost::compare_volumes(found, found.choices[0].main());
  std::vector<PhaseSearch> searched;
  if (o.search) {
    searched = search_choice(found.choices[0], request.chip);
    if (!o.out.empty()) replace_file(o.out, searched_layouts(searched), "file_write");
  }
  if (o.json) {
    nlohmann::json json = plan_json(report);
    if (o.search) json["search"] = search_json(searched, found.choices[0], request.model, o.out);
    fmt::print("{}\n", json_text(json));
    return 0;
  }
  fmt::print("{}", plan_text(report));
  if (o.search) fmt::print("{}", search_text(searched, found.choices[0], request.model, o.out));
  return 0;
}

}  // namespace

void add_plan(CLI::App& app, Action& chosen) {
  auto o = std::make_shared<PlanOptions>();
  CLI::App* verb = app.add_subcommand("plan", "Choose torus, layout and weights by estimated cost");
  const auto text = [&](const std::string& flag, std::string& value, const std::string& help,
                        const std::string& kind = "") {
    return verb->add_option(flag, value, help)->type_name(kind);
  };
  text("--model", o->model,
       "PRESET[,KEY=VALUE...] or FILE.model[,KEY=VALUE...]\n[palm-540b]; see shardproof list "
       "models");
  CLI::Option* chips = text("--chips", o->chips, "How many: 64, a list 64,128 or a range 8-256");
  CLI::Option* torus = text("--torus", o->torus, "The torus, XxYxZ, in place of --chips");
  torus->excludes(chips);
  text("--tori", o->tori,
       "slices: those that a slice of the chip's pod\nhas; all: every X*Y*Z [slices]");
  verb->add_option(
          "--batch", o->batch,
          "Rows: 64, a list, or a range 1-512, which\ndoubles [1; 1-512 with --pareto or --split]")
      ->type_name("");
  add_number(*verb, "--context", o->context, "Positions in the caches at the end [2048]", 1,
             kMostPositions);
  add_number(*verb, "--prompt", o->prompt,
             "Tokens that the prefill takes [the context,\nless --gen where both phases run]", 1,
             kMostPositions);
  add_number(*verb, "--gen", o->gen, "Decode steps [64, or half a shorter context]", 1,
             kMostPositions);
  text("--weights", o->weights, "Type of the W matrices: int8, bf16, any [any]");
  text("--phase", o->phase, "prefill, decode, or both on the same chips [both]");
  text("--minimize", o->minimize,
       "latency or cost, chip-seconds a token\n[latency; cost with --latency]");
  text("--latency", o->latency,
       "Longest time for a prefill, a decode step, or\nboth phases together: 50ms", "TIME");
  text("--heads", o->heads,
       "pad: as many heads as a layout divides, as the\npaper pads 48 to 64; own: the model's "
       "[pad]");
  verb->add_flag("--alone", o->alone, "The chips hold the weights of one phase only");
  text("--volumes", o->volumes,
       "full: all that chips send; paper: the FFN's\nvolumes by the paper's formulas [full]");
  text("--chip", o->chip, "The chip [tpu-v4]; see docs/cost.md", "NAME");
  text("--chips-file", o->chips_file, "Chips of your own (docs/cost.md)", "FILE");
  text("--only", o->only,
       "Strategies to choose among: ws2d:batch,wg-xyz\n[all that ship, and yours]", "NAMES");
  text("--layouts", o->layouts, "Tables of layouts of your own\n(docs/layouts.md)", "FILE");
  add_number(*verb, "--top", o->top, "How many choices are printed [5]", 1, 1000);
  CLI::Option* capacity =
      verb->add_flag("--capacity", o->capacity, "Print the longest contexts that fit instead");
  text("--cache-share", o->cache_share,
       "With --capacity: the share of a chip's memory\nthat caches have [what is left]", "SHARE");
  verb->add_flag("--pareto", o->pareto,
                 "Write cost against latency as a table instead\n(docs/cost.md draws it)")
      ->excludes(capacity);
  text("--csv", o->csv, "With --pareto: the table [plan.csv]", "FILE");
  verb->add_flag(
          "--search", o->search,
          "Search all tables of layouts over the best\nchoice's torus, for each of its phases")
      ->excludes(capacity)
      ->excludes("--pareto");
  text("--out", o->out, "With --search: where the tables are written", "FILE");
  verb->add_flag(
          "--split", o->split,
          "Choose a slice for prefill and one for decode,\nof fewest chips, for --ttft and --tpot")
      ->excludes(capacity)
      ->excludes("--pareto")
      ->excludes("--search");
  text("--ttft", o->ttft, "With --split: the most to the first token: 1s", "TIME");
  text("--tpot", o->tpot, "With --split: the most for each further token", "TIME");
  text("--rate", o->rate, "With --split: requests a second [one alone]", "NUMBER");
  text("--link", o->link,
       "With --split: what a chip sends and receives\nbetween the slices [as over one axis]",
       "BYTES/s");
  add_number(*verb, "--threads", o->threads, "Threads; 0 for all cores [0]");
  verb->add_flag("--skipped", o->skipped, "Print the rejected choices, and why");
  verb->add_flag("--json", o->json, "Print JSON (docs/json.md)");
  verb->footer(
      "Nothing is run: times and memory come from formulas (docs/cost.md).\n"
      "Example: shardproof plan --chips 64 --batch 64 --weights int8 --phase decode\n"
      "         shardproof plan --chips 64,128 --batch 1-512 --latency 90s\n"
      "         shardproof plan --chips 64 --batch 512 --capacity --cache-share 0.3\n"
      "         shardproof plan --chips 8-256 --pareto\n"
      "         shardproof plan --chips 8-256 --split --ttft 1s --tpot 50ms");
  verb->callback([&chosen, o] { chosen = [o] { return plan(*o); }; });
}

}  // namespace shardproof::tools
