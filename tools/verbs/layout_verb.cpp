#include <fmt/format.h>
#include <fmt/ranges.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "engine/layout/layout.h"
#include "tools/command/verbs.h"
#include "tools/text/json_text.h"
#include "tools/text/notations.h"
#include "tools/text/wrapped.h"
#include "weights/base/error.h"

namespace shardproof::tools {
namespace {

struct LayoutFlags {
  std::string layout, torus = "2x2x2", shape;
  bool json = false;
};

/// "(y·Z+z)·X+x" for axes yzx.
std::string block_formula(const Axes& axes) {
  std::string out;
  for (const Axis axis : axes) {
    const char name = to_char(axis);
    const char size = static_cast<char>(name - 'a' + 'A');
    if (out.empty())
      out = name;
    else
      out = fmt::format("{}·{}+{}", out.size() > 1 ? "(" + out + ")" : out, size, name);
  }
  return out;
}

/// The global shape, from "24x1x384"; nullopt if it is not given.
std::optional<Shape> shape_of(const LayoutFlags& o, const Layout& layout) {
  if (o.shape.empty()) return std::nullopt;
  Shape shape;
  std::string rest = o.shape;
  while (true) {
    const std::size_t end = rest.find('x');
    const std::string word = rest.substr(0, end);
    if (word.empty() || word.size() > 12 || word.find_first_not_of("0123456789") != word.npos ||
        std::stoll(word) < 1)
      throw Error("layout_shape",
                  fmt::format("--shape {}: legal: the extents of the dims, 24x1x384", o.shape));
    shape.push_back(std::stoll(word));
    if (end == std::string::npos) break;
    rest = rest.substr(end + 1);
  }
  if (shape.size() != layout.rank())
    throw Error("layout_shape", fmt::format("--shape {}: {} has {} dims", o.shape,
                                            layout.to_string(), layout.rank()));
  return shape;
}

struct ChipRow {
  int chip;
  std::vector<int> blocks;
};

std::vector<ChipRow> rows_of(const Layout& layout, const Torus& torus) {
  std::vector<ChipRow> rows;
  for (int chip = 0; chip < torus.chips(); ++chip) {
    ChipRow row{chip, {}};
    for (const Layout::Dim& dim : layout.dims()) row.blocks.push_back(torus.block(chip, dim.axes));
    rows.push_back(std::move(row));
  }
  return rows;
}

std::string legend(const Layout& layout, const Torus& torus) {
  std::string out;
  for (const Layout::Dim& dim : layout.dims())
    if (!dim.axes.empty())
      out += wrapped(fmt::format("{}: {} blocks; chip (x,y,z) holds block {}", dim.letter,
                                 torus.size(dim.axes), block_formula(dim.axes)),
                     kWidth, "  ") +
             "\n";
  Axes replicas;
  for (const Axis axis : {Axis::x, Axis::y, Axis::z})
    if (!layout.used().has(axis)) replicas = replicas.with(axis);
  if (!replicas.empty()) out += fmt::format("along {}: replicas\n", replicas.to_string());
  if (layout.is_partial())
    out += fmt::format("along {}: partial {}, which all_reduce or reduce_scatter adds up\n",
                       layout.partial().to_string(), layout.is_partial_max() ? "maxima" : "sums");
  return out;
}

int show(const LayoutFlags& o) {
  const Layout layout = Layout::parse(o.layout);
  const Torus torus = Torus::parse(o.torus);
  const std::optional<Shape> shape = shape_of(o, layout);
  const std::optional<Shape> local =
      shape ? std::optional(local_shape(layout, *shape, torus)) : std::nullopt;
  const std::vector<ChipRow> rows = rows_of(layout, torus);
  const std::optional<std::string> dtensor = dtensor_notation(layout);
  if (o.json) {
    nlohmann::json out{{"layout", layout.to_string()},
                       {"torus", torus.to_string()},
                       {"jax", jax_notation(layout)},
                       {"dims", dumper_notation(layout)},
                       {"ranks", nlohmann::json::array()}};
    out["dtensor"] = nullptr;
    if (dtensor) out["dtensor"] = *dtensor;
    if (local) out["local"] = *local;
    for (const ChipRow& row : rows)
      out["ranks"].push_back({{"chip", torus.name(row.chip)}, {"blocks", row.blocks}});
    fmt::print("{}\n", json_text(out));
    return 0;
  }
  fmt::print("{} on {}, {} chips\n{}", layout.to_string(), torus.to_string(), torus.chips(),
             legend(layout, torus));
  fmt::print("JAX      {}\n", jax_notation(layout));
  fmt::print("DTensor  {}\n",
             dtensor.value_or("not on a mesh (x, y, z): the axes of a dim are in another order"));
  fmt::print("dumper   {}\n", dumper_notation(layout));
  if (local) fmt::print("shape    {}, of each shard {}\n", o.shape, fmt::join(*local, "x"));
  fmt::print("\nrank  chip      ");
  for (const Layout::Dim& dim : layout.dims()) fmt::print(" {:>{}}", dim.letter, local ? 13 : 5);
  fmt::print("\n");
  for (const ChipRow& row : rows) {
    fmt::print("{:<5} {:<10}", row.chip, torus.name(row.chip));
    for (std::size_t d = 0; d < row.blocks.size(); ++d)
      fmt::print(" {:>{}}",
                 local ? fmt::format("{}:{}", row.blocks[d] * (*local)[d],
                                     (row.blocks[d] + 1) * (*local)[d])
                       : fmt::format("{}", row.blocks[d]),
                 local ? 13 : 5);
    fmt::print("\n");
  }
  return 0;
}

}  // namespace

void add_layout(CLI::App& app, Action& chosen) {
  auto options = std::make_shared<LayoutFlags>();
  CLI::App* verb = app.add_subcommand("layout", "A layout in all notations, rank by rank");
  verb->add_option("LAYOUT", options->layout, "As BLF_yzx or \"BLE_x partialsum-yz\"")
      ->required()
      ->type_name("");
  verb->add_option("--torus", options->torus, "The chips [2x2x2]")->type_name("XxYxZ");
  verb->add_option("--shape", options->shape, "Also the extents of each shard: 24x1x384")
      ->type_name("NxN...");
  verb->add_flag("--json", options->json, "Print JSON (docs/json.md)");
  verb->footer(
      "Ranks count chips (x,y,z) as (x·Y+y)·Z+z, as a mesh (x, y, z) does.\n"
      "Example: shardproof layout BLF_yzx --torus 2x2x2\n"
      "         shardproof layout \"BLE_x partialsum-yz\" --torus 4x2x3 --shape 24x1x48");
  verb->callback([&chosen, options] { chosen = [options] { return show(*options); }; });
}

}  // namespace shardproof::tools
