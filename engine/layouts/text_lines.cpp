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
  const std::string indicator = indicator_of(line, operands);
  const Expression own = in_program(e, layout);
  std::string natural;  // the order in which a map has its operands' letters
  for (const std::string& name : operands)
    if (!is_word(name))
      for (const char letter : letters_of(name))
        if (natural.find(letter) == std::string::npos) natural += letter;
  const std::string call =
      fmt::format("map({}{}{}{})", print(own), natural == line.letters ? "" : " as " + line.letters,
                  where(indicator, layout), constants(e, layout));
  if (!indicator.empty()) indicator_[line.name] = indicator;
  keep(line, w_.step(line.name, layout, call, line.name));
}

// ---- contractions and reductions ----

void TextSectionWriter::einsum(const TextLine& line) {
  const Expression& e = line.expression;
  const Layout home = layouts_.home(line.letters);
  const Layout rows = TextLayouts::restricted(layouts_.residual(), "BL");
  std::string call = "einsum(", operands_text;
  std::optional<Layout> product;
  const std::string& indicator = line.where;
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
      for (const std::string& name : names)
        if (const auto at = indicator_.find(name); at != indicator_.end()) {
          const std::string of = letters_of(at->second);
          if (std::all_of(of.begin(), of.end(), [&](char letter) {
                return line.letters.find(letter) != std::string::npos;
              }))
            operands.push_back(name);
        }
  }
  if (const std::string all = indicator_of(line, operands); !all.empty())
    indicator_[line.name] = all;
  if (!indicator.empty() && product->is_partial())
    throw refused(line,
                  fmt::format("it is {} and exists where {}", product->to_string(), indicator));
  call += operands_text + where(indicator, *product) + ")";
  keep(line, complete(line, w_.step(line.name, *product, call, line.name),
                      layouts_.in_attention(line.letters) || product->is_partial() ||
                              line.letters.find_first_of("EFV") != std::string::npos
                          ? home
                          : product->with_partial({})));
}

void TextSectionWriter::reduction(const TextLine& line) {
  const Expression& e = line.expression;
  const std::string& x = e.args[0].text;
  const std::string letters = letters_of(x);
  if (e.parameters.size() == 2) throw refused(line, "its sum is stored after each addend");
  const bool largest = e.op == ModelOp::max;
  Layout layout = layouts_.in_attention(letters) ? layouts_.home(letters) : current(x).layout;
  if (largest)
    for (const char letter : e.parameters[0]) layout = layout.with_axes(*layout.find(letter), {});
  const WrittenValue from = bring(x, layout);
  Axes partial;
  for (const char letter : e.parameters[0]) partial = partial.with(layout.axes(letter));
  const Layout rest = TextLayouts::restricted(layout, line.letters);
  const auto at = indicator_.find(x);
  const std::string call = fmt::format(
      "{}({}{}, {})", largest ? "max" : "sum", from.name,
      largest && at != indicator_.end() ? where(at->second, layout) : "", e.parameters[0]);
  const WrittenValue made = w_.step(
      line.name, partial.empty() ? rest : rest.with_partial(partial.sorted()), call, line.name);
  keep(line, lead(line.name, made, rest));
}

// ---- rows of tables, caches, pairs of channels, views ----

void TextSectionWriter::gather(const TextLine& line) {
  const Expression& e = line.expression;
  const std::string &table = e.args[0].text, &index = e.args[1].text;
  const TextWeight* const weight = model_.weight(table);
  if (weight == nullptr || letters_of(index) != "BL" || (index != "ids" && index != "pos"))
    throw refused(line, "it gathers by another index than ids and pos, or from a value");
  const Layout home = layouts_.home(line.letters);
  if (weight->letters == "VE" && index == "ids") {
    const WrittenValue from = matrix(*weight);
    const Layout partial = Layout::parse("BLE_x partialsum-yz");
    keep(line, lead(line.name,
                    w_.step(line.name, partial,
                            fmt::format("embed_lookup({}, {})", current("ids").name, from.name),
                            line.name),
                    home));
    return;
  }
  Layout rows = TextLayouts::restricted(home, weight->letters);
  const WrittenValue at = bring(index, TextLayouts::restricted(home, "BL"));
  const WrittenValue from = this->weight(*weight, rows);
  keep(line,
       w_.step(line.name, home, fmt::format("gather({}, {})", at.name, from.name), line.name));
}

void TextSectionWriter::append(const TextLine& line) {
  const Expression& e = line.expression;
  const std::string& x = e.args[0].text;
  const std::string letters = letters_of(x);
  const WrittenValue fresh = bring(x, layouts_.home(letters));
  const WrittenValue pos = bring("pos", TextLayouts::restricted(fresh.layout, "BL"));
  const Layout cache = layouts_.home(line.letters);
  const WrittenValue old = w_.input(line.name + "_old", cache, "previous " + line.name);
  keep(line,
       w_.step(line.name, cache,
               fmt::format("append({}, {}, {} zeros)", old.name, fresh.name, pos.name), line.name));
}

void TextSectionWriter::turn(const TextLine& line) {
  const Expression& e = line.expression;
  const std::string& x = e.args[0].text;
  const std::string letters = letters_of(x);
  Layout layout = layouts_.in_attention(letters) ? layouts_.home(letters) : current(x).layout;
  layout = layout.with_axes(*layout.find(e.parameters[0][0]), {});
  const WrittenValue from = bring(x, layout);
  carry_indicator(line, x);
  keep(line, w_.step(line.name, layout,
                     fmt::format("turn({}, {}, {} {})", from.name, e.parameters[0], e.parameters[1],
                                 static_cast<std::int64_t>(model_.sizes().number(e.parameters[2]))),
                     line.name));
}

void TextSectionWriter::split(const TextLine& line) {
  const Expression& e = line.expression;
  const std::string &x = e.args[0].text, &to = e.parameters[1];
  const char from = e.parameters[0][0];
  if (e.parameters[0].size() != 1 || to.size() != 2)
    throw refused(line, "it is a view of more dims");
  const Layout home = layouts_.home(line.letters);
  // A chip's block is one of the first dim's blocks, or all of the second: else the second is cut
  // after the view.
  Axes first = home.axes(to[0]);
  const bool whole = setting_.torus.size(first) == model_.extent(to[0]);
  const Axes second = whole ? home.axes(to[1]) : Axes();
  Layout before = TextLayouts::restricted(home, letters_of(x));
  before = before.with_axes(*before.find(from), first.with(second));
  const WrittenValue value = bring(x, before);
  std::vector<Layout::Dim> dims;
  for (const char letter : line.letters)
    dims.push_back({letter, letter == to[1] ? second : home.axes(letter)});
  const Layout seen(std::move(dims), {});
  const Layout parts({{to[0], first}, {to[1], second}}, {});
  carry_indicator(line, x);
  keep(line, lead(line.name,
                  w_.step(line.name, seen,
                          fmt::format("split_dim({}, {}->{}, {})", value.name, from,
                                      parts.to_string(), model_.extent(to[0])),
                          line.name),
                  home));
}

void TextSectionWriter::merge(const TextLine& line) {
  const Expression& e = line.expression;
  const std::string &x = e.args[0].text, &from = e.parameters[0];
  const char to = e.parameters[1][0];
  if (from.size() != 2 || e.parameters[1].size() != 1)
    throw refused(line, "it is a view of more dims");
  const Layout home = layouts_.home(line.letters);
  Layout before = layouts_.home(letters_of(x));
  const Axes first = before.axes(from[0]);
  if (setting_.torus.size(first) != model_.extent(from[0]))
    before = before.with_axes(*before.find(from[1]), {});
  const WrittenValue value = bring(x, before);
  std::vector<Layout::Dim> dims;
  for (const char letter : line.letters)
    dims.push_back({letter, letter == to ? first.with(before.axes(from[1])) : before.axes(letter)});
  carry_indicator(line, x);
  keep(line, lead(line.name,
                  w_.step(line.name, Layout(std::move(dims), {}),
                          fmt::format("merge_dim({}, {}->{})", value.name, from, to), line.name),
                  home));
}

}  // namespace shardproof
