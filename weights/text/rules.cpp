#include "weights/text/rules.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "weights/text/detail/letters.h"
#include "weights/text/loops.h"

namespace shardproof {
namespace {

bool same_letters(std::string_view a, std::string_view b) {
  return a.size() == b.size() && all_among(a, b);
}

class Checker {
 public:
  explicit Checker(const ModelText& text) : text_(text), scope_{text} {}

  void check() {
    declarations();
    scope_.known = {{"ids", {"BL", {std::nullopt}}},
                    {"pos", {"BL", {std::nullopt}}},
                    {"slot", {"M", {std::nullopt}}}};
    for (const TextSection section : kTextSections) {
      if (section == TextSection::layer) scope_.known["in"] = {"BLE", {std::nullopt}};
      check(section);
    }
  }

 private:
  template <class F>
  void at(int line, std::string_view name, const F& f) const {
    try {
      f();
    } catch (const Error& error) {
      throw Error(error.label(), fmt::format("{}{}: {}", text_.where(line), name, error.message()));
    }
  }

  void declarations() const {
    if (text_.name.empty())
      refuse("model_c4", text_.where(1) + "a text begins with the line `model NAME`");
    std::set<std::string, std::less<>> names{"ids", "pos", "slot", "in"};
    for (const char c : kGivenLetters) names.insert(std::string(1, c));
    const auto define = [&](int line, const std::string& name) {
      if (!names.insert(name).second)
        refuse("model_c2", fmt::format("{}{} is defined twice", text_.where(line), name));
    };
    for (const TextDim& dim : text_.dims) define(dim.line, std::string(1, dim.letter));
    for (const TextNumber& number : text_.numbers) define(number.line, number.name);
    for (const TextFlag& flag : text_.flags) define(flag.line, flag.name);
    for (const TextDim& dim : text_.dims)
      if (dim.formula) require_numbers(dim.line, std::string(1, dim.letter), *dim.formula);
    for (const TextNumber& number : text_.numbers)
      if (number.formula) require_numbers(number.line, number.name, *number.formula);
    for (const auto& [key, size] : text_.small)
      if (key != "layers" && !text_.is_number(key) && text_.flag(key) == nullptr)
        refuse("model_c1", fmt::format("{}small: {} is not an extent, a number or a flag of the "
                                       "text, nor layers",
                                       text_.where(size.line), key));
  }

  void require_numbers(int line, const std::string& name, const Formula& formula) const {
    for (const std::string& read : formula.names())
      if (!text_.is_number(read))
        refuse("model_c1", fmt::format("{}{}: {} is not an extent or number of the text",
                                       text_.where(line), name, read));
  }

  void require_flag(const std::optional<Guard>& guard) const {
    if (guard && text_.flag(guard->flag) == nullptr)
      refuse("model_c1",
             fmt::format("{} is not a flag; declare it: flag {}", guard->flag, guard->flag));
  }

  /// Makes a name known, unless it has a definition that may exist beside this one.
  void define(const std::string& name, const std::string& letters,
              const std::optional<Guard>& guard, bool indicator) {
    if (text_.is_number(name) || text_.flag(name) != nullptr)
      refuse("model_c2", "it is the name of a number, a letter or a flag, too");
    const auto [at, fresh] = scope_.known.try_emplace(name, KnownName{letters, {}, indicator});
    KnownName& known = at->second;
    if (!fresh) {
      const bool beside = known.guards.size() == 1 && known.guards[0] && guard &&
                          known.guards[0]->flag == guard->flag &&
                          known.guards[0]->value != guard->value;
      if (!beside)
        refuse("model_c2",
               "it is defined twice; two definitions stand under `if FLAG` and `unless "
               "FLAG`");
      if (known.letters != letters)
        refuse("model_c2", fmt::format("its other definition has the letters {}, this one {}",
                                       known.letters, letters));
      known.indicator = known.indicator && indicator;
    }
    known.guards.push_back(guard);
  }

  void check(TextSection section) {
    const auto& own = text_.section(section);
    for (const TextWeight& weight : own.weights)
      at(weight.line, weight.name, [&] {
        scope_.require_letters(weight.letters);
        for (const char c : kGivenLetters)
          if (has(weight.letters, c))
            refuse("model_c3", fmt::format("{} is a letter of passes, which no weight has", c));
        for (std::size_t i = 1; i < weight.parameters.size(); ++i)
          if (!text_.is_number(weight.parameters[i]))
            refuse("model_c1", weight.parameters[i] + " is not a number of the text");
        if (weight.guard && section != TextSection::layer)
          refuse("model_c1", "only what is in a layer has flags");
        require_flag(weight.guard);
        define(weight.name, weight.letters, weight.guard, false);
      });
    scope_.section.clear();
    for (const TextLine& line : own.lines) scope_.section.try_emplace(line.name, line.letters);
    std::vector<bool> in_loop(own.lines.size(), false);
    for (const LineGroup& group : order_of_lines(text_, section))
      for (const std::size_t line : group.lines) in_loop[line] = group.loop;
    for (std::size_t i = 0; i < own.lines.size(); ++i) {
      const TextLine& line = own.lines[i];
      at(line.line, line.name, [&] { check(section, line, in_loop[i]); });
    }
    require_result(section);
    // Values of a layer are not read outside of it.
    if (section == TextSection::layer)
      for (const auto& names : {names_of(own.weights), names_of(own.lines)})
        for (const std::string& name : names) scope_.known.erase(name);
  }

  template <class Rows>
  static std::vector<std::string> names_of(const Rows& rows) {
    std::vector<std::string> names;
    for (const auto& row : rows) names.push_back(row.name);
    return names;
  }

  void check(TextSection section, const TextLine& line, bool in_loop) {
    scope_.require_letters(line.letters);
    if (line.guard && section != TextSection::layer)
      refuse("model_c1", "only what is in a layer has flags");
    require_flag(line.guard);
    scope_.guard = line.guard;
    const std::string letters = letters_of(scope_, line.expression);
    if (!same_letters(letters, line.letters))
      refuse("model_c3", fmt::format("declared {}, but the expression has {}", line.letters,
                                     letters.empty() ? "none" : letters));
    if (!line.where.empty()) {
      const KnownName& where = scope_.named(line.where);
      if (!where.indicator)
        refuse("model_c10", fmt::format("{} is not an indicator: within, top, or a product or view "
                                        "of them",
                                        line.where));
      if (!all_among(where.letters, line.letters))
        refuse("model_c10", fmt::format("{} : {} has letters that {} lacks", line.where,
                                        where.letters, line.letters));
    }
    if (in_loop) require_no_length(line.expression);
    define(line.name, line.letters, line.guard, is_indicator(line.expression, indicators_));
    if (scope_.known[line.name].indicator) indicators_.insert(line.name);
  }

  void require_result(TextSection section) const {
    const std::string name(result_of(section));
    const std::string letters = section == TextSection::head ? "BLV" : "BLE";
    const auto at = scope_.known.find(name);
    const std::string where = fmt::format(
        "{}the section {}", text_.file.empty() ? "" : text_.file + ": ", to_string(section));
    if (at == scope_.known.end() || !at->second.exists_for(std::nullopt))
      refuse("model_c4", fmt::format("{} defines no {} : {}{}", where, name, letters,
                                     at == scope_.known.end() ? "" : " for layers of every flag"));
    if (at->second.letters != letters)
      refuse("model_c4",
             fmt::format("{} defines {} : {}, not {}", where, name, at->second.letters, letters));
  }

  /// A line of a loop runs one position after another.
  void require_no_length(const Expression& e) const {
    if (e.kind != Expression::Kind::call) return;
    const ModelForm form = row_of(e.op).form;
    bool bad = form == ModelForm::append;
    if (form == ModelForm::sum || form == ModelForm::reduction || form == ModelForm::top)
      bad = has(e.parameters[0], 'L');
    for (const ContractionTerm& term : e.terms)
      bad = bad || (has(term.a + term.b, 'L') && !has(term.result, 'L'));
    if (bad)
      refuse("model_c13", fmt::format("it needs itself one position earlier, so {} may not append, "
                                      "reduce, contract or split L",
                                      row_of(e.op).name));
    for (const Expression& arg : e.args) require_no_length(arg);
  }

  const ModelText& text_;
  NameScope scope_;
  std::set<std::string, std::less<>> indicators_;
};

void add_once(std::vector<std::string>& names, const std::string& name) {
  if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
}

void collect(const ModelText& text, const Expression& e, Reads& reads) {
  if (e.kind == Expression::Kind::name && !text.is_number(e.text)) add_once(reads.now, e.text);
  if (e.kind != Expression::Kind::call) return;
  std::size_t first = 0;
  if (e.op == ModelOp::before) {
    add_once(reads.before, e.args[0].text);
    first = 1;
  }
  for (std::size_t i = first; i < e.args.size(); ++i) collect(text, e.args[i], reads);
}

}  // namespace

void check_model_text(const ModelText& text) { Checker(text).check(); }

Reads reads_of(const ModelText& text, const TextLine& line) {
  Reads reads;
  collect(text, line.expression, reads);
  if (!line.where.empty()) add_once(reads.now, line.where);
  return reads;
}

bool is_indicator(const Expression& e, const std::set<std::string, std::less<>>& indicators) {
  if (e.kind == Expression::Kind::name) return indicators.contains(e.text);
  if (e.kind == Expression::Kind::number) return false;
  switch (row_of(e.op).form) {
    case ModelForm::top:
      return true;
    case ModelForm::range:
      return e.op == ModelOp::within;
    case ModelForm::view:
      return is_indicator(e.args[0], indicators);
    case ModelForm::binary:
      return (e.op == ModelOp::mul || e.op == ModelOp::larger) &&
             is_indicator(e.args[0], indicators) && is_indicator(e.args[1], indicators);
    default:
      return false;
  }
}

namespace {

bool has_any(const Expression& e, std::initializer_list<ModelOp> ops) {
  if (e.kind != Expression::Kind::call) return false;
  return std::find(ops.begin(), ops.end(), e.op) != ops.end() ||
         std::any_of(e.args.begin(), e.args.end(),
                     [&](const Expression& arg) { return has_any(arg, ops); });
}

}  // namespace

bool has_any(const ModelText& text, std::initializer_list<ModelOp> ops) {
  for (const TextSection section : kTextSections)
    for (const TextLine& line : text.section(section).lines)
      if (has_any(line.expression, ops)) return true;
  return false;
}

}  // namespace shardproof
