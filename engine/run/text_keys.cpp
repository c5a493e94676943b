#include "engine/run/text_keys.h"

#include <fmt/format.h>

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

std::string lengths(const Case& c) {
  if (c.passes().full()) return "";
  const ModelText& text = text_model(c.model)->flat();
  for (const TextSection section : kTextSections)
    for (const TextLine& line : text.section(section).lines)
      if (const char letter = reduced(line.expression))
        return fmt::format(
            "lengths are not for a text whose line {} reduces {}, along which rows "
            "that are shorter have padding; legal: rows of one length",
            line.name, letter);
  return "";
}

std::string prefix(const Case& c) {
  return c.prefix.given() ? "prefix is not for a model's text; legal: no prefix" : "";
}

std::string pad_heads(const Case& c) {
  return c.pad_heads != 0 ? "pad_heads is not for a model's text; legal: leave it out" : "";
}

std::string pad_vocab(const Case& c) {
  return c.pad_vocab != 0 ? "pad_vocab is not for a model's text; legal: leave it out" : "";
}

std::string weights(const Case& c) {
  return c.numerics.weights == WeightType::int8
             ? "weights=int8 is not for a model's text; legal: f32, bf16"
             : "";
}

std::string regime(const Case& c) {
  return c.numerics.regime == Regime::field && !has_meaning_in_field(c.model)
             ? "regime=field is not for a text with top: numbers of a field have no order; legal: "
               "exact, f32"
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
    {"weights", true, "f32, bf16; int8 is not for texts yet", weights},
    {"act"},
    {"regime", true, "field only without top, which asks for an order", regime},
    {"schedule"},
    {"loop"},
    {"acc"},
    {"wire"},
    {"batch"},
    {"prompt"},
    {"lengths", true, "where no line reduces B or L", lengths},
    {"prefix", false, "programs of texts have one cache", prefix},
    {"chunk"},
    {"gen"},
    {"seed"},
    {"pad_heads", false, "programs of texts have the text's extents", pad_heads},
    {"pad_vocab", false, "programs of texts have the text's extents", pad_vocab},
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
