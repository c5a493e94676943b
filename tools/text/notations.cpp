#include "tools/text/notations.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>
#include <cctype>
#include <vector>

namespace shardproof::tools {
namespace {

std::vector<std::string> names_of(const Axes& axes, const char* quote) {
  std::vector<std::string> names;
  for (const Axis axis : axes) names.push_back(quote + std::string(1, to_char(axis)) + quote);
  return names;
}

}  // namespace

std::string jax_notation(const Layout& layout) {
  std::vector<std::string> entries;
  for (const Layout::Dim& dim : layout.dims()) {
    const std::vector<std::string> names = names_of(dim.axes, "\"");
    entries.push_back(names.empty()       ? "None"
                      : names.size() == 1 ? names[0]
                                          : fmt::format("({})", fmt::join(names, ", ")));
  }
  std::string out = fmt::format("P({})", fmt::join(entries, ", "));
  if (layout.is_partial())
    out += fmt::format(", unreduced over {}", fmt::join(names_of(layout.partial(), ""), ", "));
  return out;
}

std::optional<std::string> dtensor_notation(const Layout& layout) {
  std::array<std::string, 3> placements{"Replicate()", "Replicate()", "Replicate()"};
  for (const Axis axis : layout.partial())
    placements[static_cast<std::size_t>(axis)] =
        layout.is_partial_max() ? "Partial(\"max\")" : "Partial()";
  for (std::size_t d = 0; d < layout.rank(); ++d) {
    const Axes& axes = layout.dims()[d].axes;
    if (!(axes == axes.sorted())) return std::nullopt;
    for (const Axis axis : axes)
      placements[static_cast<std::size_t>(axis)] = fmt::format("Shard({})", d);
  }
  return fmt::format("[{}]", fmt::join(placements, ", "));
}

std::string dumper_notation(const Layout& layout) {
  std::vector<std::string> words;
  for (const Layout::Dim& dim : layout.dims()) {
    std::vector<std::string> inside = names_of(dim.axes, "");
    if (&dim == &layout.dims().back())
      for (const std::string& name : names_of(layout.partial(), ""))
        inside.push_back(name + ":partial");
    std::string word(1, static_cast<char>(std::tolower(static_cast<unsigned char>(dim.letter))));
    if (!inside.empty()) word += fmt::format("[{}]", fmt::join(inside, ","));
    words.push_back(std::move(word));
  }
  return fmt::format("{}", fmt::join(words, " "));
}

}  // namespace shardproof::tools
