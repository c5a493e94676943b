#include "golden/candidate/subject.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <vector>

#include "weights/registry.h"

namespace shardproof::candidate {
namespace {

constexpr std::string_view kProbs = "probs";

/// The values of a pass as one is made of another.
constexpr std::string_view kOrder[] = {
    "ids",    "embed",   "norm",      "q",     "k",          "v",      "q_rot",
    "k_rot",  "k_cache", "v_cache",   "score", "max",        "exp",    "denom",
    kProbs,   "attn",    "attn_out",  "mid",   "norm2",      "gate",   "up",
    "hidden", "ffn_out", "block_out", "out",   "final_norm", "logits", "token"};

/// The words that may stand before the name in a meaning.
struct Word {
  std::string_view text;
  Meaning meaning;
};
constexpr Word kWords[] = {{"raw ", Meaning::raw},
                           {"scaled ", Meaning::scaled},
                           {"unstored ", Meaning::unstored},
                           {"stat ", Meaning::stat}};

std::string_view to_string(Meaning meaning) {
  for (const Word& word : kWords)
    if (word.meaning == meaning) return word.text;
  return "";
}

/// The pass that an id begins with; -1 if none.
std::int64_t pass_of(std::string_view id, const Passes& passes) {
  const std::size_t dot = id.find('.', id.find('.') + 1);
  if (dot == std::string_view::npos) return -1;
  for (std::int64_t i = 0; i < passes.size(); ++i)
    if (passes.at(i).name == id.substr(0, dot)) return i;
  return -1;
}

std::optional<Subject> of_weight(std::string_view id, const ModelConfig& config, WeightType kept) {
  for (const WeightSpec& spec : weight_specs(config, kept))
    if (spec.name == id)
      return Subject{Meaning::weight, "", 0, spec.name, spec.name, spec.dims, spec.shape};
  return std::nullopt;
}

/// The dims of a value of this name and meaning; none if the model has none.
std::optional<std::string> dims_of(std::string_view name, Meaning& meaning,
                                   const ModelConfig& config, bool of_layer) {
  if (name == kProbs && meaning == Meaning::checkpoint) {
    meaning = Meaning::probs;
    return of_layer ? std::optional<std::string>("BLHM") : std::nullopt;
  }
  const ValueRow* const row = value_row(name);
  if (row == nullptr || row->per_layer != of_layer || (row->in_model && !row->in_model(config)))
    return std::nullopt;
  if (name == "ids" && meaning == Meaning::checkpoint)
    meaning = Meaning::ids;
  else if (name == "token" && meaning == Meaning::checkpoint)
    meaning = Meaning::token;
  else if (row->kind == ValueKind::stat && !row->per_block &&
           (meaning == Meaning::stat || meaning == Meaning::checkpoint))
    meaning = Meaning::stat;
  else if (row->kind != ValueKind::checkpoint || meaning == Meaning::stat || row->integer)
    return std::nullopt;
  return std::string(row->dims);
}

}  // namespace

std::string Subject::title() const { return std::string(to_string(meaning)) + id; }

std::optional<Subject> subject(std::string_view id, std::string_view meaning,
                               const ModelConfig& config, const Passes& passes, WeightType kept) {
  const std::int64_t at = pass_of(id, passes);
  if (at < 0) return meaning.empty() ? of_weight(id, config, kept) : std::nullopt;
  const PassPlan pass = passes.at(at);
  std::string_view rest = id.substr(pass.name.size() + 1);
  Subject s;
  s.pass = pass.name;
  bool of_layer = false;
  if (rest.starts_with("layer")) {
    const char* const end = rest.data() + rest.size();
    const auto [dot, error] = std::from_chars(rest.data() + 5, end, s.layer);
    if (error != std::errc() || dot == end || *dot != '.' || s.layer < 0 ||
        s.layer >= config.layers)
      return std::nullopt;
    rest = std::string_view(dot + 1, static_cast<std::size_t>(end - dot - 1));
    of_layer = true;
  }
  std::string_view name = meaning.empty() ? rest : meaning;
  for (const Word& word : kWords)
    if (name.starts_with(word.text)) {
      s.meaning = word.meaning;
      name = name.substr(word.text.size());
      break;
    }
  if (of_layer && name == "in") {
    of_layer = s.layer > 0;
    name = s.layer > 0 ? "out" : "embed";
    s.layer = std::max<std::int64_t>(s.layer - 1, 0);
  }
  const auto dims = dims_of(name, s.meaning, config, of_layer);
  if (!dims) return std::nullopt;
  s.name = name;
  s.id = of_layer ? fmt::format("{}.layer{}.{}", s.pass, s.layer, name)
                  : fmt::format("{}.{}", s.pass, name);
  s.dims = *dims;
  s.shape = shape_of(s.dims, config, {pass.batch(), pass.L, pass.cached + pass.L});
  return s;
}

std::int64_t count_checkpoints(const ModelConfig& config, const Passes& passes) {
  std::int64_t a_pass = 0, all = 0;
  for (const CheckpointSpec& spec : checkpoint_specs(config))
    a_pass += spec.integer ? 0 : spec.per_layer ? config.layers : 1;
  for (const Passes::Group& group : passes.groups())
    for (std::int64_t i = group.first; i <= group.last; ++i)
      all += a_pass + (passes.at(i).sample ? 1 : 0);
  return all;
}

std::int64_t order_of(const Subject& s, const ModelConfig& config, const Passes& passes) {
  if (s.meaning == Meaning::weight) return -1;
  const ValueRow* const row = value_row(s.name);
  const bool of_norm = row != nullptr && !row->norm.empty();
  const auto rank = std::find(std::begin(kOrder), std::end(kOrder),
                              of_norm ? row->norm : std::string_view(s.name)) -
                    std::begin(kOrder);
  const bool head = s.id == checkpoint_id(s.pass, -1, s.name) && rank > 2;
  const std::int64_t layer = rank <= 1 ? 0 : head ? config.layers + 1 : s.layer + 1;
  const auto width = static_cast<std::int64_t>(std::size(kOrder)) * 2;
  // What a value is rounded from comes before it.
  const bool before = s.meaning == Meaning::raw || s.meaning == Meaning::scaled ||
                      s.meaning == Meaning::unstored || of_norm;
  return (pass_of(s.id, passes) * (config.layers + 2) + layer) * width + rank * 2 +
         (before ? 0 : 1);
}

}  // namespace shardproof::candidate
