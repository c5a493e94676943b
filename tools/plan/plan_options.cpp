#include "tools/plan/plan_options.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "engine/cost/chip/quantity.h"
#include "engine/cost/plan/tori.h"
#include "engine/run/case.h"
#include "tools/command/case_flags.h"
#include "tools/command/number_list.h"
#include "weights/base/nearest.h"
#include "weights/maps/load_model.h"
#include "weights/text/text_model.h"

namespace shardproof::tools {
namespace {

/// Context and steps that the paper measured.
constexpr std::int64_t kUsualContext = 2048, kUsualSteps = 64;
constexpr std::int64_t kUsualTop = 5;

std::string either(const std::string& given, const char* usual) {
  return given.empty() ? usual : given;
}

/// Returns the value of a flag that takes one of a few words. Throws Error("flag_c11", ...).
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

/// A flag that may have no effect on the requested report, and why.
struct IdleFlag {
  const char* flag;
  bool given;
  bool idle;
  const char* why;
};

/// Throws Error("flag_c6", ...) for the first given flag that has no effect.
void refuse_idle_flags(const PlanOptions& o) {
  const bool prefill = o.phase == "prefill", decode = o.phase == "decode";
  const bool paper = o.volumes == "paper", other_phase = !o.phase.empty() && o.phase != "both";
  const bool capacity = o.capacity, pareto = o.pareto, split = o.split;
  const bool phase = !o.phase.empty(), context = o.context.has_value();
  const bool prompt = o.prompt.has_value(), gen = o.gen.has_value(), top = o.top.has_value();
  const bool minimize = !o.minimize.empty(), latency = !o.latency.empty();
  const char* const of_decodes = "with --capacity, which is for decode steps";
  const char* const by_memory = "with --capacity, which is by memory alone";
  const char* const longest = "with --capacity, which finds the longest context";
  const std::vector<IdleFlag> rows{
      {"--cache-share", !o.cache_share.empty(), !capacity, "without --capacity"},
      {"--csv", !o.csv.empty(), !pareto, "without --pareto"},
      {"--out", !o.out.empty(), !o.search, "without --search"},
      {"--ttft", !o.ttft.empty(), !split, "without --split"},
      {"--tpot", !o.tpot.empty(), !split, "without --split"},
      {"--rate", !o.rate.empty(), !split, "without --split"},
      {"--link", !o.link.empty(), !split, "without --split"},
      {"--tori", !o.tori.empty(), !o.torus.empty(), "with --torus"},
      {"--search", o.search, paper, "with --volumes paper"},
      {"--minimize", minimize, capacity, by_memory},
      {"--latency", latency, capacity, "with --capacity"},
      {"--volumes", !o.volumes.empty(), capacity, by_memory},
      {"--phase", phase, capacity, of_decodes},
      {"--alone", o.alone, capacity, of_decodes},
      {"--prompt", prompt, capacity, of_decodes},
      {"--context", context, capacity, longest},
      {"--gen", gen, capacity, longest},
      {"--skipped", o.skipped, capacity, "with --capacity"},
      {"--minimize", minimize, pareto, "with --pareto, which is of both goals"},
      {"--latency", latency, pareto, "with --pareto"},
      {"--top", top, pareto, "with --pareto, which has every point"},
      {"--skipped", o.skipped, pareto, "with --pareto"},
      {"--latency", latency, split, "with --split, which has --ttft and --tpot"},
      {"--minimize", minimize, split, "with --split, which has goals"},
      {"--alone", o.alone, split, "with --split, where each slice is of one phase"},
      {"--phase", other_phase, split, "with --split, which is of both"},
      {"--volumes paper", paper, split, "with --split"},
      {"--top", top, split, "with --split, which has one choice"},
      {"--skipped", o.skipped, split, "with --split"},
      {"--prompt", prompt, decode, "with --phase decode"},
      {"--alone", o.alone, decode, "with --phase decode"},
      {"--gen", gen, prefill && o.alone, "with --phase prefill --alone"},
  };
  for (const IdleFlag& row : rows)
    if (row.given && row.idle)
      throw Error("flag_c6", fmt::format("{} has no effect {} (see shardproof plan --help)",
                                         row.flag, row.why));
}

/// Returns the requested tori. Throws Error("plan_c4", ...) if no slice has that number of chips.
std::vector<Torus> tori_of(const PlanOptions& o, const cost::Chip& chip) {
  if (!o.torus.empty()) return {Torus::parse(o.torus)};
  if (o.chips.empty())
    throw Error("flag_c7", "plan needs --chips or --torus (see shardproof plan --help)");
  const bool every =
      word_of<bool>("--tori", either(o.tori, "slices"), {{"slices", false}, {"all", true}});
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

/// Requires of a plan of a text's model what its programs have.
void refuse_of_text(const PlanOptions& o, const ModelConfig& model) {
  Case asked;
  asked.model = model;
  if (o.search) require_keys(asked, "plan --search");
  if (o.volumes == "paper") require_keys(asked, "plan --volumes paper");
}

}  // namespace

cost::PlanRequest plan_request(const PlanOptions& o) {
  refuse_idle_flags(o);
  cost::PlanRequest r;
  r.model = read_model(o.model);
  refuse_of_text(o, r.model);
  r.chip = cost::find_chip(
      o.chip, o.chips_file.empty() ? std::vector<cost::Chip>{} : cost::load_chips(o.chips_file));
  r.phase = word_of<cost::PlanPhase>("--phase", either(o.phase, "both"),
                                     {{"prefill", cost::PlanPhase::prefill},
                                      {"decode", cost::PlanPhase::decode},
                                      {"both", cost::PlanPhase::both}});
  r.weights = word_of<std::vector<NumberFormat>>("--weights", o.weights,
                                                 {{"any", {NumberFormat::bf16, NumberFormat::int8}},
                                                  {"bf16", {NumberFormat::bf16}},
                                                  {"int8", {NumberFormat::int8}}});
  r.goal = word_of<cost::Goal>(
      "--minimize", !o.minimize.empty() ? o.minimize : (o.latency.empty() ? "latency" : "cost"),
      {{"latency", cost::Goal::latency}, {"cost", cost::Goal::cost}});
  if (!o.latency.empty()) r.latency = cost::parse_quantity(o.latency, cost::Measure::seconds);
  r.pad_heads = word_of<bool>("--heads", o.heads, {{"pad", true}, {"own", false}});
  r.volumes =
      word_of<cost::Volumes>("--volumes", either(o.volumes, "full"),
                             {{"full", cost::Volumes::full}, {"paper", cost::Volumes::paper}});
  r.alone = o.alone;
  r.context = o.context.value_or(kUsualContext);
  r.gen = o.gen.value_or(std::clamp<std::int64_t>(r.context / 2, 1, kUsualSteps));
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
  r.batches = parse_numbers("--batch", o.batch.value_or(o.pareto || o.split ? "1-512" : "1"),
                            kMostPositions, false)
                  .numbers;
  r.strategies = strategies_of(o);
  r.tori = tori_of(o, r.chip);
  r.threads = thread_count(o.threads);
  return r;
}

std::optional<double> cache_share(const PlanOptions& o) {
  if (o.cache_share.empty()) return std::nullopt;
  const double share = cost::parse_quantity(o.cache_share, cost::Measure::none);
  if (share > 1.0)
    throw Error("plan_c6",
                fmt::format("--cache-share {}: a share is above 0 and at most 1", o.cache_share));
  return share;
}

std::size_t shown_choices(const PlanOptions& o) {
  return static_cast<std::size_t>(o.top.value_or(kUsualTop));
}

cost::SplitGoal split_goal(const PlanOptions& o, const cost::Chip& chip) {
  if (o.ttft.empty() || o.tpot.empty())
    throw Error("flag_c12", "plan --split needs --ttft and --tpot (see shardproof plan --help)");
  cost::SplitGoal goal;
  goal.ttft = cost::parse_quantity(o.ttft, cost::Measure::seconds);
  goal.tpot = cost::parse_quantity(o.tpot, cost::Measure::seconds);
  if (!o.rate.empty()) goal.rate = cost::parse_quantity(o.rate, cost::Measure::none);
  goal.bandwidth = o.link.empty() ? chip.sends(1)
                                  : cost::parse_quantity(o.link, cost::Measure::bytes_per_second);
  if (goal.bandwidth <= 0.0)
    throw Error("flag_c12",
                fmt::format("chip {} has no interconnect; plan --split needs --link", chip.name));
  return goal;
}

}  // namespace shardproof::tools
