#include "weights/model/model_config.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>
#include <charconv>
#include <cmath>
#include <limits>
#include <optional>
#include <set>
#include <type_traits>
#include <utility>

#include "weights/base/count_bytes.h"
#include "weights/base/detail/word_table.h"
#include "weights/base/error.h"
#include "weights/model/model_rows.h"
#include "weights/model/presets.h"
#include "weights/model/registry.h"
#include "weights/model/softmax.h"

namespace shardproof {
namespace {

constexpr std::int64_t kLargestDim = std::numeric_limits<std::int32_t>::max();
constexpr std::int64_t kMostLayers = 4096;

template <class Enum>
using Word = std::pair<std::string_view, Enum>;

constexpr std::array<Word<Block>, 2> kBlocks{
    {{"parallel", Block::parallel}, {"serial", Block::serial}}};
constexpr std::array<Word<Ffn>, 4> kFfns{{{"swiglu", Ffn::swiglu},
                                          {"geglu", Ffn::geglu},
                                          {"gelu", Ffn::gelu},
                                          {"gelu-erf", Ffn::gelu_erf}}};
constexpr std::array<Word<Norm>, 2> kNorms{
    {{"rmsnorm", Norm::rmsnorm}, {"layernorm", Norm::layernorm}}};
constexpr std::array<Word<Bias>, 5> kBiases{{{"none", Bias::none},
                                             {"norm", Bias::norm},
                                             {"qkv", Bias::qkv},
                                             {"ffn", Bias::ffn},
                                             {"all", Bias::all}}};
constexpr std::array<Word<Rope>, 4> kRopes{{{"half", Rope::half},
                                            {"interleaved", Rope::interleaved},
                                            {"alibi", Rope::alibi},
                                            {"none", Rope::none}}};
constexpr std::array<Word<std::optional<NumberFormat>>, 2> kCacheFormats{
    {{"f32", NumberFormat::f32}, {"bf16", NumberFormat::bf16}}};
constexpr std::array<Word<Softmax>, 2> kSoftmaxes{
    {{"base-e", Softmax::base_e}, {"base2", Softmax::base2}}};
constexpr std::array<Word<bool>, 2> kTruths{{{"true", true}, {"false", false}}};

constexpr const auto& words_of(Block) { return kBlocks; }
constexpr const auto& words_of(Ffn) { return kFfns; }
constexpr const auto& words_of(Norm) { return kNorms; }
constexpr const auto& words_of(Bias) { return kBiases; }
constexpr const auto& words_of(Rope) { return kRopes; }
constexpr const auto& words_of(std::optional<NumberFormat>) { return kCacheFormats; }
constexpr const auto& words_of(Softmax) { return kSoftmaxes; }
constexpr const auto& words_of(bool) { return kTruths; }

template <class Enum>
std::string_view word_for(Enum value) {
  return word_in(words_of(value), value);
}

std::string did_you_mean(std::string_view word, const std::vector<std::string>& legal) {
  const std::string near = nearest(word, legal);
  return near.empty() ? "" : fmt::format("did you mean {}? ", near);
}

template <class Enum>
Enum read_word(std::string_view label, std::string_view key, std::string_view word, Enum) {
  if (const std::optional<Enum> value = value_in(words_of(Enum{}), word)) return *value;
  const std::vector<std::string_view> words = words_in(words_of(Enum{}));
  const std::vector<std::string> legal(words.begin(), words.end());
  throw Error(label, fmt::format("{}={:?}; {}legal: {}", key, word, did_you_mean(word, legal),
                                 fmt::join(legal, ", ")));
}

template <class Enum>
void read(std::string_view key, std::string_view word, Enum& out) {
  out = read_word("model_value", key, word, out);
}

template <class Number>
void read_number(std::string_view key, std::string_view word, Number& out) {
  const char* end = word.data() + word.size();
  const auto [stop, status] = std::from_chars(word.data(), end, out);
  if (status == std::errc::result_out_of_range) {
    throw Error("model_value", fmt::format("{}={:?} is out of range", key, word));
  }
  if (status != std::errc{} || stop != end) {
    throw Error("model_value",
                fmt::format("{}={:?} is not {}", key, word,
                            std::is_integral_v<Number> ? "an integer" : "a decimal number"));
  }
}

void read(std::string_view key, std::string_view word, std::int64_t& out) {
  read_number(key, word, out);
}
void read(std::string_view key, std::string_view word, double& out) { read_number(key, word, out); }
void read(std::string_view key, std::string_view word, float& out) { read_number(key, word, out); }

template <class Value>
std::string show(Value value) {
  if constexpr (std::is_arithmetic_v<Value> && !std::is_same_v<Value, bool>) {
    std::array<char, 64> text{};
    const auto end = std::to_chars(text.data(), text.data() + text.size(), value).ptr;
    return std::string(text.data(), end);
  } else {
    return std::string(word_for(value));
  }
}

// The legal values of a key in words; for an enum or a bool, its words.
template <class Enum>
std::string values_of(std::string_view, Enum) {
  return fmt::format("{}", fmt::join(words_in(words_of(Enum{})), ", "));
}
std::string values_of(std::string_view key, std::int64_t) {
  return fmt::format("1 to {}{}", key == "layers" ? kMostLayers : kLargestDim,
                     key == "K" ? ", a divisor of H" : "");
}
std::string values_of(std::string_view key, double) {
  return key == "rotary" ? "above 0, at most 1; rotary*Q even" : "f64, finite, positive";
}
std::string values_of(std::string_view, float) { return "f32, finite, positive"; }

struct Key {
  std::string_view name;
  std::string (*values)(std::string_view key);
  void (*set)(std::string_view key, ModelConfig& config, std::string_view word);
  std::string (*get)(const ModelConfig& config);
};

template <auto Field>
constexpr Key key(std::string_view name) {
  return {name,
          [](std::string_view k) {
            return values_of(k, std::remove_cvref_t<decltype(ModelConfig{}.*Field)>{});
          },
          [](std::string_view k, ModelConfig& config, std::string_view word) {
            read(k, word, config.*Field);
          },
          [](const ModelConfig& config) { return show(config.*Field); }};
}

// All keys, in the order in which print_model writes them.
constexpr std::array kKeys{key<&ModelConfig::layers>("layers"),
                           key<&ModelConfig::E>("E"),
                           key<&ModelConfig::F>("F"),
                           key<&ModelConfig::H>("H"),
                           key<&ModelConfig::K>("K"),
                           key<&ModelConfig::Q>("Q"),
                           key<&ModelConfig::V>("V"),
                           key<&ModelConfig::block>("block"),
                           key<&ModelConfig::ffn>("ffn"),
                           key<&ModelConfig::norm>("norm"),
                           key<&ModelConfig::bias>("bias"),
                           key<&ModelConfig::rope>("rope"),
                           key<&ModelConfig::rotary>("rotary"),
                           key<&ModelConfig::theta>("theta"),
                           key<&ModelConfig::tied>("tied"),
                           key<&ModelConfig::unembed_bias>("unembed_bias"),
                           key<&ModelConfig::eps>("eps"),
                           key<&ModelConfig::embed_scale>("embed_scale"),
                           key<&ModelConfig::logit_scale>("logit_scale"),
                           key<&ModelConfig::softmax>("softmax"),
                           key<&ModelConfig::positions>("positions"),
                           key<&ModelConfig::cache>("cache")};

float default_logit_scale(std::int64_t E) {
  return static_cast<float>(1.0 / std::sqrt(static_cast<double>(E)));
}

const Key& find_key(std::string_view name) {
  std::vector<std::string> legal;
  for (const Key& k : kKeys) {
    if (k.name == name) return k;
    legal.emplace_back(k.name);
  }
  throw Error("model_key", fmt::format("{:?} is not a model key; {}legal: {}", name,
                                       did_you_mean(name, legal), fmt::join(legal, " ")));
}

/// Applies "KEY=VALUE,KEY=VALUE" and collects the keys in `seen`.
void set_keys(ModelConfig& config, std::string_view text, std::set<std::string_view>& seen) {
  for (bool more = true; more;) {
    const std::size_t comma = text.find(',');
    more = comma != std::string_view::npos;
    const std::string_view item = text.substr(0, comma);
    if (more) text.remove_prefix(comma + 1);
    const std::size_t equals = item.find('=');
    if (equals == std::string_view::npos) {
      throw Error("model_key", fmt::format("{:?} is not key=value", item));
    }
    const Key& k = find_key(item.substr(0, equals));
    if (!seen.insert(k.name).second) {
      throw Error("model_key", fmt::format("{} is given twice", k.name));
    }
    k.set(k.name, config, item.substr(equals + 1));
  }
}

ModelConfig preset(std::string_view name) {
  if (const OtherModel* const other = find_other_model(name))
    throw Error("model_preset", fmt::format("{} is not a preset: {}; the nearest legal: model={}",
                                            name, other->why, other->nearest));
  const Preset* const row = find_preset(name);
  if (row == nullptr)
    throw Error("model_preset",
                fmt::format("{:?} is not a preset; {}legal: {}, or a text, FILE.model", name,
                            did_you_mean(name, preset_names()), fmt::join(preset_names(), ", ")));
  ModelConfig c;
  c.preset = name;
  c.layers = row->layers, c.E = row->E, c.F = row->F, c.H = row->H, c.K = row->K, c.Q = row->Q;
  c.V = row->V;
  c.logit_scale = default_logit_scale(c.E);
  std::set<std::string_view> ignored;
  if (!row->keys.empty()) set_keys(c, row->keys, ignored);
  return c;
}

void require(bool held, std::string_view key, const std::string& value, std::string_view rule) {
  if (!held) throw Error("model_value", fmt::format("{}={}: {}", key, value, rule));
}

void require_positive(std::string_view key, double value, const std::string& shown) {
  require(std::isfinite(value) && value > 0.0, key, shown, "must be finite and positive");
}

constexpr std::string_view kNothingRotates =
    "has no meaning with rope=alibi and rope=none, leave it out";

// Returns the nearest Q with an even number of rotated channels, the larger one of a tie; 0 if
// none.
std::int64_t rotating_Q(const ModelConfig& config) {
  const auto rotates_evenly = [&](std::int64_t Q) {
    const double rotated = config.rotary * static_cast<double>(Q);
    return Q >= 1 && rotated >= 2.0 && std::fmod(rotated, 2.0) == 0.0;
  };
  constexpr std::int64_t kFarthest = 1 << 20;
  for (std::int64_t apart = 0; apart < kFarthest; ++apart)
    for (std::int64_t Q : {config.Q + apart, config.Q - apart})
      if (rotates_evenly(Q)) return Q;
  return 0;
}

// Checks that every size derived from the config, up to the bytes of all weights, fits in an int64.
void require_countable(const ModelConfig& config) {
  ModelConfig one_layer = config;
  one_layer.layers = 1;
  std::int64_t total = 0;
  for (const WeightSpec& spec : weight_specs(one_layer))
    if (!count_bytes(spec.shape, config.layers, total))
      throw Error("model_value",
                  fmt::format("{} [{}] of {} layers: too large to count in 64 bits", spec.name,
                              fmt::join(spec.shape, ", "), config.layers));
}

}  // namespace

const std::vector<std::string>& preset_names() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> all;
    for (const Preset& one : all_presets()) all.emplace_back(one.name);
    return all;
  }();
  return names;
}

std::vector<ModelKey> model_keys() {
  const ModelConfig usual = preset(preset_names().front());
  std::vector<ModelKey> all;
  for (const Key& k : kKeys) {
    const bool dim = k.name.size() == 1 || k.name == "layers";  // defined by the preset
    std::string value = k.name == "logit_scale" ? "1/sqrt(E)" : k.get(usual);
    if (k.name == "cache") value = "as act";
    if (dim) value.clear();
    all.push_back({std::string(k.name), k.values(k.name), value});
  }
  return all;
}

float usual_logit_scale(const ModelConfig& config) {
  const ModelConfig base = preset(config.preset);
  return base.logit_scale == default_logit_scale(base.E) ? default_logit_scale(config.E)
                                                         : base.logit_scale;
}

ModelConfig parse_model(std::string_view text) {
  const std::size_t comma = text.find(',');
  ModelConfig config = preset(text.substr(0, comma));
  std::set<std::string_view> seen;
  if (comma != std::string_view::npos) set_keys(config, text.substr(comma + 1), seen);
  if (!seen.contains("logit_scale") && config.E > 0) config.logit_scale = usual_logit_scale(config);
  for (const char* key : {"rotary", "theta"})
    require(rotates(config) || !seen.contains(key), key, find_key(key).get(config),
            kNothingRotates);
  if (!rotates(config)) {  // such a preset has no rotary or theta
    const ModelConfig usual;
    config.rotary = usual.rotary, config.theta = usual.theta;
  }
  validate(config);
  return config;
}

std::string print_model(const ModelConfig& config) {
  if (config.rows != nullptr) return config.rows->line();
  ModelConfig base = preset(config.preset);
  base.logit_scale = usual_logit_scale(config);
  if (!rotates(config)) base.rotary = config.rotary, base.theta = config.theta;
  std::string text = config.preset;
  for (const Key& k : kKeys) {
    const std::string value = k.get(config);
    if (value != k.get(base)) text += fmt::format(",{}={}", k.name, value);
  }
  return text;
}

std::string print_model_of_case(ModelConfig config) {
  if (config.rows == nullptr) config.block = preset(config.preset).block;
  return print_model(config);
}

ModelConfig with_dims(ModelConfig config, std::int64_t E, std::int64_t F, std::int64_t H,
                      std::int64_t K, std::int64_t V) {
  const bool follows = config.logit_scale == usual_logit_scale(config);
  config.E = E, config.F = F, config.H = H, config.K = K, config.V = V;
  if (follows) config.logit_scale = usual_logit_scale(config);
  return config;
}

void validate(const ModelConfig& c) {
  if (c.rows != nullptr) return;  // its text was checked when it was read
  preset(c.preset);
  const std::pair<std::string_view, std::int64_t> dims[] = {
      {"layers", c.layers}, {"E", c.E}, {"F", c.F}, {"H", c.H},
      {"K", c.K},           {"Q", c.Q}, {"V", c.V}, {"positions", c.positions}};
  for (const auto& [name, extent] : dims) {
    require(extent >= 1, name, show(extent), "must be at least 1");
    require(extent <= kLargestDim, name, show(extent), "must be at most 2147483647");
  }
  require(c.layers <= kMostLayers, "layers", show(c.layers), "must be at most 4096");
  require(c.H % c.K == 0, "K", show(c.K), fmt::format("must divide H={}", c.H));
  require(std::isfinite(c.rotary) && c.rotary > 0.0 && c.rotary <= 1.0, "rotary", show(c.rotary),
          "must be above 0 and at most 1");
  if (rotates(c)) {
    const double rotated = c.rotary * static_cast<double>(c.Q);
    require(rotated >= 2.0 && std::fmod(rotated, 2.0) == 0.0, "rotary", show(c.rotary),
            fmt::format("rotary*Q must be an even number of channels, with Q={} it is {}; the "
                        "nearest legal: Q={}",
                        c.Q, show(rotated), rotating_Q(c)));
  }
  require_positive("theta", c.theta, show(c.theta));
  if (!rotates(c)) {
    const ModelConfig usual;
    require(c.rotary == usual.rotary, "rotary", show(c.rotary), kNothingRotates);
    require(c.theta == usual.theta, "theta", show(c.theta), kNothingRotates);
  }
  require_positive("eps", c.eps, show(c.eps));
  require_positive("embed_scale", static_cast<double>(c.embed_scale), show(c.embed_scale));
  require_positive("logit_scale", static_cast<double>(c.logit_scale), show(c.logit_scale));
  if (c.softmax == Softmax::base2) {
    const auto c_of_logits = static_cast<double>(folded_scale(c));
    require(std::isfinite(c_of_logits) && c_of_logits > 0.0, "logit_scale", show(c.logit_scale),
            "with softmax=base2 log2(e) times it must be a finite, positive f32");
    require(std::isfinite(eps_of_norms(c)) && eps_of_norms(c) > 0.0, "eps", show(c.eps),
            "with softmax=base2 it must be finite and positive once it is scaled");
  }
  if (c.cache)
    require(!word_for(c.cache).empty(), "cache", std::string(to_string(*c.cache)),
            "must be " + values_of("cache", c.cache));
  require(c.bias != Bias::norm || c.norm == Norm::layernorm, "bias", "norm",
          "an RMS norm has no bias; it needs norm=layernorm");
  require_countable(c);
}

std::string_view to_string(Block block) { return word_for(block); }
std::string_view to_string(Ffn ffn) { return word_for(ffn); }
std::string_view to_string(Norm norm) { return word_for(norm); }
std::string_view to_string(Bias bias) { return word_for(bias); }
std::string_view to_string(Rope rope) { return word_for(rope); }
std::string_view to_string(Softmax softmax) { return word_for(softmax); }

Block parse_block(std::string_view word) { return read_word("case_block", "block", word, Block{}); }

}  // namespace shardproof
