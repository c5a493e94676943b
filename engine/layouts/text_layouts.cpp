#include "engine/layouts/detail/text_layouts.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <vector>

namespace shardproof {
namespace {

bool among(std::string_view letters, char letter) {
  return letters.find(letter) != std::string_view::npos;
}

/// Adds the letters that views of heads have.
void add_views(const Expression& e, std::string& heads) {
  if (e.kind != Expression::Kind::call) return;
  if (row_of(e.op).form == ModelForm::view)
    for (const int from : {0, 1})
      if (e.parameters[static_cast<std::size_t>(from)] == "H")
        for (const char letter : e.parameters[static_cast<std::size_t>(1 - from)])
          if (!among(heads, letter)) heads += letter;
  for (const Expression& arg : e.args) add_views(arg, heads);
}

}  // namespace

TextLayouts::TextLayouts(const LayoutTable& table, const TextModel& model, const Extents& extents,
                         const Torus& torus)
    : table_(table), model_(model), extents_(extents), torus_(torus), heads_("HK") {
  for (const TextSection section : kTextSections)
    for (const TextLine& one : model.flat().section(section).lines)
      add_views(one.expression, heads_);
  const auto required = [&](std::string_view value) -> const LayoutLine& {
    if (const LayoutLine* own = table_.find(value)) return *own;
    throw refused("layouts_c5", table_.line,
                  fmt::format("{} has no line '{} : LAYOUT'", table_.name, value));
  };
  residual_ = required("in").steps[0].layout;
  // A text without heads has nothing that is laid out by them.
  if (model.extent('H') == 0 && table_.find("attend") == nullptr)
    attend_ = Layout({{'B', residual_.axes('B')}, {'L', {}}, {'H', {}}, {'Q', {}}}, {});
  else
    attend_ = required("attend").steps[0].layout;
  if (!attend_.axes('L').with(attend_.axes('Q')).empty())
    throw refused("layouts_c12", required("attend").line,
                  fmt::format("attend is {}: the attention of a model's text is not sharded over L",
                              attend_.to_string()));
  require_roles();
}

Error TextLayouts::refused(std::string_view label, const Line& line, const std::string& why) const {
  return Error(label, fmt::format("{}{} (docs/layouts.md)", table_.where(line), why));
}

bool TextLayouts::declares(std::string_view name) const {
  if (model_.weight(name) != nullptr) return true;
  const ValueRow* const row = value_row(name, &model_);
  return row != nullptr;
}

/// Requires that the text has what the table gives layouts.
void TextLayouts::require_roles() const {
  const auto refuse = [&](const Line& at, const std::string& what) {
    throw refused("layouts_c11", at,
                  fmt::format("the model {} has no {}, to which {} gives layouts",
                              model_.text().name, what, table_.name));
  };
  for (const LayoutLine& one : table_.lines) {
    if (one.value == "prefix") continue;
    if (one.value == "weights") {
      for (const Layout::Dim& dim : one.steps[0].sharded)
        if (model_.extent(dim.letter) == 0) refuse(one.line, fmt::format("dim {}", dim.letter));
    } else if (one.value == "attend" || one.value == "hidden") {
      const char letter = one.value == "attend" ? 'H' : 'F';
      if (model_.extent(letter) == 0) refuse(one.line, fmt::format("dim {}", letter));
    } else if (!declares(one.value)) {
      refuse(one.line, fmt::format("value or weight {}", one.value));
    } else if (const ValueRow* const row = value_row(one.value, &model_);
               row != nullptr && one.steps[0].layout.letters() != row->dims) {
      refuse(one.line, fmt::format("{} : {}, but {} : {}", one.value, one.steps[0].layout.letters(),
                                   one.value, row->dims));
    }
  }
}

bool TextLayouts::in_attention(std::string_view letters) const {
  return std::any_of(letters.begin(), letters.end(),
                     [&](char letter) { return letter == 'M' || among(heads_, letter); });
}

Axes TextLayouts::shared(const Axes& axes, char letter) const {
  Axes head, best;
  for (const Axis axis : axes) {
    head = head.with(axis);
    if (extents_.at(letter) % torus_.size(head) == 0) best = head;
  }
  return best;
}

Layout TextLayouts::home(std::string_view letters) const {
  const bool attention = in_attention(letters), vocabulary = among(letters, 'V');
  const LayoutLine* const hidden = among(letters, 'F') ? table_.find("hidden") : nullptr;
  const Axes heads = attend_.axes('H');
  // What H is seen as beside K has the axes that K leaves, one letter after the other.
  Axes left;
  if (extents_.contains('K')) left = heads.without(shared(heads, 'K'));
  std::vector<Layout::Dim> dims;
  for (const char letter : letters) {
    Axes axes;
    if (attention) {
      if (letter == 'B') axes = attend_.axes('B');
      if (letter == 'H') axes = heads;
      if (letter == 'K') axes = shared(heads, 'K');
      if (among(heads_, letter) && letter != 'H' && letter != 'K') {
        axes = shared(left, letter);
        left = left.without(axes);
      }
    } else if (vocabulary) {
      if (letter == 'V') axes = Axes::parse("zyx");
    } else if (hidden != nullptr) {
      axes = hidden->steps[0].layout.axes_or_none(letter);
    } else if (letter == 'F') {
      const LayoutLine* const all = table_.find("weights");
      if (all != nullptr)
        for (const Layout::Dim& dim : all->steps.back().sharded)
          if (dim.letter == 'F') axes = dim.axes;
    } else if (letter == 'B' || letter == 'L' || letter == 'E') {
      axes = residual_.axes(letter);
    }
    dims.push_back({letter, axes});
  }
  return Layout(std::move(dims), {});
}

Layout TextLayouts::of_prefixes(const Layout& cache) const {
  const LayoutLine* const line = table_.find("prefix");
  const Axes written = line != nullptr ? line->steps[0].layout.axes('N') : Axes();
  if (!cache.axes('B').starts_with(written))
    throw refused("layouts_c8", line->line,
                  fmt::format("prefix is {} where the rows' cache is {}: N takes the first of B's "
                              "axes",
                              line->steps[0].layout.to_string(), cache.to_string()));
  std::vector<Layout::Dim> dims;
  for (const Layout::Dim& dim : cache.dims())
    if (dim.letter == 'B')
      dims.push_back({'N', shared(written, 'N')});
    else
      dims.push_back({dim.letter == 'M' ? 'T' : dim.letter, dim.axes});
  return Layout(std::move(dims), {});
}

LayoutLine TextLayouts::matrix(const TextWeight& weight) const {
  if (const LayoutLine* const own = table_.find(weight.name))
    if (own->steps[0].layout.letters() == weight.letters) return *own;
  const LayoutLine* const all = table_.find("weights");
  if (all == nullptr)
    throw refused(
        "layouts_c5", table_.line,
        fmt::format("{0} gives {1} no layout: write 'weights : ...'", table_.name, weight.name));
  LayoutLine result = *all;
  for (LayoutStep& step : result.steps) {
    std::map<char, Axes> axes;
    for (const Layout::Dim& dim : step.sharded) axes[dim.letter] = dim.axes;
    if (!axes.contains('K')) axes['K'] = axes['H'];
    std::vector<Layout::Dim> dims;
    for (const char letter : weight.letters)
      dims.push_back({letter, letter == 'K' ? shared(axes['K'], 'K') : axes[letter]});
    try {
      step.layout = Layout(std::move(dims), {});
    } catch (const Error& error) {
      throw refused("layouts_c6", result.line,
                    fmt::format("{}: {}; leave it out of one", weight.name, error.message()));
    }
  }
  return result;
}

const LayoutLine* TextLayouts::line(const std::string& value) const {
  if (value == "hidden" || value == "attend" || value == "weights") return nullptr;
  const LayoutLine* const own = table_.find(value);
  const ValueRow* const row = value_row(value, &model_);
  return own != nullptr && row != nullptr && own->steps[0].layout.letters() == row->dims ? own
                                                                                         : nullptr;
}

Layout TextLayouts::restricted(const Layout& layout, std::string_view letters) {
  std::vector<Layout::Dim> dims;
  for (const char letter : letters) dims.push_back({letter, layout.axes_or_none(letter)});
  return Layout(std::move(dims), {});
}

}  // namespace shardproof
