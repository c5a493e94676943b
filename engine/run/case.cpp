#include "engine/run/case.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <numeric>
#include <ostream>

#include "weights/base/error.h"
#include "weights/maps/load_model.h"
#include "weights/text/integers.h"
#include "weights/text/rules.h"
#include "weights/text/text_model.h"

namespace shardproof {
namespace {

template <class T>
T number(std::string_view key, const std::string& text) {
  T value{};
  const char* const end = text.data() + text.size();
  const auto [at, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc() || at != end)
    throw Error("case_c3", fmt::format("{}={}: an integer is expected", key, text));
  return value;
}

std::int64_t positive(std::string_view key, const std::string& text) {
  constexpr std::int64_t kMost = 1 << 30;
  const auto value = number<std::int64_t>(key, text);
  if (value < 1 || value > kMost)
    throw Error("case_c3", fmt::format("{}={}: from 1 to {}", key, text, kMost));
  return value;
}

std::map<std::string, std::string> split_keys(std::string_view line) {
  std::map<std::string, std::string> values;
  std::size_t at = 0;
  while ((at = line.find_first_not_of(" \t\r\n", at)) != std::string_view::npos) {
    const std::size_t end = std::min(line.find_first_of(" \t\r\n", at), line.size());
    const std::string_view word = line.substr(at, end - at);
    at = end;
    const auto equals = word.find('=');
    if (equals == std::string_view::npos || equals == 0 || equals + 1 == word.size())
      throw Error("case_c0", fmt::format("'{}' is not KEY=VALUE", word));
    const std::string key(word.substr(0, equals));
    if (std::find(case_keys().begin(), case_keys().end(), key) == case_keys().end()) {
      const std::string near = nearest(key, case_keys());
      throw Error("case_c1", fmt::format("unknown key '{}'{}; legal: {}", key,
                                         near.empty() ? "" : ", did you mean " + near + "?",
                                         fmt::join(case_keys(), " ")));
    }
    if (!values.emplace(key, std::string(word.substr(equals + 1))).second)
      throw Error("case_c2", fmt::format("key '{}' is given twice", key));
  }
  return values;
}

[[noreturn]] void refuse_beside(std::string_view shorthand, std::string_view key,
                                std::string_view value, std::string_view expanded) {
  throw Error(
      "case_numerics",
      fmt::format("{0}={1} beside numerics={2}, which says {0}={3}; legal: {0}={3}, or leave "
                  "one of them out",
                  key, value, shorthand, expanded));
}

/// Sets all keys that the value of `numerics` is short for.
void expand(std::string_view shorthand, Case& c) {
  if (shorthand != kReleased)
    throw Error("case_numerics", fmt::format("numerics={:?}; legal: {}", shorthand, kReleased));
  c.numerics = kReleasedNumerics;
  if (c.model.rows != nullptr) return;  // a text says what its caches hold
  if (c.model.cache == NumberFormat::f32)
    refuse_beside(shorthand, "cache", to_string(*c.model.cache), to_string(NumberFormat::bf16));
  c.model.cache = NumberFormat::bf16;
}

}  // namespace

const std::vector<std::string>& case_keys() {
  static const std::vector<std::string> keys = [] {
    std::vector<std::string> all{"torus",  "decode_torus", "model",   "prefill",
                                 "decode", "block",        "numerics"};
    for (const NumericsKey& key : numerics_keys()) all.emplace_back(key.name);
    for (const char* key :
         {"batch", "prompt", "lengths", "prefix", "chunk", "gen", "seed", "pad_heads", "pad_vocab"})
      all.emplace_back(key);
    for (const std::string_view key : sampling_keys()) all.emplace_back(key);
    return all;
  }();
  return keys;
}

Case parse_case(std::string_view line, const std::vector<Strategy>& own, const ModelText* text) {
  const std::map<std::string, std::string> values = split_keys(line);
  const auto get = [&](const char* key) -> const std::string* {
    const auto at = values.find(key);
    return at == values.end() ? nullptr : &at->second;
  };
  Case c;
  if (const auto* v = get("torus")) c.torus = Torus::parse(*v);
  if (const auto* v = get("decode_torus")) c.decode_torus = Torus::parse(*v);
  if (const auto* v = get("model"))
    c.model = read_model(*v, text);
  else
    c.model = parse_model("palm-tiny");
  c.prefill = Strategy::parse(get("prefill") ? *get("prefill") : "ws2d:heads", own);
  c.decode = get("decode") ? Strategy::parse(*get("decode"), own) : c.prefill;
  if (const auto* v = get("block")) {
    if (c.model.rows != nullptr)
      throw Error("case_model",
                  fmt::format("model={}: block={} is not for a model's text, which says "
                              "it; legal: leave block out",
                              print_model(c.model), *v));
    const Block block = parse_block(*v);
    // An equal value twice is allowed: a refusal's nearest legal model includes its block.
    if (const auto* m = get("model");
        m != nullptr && m->find(",block=") != std::string::npos && block != c.model.block)
      throw Error("case_c2",
                  fmt::format("block is given twice, in model={} and as block={}", *m, *v));
    c.model.block = block;
  }
  if (const auto* v = get("numerics")) expand(*v, c);
  for (const NumericsKey& key : numerics_keys())
    if (const auto* v = get(std::string(key.name).c_str())) {
      const std::string_view expanded = key.get(c.numerics);
      key.set(key.name, c.numerics, *v);
      // The shorthand does not set the loop, which is an order of addition.
      if (get("numerics") != nullptr && key.name != "loop" && key.get(c.numerics) != expanded)
        refuse_beside(*get("numerics"), key.name, *v, expanded);
    }
  if (const auto* v = get("prefix")) c.prefix = parse_prefix(*v);
  const auto at_least = [](std::int64_t value, std::int64_t unit) {
    return (value + unit - 1) / unit * unit;
  };
  c.batch = at_least(std::max<std::int64_t>(c.prefix.rows, 1),
                     std::lcm(smallest_batch(c.prefill, c.torus),
                              smallest_batch(c.decode, c.torus_of(Phase::decode))));
  c.prompt = c.prefix.length + at_least(c.prompt, smallest_length(c.prefill, c.torus));
  if (const auto* v = get("batch")) c.batch = positive("batch", *v);
  if (const auto* v = get("prompt")) c.prompt = positive("prompt", *v);
  if (const auto* v = get("lengths")) c.lengths = parse_row_lengths(*v);
  c.chunk = c.prompt;
  if (const auto* v = get("chunk")) c.chunk = positive("chunk", *v);
  if (const auto* v = get("gen")) c.gen = positive("gen", *v);
  if (const auto* v = get("seed")) c.seed = number<std::uint64_t>("seed", *v);
  if (const auto* v = get("pad_heads")) c.pad_heads = positive("pad_heads", *v);
  if (const auto* v = get("pad_vocab")) c.pad_vocab = positive("pad_vocab", *v);
  c.sampling = read_sampling([&](std::string_view key) { return get(std::string(key).c_str()); });
  c.model = model_with_weights(std::move(c.model), c.numerics.weights);
  return c;
}

Passes Case::passes() const {
  if (!lengths.given()) return {batch, prompt, chunk, gen, prefix};
  require_prefix(prefix, batch, prompt);
  return {lengths_of_rows(lengths, seed, batch, prompt, prefix.length), prompt, chunk, gen, prefix};
}

std::string print_case(const Case& c) {
  const bool of_text = c.model.rows != nullptr;
  const bool prefill_alone = c.prefill.program() != nullptr && c.gen == 1 && c.decode.ships();
  const auto phase = [](const char* key, const Strategy& strategy) {
    return strategy.program() != nullptr ? "" : fmt::format(" {}={}", key, strategy.to_string());
  };
  std::string numerics;
  for (const NumericsKey& key : numerics_keys())
    numerics += fmt::format(" {}={}", key.name, key.get(c.numerics));
  const auto given = [](const char* key, std::int64_t value) {
    return value == 0 ? "" : fmt::format(" {}={}", key, value);
  };
  return fmt::format(
      "torus={}{} model={}{}{}{}{} batch={} prompt={}{}{} chunk={} gen={} "
      "seed={}{}{}{}",
      c.torus.to_string(), c.decode_torus ? " decode_torus=" + c.decode_torus->to_string() : "",
      print_model_of_case(c.model), phase("prefill", c.prefill),
      prefill_alone ? "" : phase("decode", c.decode),
      of_text ? "" : fmt::format(" block={}", to_string(c.model.block)), numerics, c.batch,
      c.prompt, c.lengths.given() ? " lengths=" + c.lengths.to_string() : "",
      c.prefix.given() ? " prefix=" + c.prefix.to_string() : "", c.chunk, c.gen, c.seed,
      given("pad_heads", c.pad_heads), given("pad_vocab", c.pad_vocab), print_sampling(c.sampling));
}

void require_one_torus(const Case& c, std::string_view what) {
  if (c.decode_torus)
    throw Error("case_split", fmt::format("decode_torus={}: {} is of one torus; legal: leave "
                                          "decode_torus out",
                                          c.decode_torus->to_string(), what));
}

bool has_meaning_in_field(const ModelConfig& model) {
  const TextModel* const of_text = text_model(model);
  if (of_text == nullptr) return true;
  return !has_any(of_text->flat(), {ModelOp::top}) &&
         !ranges_over_numbers(of_text->flat(), of_text->sizes());
}

void require_keys(const Case& c, std::string_view what) {
  if (c.model.rows != nullptr)
    throw Error("case_model",
                fmt::format("model={}: {} is of a model of keys; legal: a preset with "
                            "keys (shardproof list models)",
                            print_model(c.model), what));
}

bool has_program(const Case& c) {
  return c.prefill.program() != nullptr || c.decode.program() != nullptr;
}

double multiply_adds(const Case& c) {
  const auto d = [](std::int64_t v) { return static_cast<double>(v); };
  const ModelConfig& m = c.model;
  const double rows = d(c.batch);
  const double tokens = d(c.prompt + c.gen - 1);
  // The prefix, too, is run once for each row that has it.
  const auto chunks = [&](std::int64_t length) { return (length + c.chunk - 1) / c.chunk; };
  const double passes = d(chunks(c.prefix.length) + chunks(c.prompt - c.prefix.length) + c.gen - 1);
  const bool gated = m.ffn == Ffn::swiglu || m.ffn == Ffn::geglu;
  const double per_token =
      2.0 * d(m.E) * d(m.Q) * d(m.H + m.K) + (gated ? 3.0 : 2.0) * d(m.E) * d(m.F) + 2.0 * d(m.E);
  const double attention = tokens * tokens * d(m.H) * d(m.Q);  // causal: half of 2·H·Q·M per token
  return rows * (d(m.layers) * (tokens * per_token + attention) + passes * d(m.E) * d(m.V));
}

std::ostream& operator<<(std::ostream& out, const Case& c) { return out << print_case(c); }

}  // namespace shardproof
