#include "engine/run/text_keys.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>

#include "weights/text/flat.h"
#include "weights/text/text_model.h"

namespace shardproof {
namespace {

std::string layer_program(const Case& c) {
  return has_program(c) ? "a layer program is of a model of keys; legal: a table of layouts" : "";
}

bool among(std::string_view letters, char letter) {
  return letters.find(letter) != std::string_view::npos;
}

/// Returns the letter of rows or positions, if any, that an op of a flat line reduces.
char reduced(const Expression& e) {
  if (e.kind != Expression::Kind::call) return 0;
  for (const char letter : {'B', 'L'}) {
    for (const ContractionTerm& term : e.terms)
      if (among(term.a + term.b, letter) && !among(term.result, letter)) return letter;
    const ModelForm form = row_of(e.op).form;
    const bool of_letters = form == ModelForm::sum || form == ModelForm::reduction ||
                            form == ModelForm::top || form == ModelForm::view;
    if (of_letters && among(e.parameters[0], letter)) return letter;
  }
  return 0;
}

/// Returns the first line that reduces rows or positions, as `says` names it and the letter; "" if
/// none does.
template <class Says>
std::string reducing_line(const Case& c, const Says& says) {
  const ModelText& text = text_model(c.model)->flat();
  for (const TextSection section : kTextSections)
    for (const TextLine& line : text.section(section).lines)
      if (const char letter = reduced(line.expression)) return says(line.name, letter);
  return "";
}

std::string lengths(const Case& c) {
  if (c.passes().full()) return "";
  return reducing_line(c, [](const std::string& name, char letter) {
    return fmt::format(
        "lengths are not for a text whose line {} reduces {}, along which rows "
        "that are shorter have padding; legal: rows of one length",
        name, letter);
  });
}

std::string prefix(const Case& c) {
  if (!c.prefix.given()) return "";
  const TextSizes& sizes = text_model(c.model)->sizes();
  for (const char letter : {'N', 'T'})
    if (sizes.extents.contains(letter))
      return fmt::format(
          "prefix is not for a text with a dim {0} of its own: prefixes have N and T; legal: no "
          "prefix, or another letter in place of {0}",
          letter);
  return reducing_line(c, [](const std::string& name, char letter) {
    return fmt::format(
        "prefix is not for a text whose line {} reduces {}, which passes over prefixes have fewer "
        "of; legal: no prefix",
        name, letter);
  });
}

/// Returns the letter of padded heads that an op of a flat line needs whole, or 0: reduces, or sees
/// otherwise than H as K and its groups. A contraction with a weight adds zeros for padding.
char whole_heads(const TextModel& model, const Expression& e, std::string_view heads) {
  if (e.kind != Expression::Kind::call) return 0;
  const ModelForm form = row_of(e.op).form;
  for (const char letter : heads) {
    for (std::size_t t = 0; t < e.terms.size(); ++t) {
      const ContractionTerm& term = e.terms[t];
      const bool summed = among(term.a + term.b, letter) && !among(term.result, letter);
      const bool zeros = (among(term.a, letter) && model.weight(e.args[2 * t].text) != nullptr) ||
                         (among(term.b, letter) && model.weight(e.args[2 * t + 1].text) != nullptr);
      if (summed && !zeros) return letter;
    }
    if (form == ModelForm::view) {
      const std::string &from = e.parameters[0], &to = e.parameters[1];
      const bool of_groups = (from == "H" && to.size() == 2 && to[0] == 'K') ||
                             (to == "H" && from.size() == 2 && from[0] == 'K');
      if (among(from + to, letter) && !of_groups) return letter;
    } else if (form != ModelForm::range && !e.parameters.empty() &&
               among(e.parameters[0], letter)) {
      return letter;
    }
  }
  return 0;
}

/// Returns the letters of heads in a text: H, K, and the other letter that H is seen as.
std::string letters_of_heads(const ModelText& flat) {
  std::string heads = "HK";
  for (const TextSection section : kTextSections)
    for (const TextLine& line : flat.section(section).lines)
      if (const Expression& e = line.expression;
          e.kind == Expression::Kind::call && row_of(e.op).form == ModelForm::view)
        for (const std::size_t whole : {0U, 1U})
          if (e.parameters[whole] == "H") heads += e.parameters[1 - whole];
  return heads;
}

/// Returns the first line that needs all of some letters, and which.
template <class Needs>
std::string whole_line(const ModelText& flat, std::string_view key, const Needs& needs) {
  for (const TextSection section : kTextSections)
    for (const TextLine& line : flat.section(section).lines)
      if (const char letter = needs(line.expression))
        return fmt::format(
            "{} is not for a text whose line {} needs all of {} as it is; legal: "
            "leave it out",
            key, line.name, letter);
  return "";
}

std::string pad_heads(const Case& c) {
  if (c.pad_heads == 0) return "";
  const TextModel& model = *text_model(c.model);
  if (model.extent('H') == 0)
    return "pad_heads is not for a text without a dim H; legal: leave it out";
  const std::string heads = letters_of_heads(model.flat());
  return whole_line(model.flat(), "pad_heads",
                    [&](const Expression& e) { return whole_heads(model, e, heads); });
}

/// A table is read by an id of the model's own.
std::string pad_vocab(const Case& c) {
  if (c.pad_vocab == 0) return "";
  return whole_line(text_model(c.model)->flat(), "pad_vocab", [&](const Expression& e) -> char {
    if (e.kind != Expression::Kind::call || e.op == ModelOp::gather) return 0;
    for (const ContractionTerm& term : e.terms)
      if (among(term.a + term.b, 'V') && !among(term.result, 'V')) return 'V';
    const bool any = std::any_of(e.parameters.begin(), e.parameters.end(),
                                 [](const std::string& word) { return among(word, 'V'); });
    return any && !is_pointwise(e.op) ? 'V' : 0;
  });
}

std::string regime(const Case& c) {
  return c.numerics.regime == Regime::field && !has_meaning_in_field(c.model)
             ? "regime=field is not for a text with top, or with within of other numbers than "
               "positions: numbers of a field have no order; legal: exact, f32"
             : "";
}

constexpr std::string_view kSaid = "the text says it";
constexpr TextCaseKey kKeys[] = {
    {"torus"},
    {"decode_torus"},
    {"model", true, "keys: the text's extents, numbers, flags, and layers"},
    {"prefill", true, "a table of layouts, no layer program", layer_program},
    {"decode", true, "a table of layouts, no layer program"},
    {"block", false, kSaid},
    {"numerics", true, "the keys that it stands for, without cache, which the text says"},
    {"weights", true, "int8: the matrices of contractions with one matrix in each term"},
    {"act"},
    {"regime", true,
     "field only without top, and within of positions alone, as both ask for an order", regime},
    {"schedule"},
    {"loop"},
    {"acc"},
    {"wire"},
    {"batch"},
    {"prompt"},
    {"lengths", true, "where no line reduces B or L", lengths},
    {"prefix", true, "where the text has no dim N or T, and no line reduces B or L", prefix},
    {"chunk"},
    {"gen"},
    {"seed"},
    {"pad_heads", true, "where no line reduces or views heads but by a weight, or as K's groups",
     pad_heads},
    {"pad_vocab", true, "where no line reduces or views V", pad_vocab},
    {"sample"},
    {"temperature"},
    {"top_k"},
    {"top_p"},
    {"ffn", false, kSaid},
    {"norm", false, kSaid},
    {"rope", false, kSaid},
};

}  // namespace

std::span<const TextCaseKey> text_case_keys() { return kKeys; }

void require_keys_of_text(const Case& c) {
  if (c.model.rows == nullptr) return;
  for (const TextCaseKey& key : kKeys)
    if (const std::string why = key.refusal != nullptr ? key.refusal(c) : ""; !why.empty())
      throw Error("case_model", fmt::format("model={}: {}", print_model(c.model), why));
}

}  // namespace shardproof
