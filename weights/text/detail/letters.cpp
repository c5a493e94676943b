// The letters of an expression, op by op.
#include "weights/text/detail/letters.h"

#include <fmt/format.h>

#include <algorithm>

#include "weights/base/nearest.h"

namespace shardproof {
namespace {

std::string quoted(const std::string& letters) { return letters.empty() ? "a number" : letters; }

/// The numbers among an op's parameters.
std::vector<std::string> numbers_of(const Expression& e, ModelForm form) {
  if (form == ModelForm::range) return e.parameters;
  if (form == ModelForm::top || form == ModelForm::turn) return {e.parameters.back()};
  return {};
}

std::string letters_of_contraction(const NameScope& scope, const Expression& e) {
  for (std::size_t i = 0; i < e.terms.size(); ++i) {
    const ContractionTerm& term = e.terms[i];
    for (const auto& [letters, operand] :
         {std::pair{term.a, &e.args[2 * i]}, std::pair{term.b, &e.args[2 * i + 1]}}) {
      const std::string found = letters_of(scope, *operand);
      if (found != letters)
        refuse("model_c6", fmt::format("einsum: {} has the letters {}, not {}", print(*operand),
                                       quoted(found), letters));
    }
    if (!all_among(term.result, term.a + term.b))
      refuse("model_c6",
             fmt::format("einsum: no operand has {}", without(term.result, term.a + term.b)));
    if (term.result != e.terms[0].result)
      refuse("model_c6", fmt::format("einsum: the terms have the results {} and {}",
                                     e.terms[0].result, term.result));
  }
  return e.terms[0].result;
}

std::string letters_of_before(const NameScope& scope, const Expression& e) {
  const std::string& name = e.args[0].text;
  const auto at = scope.section.find(name);
  if (at == scope.section.end())
    refuse("model_c11", fmt::format("before: {} is not a value of this section", name));
  const std::string& letters = at->second;
  if (!has(letters, 'B') || !has(letters, 'L') || has(letters, 'M'))
    refuse("model_c11", fmt::format("before: {} : {} lacks B or L, or is a cache", name, letters));
  if (e.args.size() == 2) {
    const std::string start = letters_of(scope, e.args[1]);
    if (!all_among(start, without(letters, "L")))
      refuse("model_c12", fmt::format("before: the start has the letters {}, of which {} : {} "
                                      "without L lacks some",
                                      quoted(start), name, letters));
  }
  return letters;
}

}  // namespace

bool all_among(std::string_view letters, std::string_view of) {
  return std::all_of(letters.begin(), letters.end(), [&](char c) { return has(of, c); });
}

std::string without(std::string_view letters, std::string_view of) {
  std::string rest;
  for (const char c : letters)
    if (!has(of, c)) rest += c;
  return rest;
}

bool KnownName::exists_for(const std::optional<Guard>& guard) const {
  bool for_true = false, for_false = false;
  for (const auto& own : guards) {
    if (!own || own == guard) return true;
    (own->value ? for_true : for_false) = true;
  }
  return for_true && for_false;
}

const KnownName& NameScope::named(const std::string& name) const {
  const auto at = known.find(name);
  if (at == known.end()) {
    std::vector<std::string> legal;
    for (const auto& row : known) legal.push_back(row.first);
    const std::string near = nearest(name, legal);
    refuse("model_c1", fmt::format("{} is not defined before it is used{}", name,
                                   near.empty() ? "" : "; did you mean " + near + "?"));
  }
  if (!at->second.exists_for(guard))
    refuse("model_c1", fmt::format("{} does not exist in every layer in which it is read", name));
  return at->second;
}

void NameScope::require_letters(std::string_view letters) const {
  for (const char c : letters)
    if (!has(kGivenLetters, c) && text.dim(c) == nullptr)
      refuse("model_c1", fmt::format("the letter {} is not declared; declare it: dim {}", c, c));
}

std::string letters_of(const NameScope& scope, const Expression& e) {
  if (e.kind == Expression::Kind::number) return "";
  if (e.kind == Expression::Kind::name)
    return scope.text.is_number(e.text) ? "" : scope.named(e.text).letters;
  const ModelOpRow& row = row_of(e.op);
  const auto label = [&](const std::string& why) { return fmt::format("{}: {}", row.name, why); };
  for (const std::string& word : numbers_of(e, row.form))
    if (!scope.text.is_number(word))
      refuse("model_c1", label(fmt::format("{} is not a number of the text", word)));
  if (row.form == ModelForm::before) return letters_of_before(scope, e);
  if (row.form == ModelForm::contraction) return letters_of_contraction(scope, e);
  const std::string x = letters_of(scope, e.args[0]);
  switch (row.form) {
    case ModelForm::binary: {
      const std::string y = letters_of(scope, e.args[1]);
      return x + without(y, x);
    }
    case ModelForm::sum:
    case ModelForm::reduction:
      if (!all_among(e.parameters[0], x))
        refuse("model_c7",
               label(fmt::format("{} has no {}", quoted(x), without(e.parameters[0], x))));
      return without(x, e.parameters[0]);
    case ModelForm::top:
    case ModelForm::turn:
      if (!all_among(e.parameters[0], x))
        refuse("model_c7", label(fmt::format("{} has no {}", quoted(x), e.parameters[0])));
      return x;
    case ModelForm::view: {
      const std::string &from = e.parameters[0], &to = e.parameters[1];
      const auto begin = x.find(from);
      if (begin == std::string::npos)
        refuse("model_c7", label(fmt::format("{} has no {}", quoted(x), from)));
      scope.require_letters(to);
      for (const char c : to)
        if (has(x, c)) refuse("model_c7", label(fmt::format("{} has {} already", x, c)));
      for (const char c : from + to)
        if (has(kGivenLetters, c))
          refuse("model_c7", label(fmt::format("{} is not a dim that a "
                                               "model can cut",
                                               c)));
      return x.substr(0, begin) + to + x.substr(begin + from.size());
    }
    case ModelForm::gather: {
      const std::string index = letters_of(scope, e.args[1]);
      if (!x.starts_with(e.parameters[0]))
        refuse("model_c8",
               label(fmt::format("{} does not begin with {}", quoted(x), e.parameters[0])));
      const std::string rest = x.substr(1);
      for (const char c : index)
        if (has(rest, c)) refuse("model_c8", label(fmt::format("table and index have {}", c)));
      return index + rest;
    }
    case ModelForm::append: {
      letters_of(scope, e.args[1]);
      const bool positions = e.args[1].kind == Expression::Kind::name && e.args[1].text == "pos";
      if (!has(x, 'B') || !has(x, 'L') || has(x, 'M') || !positions)
        refuse("model_c9", label(fmt::format("it takes a value with B and L and without M, and "
                                             "pos; not {} and {}",
                                             quoted(x), print(e.args[1]))));
      std::string cache = x;
      cache[x.find('L')] = 'M';
      return cache;
    }
    default:
      return x;
  }
}

}  // namespace shardproof
