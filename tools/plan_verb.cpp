#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>

#include "engine/cost/plan.h"
#include "engine/cost/quantity.h"
#include "engine/cost/tori.h"
#include "tools/case_flags.h"
#include "tools/command_line.h"
#include "tools/number_list.h"
#include "tools/plan_report.h"
#include "tools/runner/json_text.h"
#include "tools/runner/progress.h"
#include "tools/verbs.h"
#include "weights/nearest.h"

namespace shardproof::tools {
namespace {

constexpr std::int64_t kMostPositions = 1'000'000'000;
/// What the paper measured.
constexpr std::int64_t kUsualSteps = 64;

struct PlanOptions {
  std::string model = "palm-540b", chips, torus, tori = "slices", batch = "1";
  std::string weights = "any", phase = "both", minimize, latency, heads = "pad", volumes = "full";
  std::string chip = "tpu-v4", chips_file, only, layouts;
  std::int64_t context = 2048, top = 5;
  std::optional<std::int64_t> prompt, gen;
  int threads = 0;
  bool alone = false, skipped = false, json = false;
};

/// The value of a flag that has one of a few words. Throws Error("flag_c11", ...).
template <class T>
T word_of(std::string_view flag, const std::string& word,
          const std::vector<std::pair<std::string, T>>& words) {
  std::vector<std::string> legal;
  for (const auto& [name, value] : words) {
    if (name == word) return value;
    legal.push_back(name);
  }
  const std::string near = nearest(word, legal);
  throw Error("flag_c11", fmt::format("{} '{}'{} legal: {}", flag, word,
                                     near.empty() ? ";" : ", did you mean " + near + "?",
                                     fmt::join(legal, ", ")));
}

/// Throws Error("plan_c4", ...) where a slice has other numbers of chips.
std::vector<Torus> tori_of(const PlanOptions& o, const cost::Chip& chip) {
  if (!o.torus.empty()) return {Torus::parse(o.torus)};
  if (o.chips.empty())
    throw Error("flag_c7", "plan needs --chips or --torus (see shardproof plan --help)");
  const bool every = word_of<bool>("--tori", o.tori, {{"slices", false}, {"all", true}});
  const auto most = std::min<std::int64_t>(chip.max_chips, Torus::kMaxChips);
  const NumberList chips = parse_numbers("--chips", o.chips, most, true);
  std::vector<Torus> tori;
  for (const std::int64_t number : chips.numbers) {
    const auto n = static_cast<int>(number);
    const std::vector<Torus> more = every ? cost::all_tori(n) : cost::slice_tori(n, chip.min_axis);
    tori.insert(tori.end(), more.begin(), more.end());
  }
  if (tori.empty() || (!chips.range && !every)) {
    for (const std::int64_t number : chips.numbers) {
      const auto n = static_cast<int>(number);
      if (!cost::slice_tori(n, chip.min_axis).empty()) continue;
      const std::vector<int> sizes = cost::slice_sizes(chip.min_axis, 2 * n + 64);
      const auto above = std::upper_bound(sizes.begin(), sizes.end(), n);
      throw Error("plan_c4", fmt::format("no slice of {} has {} chips; {} and {} have; --tori all "
                                         "takes every torus",
                                         chip.name, n, *(above - 1),
                                         above == sizes.end() ? *(above - 1) : *above));
    }
  }
  return tori;
}

std::vector<Strategy> strategies_of(const PlanOptions& o) {
  const std::vector<Strategy> own =
      o.layouts.empty() ? std::vector<Strategy>{} : load_strategies(o.layouts);
  std::vector<Strategy> all = all_strategies();
  all.insert(all.end(), own.begin(), own.end());
  if (o.only.empty()) return all;
  std::vector<Strategy> only;
  for (std::size_t begin = 0; begin <= o.only.size();) {
    const std::size_t comma = std::min(o.only.find(',', begin), o.only.size());
    only.push_back(Strategy::parse(o.only.substr(begin, comma - begin), own));
    begin = comma + 1;
  }
  return only;
}

cost::PlanRequest request_of(const PlanOptions& o) {
  cost::PlanRequest r;
  r.model = parse_model(o.model);
  r.chip = cost::find_chip(
      o.chip, o.chips_file.empty() ? std::vector<cost::Chip>{} : cost::load_chips(o.chips_file));
  r.phase = word_of<cost::PlanPhase>("--phase", o.phase,
                                     {{"prefill", cost::PlanPhase::prefill},
                                      {"decode", cost::PlanPhase::decode},
                                      {"both", cost::PlanPhase::both}});
  r.weights = word_of<std::vector<WeightType>>("--weights", o.weights,
                                               {{"any", {WeightType::bf16, WeightType::int8}},
                                                {"bf16", {WeightType::bf16}},
                                                {"int8", {WeightType::int8}}});
  r.goal = word_of<cost::Goal>(
      "--minimize", !o.minimize.empty() ? o.minimize : (o.latency.empty() ? "latency" : "cost"),
      {{"latency", cost::Goal::latency}, {"cost", cost::Goal::cost}});
  if (!o.latency.empty()) r.latency = cost::parse_quantity(o.latency, cost::Measure::seconds);
  r.pad_heads = word_of<bool>("--heads", o.heads, {{"pad", true}, {"own", false}});
  r.volumes = word_of<cost::Volumes>(
      "--volumes", o.volumes, {{"full", cost::Volumes::full}, {"paper", cost::Volumes::paper}});
  r.alone = o.alone;
  r.context = o.context;
  r.gen = o.gen.value_or(std::clamp<std::int64_t>(o.context / 2, 1, kUsualSteps));
  r.prompt = o.prompt.value_or(
      r.phase == cost::PlanPhase::both && r.gen < r.context ? r.context - r.gen : r.context);
  const bool both = r.phase == cost::PlanPhase::both;
  if (r.gen > r.context || r.prompt > r.context || (both && r.prompt + r.gen > r.context))
    throw Error(
        "plan_c5",
        fmt::format("a context of {} positions is too short for {}; --context {} is not", r.context,
                    both ? fmt::format("a prompt of {} and {} steps", r.prompt, r.gen)
                    : r.prompt > r.context ? fmt::format("a prompt of {}", r.prompt)
                                           : fmt::format("{} steps", r.gen),
                    both ? r.prompt + r.gen : std::max(r.prompt, r.gen)));
  r.batches = parse_numbers("--batch", o.batch, kMostPositions, false).numbers;
  r.strategies = strategies_of(o);
  r.tori = tori_of(o, r.chip);
  r.threads = thread_count(o.threads);
  return r;
}

/// With a line on the terminal that says how far it is.
cost::Plan planned(cost::PlanRequest request) {
  Progress progress(cost::plan_parts(request), "tori");
  request.progress = [&progress] { progress.step(); };
  return cost::make_plan(request);
}

int plan(const PlanOptions& o) {
  const cost::PlanRequest request = request_of(o);
  const cost::Plan found = planned(request);
  cost::require_choice(found, request);
  PlanReport report{&request, &found, static_cast<std::size_t>(o.top), o.skipped, o.layouts};
  if (request.volumes == cost::Volumes::paper)
    report.volumes = cost::compare_volumes(found, found.choices[0].main());
  if (o.json)
    fmt::print("{}\n", json_text(plan_json(report)));
  else
    fmt::print("{}", plan_text(report));
  return 0;
}

}  // namespace

void add_plan(CLI::App& app, Action& chosen) {
  auto o = std::make_shared<PlanOptions>();
  CLI::App* verb = app.add_subcommand("plan", "Choose torus, layout and weights by what they cost");
  const auto text = [&](const std::string& flag, std::string& value, const std::string& help,
                        const std::string& kind = "") {
    return verb->add_option(flag, value, help)->type_name(kind);
  };
  text("--model", o->model, "PRESET[,KEY=VALUE...] [palm-540b];\nsee shardproof list models");
  CLI::Option* chips = text("--chips", o->chips, "How many: 64, a list 64,128 or a range 8-256");
  CLI::Option* torus = text("--torus", o->torus, "The torus, XxYxZ, in place of --chips");
  torus->excludes(chips);
  text("--tori", o->tori,
       "slices: those that a slice of the chip's pod\nhas; all: every X*Y*Z [slices]");
  text("--batch", o->batch, "Rows: 64, a list, or a range 1-512, which\ndoubles [1]");
  add_number(*verb, "--context", o->context, "Positions in the caches at the end [2048]", 1,
             kMostPositions);
  add_number(*verb, "--prompt", o->prompt,
             "Tokens that the prefill takes [the context,\nless --gen where both phases run]", 1,
             kMostPositions);
  add_number(*verb, "--gen", o->gen, "Decode steps [64, or half a shorter context]", 1,
             kMostPositions);
  text("--weights", o->weights, "What W matrices are kept as: int8, bf16, any [any]");
  text("--phase", o->phase, "prefill, decode, or both on the same chips [both]");
  text("--minimize", o->minimize,
       "latency or cost, chip-seconds a token\n[latency; cost with --latency]");
  text("--latency", o->latency,
       "The most that a prefill, a decode step, or of\nboth phases all takes: 50ms", "TIME");
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
  add_number(*verb, "--threads", o->threads, "Threads; 0 for all cores [0]");
  verb->add_flag("--skipped", o->skipped, "Print what was left out, and why");
  verb->add_flag("--json", o->json, "Print JSON (docs/json.md)");
  verb->footer(
      "Nothing is run: times and memory come from formulas (docs/cost.md).\n"
      "Example: shardproof plan --chips 64 --batch 64 --weights int8 --phase decode\n"
      "         shardproof plan --chips 64,128 --batch 1-512 --latency 90s");
  verb->callback([&chosen, o] { chosen = [o] { return plan(*o); }; });
}

}  // namespace shardproof::tools
