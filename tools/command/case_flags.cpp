#include "tools/command/case_flags.h"

#include <fmt/format.h>

#include <algorithm>
#include <sstream>

#include "engine/numeric/threads.h"
#include "tools/text/wrapped.h"
#include "weights/base/error.h"
#include "weights/storage/store.h"
#include "weights/text/text_model.h"

namespace shardproof::tools {
namespace {

const std::map<std::string, std::string>& descriptions() {
  static const std::map<std::string, std::string> all{
      {"torus", "Chips, XxYxZ [2x2x2]"},
      {"decode_torus", "Chips of a second slice, which decodes and\npulls the caches [as torus]"},
      {"model",
       "PRESET[,KEY=VALUE...] or\nFILE.model[,KEY=VALUE...] [palm-tiny];\nsee shardproof list "
       "models"},
      {"prefill", "Strategy of the prefill [ws2d:heads];\nsee shardproof list strategies"},
      {"decode", "Strategy of the decode steps [as prefill]"},
      {"block", "parallel or serial [from the model]"},
      {"weights",
       "f32, bf16 or int8 [f32, or as the FILE], or\na weights FILE; may be given twice, once\n"
       "for each"},
      {"numerics",
       "released: the rounding points of the paper's\ncode, in place of the keys below"},
      {"act", "Storage of activations"},
      {"regime", "Arithmetic: exact, f32 or field"},
      {"schedule", "Order of adding f32 partial sums"},
      {"loop", "Einsums looped with their collectives"},
      {"acc", "Type of the accumulators of products with W"},
      {"wire", "Type that f32 partial sums are sent as"},
      {"batch", "Rows [the smallest legal]"},
      {"prompt", "Prompt length [the smallest legal from 4]"},
      {"lengths",
       "Tokens of each row, as 7,3,5 over and over,\nor ragged: drawn by the seed [the prompt's]"},
      {"prefix",
       "P:N, rows begin with one of N prefixes of P\ntokens, which are prefilled once [none]"},
      {"chunk", "Prefill chunk length [the prompt's]"},
      {"gen", "Tokens to generate [2]"},
      {"seed", "Seeds weights, prompt and sampling [1]"},
      {"pad_heads", "Query heads as placed on chips, in whole\ngroups [the model's H]"},
      {"pad_vocab", "Token ids as placed on chips [the model's V]"},
      {"sample", "How tokens are chosen: greedy or random\n[greedy; random with a key below]"},
      {"temperature", "Divides the logits of random sampling [1]"},
      {"top_k", "Draws among the K likeliest, and what equals\nthe last of them [all]"},
      {"top_p", "Draws among the likeliest with at least this\nshare, from 0 to 1 [1]"}};
  return all;
}

/// Returns the help text of a key's flag; for a key of Numerics with its words, the first of which
/// is the default.
std::string description(const std::string& key) {
  const std::string& text = descriptions().at(key);
  for (const NumericsKey& choice : numerics_keys())
    if (choice.name == key && key != "weights")
      return wrapped(fmt::format("{}: {} [{}]", text, choice.words,
                                 choice.words.substr(0, choice.words.find(','))),
                     44, "");
  return text;
}

bool is_weight_type(const std::string& word) {
  return word == "f32" || word == "bf16" || word == "int8";
}

/// Prints "palm-tiny,K=24 block=serial", with the block even if it is the preset's.
std::string model_and_block(const ModelConfig& model) {
  if (model.rows != nullptr) return print_model(model);
  return fmt::format("{} block={}", print_model_of_case(model), to_string(model.block));
}

}  // namespace

void CaseFlags::add_to(CLI::App& verb, const std::vector<std::string>& except,
                       const std::map<std::string, std::string>& instead) {
  for (const std::string& key : case_keys()) {
    if (std::find(except.begin(), except.end(), key) != except.end()) continue;
    const auto own = instead.find(key);
    const std::string text = own == instead.end() ? description(key) : own->second;
    if (key == "weights") {
      verb.add_option("--weights", weights_flag_, text)
          ->allow_extra_args(false)
          ->group("The case")
          ->type_name("");
      continue;
    }
    verb.add_option_function<std::string>(
            flag_of(key), [this, key](const std::string& value) { values_[key] = value; }, text)
        ->group("The case")
        ->type_name("");
  }
}

std::string CaseFlags::flag_of(std::string key) {
  std::replace(key.begin(), key.end(), '_', '-');
  return "--" + key;
}

void CaseFlags::set_default(const std::string& key, const std::string& value) {
  values_.emplace(key, value);
}

bool CaseFlags::has(const std::string& key, const std::string& line) const {
  std::istringstream words(line);
  for (std::string word; words >> word;)
    if (word.starts_with(key + "=")) return true;
  return has(key);
}

void CaseFlags::load() {
  for (const std::string& value : weights_flag_) {
    if (is_weight_type(value)) {
      if (!values_.emplace("weights", value).second)
        throw Error("weights_flag",
                    fmt::format("--weights names two types, {} and {}", values_["weights"], value));
      continue;
    }
    if (weights_file_)
      throw Error("weights_flag",
                  fmt::format("--weights names two files, {} and {}", *weights_file_, value));
    weights_file_ = value;
    weights_ = load_weights(value);
  }
}

Case CaseFlags::parse(const std::string& line) const {
  std::string text = line;
  for (const auto& [key, value] : values_) {
    if (value.find_first_of(" \t\r\n") != std::string::npos)
      throw Error("case_c0", fmt::format("{} '{}': a value has no spaces", flag_of(key), value));
    text += fmt::format(" {}={}", key, value);
  }
  Case c = parse_case(text, own_);
  if (!weights_) return c;
  // The model keys that the case sets must match the file; the file defines the others. The cache
  // type is not part of the weights: the case's applies.
  ModelConfig held = weights_->config();
  if (c.model.cache) held.cache = c.model.cache;
  ModelConfig asked = held;
  if (has("model", line)) {
    asked = c.model;
    asked.cache = held.cache;
  } else if (has("block", line)) {
    asked.block = c.model.block;
  }
  if (weights_->stored_type() == NumberFormat::int8) {
    const bool shorthand = has("numerics", line);
    if ((has("weights", line) || shorthand) && c.numerics.weights != NumberFormat::int8)
      throw Error("weights_int8",
                  fmt::format("{} holds int8 weights, the case says weights={}{}; legal: {}",
                              *weights_file_, to_string(c.numerics.weights),
                              shorthand ? " by numerics" : "",
                              shorthand ? "leave numerics out" : "int8, or leave weights out"));
    c.numerics.weights = NumberFormat::int8;
  }
  if (!same_model(asked, held))
    throw Error("weights_model", fmt::format("{} holds {}, the case requires {}", *weights_file_,
                                             model_and_block(held), model_and_block(asked)));
  c.model = model_with_weights(std::move(held), c.numerics.weights);
  return c;
}

std::string strategies_text() {
  std::string text = "Strategies:";
  for (const Strategy& s : all_strategies())
    text += (text.back() == ':' ? " " : ", ") + s.to_string();
  return wrapped(text, 78, "  ") + "\n";
}

int thread_count(int asked) {
  if (asked < 0 || asked > 1024)
    throw Error("threads_c1",
                fmt::format("--threads {}: from 1 to 1024, or 0 for all cores", asked));
  return asked > 0 ? asked : machine_threads();
}

}  // namespace shardproof::tools
