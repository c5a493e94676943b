// The steps of a text's lines that rearrange: rows of tables, caches, pairs of channels, views.
#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <vector>

#include "engine/layouts/detail/text_section.h"

namespace shardproof {

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
  const Layout cache = layouts_.home(line.letters);
  const WrittenValue fresh = bring(x, TextLayouts::restricted(cache, letters));
  const WrittenValue pos = bring("pos", TextLayouts::restricted(fresh.layout, "BL"));
  const WrittenValue old = w_.input(line.name + "_old", cache, "previous " + line.name);
  const WrittenValue own =
      w_.step(line.name, cache,
              fmt::format("append({}, {}, {} zeros)", old.name, fresh.name, pos.name), line.name);
  caches_[line.name] = own;
  // A text with a dim N of its own runs without prefixes.
  if (!setting_.extents.contains('N') || model_.extent('N') > 0) return keep(line, own);
  // Lines read the slots of the prefix that a row goes on from as its first.
  const WrittenValue before =
      w_.input(line.name + "_prefix", layouts_.of_prefixes(cache), "prefix " + line.name);
  keep(line,
       w_.step(line.name + "_all", cache, fmt::format("with_prefix({}, {})", before.name, own.name),
               "joined " + line.name));
}

void TextSectionWriter::turn(const TextLine& line) {
  const Expression& e = line.expression;
  const std::string& x = e.args[0].text;
  const WrittenValue from = bring_whole(x, e.parameters[0]);
  carry_indicators(line, x);
  keep(line,
       w_.step(line.name, from.layout,
               fmt::format("turn({}{}, {}, {} {})", from.name, where(indicators_of(x), from.layout),
                           e.parameters[0], e.parameters[1],
                           static_cast<std::int64_t>(model_.sizes().number(e.parameters[2]))),
               line.name));
}

Axes TextSectionWriter::whole_blocks(std::vector<Layout::Dim>& parts) const {
  Axes joined;
  bool whole = true;  // each dim so far has one element a block
  for (Layout::Dim& part : parts) {
    if (!whole) part.axes = Axes();
    joined = joined.with(part.axes);
    whole = whole && setting_.torus.size(part.axes) == setting_.extents.at(part.letter);
  }
  return joined;
}

void TextSectionWriter::split(const TextLine& line) {
  const Expression& e = line.expression;
  const std::string &x = e.args[0].text, &from = e.parameters[0], &to = e.parameters[1];
  if (from.size() != 1 || to.size() == 1) throw refused(line, "it is a view of other dims");
  const Layout home = layouts_.home(line.letters);
  std::vector<Layout::Dim> parts;
  std::string extents;
  for (const char letter : to) parts.push_back({letter, home.axes(letter)});
  for (const char letter : to.substr(0, to.size() - 1))
    extents += fmt::format("{}{}", extents.empty() ? "" : " ", setting_.extents.at(letter));
  const Axes joined = whole_blocks(parts);
  Layout before = TextLayouts::restricted(home, letters_of(x));
  const WrittenValue value = bring(x, before.with_axes(*before.find(from[0]), joined));
  std::vector<Layout::Dim> dims = home.dims();
  const std::size_t at = line.letters.find(to[0]);
  std::copy(parts.begin(), parts.end(), dims.begin() + static_cast<std::ptrdiff_t>(at));
  carry_indicators(line, x);
  keep(line, lead(line.name,
                  w_.step(line.name, Layout(std::move(dims), {}),
                          fmt::format("split_dim({}, {}->{}, {})", value.name, from,
                                      Layout(parts, {}).to_string(), extents),
                          line.name),
                  home));
}

void TextSectionWriter::merge(const TextLine& line) {
  const Expression& e = line.expression;
  const std::string &x = e.args[0].text, &from = e.parameters[0];
  const char to = e.parameters[1][0];
  if (from.size() == 1 || e.parameters[1].size() != 1)
    throw refused(line, "it is a view of other dims");
  Layout before = layouts_.home(letters_of(x));
  std::vector<Layout::Dim> parts;
  for (const char letter : from) parts.push_back({letter, before.axes(letter)});
  const Axes joined = whole_blocks(parts);
  for (const Layout::Dim& part : parts)
    before = before.with_axes(*before.find(part.letter), part.axes);
  const WrittenValue value = bring(x, before);
  std::vector<Layout::Dim> dims;
  for (const char letter : line.letters)
    dims.push_back({letter, letter == to ? joined : before.axes(letter)});
  carry_indicators(line, x);
  keep(line, lead(line.name,
                  w_.step(line.name, Layout(std::move(dims), {}),
                          fmt::format("merge_dim({}, {}->{})", value.name, from, to), line.name),
                  layouts_.home(line.letters)));
}

}  // namespace shardproof
