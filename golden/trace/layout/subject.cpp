#include "golden/trace/layout/subject.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <utility>
#include <vector>

#include "engine/program/program.h"
#include "weights/base/detail/word_table.h"
#include "weights/model/model_rows.h"
#include "weights/model/registry.h"
#include "weights/text/block_terms.h"
#include "weights/text/composites.h"

namespace shardproof::dump {
namespace {

constexpr std::string_view kProbs = "probs";

/// Returns the values of a pass of a model of keys in order of computation.
const std::vector<std::string>& computed(const ModelConfig& config) {
  thread_local std::pair<ModelConfig, std::vector<std::string>> last;  // sorts ask for it often
  auto& [known, all] = last;
  if (!all.empty() && known == config) return all;
  known = config;
  all = {"ids"};
  const NamedComposites terms = block_terms_of(config, NumberFormat::f32);
  for (const auto& [name, composite] : composites_of(config, NumberFormat::f32)) {
    all.push_back(name);
    for (const auto& [term, of] : terms)
      if (of.operands[0] == name) all.push_back(term);
    if (composite.kind == CompositeKind::denominator) all.emplace_back(kProbs);
  }
  all.emplace_back("token");
  return all;
}

std::string_view word_of(Meaning meaning) {
  static constexpr std::pair<std::string_view, Meaning> kWords[] = {
      {"raw ", Meaning::raw},      {"scaled ", Meaning::scaled},   {"unstored ", Meaning::unstored},
      {"stat ", Meaning::stat},    {"stat ", Meaning::candidates}, {"stat ", Meaning::indices},
      {"stat ", Meaning::drawing}, {"joined ", Meaning::joined}};
  return word_in(kWords, meaning);
}

/// Returns the pass whose caches a value of `pass` refers to: the last preceding one that has them,
/// or that of the prefixes; -1 if there is none.
std::int64_t pass_meant(const Role& role, std::int64_t pass, const Passes& passes) {
  const bool of_prefixes = role.kind == Role::Kind::prefix;
  if (!of_prefixes && role.kind != Role::Kind::previous) return pass;
  const std::string previous = passes.at(pass).previous;
  for (std::int64_t i = passes.size() - 1; i >= 0; --i)
    if (const PassPlan other = passes.at(i);
        of_prefixes ? other.phase == Phase::prefix : other.name == previous)
      return i;
  return -1;
}

std::optional<Subject> of_weight(std::string_view id, const ModelConfig& config,
                                 NumberFormat kept) {
  for (const WeightSpec& spec : weight_specs(config, kept))
    if (spec.name == id)
      return Subject{Meaning::weight, false, "", 0, spec.name, spec.name, spec.dims, spec.shape};
  return std::nullopt;
}

/// Returns the meaning of a role; nullopt if the model has no such value.
std::optional<Meaning> meaning_of(const Role& role, const ModelConfig& config) {
  const bool of_keys = config.rows == nullptr;
  if (of_keys && role.name == kProbs && role.kind == Role::Kind::checkpoint) return Meaning::probs;
  const ValueRow* const row = value_row(role.name, config.rows.get());
  const bool named = row != nullptr && (!row->in_model || row->in_model(config));
  if (row == nullptr || !(named || is_block_term(role.name, config))) return std::nullopt;
  const bool plain = role.kind == Role::Kind::checkpoint;
  if (row->kind == ValueKind::input && (plain || role.kind == Role::Kind::input))
    return role.name == "ids" ? Meaning::ids : Meaning::positions;
  if (row->kind == ValueKind::stat && (plain || role.kind == Role::Kind::stat))
    return row->drawing      ? Meaning::drawing
           : !row->per_block ? Meaning::stat
           : row->integer    ? Meaning::indices
                             : Meaning::candidates;
  if (row->kind != ValueKind::checkpoint) return std::nullopt;
  if (row->integer) return plain ? std::optional(Meaning::token) : std::nullopt;
  switch (role.kind) {
    case Role::Kind::checkpoint:
    case Role::Kind::previous:
    case Role::Kind::prefix:
      return Meaning::checkpoint;
    case Role::Kind::raw:
      return Meaning::raw;
    case Role::Kind::scaled:
      return Meaning::scaled;
    case Role::Kind::unstored:
      return Meaning::unstored;
    case Role::Kind::joined:
      return row->cache && !of_keys ? std::optional(Meaning::joined) : std::nullopt;
    default:
      return std::nullopt;
  }
}

}  // namespace

std::string Subject::title() const {
  return fmt::format("{}{}{}", word_of(meaning), last ? "last " : "", id);
}

bool Subject::of_blocks() const {
  const bool of_sampling =
      meaning == Meaning::candidates || meaning == Meaning::indices || meaning == Meaning::drawing;
  return of_sampling && dims.find('C') != std::string::npos;
}

Subject Subject::whole() const {
  Subject s = *this;
  if (!last) return s;
  s.last = false;
  s.dims.insert(1, 1, 'L');
  s.shape.clear();
  return s;
}

std::int64_t pass_of(std::string_view name, const Passes& passes) {
  const std::size_t dot = name.find('.', name.find('.') + 1);
  if (dot == std::string_view::npos) return -1;
  for (std::int64_t i = 0; i < passes.size(); ++i)
    if (passes.at(i).name == name.substr(0, dot)) return i;
  return -1;
}

std::optional<Subject> subject(std::string_view id, std::string_view meaning,
                               const ModelConfig& config, const Passes& passes, NumberFormat kept) {
  std::int64_t at = pass_of(id, passes);
  if (at < 0) return meaning.empty() ? of_weight(id, config, kept) : std::nullopt;
  std::string_view rest = id.substr(passes.at(at).name.size() + 1);
  Subject s;
  // The head's input is the last layer's output.
  const bool of_head = rest.starts_with("head.") && !meaning.empty();
  bool of_layer = of_head;
  if (of_head) s.layer = config.layers - 1;
  if (rest.starts_with("layer")) {
    const char* const end = rest.data() + rest.size();
    const std::size_t number = rest.starts_with("layers.") ? 7 : 5;
    const auto [dot, error] = std::from_chars(rest.data() + number, end, s.layer);
    if (error != std::errc() || dot == end || *dot != '.' || s.layer < 0 ||
        s.layer >= config.layers)
      return std::nullopt;
    rest = std::string_view(dot + 1, static_cast<std::size_t>(end - dot - 1));
    of_layer = true;
  }
  Role role = Role::parse(meaning.empty() ? rest : meaning);
  if (role.kind == Role::Kind::weight)
    return of_weight(weight_id(s.layer, role.name, config.rows.get()), config, kept);
  if (of_layer && role.name == "in") {
    of_layer = s.layer > 0;
    role.name = s.layer > 0 ? "out" : "embed";
    s.layer = std::max<std::int64_t>(s.layer - 1, 0);
  }
  const auto means = meaning_of(role, config);
  if (!means) return std::nullopt;
  s.meaning = *means;
  s.name = role.name;
  s.last = role.last;
  const ValueRow* const row = value_row(s.name, config.rows.get());
  const bool per_layer = row == nullptr || row->per_layer;  // null for probs
  // Positions are also an input of a layer.
  // What a text's layers read of its embedding is also an input of a layer.
  const bool also_of_layers = s.meaning == Meaning::positions || config.rows != nullptr;
  if (per_layer != of_layer && !of_head && !(of_layer && also_of_layers)) return std::nullopt;
  at = pass_meant(role, at, passes);
  if (at < 0) return std::nullopt;
  const PassPlan pass = passes.at(at);
  s.pass = pass.name;
  s.id = per_layer ? fmt::format("{}.layer{}.{}", s.pass, s.layer, s.name)
                   : fmt::format("{}.{}", s.pass, s.name);
  if (!per_layer) s.layer = 0;
  s.dims = row == nullptr ? "BLHM" : row->dims;
  if (role.kind == Role::Kind::prefix) {
    if (!row->cache) return std::nullopt;
    s.dims = dims_of(role, config.rows.get());  // in their own passes B and M
  }
  if (s.meaning == Meaning::joined && !pass.prefix.given()) return std::nullopt;
  if (s.last && !s.dims.starts_with("BL")) return std::nullopt;
  if (per_layer && config.rows != nullptr && config.rows->line_of(s.name, s.layer) < 0)
    return std::nullopt;
  if (s.last) s.dims.erase(1, 1);
  PassExtents extents = extents_of(pass, row == nullptr ? *value_row("score") : *row);
  extents.N = extents.B, extents.T = extents.M;  // a pass over prefixes has them as B and M
  if (s.meaning == Meaning::joined) extents.M += pass.prefix.length;
  for (const char letter : s.dims)
    s.shape.push_back(letter == 'C' && s.of_blocks() ? 0
                      : letter == 'W' && row != nullptr && row->words > 0
                          ? row->words
                          : shape_of(std::string(1, letter), config, extents)[0]);
  return s;
}

std::int64_t count_checkpoints(const ModelConfig& config, const Passes& passes) {
  std::int64_t a_pass = 0, all = 0;
  for (const CheckpointSpec& spec : checkpoint_specs(config)) {
    if (spec.integer) continue;
    for (std::int64_t layer = 0; layer < (spec.per_layer ? config.layers : 1); ++layer)
      a_pass += config.rows == nullptr || config.rows->line_of(spec.name, layer) >= 0 ? 1 : 0;
  }
  for (const Passes::Group& group : passes.groups())
    for (std::int64_t i = group.first; i <= group.last; ++i)
      all += a_pass + (passes.at(i).sample ? 1 : 0);
  return all;
}

/// As order_of, for a model that is given as a text.
static std::int64_t order_in_text(const Subject& s, const ModelConfig& config,
                                  const Passes& passes) {
  const ValueRow* const row = value_row(s.name, config.rows.get());
  const std::int64_t line = config.rows->line_of(s.name, s.layer);
  const std::int64_t width = std::ssize(config.rows->values()) * 2 + 3;
  const bool input = s.meaning == Meaning::ids || s.meaning == Meaning::positions;
  const bool of_layer = row != nullptr && row->per_layer;
  const bool of_head = !of_layer && line > config.rows->line_of("out", 0);
  const std::int64_t layer = input      ? 0
                             : line < 0 ? config.layers + 2  // of sampling
                             : of_layer ? s.layer + 1
                             : of_head  ? config.layers + 1
                                        : 0;
  const std::int64_t rank = line < 0 && s.meaning == Meaning::token ? width - 1 : line + 1;
  return (pass_of(s.id, passes) * (config.layers + 3) + layer) * width + (input ? 0 : rank);
}

std::int64_t order_of(const Subject& s, const ModelConfig& config, const Passes& passes) {
  if (s.meaning == Meaning::weight) return -1;
  if (config.rows != nullptr) return order_in_text(s, config, passes);
  const ValueRow* const row = value_row(s.name);
  const bool of_norm = row != nullptr && !row->norm.empty();
  const bool of_sampling = s.meaning == Meaning::candidates || s.meaning == Meaning::indices ||
                           s.meaning == Meaning::drawing;
  const std::string_view as = of_norm                           ? row->norm
                              : of_sampling                     ? "token"
                              : s.meaning == Meaning::positions ? "ids"
                                                                : std::string_view(s.name);
  const std::vector<std::string>& order = computed(config);
  const auto rank = std::find(order.begin(), order.end(), as) - order.begin();
  const bool head = s.id == checkpoint_id(s.pass, -1, s.name) && rank > 2;
  const std::int64_t layer = rank <= 1 ? 0 : head ? config.layers + 1 : s.layer + 1;
  const auto width = std::ssize(order) * 2;
  // The unrounded form of a value precedes it.
  const bool before = s.meaning == Meaning::raw || s.meaning == Meaning::scaled ||
                      s.meaning == Meaning::unstored || of_norm || of_sampling;
  return (pass_of(s.id, passes) * (config.layers + 2) + layer) * width + rank * 2 +
         (before ? 0 : 1);
}

}  // namespace shardproof::dump
