// The steps of a text's lines, op by op.
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "engine/layouts/detail/text_section.h"
#include "weights/text/flat.h"
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
  // A contraction's result by itself: where it was completed.
  std::vector<std::string> values;
  for (const std::string& name : operands)
    if (model_.weight(name) == nullptr && !is_word(name)) values.push_back(name);
  if (values.size() == 1 && letters_of(values[0]) == line.letters) {
    const ValueRow* const row = value_row(values[0], &model_);
    if (row != nullptr && row->contraction) return current(values[0]).layout;
  }
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
  if (layouts_.in_attention(line.letters)) bring(line.name, layouts_.home(line.letters));
}

// ---- contractions and reductions ----

WrittenValue TextSectionWriter::complete(const TextLine& line, WrittenValue value,
                                         const Layout& home) {
  // Along the table's line of the result, or of the pointwise line that it is a part of: q, not its
  // product by itself. Pointwise lines, a store among them, come before the moves that follow.
  for (const TextSection section : kTextSections)
    for (const TextLine& of : model_.flat().section(section).lines) {
      const LayoutLine* const own = layouts_.line(of.name);
      std::vector<std::string> reads{of.name};
      if (of.expression.kind == Expression::Kind::call && is_pointwise(of.expression.op))
        collect_names(of.expression, reads);
      if (own == nullptr || of.letters != line.letters ||
          std::find(reads.begin(), reads.end(), line.name) == reads.end())
        continue;
      for (const LayoutStep& step : own->steps)
        if (value.layout.is_partial()) value = lead(line.name, value, step.layout);
    }
  return lead(line.name, value, home, true);
}

Layout TextSectionWriter::operand_layout(const TextLine& line, std::size_t operand,
                                         const Layout* matrix) {
  const Expression& e = line.expression;
  const ContractionTerm& term = e.terms[operand / 2];
  const std::string& letters = operand % 2 == 0 ? term.a : term.b;
  if (matrix == nullptr && layouts_.in_attention(term.a + term.b)) {
    std::string all = term.a;  // so that a letter of both has the same axes in both
    for (const char letter : term.b)
      if (all.find(letter) == std::string::npos) all += letter;
    try {
      return TextLayouts::restricted(layouts_.home(all), letters);
    } catch (const Error& error) {
      throw layouts_.refused("layouts_c6", {}, fmt::format("{}: {}", line.name, error.message()));
    }
  }
  if (matrix == nullptr) {  // as the first of the two that is no weight
    const std::string& a = e.args[operand / 2 * 2].text;
    const std::string& first = model_.weight(a) == nullptr ? a : e.args[operand / 2 * 2 + 1].text;
    return TextLayouts::restricted(here(first), letters);
  }
  // By its own rows, and as the matrix on the letters that both have.
  const Layout rows = TextLayouts::restricted(layouts_.residual(), "BL");
  const bool vocabulary = line.letters.find('V') != std::string::npos;
  std::vector<Layout::Dim> dims;
  for (const char letter : letters)
    dims.push_back({letter, matrix->find(letter) ? matrix->axes(letter)
                            : vocabulary         ? Axes()
                                                 : rows.axes_or_none(letter)});
  return Layout(std::move(dims), {});
}

Layout TextSectionWriter::product_layout(const TextLine& line, std::size_t term, const Layout& a,
                                         const Layout& b) const {
  const ContractionTerm& spec = line.expression.terms[term];
  Axes used, partial;
  std::vector<Layout::Dim> dims;
  const auto use = [&](const Axes& axes) {
    for (const Axis axis : axes) {
      if (used.has(axis))
        throw layouts_.refused(
            "layouts_c6", {},
            fmt::format("{}: {} is {} where {} is {}: axis {} is used twice", line.name,
                        line.expression.args[2 * term].text, a.to_string(),
                        line.expression.args[2 * term + 1].text, b.to_string(), to_char(axis)));
      used = used.with(axis);
    }
  };
  for (const char letter : spec.result) {
    dims.push_back({letter, (a.find(letter) ? a : b).axes(letter)});
    use(dims.back().axes);
  }
  for (const char letter : spec.a + spec.b) {
    if (spec.result.find(letter) != std::string::npos) continue;
    const Axes fresh = (a.find(letter) ? a : b).axes(letter).without(partial);
    use(fresh);
    partial = partial.with(fresh);
  }
  return Layout(std::move(dims), partial);
}

void TextSectionWriter::shard_contracted(const Layout& product, const ContractionTerm& term,
                                         Layout& a, Layout& b) const {
  Axes axes = product.partial();
  std::string over;
  for (const char letter : term.a)
    if (term.result.find(letter) == std::string::npos && b.find(letter)) {
      over += letter;
      axes = axes.without(a.axes(letter));
    }
  const auto at = std::find_if(over.begin(), over.end(), [&](char letter) {
    return a.axes(letter).empty() && setting_.extents.at(letter) % setting_.torus.size(axes) == 0;
  });
  if (axes.empty() || at == over.end()) return;
  for (Layout* const of : {&a, &b}) *of = of->with_axes(*of->find(*at), axes);
}

void TextSectionWriter::einsum(const TextLine& line) {
  const Expression& e = line.expression;
  if (std::any_of(e.args.begin(), e.args.end(),
                  [](const Expression& arg) { return is_integer(arg.text); }))
    return product_of_elements(line);
  std::vector<std::optional<WrittenValue>> written(e.args.size());
  std::vector<Layout> operands(e.args.size());
  std::optional<Layout> product;
  for (std::size_t t = 0; t < e.terms.size(); ++t) {
    const std::size_t first = 2 * t;
    for (const std::size_t i : {first, first + 1})
      if (is_matrix(e.args[i].text)) {
        written[i] = matrix(*model_.weight(e.args[i].text));
        operands[i] = written[i]->layout;
      }
    for (const std::size_t i : {first, first + 1})
      if (!written[i])
        operands[i] = operand_layout(line, i, written[i ^ 1] ? &operands[i ^ 1] : nullptr);
    if (product) shard_contracted(*product, e.terms[t], operands[first], operands[first + 1]);
    const Layout made = product_layout(line, t, operands[first], operands[first + 1]);
    if (product && !(*product == made))
      throw layouts_.refused("layouts_c7", {},
                             fmt::format("{}: one term gives {}, another {}", line.name,
                                         product->to_string(), made.to_string()));
    product = made;
  }
  const bool goes_home =
      layouts_.in_attention(line.letters) || line.letters.find_first_of("EFV") != std::string::npos;
  const Layout home = goes_home ? layouts_.home(line.letters) : product->with_partial({});
  // If the way home begins with a slice of rows, the operands are sliced instead.
  for (const Move& move : path(line.name, *product, home).moves) {
    const std::string dim(1, move.op.dim);
    if (move.op.kind != OpKind::slice || (dim != "B" && dim != "L")) break;
    product = move.to;
    for (Layout& operand : operands)
      if (const auto at = operand.find(dim[0]))
        operand = operand.with_axes(*at, product->axes(dim[0]));
  }
  std::string call = "einsum(", operands_text;
  std::vector<std::string> present;  // operands that exist where the result can
  for (std::size_t i = 0; i < e.args.size(); ++i) {
    const std::string& name = e.args[i].text;
    written[i] = written[i] ? lead(name, *written[i], operands[i]) : bring(name, operands[i]);
    if (i % 2 == 0)
      call += fmt::format("{}{},{}->{}", i > 0 ? " + " : "", e.terms[i / 2].a, e.terms[i / 2].b,
                          e.terms[i / 2].result);
    operands_text += fmt::format("{} {}", i % 2 == 0 ? ";" : ",", written[i]->name);
    std::string of;
    for (const std::string& indicator : indicators_of(name)) of += letters_of(indicator);
    if (e.terms.size() == 1 && std::all_of(of.begin(), of.end(), [&](char letter) {
          return line.letters.find(letter) != std::string::npos;
        }))
      present.push_back(name);
  }
  indicators_[line.name] = indicators_of(line, present);
  // Of an operand that exists in places only, all products elsewhere are 0.
  call += operands_text + where(indicators_of(line, {}), *product) + ")";
  keep(line, complete(line, w_.step(line.name, *product, call, line.name), home));
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
  const WrittenValue from = bring(e.args[0].text, here(e.args[0].text));
  Axes partial;
  for (const char letter : e.parameters[0]) partial = partial.with(from.layout.axes(letter));
  const Layout rest = TextLayouts::restricted(from.layout, line.letters);
  const WrittenValue made =
      w_.step(line.name, partial.empty() ? rest : rest.with_partial(partial.sorted()),
              fmt::format("sum({}, {})", from.name, e.parameters[0]), line.name);
  keep(line, lead(line.name, made, rest));
}

void TextSectionWriter::max(const TextLine& line) {
  const std::string &x = line.expression.args[0].text, &over = line.expression.parameters[0];
  const WrittenValue from = bring(x, here(x));
  Axes axes;
  for (const char letter : over) axes = axes.with(from.layout.axes(letter));
  const Layout rest = TextLayouts::restricted(from.layout, line.letters);
  WrittenValue most =
      w_.step(line.name, Layout(rest.dims(), axes, /*by_max=*/true),
              fmt::format("max({}{}, {})", from.name, where(indicators_of(x), from.layout), over),
              line.name);
  if (!axes.empty())
    most =
        w_.step(line.name + "a", rest,
                fmt::format("all_reduce({}, {} by max)", most.name, axes.to_string()), line.name);
  keep(line, most);
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
