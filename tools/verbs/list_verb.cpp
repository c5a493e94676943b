#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>

#include "engine/cost/chip/chip.h"
#include "engine/strategies/strategy.h"
#include "tools/command/verbs.h"
#include "tools/text/json_text.h"
#include "tools/text/wrapped.h"
#include "tools/verbs/explain_rule.h"
#include "tools/verbs/map_listing.h"
#include "tools/verbs/model_listing.h"
#include "tools/verbs/rules.h"
#include "weights/model/model_config.h"
#include "weights/model/presets.h"

namespace shardproof::tools {
namespace {

constexpr std::size_t kStrategyColumn = 22;

/// Prints "NAME   TEXT", the text wrapped and indented after a name of at most `column` characters.
void print_entry(const std::string& name, const std::string& text, std::size_t column) {
  const std::string indent(column, ' ');
  const bool fits = name.size() + 1 < column;
  fmt::print("{:<{}}{}{}\n", name, fits ? column : 0, fits ? "" : "\n" + indent,
             wrapped(text, kWidth - column, indent));
}

void print_object(const char* name, nlohmann::json entries) {
  fmt::print("{}\n", json_text({{name, std::move(entries)}}));
}

int list_strategies(bool json) {
  nlohmann::json entries = nlohmann::json::array();
  if (!json)
    fmt::print(
        "Strategies, of the prefill and of the decode. On a torus XxYxZ these products of\n"
        "its sizes must divide the model's dims, the batch B and the positions L of each\n"
        "pass; K divides H, and is sharded over as many of H's axes as divide it. A\n"
        "strategy that shards L is a prefill only: a decode step has one position.\n\n");
  for (const Strategy& strategy : all_strategies()) {
    std::map<char, std::string> by_dim;
    // "XYZ divides E F H V", in order of first occurrence of the products.
    std::vector<std::pair<std::string, std::string>> groups;
    for (const ShardedDim& one : sharded_dims(strategy)) {
      const std::string product = product_name(one.axes);
      std::string& of_dim = by_dim[one.dim];
      of_dim += (of_dim.empty() ? "" : " ") + product;
      const auto group = std::find_if(groups.begin(), groups.end(),
                                      [&](const auto& other) { return other.first == product; });
      if (group == groups.end())
        groups.emplace_back(product, std::string(1, one.dim));
      else
        group->second += std::string(" ") + one.dim;
    }
    std::string conditions;
    for (const auto& [product, dims] : groups)
      conditions += fmt::format("{}{} divides {}", conditions.empty() ? "" : ", ", product, dims);
    if (!decodes(strategy)) conditions += " (prefill only)";
    nlohmann::json divisible = nlohmann::json::object();
    for (const auto& [dim, products] : by_dim) divisible[std::string(1, dim)] = products;
    if (json)
      entries.push_back({{"strategy", strategy.to_string()},
                         {"description", strategy.table().description},
                         {"decodes", decodes(strategy)},
                         {"divisible", divisible}});
    else
      print_entry(strategy.to_string(), strategy.table().description, kStrategyColumn),
          print_entry("", conditions, kStrategyColumn);
  }
  if (json)
    print_object("strategies", entries);
  else
    fmt::print(
        "\nws1d and ws2d alone mean ws1d:heads and ws2d:heads; wg-x, wg-xy and wg-xyz\n"
        "alone the :natural ones. Its layouts: shardproof explain NAME --layouts.\n"
        "Example: shardproof verify --prefill wg-xyz:batch --decode ws2d:batch\n");
  return 0;
}

int list_models(bool json) {
  nlohmann::json presets = nlohmann::json::array(), keys = nlohmann::json::array();
  if (!json)
    fmt::print("Presets\n{:<13}{:>7}{:>7}{:>7}{:>6}{:>6}{:>6}{:>8}\n", "name", "layers", "E", "F",
               "H", "K", "Q", "V");
  for (const Preset& m : all_presets())
    if (json)
      presets.push_back({{"preset", m.name},
                         {"layers", m.layers},
                         {"E", m.E},
                         {"F", m.F},
                         {"H", m.H},
                         {"K", m.K},
                         {"Q", m.Q},
                         {"V", m.V},
                         {"keys", m.keys}});
    else
      fmt::print("{:<13}{:>7}{:>7}{:>7}{:>6}{:>6}{:>6}{:>8}\n", m.name, m.layers, m.E, m.F, m.H,
                 m.K, m.Q, m.V);
  if (!json)
    fmt::print(
        "E d_model, F d_ff, H query heads, K key/value heads (1 multiquery, H multihead),\n"
        "Q d_head, V vocabulary.\n\n"
        "Keys of a preset that are not the defaults\n");
  for (const Preset& m : all_presets()) {
    std::string words(m.keys);
    std::replace(words.begin(), words.end(), ',', ' ');  // allows line breaks
    if (!json && !words.empty()) print_entry(std::string(m.name), words, 13);
  }
  if (!json)
    fmt::print(
        "\nKeys, after the preset as ,KEY=VALUE; a key that is left out has the value of\n"
        "the preset, otherwise the default.\n"
        "{:<14}{:<15}{}\n",
        "key", "default", "values");
  for (const ModelKey& key : model_keys()) {
    const std::string usual = key.default_value.empty() ? "the preset's" : key.default_value;
    if (json)
      keys.push_back({{"key", key.name}, {"values", key.values}, {"default", usual}});
    else
      fmt::print("{:<14}{:<15}{}\n", key.name, usual, key.values);
  }
  if (json)
    fmt::print("{}\n", json_text({{"presets", presets}, {"keys", keys}}));
  else
    fmt::print("\nExample: shardproof verify --model palm-tiny,K=24,norm=layernorm,bias=all\n");
  return 0;
}

int list_ops(bool json) {
  nlohmann::json entries = nlohmann::json::array();
  if (!json)
    fmt::print(
        "Ops of layer programs: the form, what it does, and examples (docs/program.md).\n"
        "Its result and rules: shardproof explain --rule OP_c1.\n\n");
  for (const OpText& op : all_op_texts()) {
    if (json)
      entries.push_back({{"op", op.name},
                         {"form", op.form},
                         {"does", op.does},
                         {"result", op.result},
                         {"example", op.example}});
    if (json) continue;
    fmt::print("{}\n    {}\n", wrapped(op.form, kWidth, "  "),
               wrapped(op.does, kWidth - 4, "    "));
    std::istringstream examples(op.example);
    for (std::string line; std::getline(examples, line);)
      fmt::print("      {}\n", wrapped(line, kWidth - 6, "        "));
  }
  if (json) print_object("ops", entries);
  return 0;
}

int list_chips(bool json) {
  nlohmann::json entries = nlohmann::json::array();
  if (!json) fmt::print("# Chips, as a file of your own has them (docs/cost.md).\n");
  for (const cost::Chip& chip : cost::all_chips()) {
    if (!json) {
      fmt::print("\n{}", cost::print_chip(chip));
      continue;
    }
    nlohmann::json peaks = nlohmann::json::object();
    for (const NumberFormat type : kWeightFormats)
      if (chip.has_peak(type)) peaks[std::string(to_string(type))] = chip.peak(type);
    entries.push_back({{"chip", chip.name},
                       {"description", chip.description},
                       {"peaks", peaks},
                       {"hbm", chip.hbm},
                       {"hbm_bandwidth", chip.hbm_bandwidth},
                       {"bandwidth", chip.bandwidth},
                       {"axis_bandwidth", chip.axis_bandwidth},
                       {"hop_latency", chip.hop_latency},
                       {"all_to_all", chip.all_to_all},
                       {"host", chip.host},
                       {"host_bandwidth", chip.host_bandwidth},
                       {"min_axis", chip.min_axis},
                       {"max_chips", chip.max_chips}});
  }
  if (json) print_object("chips", entries);
  return 0;
}

int list_rules(bool json) {
  nlohmann::json entries = nlohmann::json::array();
  if (!json)
    fmt::print(
        "Labels of errors, and what must hold. One of them, with its context:\n"
        "shardproof explain --rule LABEL\n\n");
  for (const Rule& rule : all_rules()) {
    if (json)
      entries.push_back(rule_json(rule));
    else
      print_entry(rule.label, rule.subject.empty() ? rule.says : rule.subject + ": " + rule.says,
                  21);
  }
  if (json) print_object("rules", entries);
  return 0;
}

void add_map(CLI::App& verb, Action& chosen) {
  CLI::App* one = verb.add_subcommand("map", "A map of another program's names onto a text's");
  const auto asked = std::make_shared<MapListing>();
  one->add_option("MAP", asked->map, "FILE.map")->required()->type_name("");
  one->add_option("--model", asked->model,
                  "FILE.model[,KEY=VALUE...], the model's text;\nsee shardproof list models")
      ->required()
      ->type_name("");
  one->add_option("--config", asked->config, "A config.json, or its directory\n[the map's example]")
      ->type_name("FILE");
  one->add_flag("--json", asked->json, "Print JSON (docs/json.md)");
  one->footer(
      "Sizes, where a checkpoint has the weights, which modules show the values\n"
      "(docs/spec-model-map.md).\n"
      "Example: shardproof list map llama.map --model llama.model --config llama-dir");
  one->callback([&chosen, asked] { chosen = [asked] { return print_map_listing(*asked); }; });
}

}  // namespace

void add_list(CLI::App& app, Action& chosen) {
  struct Listing {
    const char *name, *text;
    int (*list)(bool json);
  };
  CLI::App* verb = app.add_subcommand("list", "List strategies, models, chips, ops or rules");
  verb->require_subcommand(1);
  verb->footer(
      "Example: shardproof list strategies\n"
      "         shardproof list rules --json");
  for (const Listing& subject :
       {Listing{"strategies", "Strategies, and what must divide for each", list_strategies},
        Listing{"models", "Presets, and the keys of a model", list_models},
        Listing{"chips", "Chips of the cost model", list_chips},
        Listing{"ops", "Ops of the program language, with their forms", list_ops},
        Listing{"model-ops", "Ops of model texts, with their forms", list_model_ops},
        Listing{"rules", "Labels of errors, with the rule of each", list_rules}}) {
    CLI::App* one = verb->add_subcommand(subject.name, subject.text);
    const auto json = std::make_shared<bool>(false);
    const auto markdown = std::make_shared<bool>(false);
    const auto text = std::make_shared<std::string>(), rounding = std::make_shared<std::string>();
    CLI::Option* as_json = one->add_flag("--json", *json, "Print JSON (docs/json.md)");
    if (subject.list == list_rules)
      one->add_flag("--markdown", *markdown, "Print a page, with what breaks each rule")
          ->excludes(as_json);
    if (subject.list == list_models)
      one->add_option("--rounding", *rounding,
                      "The text stores too where this engine rounds: hf,\n"
                      "or FORMULA:PLACES (docs/bounds.md section 4)")
          ->needs(one->add_option("--text", *text, "A model as text: of keys, or of a FILE.model"));
    one->footer(subject.list == list_models
                    ? "A text is read, checked and printed in its canonical form\n"
                      "(docs/spec-model-text.md).\n"
                      "Example: shardproof list models\n"
                      "         shardproof list models --text llama,K=4\n"
                      "         shardproof list models --text llama --rounding hf\n"
                      "         shardproof list models --text my.model"
                    : fmt::format("Example: shardproof list {}", subject.name));
    one->callback([&chosen, json, markdown, text, rounding, list = subject.list] {
      chosen = [json, markdown, text, rounding, list] {
        return !text->empty() ? print_model_listing(*text, *rounding, *json)
               : *markdown    ? print_rules_page()
                              : list(*json);
      };
    });
  }
  add_map(*verb, chosen);
}

}  // namespace shardproof::tools
