// The steps of a text's lines that rearrange: rows of tables, caches, pairs of channels, views.
#include <fmt/format.h>

#include <cstdint>

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
  keep(line,
       w_.step(line.name, cache,
               fmt::format("append({}, {}, {} zeros)", old.name, fresh.name, pos.name), line.name));
}

void TextSectionWriter::turn(const TextLine& line) {
  const Expression& e = line.expression;
  const std::string& x = e.args[0].text;
  const WrittenValue from = bring_whole(x, e.parameters[0]);
  carry_indicators(line, x);
  keep(line, w_.step(line.name, from.layout,
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
  const std::int64_t count = setting_.extents.at(to[0]);  // as chips hold it
  const bool whole = setting_.torus.size(first) == count;
  const Axes second = whole ? home.axes(to[1]) : Axes();
  Layout before = TextLayouts::restricted(home, letters_of(x));
  before = before.with_axes(*before.find(from), first.with(second));
  const WrittenValue value = bring(x, before);
  std::vector<Layout::Dim> dims;
  for (const char letter : line.letters)
    dims.push_back({letter, letter == to[1] ? second : home.axes(letter)});
  const Layout seen(std::move(dims), {});
  const Layout parts({{to[0], first}, {to[1], second}}, {});
  carry_indicators(line, x);
  keep(line, lead(line.name,
                  w_.step(line.name, seen,
                          fmt::format("split_dim({}, {}->{}, {})", value.name, from,
                                      parts.to_string(), count),
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
  if (setting_.torus.size(first) != setting_.extents.at(from[0]))
    before = before.with_axes(*before.find(from[1]), {});
  const WrittenValue value = bring(x, before);
  std::vector<Layout::Dim> dims;
  for (const char letter : line.letters)
    dims.push_back({letter, letter == to ? first.with(before.axes(from[1])) : before.axes(letter)});
  carry_indicators(line, x);
  keep(line, lead(line.name,
                  w_.step(line.name, Layout(std::move(dims), {}),
                          fmt::format("merge_dim({}, {}->{})", value.name, from, to), line.name),
                  home));
}

}  // namespace shardproof
