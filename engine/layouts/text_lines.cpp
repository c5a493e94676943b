// The steps of a text's lines, op by op.
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "engine/layouts/detail/text_section.h"
#include "weights/text/formula.h"

namespace shardproof {
namespace {

void collect_names(const Expression& e, std::vector<std::string>& names) {
  if (e.kind == Expression::Kind::name &&
      std::find(names.begin(), names.end(), e.text) == names.end())
    names.push_back(e.text);
  for (const Expression& arg : e.args) collect_names(arg, names);
}

/// Adds the words of an expression's parameters, and its names.
void collect_words(const Expression& e, std::vector<std::string>& words) {
  collect_names(e, words);
  std::vector<const Expression*> all{&e};
  for (std::size_t i = 0; i < all.size(); ++i) {
    const Expression& one = *all[i];
    for (const std::string& word : one.parameters)
      if (std::find(words.begin(), words.end(), word) == words.end()) words.push_back(word);
    for (const Expression& arg : one.args) all.push_back(&arg);
  }
}

/// Adds the names whose exponential an expression has.
void collect_exponents(const Expression& e, std::set<std::string>& names) {
  if (e.kind != Expression::Kind::call) return;
  if ((e.op == ModelOp::exp || e.op == ModelOp::exp2) && e.args[0].kind == Expression::Kind::name)
    names.insert(e.args[0].text);
  for (const Expression& arg : e.args) collect_exponents(arg, names);
}

}  // namespace

// ---- pointwise lines ----

Layout TextSectionWriter::layout_of_map(const TextLine& line,
                                        const std::vector<std::string>& operands) {
  const Layout home = layouts_.home(line.letters);
  if (layouts_.in_attention(line.letters) || line.letters.find('V') != std::string::npos)
    return home;
  // Where its operands are, if all that have its channels agree.
  const char channel = line.letters.find('F') != std::string::npos ? 'F' : 'E';
  std::optional<Layout> common;
  for (const std::string& name : operands) {
    if (model_.weight(name) != nullptr || is_word(name)) continue;
    const std::string letters = letters_of(name);
    const bool wide = line.letters.find(channel) == std::string::npos
                          ? letters == line.letters
                          : letters.find(channel) != std::string::npos;
    if (!wide) continue;
    const Layout here = TextLayouts::restricted(current(name).layout, line.letters);
    if (common && !(*common == here)) return home;
    common = here;
  }
  return common.value_or(home);
}

Expression TextSectionWriter::in_program(const Expression& e, const Layout& layout) {
  Expression own = e;
  if (e.kind == Expression::Kind::name && !is_word(e.text))
    own.text = bring(e.text, TextLayouts::restricted(layout, letters_of(e.text))).name;
  for (Expression& arg : own.args) arg = in_program(arg, layout);
  return own;
}

/// "; scale = 0.35 [Q=8], less = sub(score, max)": the numbers that an expression names, and the
/// differences whose exponential it has.
std::string TextSectionWriter::constants(const Expression& e, const Layout& layout) {
  std::vector<std::string> words, parts;
  collect_words(e, words);
  std::set<std::string> exponents;
  collect_exponents(e, exponents);
  std::vector<std::string> formulas;
  for (const std::string& name : exponents)
    if (const auto at = differences_.find(name); at != differences_.end()) {
      collect_words(*at->second, words);
      const Expression of = in_program(*at->second, layout);
      formulas.push_back(
          fmt::format("{} = {}", in_program(Expression{.text = name}, layout).text, print(of)));
    }
  for (const std::string& word : words) {
    if (!is_word(word) || number_in(word)) continue;
    const double value = model_.sizes().number(word);
    if (word.size() == 1 && model_.extent(word[0]) > 0) {
      parts.push_back(fmt::format("{} = {} [extent]", word, value));
      continue;
    }
    std::string stream;
    if (const TextNumber* const number = model_.flat().number(word); number && number->formula)
      for (const std::string& read : number->formula->names())
        stream +=
            fmt::format("{}{}={}", stream.empty() ? "" : " ", read, model_.sizes().number(read));
    parts.push_back(
        fmt::format("{} = {}{}", word, value, stream.empty() ? "" : fmt::format(" [{}]", stream)));
  }
  parts.insert(parts.end(), formulas.begin(), formulas.end());
  std::string text;
  for (const std::string& part : parts) text += (text.empty() ? "; " : ", ") + part;
  return text;
}

void TextSectionWriter::map(const TextLine& line) {
  const Expression& e = line.expression;
  if (e.kind == Expression::Kind::call && e.op == ModelOp::sub) differences_[line.name] = &e;
  std::vector<std::string> operands;
  collect_names(e, operands);
  const Layout layout = layout_of_map(line, operands);
  const std::vector<std::string> indicators = indicators_of(line, operands);
  const Expression own = in_program(e, layout);
  std::string natural;  // the order in which a map has its operands' letters
  for (const std::string& name : operands)
    if (!is_word(name))
      for (const char letter : letters_of(name))
        if (natural.find(letter) == std::string::npos) natural += letter;
  const std::string call =
      fmt::format("map({}{}{}{})", print(own), natural == line.letters ? "" : " as " + line.letters,
                  where(indicators, layout), constants(e, layout));
  indicators_[line.name] = indicators;
  keep(line, w_.step(line.name, layout, call, line.name));
}

// ---- contractions and reductions ----

void TextSectionWriter::einsum(const TextLine& line) {
  const Expression& e = line.expression;
  if (std::any_of(e.args.begin(), e.args.end(),
                  [](const Expression& arg) { return is_integer(arg.text); }))
    return product_of_elements(line);
  const Layout home = layouts_.home(line.letters);
  const Layout rows = TextLayouts::restricted(layouts_.residual(), "BL");
  std::string call = "einsum(", operands_text;
  std::optional<Layout> product;
  std::vector<std::string> operands;  // that exist where the result can
  for (std::size_t t = 0; t < e.terms.size(); ++t) {
    const ContractionTerm& term = e.terms[t];
    const std::string names[2] = {e.args[2 * t].text, e.args[2 * t + 1].text};
    const std::string letters[2] = {term.a, term.b};
    std::optional<WrittenValue> written[2];
    for (const int i : {0, 1})
      if (is_matrix(names[i])) written[i] = matrix(*model_.weight(names[i]));
    for (const int i : {0, 1}) {
      if (written[i]) continue;
      Layout layout = layouts_.home(letters[i]);
      if (written[1 - i]) {
        // By its own rows, and as the matrix on the letters that both have.
        const bool vocabulary = line.letters.find('V') != std::string::npos;
        std::vector<Layout::Dim> dims;
        for (const char letter : letters[i]) {
          const bool of_matrix = written[1 - i]->layout.find(letter).has_value();
          dims.push_back({letter, of_matrix    ? written[1 - i]->layout.axes(letter)
                                  : vocabulary ? Axes()
                                               : rows.axes_or_none(letter)});
        }
        layout = Layout(std::move(dims), {});
      } else if (!layouts_.in_attention(letters[0] + letters[1])) {
        layout = TextLayouts::restricted(current(names[0]).layout, letters[i]);
      }
      written[i] = bring(names[i], layout);
    }
    call += fmt::format("{}{},{}->{}", t > 0 ? " + " : "", term.a, term.b, term.result);
    operands_text += fmt::format("; {}, {}", written[0]->name, written[1]->name);
    Axes used, partial;
    std::vector<Layout::Dim> dims;
    const auto use = [&](const Axes& axes) {
      for (const Axis axis : axes) {
        if (used.has(axis))
          throw layouts_.refused(
              "layouts_c6", {},
              fmt::format("{}: {} is {} where {} is {}: axis {} is used twice", line.name, names[0],
                          written[0]->layout.to_string(), names[1], written[1]->layout.to_string(),
                          to_char(axis)));
        used = used.with(axis);
      }
    };
    for (const char letter : term.result) {
      const Layout& of = written[0]->layout.find(letter) ? written[0]->layout : written[1]->layout;
      dims.push_back({letter, of.axes(letter)});
      use(dims.back().axes);
    }
    for (const char letter : term.a + term.b) {
      if (term.result.find(letter) != std::string::npos) continue;
      const Axes axes =
          written[term.a.find(letter) != std::string::npos ? 0 : 1]->layout.axes(letter);
      const Axes fresh = axes.without(partial);
      use(fresh);
      partial = partial.with(fresh);
    }
    const Layout made(std::move(dims), partial);
    if (product && !(*product == made))
      throw layouts_.refused("layouts_c7", {},
                             fmt::format("{}: one term gives {}, another {}", line.name,
                                         product->to_string(), made.to_string()));
    product = made;
    if (e.terms.size() == 1)
      for (const std::string& name : names) {
        std::string of;
        for (const std::string& indicator : indicators_of(name)) of += letters_of(indicator);
        if (std::all_of(of.begin(), of.end(), [&](char letter) {
              return line.letters.find(letter) != std::string::npos;
            }))
          operands.push_back(name);
      }
  }
  indicators_[line.name] = indicators_of(line, operands);
  // Of an operand that exists in places only, all products elsewhere are 0.
  call += operands_text + where(indicators_of(line, {}), *product) + ")";
  keep(line, complete(line, w_.step(line.name, *product, call, line.name),
                      layouts_.in_attention(line.letters) || product->is_partial() ||
                              line.letters.find_first_of("EFV") != std::string::npos
                          ? home
                          : product->with_partial({})));
}

void TextSectionWriter::product_of_elements(const TextLine& line) {
  const Expression& e = line.expression;
  const ContractionTerm& term = e.terms[0];
  const std::string& kept = term.result;
  if (e.terms.size() > 1 || (term.a + term.b).find_first_not_of(kept) != std::string::npos)
    throw refused(line, "it contracts int32 numbers");
  // Exact sums have no -0.
  TextLine product = line;
  product.expression = {
      .kind = Expression::Kind::call,
      .op = ModelOp::add,
      .args = {{.kind = Expression::Kind::call, .op = ModelOp::mul, .args = {e.args[0], e.args[1]}},
               {.kind = Expression::Kind::number, .text = "0"}}};
  map(product);
}

void TextSectionWriter::sum(const TextLine& line) {
  const Expression& e = line.expression;
  const std::string& x = e.args[0].text;
  const std::string letters = letters_of(x);
  const Layout layout = layouts_.in_attention(letters) ? layouts_.home(letters) : current(x).layout;
  const WrittenValue from = bring(x, layout);
  Axes partial;
  for (const char letter : e.parameters[0]) partial = partial.with(layout.axes(letter));
  const Layout rest = TextLayouts::restricted(layout, line.letters);
  const WrittenValue made =
      w_.step(line.name, partial.empty() ? rest : rest.with_partial(partial.sorted()),
              fmt::format("sum({}, {})", from.name, e.parameters[0]), line.name);
  keep(line, lead(line.name, made, rest));
}

void TextSectionWriter::local_reduction(const TextLine& line) {
  const Expression& e = line.expression;
  const std::string& x = e.args[0].text;
  const WrittenValue from = bring_whole(x, e.parameters[0]);
  const std::string op = e.op == ModelOp::sum ? "stored_sum" : std::string(row_of(e.op).name);
  const std::string call = fmt::format("{}({}{}, {})", op, from.name,
                                       where(indicators_of(x), from.layout), e.parameters[0]);
  keep(line,
       w_.step(line.name, TextLayouts::restricted(from.layout, line.letters), call, line.name));
}

void TextSectionWriter::top(const TextLine& line) {
  const Expression& e = line.expression;
  const std::string& x = e.args[0].text;
  const WrittenValue from = bring_whole(x, e.parameters[0]);
  const std::string call = fmt::format(
      "top({}{}, {}, {})", from.name, where(indicators_of(x), from.layout), e.parameters[0],
      static_cast<std::int64_t>(model_.sizes().number(e.parameters[1])));
  keep(line, w_.step(line.name, from.layout, call, line.name));
}

}  // namespace shardproof
