#include <fmt/format.h>

#include <cmath>
#include <memory>
#include <optional>
#include <string>

#include "engine/cost/analysis/experts.h"
#include "engine/cost/analysis/offload.h"
#include "engine/cost/analysis/pipeline.h"
#include "engine/cost/analysis/speculation.h"
#include "engine/cost/chip/quantity.h"
#include "engine/cost/formulas/embeddings.h"
#include "engine/cost/graph/graph.h"
#include "tools/command/chip_flags.h"
#include "tools/command/command_line.h"
#include "tools/command/verbs.h"
#include "tools/text/fact_sheet.h"
#include "tools/text/short_number.h"
#include "weights/maps/load_model.h"
#include "weights/text/text_model.h"

namespace shardproof::tools {
namespace {

using cost::Measure;
constexpr std::int64_t kMostGamma = 1000;

/// Flags shared by several subverbs.
struct CostFlags {
  std::string model;
  ChipFlags chip;
  std::string weights = "bf16", act = "bf16";
  std::int64_t batch = 1, tokens = 1, context = 2048;
  bool json = false;

  cost::PipelineSetting pipeline;
  cost::Experts experts;
  cost::Speculation speculation;
  std::optional<std::int64_t> gamma;
};

std::string shown_bytes(double bytes) { return cost::rounded_quantity(bytes, Measure::bytes); }
std::string shown_seconds(double seconds) {
  return cost::rounded_quantity(seconds, Measure::seconds);
}
std::string percent(double share) { return fmt::format("{:.4g} %", 100.0 * share); }

void add_bytes(FactSheet& sheet, const std::string& member, const std::string& label,
               double bytes) {
  sheet.add(member, label, bytes, shown_bytes(bytes));
}
void add_seconds(FactSheet& sheet, const std::string& member, const std::string& label,
                 double seconds) {
  sheet.add(member, label, seconds, shown_seconds(seconds));
}
void add_count(FactSheet& sheet, const std::string& member, const std::string& label,
               std::int64_t count) {
  sheet.add(member, label, count, fmt::format("{}", count));
}
void add_flops(FactSheet& sheet, const std::string& member, const std::string& label,
               double flops) {
  sheet.add(member, label, flops, short_number(flops));
}

/// Adds the storage types of W matrices, embedding and unembedding.
void add_kept(FactSheet& sheet, NumberFormat weights) {
  const auto add = [&](const std::string& member, const std::string& label, NumberFormat type) {
    sheet.add(member, label, to_string(type), std::string(to_string(type)));
  };
  add("weights", "W matrices are", weights);
  add("embeddings", "embedding and unembedding are", cost::embeddings_beside(weights));
}

int parameters(const CostFlags& o, const CLI::App&) {
  const ModelConfig model = read_model(o.model);
  const std::shared_ptr<const TextModel> text = cost::graph_of(model);
  std::vector<cost::WeightElements> weights = cost::weight_elements(*text);
  std::erase_if(weights, [](const auto& one) { return !cost::is_parameter(one); });
  const auto matrices = static_cast<std::int64_t>(cost::matrix_parameters(model));
  std::int64_t total = 0;
  double active = 0.0;
  for (const cost::WeightElements& one : weights) {
    total += one.elements;
    active += one.active;
  }
  if (!o.json) {
    FactSheet sheet(fmt::format("{}: parameters", print_model(model)));
    for (const cost::WeightElements& one : weights)
      add_count(sheet, "", fmt::format("{} {} x{}", one.name, one.letters, one.layers),
                one.elements);
    add_count(sheet, "", "all matrices and tables", matrices);
    add_count(sheet, "", "all", total);
    add_count(sheet, "", "  of those active for a token", std::llround(active));
    add_count(sheet, "", "cached for a position of a row", cost::cache_elements(*text));
    sheet.print(false);
    return 0;
  }
  nlohmann::json rows = nlohmann::json::array();
  for (const cost::WeightElements& one : weights)
    rows.push_back({{"weight", one.name},
                    {"letters", one.letters},
                    {"layers", one.layers},
                    {"elements", one.elements},
                    {"active", one.active}});
  fmt::print("{}\n", json_text({{"model", print_model(model)},
                                {"weights", rows},
                                {"matrices", matrices},
                                {"total", total},
                                {"active", active},
                                {"cache_elements", cost::cache_elements(*text)}}));
  return 0;
}

int pipeline(const CostFlags& o, const CLI::App& verb) {
  cost::PipelineSetting s = o.pipeline;
  s.model = read_model(o.model);
  s.weights = type_of_flag(verb, "--weights", o.weights);
  s.act = parse_act_format(o.act);
  s.batch = o.batch;
  s.tokens = o.tokens;
  s.context = o.context;
  const cost::Chip chip = o.chip.chip();
  const cost::PipelineCost c = cost::pipeline_cost(s, chip);
  FactSheet sheet(fmt::format("{} on {} {}: {} stages of {}, {} microbatches, {} steps",
                              print_model(s.model), c.chips, chip.name, s.pipeline.stages, s.tensor,
                              s.pipeline.microbatches, s.pipeline.steps));
  add_count(sheet, "chips", "chips", c.chips);
  sheet.add("joined", "one interconnect joins them all", c.joined,
            c.joined ? "yes" : "no; taken as fast between stages");
  add_kept(sheet, s.weights);
  add_count(sheet, "layers_of_stage", "layers of the largest stage", c.layers_of_stage);
  sheet.add("bubble", "bubble, the share of waiting", c.bubble, percent(c.bubble));
  add_bytes(sheet, "weight_bytes", "weights on a chip", c.weight_bytes);
  add_bytes(sheet, "cache_bytes", "caches on a chip", c.cache_bytes);
  sheet.add("fits", "fits into its memory", c.fits(chip), c.fits(chip) ? "yes" : "no");
  add_seconds(sheet, "compute_seconds", "a microbatch on a stage: compute", c.slot.compute);
  add_seconds(sheet, "memory_seconds", "  memory", c.slot.memory);
  add_seconds(sheet, "communication_seconds", "  communication",
              c.slot.communication + c.slot.hops);
  add_seconds(sheet, "transfer_seconds", "  sent to the next stage", c.transfer);
  add_seconds(sheet, "lower_seconds", "all steps, all overlapped", c.lower);
  add_seconds(sheet, "additive_seconds", "all steps, nothing overlapped", c.additive);
  sheet.print(o.json);
  return 0;
}

int experts(const CostFlags& o, const CLI::App& verb) {
  cost::Experts x = o.experts;
  x.tokens = o.tokens;
  const ModelConfig model = read_model(o.model);
  if (const auto own = cost::own_experts(model)) {
    if (verb.count("--experts") == 0) x.experts = own->experts;
    if (verb.count("--top") == 0) x.top = own->top;
  }
  const cost::Chip chip = o.chip.chip();
  const cost::ElementBytes bytes =
      cost::element_bytes(type_of_flag(verb, "--weights", o.weights), parse_act_format(o.act));
  const cost::ExpertsCost c = cost::experts_cost(model, x, bytes, chip);
  FactSheet sheet(fmt::format("{}, FFN of one layer: {} experts, top {}, {} tokens on {} {}",
                              print_model(model), x.experts, x.top, x.tokens, x.chips, chip.name));
  add_flops(sheet, "router_flops", "router, FLOPs", c.router_flops);
  add_flops(sheet, "dense_flops", "one dense FFN, FLOPs", c.dense_flops);
  add_flops(sheet, "token_flops", "experts of the tokens, FLOPs", c.token_flops);
  add_count(sheet, "slots", "tokens an expert takes", c.slots);
  add_flops(sheet, "slot_flops", "all slots of all experts, FLOPs", c.slot_flops);
  sheet.add("touched", "experts that a token goes to", c.touched, fmt::format("{:.4g}", c.touched));
  add_bytes(sheet, "weight_bytes", "weights on a chip", c.weight_bytes);
  add_bytes(sheet, "all_to_all_bytes", "sent by a chip, each way", c.all_to_all_bytes);
  add_seconds(sheet, "both_ways_seconds", "both all-to-alls", c.both_ways_seconds);
  sheet.print(o.json);
  return 0;
}

int offload(const CostFlags& o, const CLI::App& verb) {
  const cost::OffloadSetting s{read_model(o.model),
                               type_of_flag(verb, "--weights", o.weights),
                               parse_act_format(o.act),
                               o.batch,
                               o.tokens,
                               o.context};
  const cost::Chip chip = o.chip.chip();
  const cost::OffloadCost c = cost::offload_cost(s, chip);
  FactSheet sheet(fmt::format("{} on one {}: {} x {} new of {} positions", print_model(s.model),
                              chip.name, s.batch, s.tokens, s.context));
  add_kept(sheet, s.weights);
  add_bytes(sheet, "weight_bytes", "weights", c.weight_bytes);
  add_bytes(sheet, "cache_bytes", "caches", c.cache_bytes);
  sheet.add("fraction", "share of the weights that fits", c.fraction(), percent(c.fraction()));
  add_bytes(sheet, "host_bytes", "the others, in the host's memory", c.host_bytes);
  add_bytes(sheet, "streamed_bytes", "  of those streamed in each pass", c.streamed_bytes);
  add_seconds(sheet, "host_seconds", "  takes", c.host_seconds);
  add_seconds(sheet, "memory_seconds", "the chip's memory", c.memory_seconds);
  add_seconds(sheet, "compute_seconds", "compute, without masked scores", c.compute_seconds);
  add_seconds(sheet, "seconds", "a pass takes at least", c.seconds());
  add_seconds(sheet, "seconds_without", "  and if all fitted", c.seconds_without());
  sheet.print(o.json);
  return 0;
}

int speculation(const CostFlags& o, const CLI::App&) {
  const std::int64_t best = cost::best_gamma(o.speculation, kMostGamma);
  const std::int64_t gamma = o.gamma.value_or(best);
  FactSheet sheet(fmt::format("acceptance {}, draft cost {}, verification {}",
                              o.speculation.acceptance, o.speculation.draft_cost,
                              o.speculation.verify_cost));
  add_count(sheet, "gamma", "gamma, tokens proposed", gamma);
  const double tokens = cost::tokens_of_round(o.speculation, gamma);
  sheet.add("tokens", "tokens of a round", tokens, fmt::format("{:.6g}", tokens));
  const double gain = cost::speed_up(o.speculation, gamma);
  sheet.add("speed_up", "speed-up", gain, fmt::format("{:.6g}", gain));
  add_count(sheet, "best_gamma", fmt::format("best gamma up to {}", kMostGamma), best);
  const double most = cost::speed_up(o.speculation, best);
  sheet.add("best_speed_up", "  with the speed-up", most, fmt::format("{:.6g}", most));
  sheet.print(o.json);
  return 0;
}

void add_model(CLI::App& verb, CostFlags& o, const char* preset) {
  o.model = preset;
  verb.add_option(
          "--model", o.model,
          fmt::format(
              "PRESET[,KEY=VALUE...] or FILE.model[,KEY=VALUE...]\n[{}]; see shardproof list "
              "models",
              preset))
      ->type_name("MODEL");
}

void add_types(CLI::App& verb, CostFlags& o, const char* chip = "tpu-v4") {
  o.chip.add_to(verb, chip);
  verb.add_option("--weights", o.weights, "Weights in memory: f32, bf16 or int8 [bf16]")
      ->type_name("TYPE");
  verb.add_option("--act", o.act, "Activations and caches: f32 or bf16 [bf16]")->type_name("TYPE");
}

void add_pass(CLI::App& verb, CostFlags& o) {
  add_number(verb, "--batch", o.batch, "Sequences [1]", 1, kMostCounted);
  add_number(verb, "--tokens", o.tokens, "New positions of each sequence in a pass [1]", 1,
             kMostCounted);
  add_number(verb, "--context", o.context,
             "Positions that are attended to, the new ones\namong them [2048]", 1, kMostCounted);
}

using Show = int (*)(const CostFlags&, const CLI::App&);

/// Adds a subverb; returns it with the options that its flags set.
std::pair<CLI::App*, CostFlags*> add_subject(CLI::App& verb, Action& chosen, const char* name,
                                             const char* text, const char* example, Show show) {
  CLI::App* one = verb.add_subcommand(name, text);
  const auto o = std::make_shared<CostFlags>();
  one->add_flag("--json", o->json, "Print JSON (docs/json.md)");
  one->footer(fmt::format("What is counted: docs/cost.md.\nExample: shardproof cost {}", example));
  one->callback([&chosen, o, one, show] { chosen = [o, one, show] { return show(*o, *one); }; });
  return {one, o.get()};
}

}  // namespace

void add_cost(CLI::App& app, Action& chosen) {
  CLI::App* verb = app.add_subcommand("cost", "Pipelines, experts, offload and more by formulas");
  verb->require_subcommand(1);
  verb->footer(
      "Each has --help with what it reads (docs/cost.md); see shardproof list models.\n"
      "Example: shardproof cost parameters --model palm-540b\n"
      "         shardproof cost speculation --acceptance 0.8 --draft-cost 0.05");
  {
    const auto [one, o] =
        add_subject(*verb, chosen, "parameters", "How many parameters a model has, by weight",
                    "parameters --model llama-2-70b", parameters);
    add_model(*one, *o, "palm-540b");
  }
  {
    const auto [one, o] =
        add_subject(*verb, chosen, "pipeline", "Layers in stages, each of which is partitioned",
                    "pipeline --model mt-nlg-530b --chip a100-80g \\\n"
                    "           --stages 3 --tensor 8 --batch 32 --microbatches 4 --context 128",
                    pipeline);
    add_model(*one, *o, "mt-nlg-530b");
    add_types(*one, *o);
    add_pass(*one, *o);
    add_number(*one, "--stages", o->pipeline.pipeline.stages, "Stages, p [1]", 1, kMostCounted);
    add_number(*one, "--tensor", o->pipeline.tensor,
               "Chips of a stage, which one interconnect joins [1]", 1, kMostCounted);
    add_number(*one, "--microbatches", o->pipeline.pipeline.microbatches,
               "Parts of the batch, m [1]", 1, kMostCounted);
    add_number(*one, "--steps", o->pipeline.pipeline.steps,
               "Passes one after the other, as decode steps [1]", 1, kMostCounted);
  }
  {
    const auto [one, o] = add_subject(*verb, chosen, "experts", "The FFN as a mixture of experts",
                                      "experts --model palm-8b --experts 64 --top 2 \\\n"
                                      "           --chips 16 --tokens 4096 --capacity-factor 1.25",
                                      experts);
    add_model(*one, *o, "palm-8b");
    add_types(*one, *o);
    add_number(*one, "--experts", o->experts.experts, "Experts of a layer [1; of a text its own]",
               1, kMostCounted);
    add_number(*one, "--top", o->experts.top, "Experts of a token [1; of a text its own]", 1,
               kMostCounted);
    add_decimal(*one, "--capacity-factor", o->experts.capacity,
                "Slots of an expert over its even share of the\ntokens [1]");
    add_number(*one, "--chips", o->experts.chips, "Chips that share experts and tokens [1]", 1,
               kMostCounted);
    add_number(*one, "--tokens", o->tokens, "Tokens of a pass, on all chips [1]", 1, kMostCounted);
  }
  {
    const auto [one, o] =
        add_subject(*verb, chosen, "offload", "Weights that rest in the host's memory",
                    "offload --model llama-2-70b --chip a100-80g --batch 8", offload);
    add_model(*one, *o, "llama-2-70b");
    add_types(*one, *o, "a100-80g");  // a chip with a host
    add_pass(*one, *o);
  }
  {
    const auto [one, o] = add_subject(
        *verb, chosen, "speculation", "The gain of a draft model",
        "speculation --acceptance 0.8 --draft-cost 0.05 \\\n           --gamma 4", speculation);
    add_decimal(*one, "--acceptance", o->speculation.acceptance,
                "The chance of each proposed token, 0 to 1 [0.8]");
    add_decimal(*one, "--draft-cost", o->speculation.draft_cost,
                "A step of the draft over one of the model [0.05]");
    add_decimal(*one, "--verify-cost", o->speculation.verify_cost,
                "The model's pass over all proposed tokens over\none over one token [1]");
    add_number(*one, "--gamma", o->gamma, "Tokens proposed in a round [the best]", 1, kMostGamma);
  }
}

}  // namespace shardproof::tools
