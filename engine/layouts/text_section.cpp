// Values of a text's program: inputs, copies in other layouts, what a line's kind is.
#include "engine/layouts/detail/text_section.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "weights/text/flat.h"

namespace shardproof {

TextSectionWriter::TextSectionWriter(const TextSetting& setting, const std::string& program,
                                     EmbeddingValues of_embedding)
    : setting_(setting),
      model_(setting.model),
      layouts_(setting.layouts),
      // The stores of a text are steps of its own.
      w_(program, NumberFormat::f32, setting.extents, setting.torus),
      of_embedding_(std::move(of_embedding)) {
  w_.set_rows(setting.config.rows);
  indicators_ = of_embedding_.indicators;
}

void TextSectionWriter::stream(const std::string& role) {
  copies_["in"] = {w_.input("x", layouts_.residual(), role)};
  letters_["in"] = "BLE";
  if (role != "in") {
    // As the head of a model of keys, from the layout of the vocabulary's table.
    bring("in", Layout::parse("BLE_x"));
    return;
  }
  if (const LayoutLine* const own = layouts_.line("in"))
    for (const LayoutStep& step : own->steps) bring("in", step.layout);
}

void TextSectionWriter::write(TextSection section, std::int64_t layer) {
  const auto& lines = model_.flat().section(section).lines;
  for (const TextLine& one : lines) {
    if (section == TextSection::layer && !model_.sizes().has(one.guard, layer)) continue;
    line(one);
  }
}

Error TextSectionWriter::refused(const TextLine& line, const std::string& why) const {
  return Error("layouts_c12", fmt::format("{}{}: {}, for which programs have no step",
                                          model_.text().where(line.line), line.name, why));
}

void TextSectionWriter::line(const TextLine& line) {
  const Expression& e = line.expression;
  letters_[line.name] = line.letters;
  if (e.kind != Expression::Kind::call || is_pointwise(e.op)) return map(line);
  if (!line.where.empty() && e.op != ModelOp::einsum)
    throw refused(line, fmt::format("{} exists where {}", row_of(e.op).name, line.where));
  if (e.op != ModelOp::einsum && e.op != ModelOp::gather && is_integer(e.args[0].text))
    throw refused(line, fmt::format("it takes int32 {}", e.args[0].text));
  switch (e.op) {
    case ModelOp::einsum:
      return einsum(line);
    case ModelOp::sum:
      return e.parameters.size() == 2 ? local_reduction(line) : sum(line);
    case ModelOp::max:
      return max(line);
    case ModelOp::mean:
      return local_reduction(line);
    case ModelOp::top:
      return top(line);
    case ModelOp::gather:
      return gather(line);
    case ModelOp::append:
      return append(line);
    case ModelOp::turn:
      return turn(line);
    case ModelOp::split_dim:
      return split(line);
    case ModelOp::merge_dim:
      return merge(line);
    default:
      throw refused(line, fmt::format("{} is an op", row_of(e.op).name));
  }
}

std::string TextSectionWriter::letters_of(const std::string& name) const {
  if (const auto at = letters_.find(name); at != letters_.end()) return at->second;
  if (const TextWeight* const weight = model_.weight(name)) return weight->letters;
  const ValueRow* const row = value_row(name, &model_);
  return row == nullptr ? "" : std::string(row->dims);
}

Path TextSectionWriter::path(const std::string& name, const Layout& from, const Layout& to) const {
  try {
    return w_.path(from, to);
  } catch (const Error& error) {
    throw layouts_.refused("layouts_c4", {}, fmt::format("{}: {}", name, error.message()));
  }
}

WrittenValue TextSectionWriter::lead(const std::string& name, WrittenValue value, const Layout& to,
                                     bool until_complete) {
  for (const Move& move : path(name, value.layout, to).moves) {
    if (until_complete && !value.layout.is_partial()) break;
    value = w_.move(value, move);
  }
  return value;
}

WrittenValue TextSectionWriter::current(const std::string& name) {
  const auto at = copies_.find(name);
  if (at != copies_.end()) return at->second.back();
  if (const auto given = of_embedding_.layouts.find(name); given != of_embedding_.layouts.end()) {
    copies_[name] = {w_.input(name, given->second, name)};
  } else {  // ids, pos, slot
    copies_[name] = {w_.input(name, Layout::parse(letters_of(name)), "input " + name)};
  }
  return copies_.at(name).back();
}

WrittenValue TextSectionWriter::bring(const std::string& name, const Layout& to) {
  if (const TextWeight* const weight = model_.weight(name)) return this->weight(*weight, to);
  current(name);
  std::optional<Path> best;
  WrittenValue from;
  std::string why;
  for (const WrittenValue& copy : copies_.at(name)) {
    if (copy.layout == to) return copy;
    try {
      Path path = w_.path(copy.layout, to);
      if (best &&
          std::pair(path.price, path.moves.size()) >= std::pair(best->price, best->moves.size()))
        continue;
      best = std::move(path), from = copy;
    } catch (const Error& error) {
      why = error.message();
    }
  }
  if (!best) throw layouts_.refused("layouts_c4", {}, fmt::format("{}: {}", name, why));
  for (const Move& move : best->moves) {
    from = w_.move(from, move);
    copies_[name].push_back(from);
  }
  return from;
}

WrittenValue TextSectionWriter::weight(const TextWeight& weight, const Layout& layout) {
  // One input for each layout in which it is read: it is small, so it lies there.
  for (const WrittenValue& copy : copies_[weight.name])
    if (copy.layout == layout) return copy;
  const WrittenValue input = w_.input(weight.name, layout, "weight " + weight.name);
  copies_[weight.name].push_back(input);
  return input;
}

bool TextSectionWriter::is_matrix(const std::string& name) const {
  const WeightRow* const row = weight_row(name, &model_);
  return row != nullptr && row->kind == WeightKind::matrix;
}

WrittenValue TextSectionWriter::matrix(const TextWeight& weight) {
  if (const auto at = copies_.find(weight.name); at != copies_.end()) return at->second.back();
  WrittenValue now;
  const WeightRow* const row = weight_row(weight.name, &model_);
  if (!row->per_layer) {  // of the vocabulary, V_zyE_x as the embedding's table
    std::vector<Layout::Dim> dims;
    for (const char letter : weight.letters)
      dims.push_back({letter, Axes::parse(letter == 'V' ? "zy" : letter == 'E' ? "x" : "")});
    now = w_.input(weight.name, Layout(std::move(dims), {}), "weight " + weight.name,
                   weight.name + "_");
  } else {
    const LayoutLine line = layouts_.matrix(weight);
    now = w_.input(weight.name, line.steps[0].layout, "weight " + weight.name, weight.name + "_");
    for (const LayoutStep& step : line.steps) now = lead(weight.name, now, step.layout);
  }
  copies_[weight.name] = {now};
  return now;
}

void TextSectionWriter::keep(const TextLine& line, const WrittenValue& value) {
  copies_[line.name] = {value};
  if (const LayoutLine* const own = layouts_.line(line.name))
    for (const LayoutStep& step : own->steps)
      if (!step.layout.is_partial()) bring(line.name, step.layout);
}

Layout TextSectionWriter::here(const std::string& name) {
  const std::string letters = letters_of(name);
  return layouts_.in_attention(letters) || model_.weight(name) != nullptr ? layouts_.home(letters)
                                                                          : current(name).layout;
}

WrittenValue TextSectionWriter::bring_whole(const std::string& name, std::string_view letters) {
  Layout layout = here(name);
  for (const char letter : letters) layout = layout.with_axes(*layout.find(letter), {});
  return bring(name, layout);
}

std::vector<std::string> TextSectionWriter::indicators_of(const std::string& name) const {
  const auto at = indicators_.find(name);
  return at == indicators_.end() ? std::vector<std::string>() : at->second;
}

std::vector<std::string> TextSectionWriter::indicators_of(
    const TextLine& line, const std::vector<std::string>& operands) const {
  std::vector<std::string> all;
  const auto add = [&](const std::string& indicator) {
    if (std::find(all.begin(), all.end(), indicator) == all.end()) all.push_back(indicator);
  };
  if (!line.where.empty()) add(line.where);
  for (const std::string& operand : operands)
    for (const std::string& indicator : indicators_of(operand)) add(indicator);
  return all;
}

void TextSectionWriter::carry_indicators(const TextLine& line, const std::string& operand) {
  for (const std::string& indicator : indicators_of(operand))
    for (const char letter : letters_of(indicator))
      if (line.letters.find(letter) == std::string::npos)
        throw refused(line,
                      fmt::format("its operand exists where {}, which has {}", indicator, letter));
  indicators_[line.name] = indicators_of(operand);
}

std::string TextSectionWriter::where(const std::vector<std::string>& indicators,
                                     const Layout& layout) {
  std::string text;
  for (const std::string& indicator : indicators)
    text += (text.empty() ? " where " : " and ") +
            bring(indicator, TextLayouts::restricted(layout, letters_of(indicator))).name;
  return text;
}

std::string TextSectionWriter::last_logits() {
  const Layout whole = layouts_.home("BLV");
  const WrittenValue logits = bring("logits", whole);
  return w_
      .step("last_logits", TextLayouts::restricted(whole, "BV"),
            fmt::format("last({})", logits.name), "last logits")
      .name;
}

}  // namespace shardproof
