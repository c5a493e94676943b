#include <fmt/format.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "engine/cost/analysis/intensity.h"
#include "engine/cost/chip/quantity.h"
#include "engine/cost/formulas/embeddings.h"
#include "tools/command/chip_flags.h"
#include "tools/command/command_line.h"
#include "tools/command/verbs.h"
#include "tools/text/json_text.h"
#include "tools/text/short_number.h"
#include "tools/text/wrapped.h"
#include "weights/maps/load_model.h"
#include "weights/text/text_model.h"

namespace shardproof::tools {
namespace {

constexpr double kTwoTo20 = 1048576.0;
struct IntensityFlags {
  std::string model = "palm-540b";
  ChipFlags chip;
  std::string dtype = "bf16";
  std::string weights;  // dtype if empty
  std::int64_t batch = 1, context = 2048;
  std::optional<std::int64_t> tokens;
  bool json = false;
};

/// Inputs of the analysis of a pass.
struct Setting {
  ModelConfig model;
  cost::Chip chip;
  NumberFormat type;
  NumberFormat weights;

  cost::ElementBytes bytes() const { return cost::element_bytes(weights, type); }
  cost::Roofline roofline(double flops, double bytes_moved) const {
    return cost::roofline_of(flops, bytes_moved, chip, type);
  }
  cost::Roofline least(const std::vector<cost::Product>& products) const {
    return cost::least_of(products, bytes(), chip, type);
  }
};

struct NamedPass {
  std::string name;  // "prefill"
  cost::IntensityPass pass;
};

const char* limit_of(const cost::Roofline& roofline) {
  return roofline.compute_bound() ? "compute" : "memory";
}

nlohmann::json as_json(const cost::ProductSum& sum, const Setting& setting) {
  const cost::Roofline roofline = setting.roofline(sum.flops, sum.bytes);
  return {{"flops", sum.flops},
          {"elements", sum.elements},
          {"factor_elements", sum.factor_elements},
          {"bytes", sum.bytes},
          {"intensity", sum.flops / sum.elements},
          {"flops_per_byte", roofline.flops_per_byte},
          {"limit", limit_of(roofline)},
          {"seconds", roofline.seconds()}};
}

nlohmann::json as_json(const NamedPass& named, const Setting& setting) {
  const std::vector<cost::Product> products = cost::products_of(setting.model, named.pass);
  nlohmann::json operators = nlohmann::json::array();
  for (const cost::Product& one : products) {
    nlohmann::json row = as_json(cost::sum_of({one}, setting.bytes()), setting);
    row.update({{"operator", one.name}, {"n", one.n}, {"k", one.k}, {"m", one.m}});
    row["times"] = one.times;
    operators.push_back(std::move(row));
  }
  return {{"pass", named.name},
          {"batch", named.pass.batch},
          {"tokens", named.pass.tokens},
          {"context", named.pass.context},
          {"operators", operators},
          {"least_seconds", setting.least(products).seconds()},
          {"layers", as_json(cost::sum_of(cost::of_layers(products), setting.bytes()), setting)},
          {"total", as_json(cost::sum_of(products, setting.bytes()), setting)}};
}

/// Formats FLOPs per element in at most nine characters.
std::string of_element(double value) {
  return value < 1e7 ? fmt::format("{:.7g}", value) : fmt::format("{:.4g}", value);
}
/// Formats FLOPs per byte in at most seven characters.
std::string of_byte(double value) {
  if (value < 1e4) return fmt::format("{:.4g}", value);
  return value < 9999999.0 ? fmt::format("{:.0f}", value) : fmt::format("{:.1e}", value);
}

constexpr std::string_view kProductRow = "{:<12}{:<24} {:>7} {:>7} {:>9} {:>7} {:>7}\n";

void print_row(const std::string& name, const std::string& product, const cost::ProductSum& sum,
               const Setting& setting) {
  const cost::Roofline roofline = setting.roofline(sum.flops, sum.bytes);
  fmt::print(kProductRow, name, product, short_number(sum.flops), short_number(sum.elements),
             of_element(sum.flops / sum.elements), of_byte(roofline.flops_per_byte),
             limit_of(roofline));
}

void print_pass(const NamedPass& named, const Setting& setting) {
  const cost::IntensityPass& pass = named.pass;
  const std::vector<cost::Product> products = cost::products_of(setting.model, pass);
  fmt::print("\n{}: batch {}, {} new of {} positions\n", named.name, pass.batch, pass.tokens,
             pass.context);
  fmt::print(kProductRow, "operator", "n x k x m, times", "FLOPs", "elem.", "FLOP/elem", "/byte",
             "limit");
  for (const cost::Product& one : products)
    print_row(one.name, fmt::format("{}x{}x{} x{}", one.n, one.k, one.m, one.times),
              cost::sum_of({one}, setting.bytes()), setting);
  const cost::ProductSum layers = cost::sum_of(cost::of_layers(products), setting.bytes());
  const cost::ProductSum total = cost::sum_of(products, setting.bytes());
  print_row("layers", "", layers, setting);
  print_row("total", "", total, setting);
  const double tokens = static_cast<double>(pass.batch) * static_cast<double>(pass.tokens);
  fmt::print(
      "each token, layers: {:.7g} x 2^20 FLOPs,\n"
      "                    {:.7g} x 2^20 elements of weights and caches\n",
      layers.flops / tokens / kTwoTo20, layers.factor_elements / tokens / kTwoTo20);
  const cost::Roofline least = setting.least(products);
  fmt::print("one chip: at least {}, {}-bound\n",
             cost::rounded_quantity(least.seconds(), cost::Measure::seconds), limit_of(least));
}

int show(const IntensityFlags& o, const CLI::App& verb) {
  const NumberFormat type = type_of_flag(verb, "--dtype", o.dtype);
  const NumberFormat weights =
      o.weights.empty() ? type : type_of_flag(verb, "--weights", o.weights);
  const Setting setting{read_model(o.model), o.chip.chip(), type, weights};
  const double ridge = cost::ridge_point(setting.chip, type);
  std::vector<NamedPass> passes;
  if (o.tokens) {
    passes.push_back({"pass", {o.batch, *o.tokens, o.context}});
  } else {
    passes.push_back({"prefill", {o.batch, o.context, o.context}});
    passes.push_back({"decode", {o.batch, 1, o.context}});
  }
  nlohmann::json all = nlohmann::json::array();
  if (o.json) {
    for (const NamedPass& one : passes) all.push_back(as_json(one, setting));
    fmt::print("{}\n", json_text({{"model", print_model(setting.model)},
                                  {"chip", setting.chip.name},
                                  {"dtype", to_string(type)},
                                  {"weights", to_string(weights)},
                                  {"embeddings", to_string(cost::embeddings_beside(weights))},
                                  {"ridge", ridge},
                                  {"passes", all}}));
    return 0;
  }
  for (const NamedPass& one : passes) (void)cost::products_of(setting.model, one.pass);
  fmt::print("{}\n{}: {} at {}, {} at {}: ridge {:.4g} FLOPs a byte\n", print_model(setting.model),
             setting.chip.name, to_string(type),
             cost::rounded_quantity(setting.chip.peak(type), cost::Measure::operations_per_second),
             cost::rounded_quantity(setting.chip.hbm, cost::Measure::bytes),
             cost::rounded_quantity(setting.chip.hbm_bandwidth, cost::Measure::bytes_per_second),
             ridge);
  if (const std::string note = cost::embeddings_note(weights); !note.empty())
    fmt::print("{}\n", wrapped(note, kWidth, ""));
  for (const NamedPass& one : passes) print_pass(one, setting);
  return 0;
}

}  // namespace

void add_intensity(CLI::App& app, Action& chosen) {
  CLI::App* verb = app.add_subcommand("intensity", "FLOPs and memory operations of products");
  const auto o = std::make_shared<IntensityFlags>();
  verb->add_option("--model", o->model,
                   "PRESET[,KEY=VALUE...] or FILE.model[,KEY=VALUE...]\n[palm-540b]; see "
                   "shardproof list models")
      ->type_name("MODEL");
  o->chip.add_to(*verb);
  verb->add_option("--dtype", o->dtype,
                   "Activations, caches and the chip's peak: f32,\nbf16 or int8 [bf16]")
      ->type_name("TYPE");
  verb->add_option("--weights", o->weights, "Weights in memory: f32, bf16 or int8 [as --dtype]")
      ->type_name("TYPE");
  add_number(*verb, "--batch", o->batch, "Sequences [1]", 1, kMostCounted);
  add_number(*verb, "--context", o->context,
             "Positions that are attended to, the new ones\namong them [2048]", 1, kMostCounted);
  add_number(*verb, "--tokens", o->tokens,
             "New positions of each sequence: one pass [a\nprefill of all, and a decode step]", 1,
             kMostCounted);
  verb->add_flag("--json", o->json, "Print JSON (docs/json.md)");
  verb->footer(
      "A product n x k times k x m has 2nkm FLOPs and nk + km + nm memory operations.\n"
      "What is counted, and what not: docs/cost.md.\n"
      "Example: shardproof intensity --model llama-7b --context 4096\n"
      "         shardproof intensity --model palm-540b --weights int8 --batch 64\n"
      "         shardproof intensity --model phi-2 --chip orin-nano-8g");
  verb->callback([&chosen, o, verb] { chosen = [o, verb] { return show(*o, *verb); }; });
}

}  // namespace shardproof::tools
