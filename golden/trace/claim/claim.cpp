#include "golden/trace/claim/claim.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>

#include "engine/run/dim_padding.h"
#include "golden/trace/claim/arithmetic_declaration.h"
#include "golden/trace/read/detail/place.h"
#include "weights/base/detail/words.h"
#include "weights/model/softmax.h"
#include "weights/text/text_model.h"

namespace shardproof::dump {
namespace {

class Reader {
 public:
  explicit Reader(const dump::Attributes& attributes) : attributes_(attributes) {}

  const std::string* text(std::string_view name) const { return dump::find(attributes_, name); }
  /// Returns the index of the attribute's word; 0 if the attribute is absent.
  std::size_t word(std::string_view name, const std::vector<std::string_view>& words) const {
    const std::string* const given = text(name);
    if (given == nullptr) return 0;
    const auto at = std::find(words.begin(), words.end(), *given);
    if (at == words.end()) {
      std::string legal;
      for (const std::string_view w : words)
        if (!w.empty()) legal += fmt::format("{}{}", legal.empty() ? "" : ", ", w);
      reject_attribute(name, *given, fmt::format("legal: {}", legal));
    }
    return static_cast<std::size_t>(at - words.begin());
  }

 private:
  const dump::Attributes& attributes_;
};

void differ(std::string_view key, const std::string& asked, const std::string& found) {
  if (asked != found)
    throw Error("compare_case",
                fmt::format("the trace is of {0}={2}, not of {0}={1}", key, asked, found));
}

std::vector<std::int64_t> heads_of(const std::string& text, std::int64_t H) {
  std::vector<std::int64_t> heads;
  std::vector<bool> seen(static_cast<std::size_t>(H), false);
  for (const std::string_view word : split(text, ",")) {
    std::int64_t head = -1;
    const auto [at, error] = std::from_chars(word.data(), word.data() + word.size(), head);
    if (error != std::errc() || at != word.data() + word.size() || head < 0 || head >= H)
      reject_attribute("heads", text,
                       fmt::format("{:?} is not a head; legal: 0 to {}", word, H - 1));
    if (seen[static_cast<std::size_t>(head)])
      reject_attribute("heads", text, fmt::format("head {} is named twice", head));
    seen[static_cast<std::size_t>(head)] = true;
    heads.push_back(head);
  }
  if (std::ssize(heads) != H)
    reject_attribute("heads", text, fmt::format("{} heads, of {}", heads.size(), H));
  return heads;
}

std::vector<std::int64_t> rows_of(const std::string& text, std::int64_t batch) {
  std::vector<std::int64_t> rows;
  for (const std::string_view word : split(text, ",")) {
    const char* const end = word.data() + word.size();
    const auto [at, error] = std::from_chars(word.data(), end, rows.emplace_back());
    if (word.empty() || error != std::errc() || at != end)
      reject_attribute("rows", text, fmt::format("{:?} is not a whole number", word));
  }
  if (std::ssize(rows) != batch)
    reject_attribute("rows", text, fmt::format("{} rows, of batch={}", rows.size(), batch));
  return rows;
}

/// Returns whether two models are one, or texts of equal layers and extents: a trace may be judged
/// by another text than its writer's.
bool same_extents(const ModelConfig& a, const ModelConfig& b) {
  const TextModel *const of_a = text_model(a), *const of_b = text_model(b);
  if (of_a == nullptr || of_b == nullptr) return print_model(a) == print_model(b);
  return of_a->sizes().layers == of_b->sizes().layers &&
         of_a->sizes().extents == of_b->sizes().extents;
}

}  // namespace

void require_same_values(const Case& given, const Case& theirs) {
  if (!same_extents(given.model, theirs.model))
    differ("model", print_model(given.model), print_model(theirs.model));
  differ("weights", std::string(to_string(given.numerics.weights)),
         std::string(to_string(theirs.numerics.weights)));
  differ("act", std::string(to_string(given.numerics.act)),
         std::string(to_string(theirs.numerics.act)));
  differ("batch", std::to_string(given.batch), std::to_string(theirs.batch));
  differ("prompt", std::to_string(given.prompt), std::to_string(theirs.prompt));
  differ("chunk", std::to_string(given.chunk), std::to_string(theirs.chunk));
  const auto lengths = [](const Case& c) {
    return fmt::format(
        "{}",
        fmt::join(lengths_of_rows(c.lengths, c.seed, c.batch, c.prompt, c.prefix.length), ","));
  };
  differ("seed", std::to_string(given.seed), std::to_string(theirs.seed));
  const auto prefix = [](const Case& c) {
    return c.prefix.given() ? c.prefix.to_string() : std::string("none");
  };
  differ("prefix", prefix(given), prefix(theirs));
  if (given.lengths != theirs.lengths) differ("lengths", lengths(given), lengths(theirs));
  differ("gen", std::to_string(given.gen), std::to_string(theirs.gen));
  const auto sampling = [](const Case& c) {
    const std::string text = print_sampling(c.sampling);
    return text.empty() ? std::string(to_string(c.sampling.sample))
                        : text.substr(text.find('=') + 1);
  };
  differ("sample", sampling(given), sampling(theirs));
}

Claim read_claim(const dump::Attributes& attributes, const std::optional<std::string>& line,
                 const ModelText* text_of_line) {
  const Reader reader(attributes);
  dump::require_trace(attributes);
  const std::string* const own = reader.text("case");
  if (own == nullptr && !line)
    throw Error("compare_case", "the trace has no case; say it with --case LINE");
  Claim claim;
  std::optional<ModelText> text;
  if (const std::string* const of_file = reader.text("text_of_model"))
    text = parse_model_text(*of_file, "text_of_model");
  const auto theirs_of = [&] { return parse_case(*own, {}, text ? &*text : nullptr); };
  claim.source_case = line ? parse_case(*line, {}, text_of_line) : theirs_of();
  require_one_torus(claim.source_case, "a trace");
  require_keys_of_text(claim.source_case);
  if (own != nullptr && line) {
    const Case theirs = theirs_of();
    differ("torus", claim.source_case.torus.to_string(), theirs.torus.to_string());
    require_same_values(claim.source_case, theirs);
    claim.other_text = !same_model(claim.source_case.model, theirs.model);
    // Values do not depend on the padding, but the arrays' lengths do.
    if (claim.source_case.pad_heads == 0) claim.source_case.pad_heads = theirs.pad_heads;
    if (claim.source_case.pad_vocab == 0) claim.source_case.pad_vocab = theirs.pad_vocab;
  }
  require_padding(claim.source_case);

  if (const std::string* const said = reader.text("arithmetic"); said && *said == "field") {
    claim.in_field = true;
    return claim;
  }
  const bool bf16 = claim.source_case.numerics.act == NumberFormat::bf16;
  const Arithmetic arithmetic =
      read_arithmetic(attributes, bf16 ? NumberFormat::bf16 : NumberFormat::f32);
  claim.declared = arithmetic.bounds;
  claim.exact = arithmetic.exact;
  claim.arithmetic_said = arithmetic.said;
  claim.weights_of_file = reader.word("weights", {"seed", "file"}) == 1;
  claim.masked_any = reader.word("masked", {"", "any"}) == 1;
  // Without the attribute the base is the model's own.
  const auto unit = [&](std::string_view name) {
    const std::size_t stated = reader.word(name, {"", "e", "2"});
    const bool base2 = claim.source_case.model.softmax == Softmax::base2;
    if (stated == 0 || (stated == 2) == base2) return 1.0;
    return base2 ? kLog2E : kLn2;
  };
  claim.score_unit = unit("score_base");
  claim.logits_unit = unit("logits_base");
  claim.gain_folded = reader.word("norm_gain", {"", "folded"}) == 1;
  // Folding the gain rounds a factor once more.
  claim.declared.folded += claim.gain_folded ? 1 : 0;
  const ModelConfig& model = claim.source_case.model;
  if (const std::string* const pairs = reader.text("rope_pairs")) {
    const Rope theirs =
        reader.word("rope_pairs", {"half", "interleaved"}) == 0 ? Rope::half : Rope::interleaved;
    if (model.rope != Rope::half && model.rope != Rope::interleaved)
      reject_attribute("rope_pairs", *pairs, "the model rotates nothing");
    if (theirs != model.rope) claim.pairs = theirs;
  }
  if (const std::string* const heads = reader.text("heads"))
    claim.heads = heads_of(*heads, model.H);
  if (const std::string* const rows = reader.text("rows"))
    claim.rows = rows_of(*rows, claim.source_case.batch);
  if (const std::string* const given = reader.text("given"))
    for (const std::string_view pattern : split(*given, ",")) claim.operands.emplace_back(pattern);
  const std::string* const mesh = reader.text("mesh");
  claim.mesh = Mesh::parse(mesh == nullptr ? "x y z" : *mesh, claim.source_case.torus);
  if (claim.exact && (claim.score_unit != 1.0 || claim.logits_unit != 1.0 || claim.gain_folded))
    reject_attribute("arithmetic", "exact",
                     "values in other units have other bits; legal: f32, f64, bf16");
  return claim;
}

}  // namespace shardproof::dump
