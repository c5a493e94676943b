#include "tools/drawing/picture.h"

#include <gtest/gtest.h>
// gtest first
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cmath>
#include <pugixml.hpp>
#include <regex>
#include <set>
#include <stdexcept>

#include "tests/engine/random_layout.h"
#include "tests/engine/strategy_sample.h"
#include "tests/tools/drawing/document.h"
#include "tests/weights/expect_error.h"
#include "tools/drawing/svg.h"

namespace shardproof {
namespace {

// The same facts from the text of a layout, without the engine's maps ---------------------------

struct Chip {
  int x, y, z;
  int operator[](char axis) const { return axis == 'x' ? x : axis == 'y' ? y : z; }
};
Chip chip_of(const Torus& torus, int number) {
  const int Y = torus.size(Axis::y), Z = torus.size(Axis::z);
  return {.x = number / (Y * Z), .y = number / Z % Y, .z = number % Z};
}
int size_of(const Torus& torus, char axis) { return torus.size(static_cast<Axis>(axis - 'x')); }

int block_of(const Torus& torus, const Chip& chip, const std::string& axes) {
  int block = 0, stride = 1;
  for (auto a = axes.rbegin(); a != axes.rend(); ++a) {
    block += chip[*a] * stride;
    stride *= size_of(torus, *a);
  }
  return block;
}

/// "F[144:160]; 4 partial sums; 6 copies" from "BLF_zy partialsum-x" and the global shape.
std::string expected_hold(const std::string& layout, const Shape& shape, const Torus& torus,
                          int number) {
  const Chip chip = chip_of(torus, number);
  const std::size_t space = layout.find(' ');
  const std::string dims = layout.substr(0, space);
  std::string text;
  int blocks = 1;
  std::size_t dim = 0;
  for (std::size_t i = 0; i < dims.size(); ++dim) {
    const char letter = dims[i++];
    std::string axes;
    if (i < dims.size() && dims[i] == '_')
      for (++i; i < dims.size() && std::islower(static_cast<unsigned char>(dims[i])); ++i)
        axes += dims[i];
    int parts = 1;
    for (char a : axes) parts *= size_of(torus, a);
    blocks *= parts;
    if (parts == 1) continue;
    const std::int64_t each = shape[dim] / parts;
    const std::int64_t begin = each * block_of(torus, chip, axes);
    text += fmt::format("{}{}[{}:{}]", text.empty() ? "" : " ", letter, begin, begin + each);
  }
  if (text.empty()) text = "all";
  int partial_sums = 1;
  if (space != std::string::npos)
    for (char a : layout.substr(layout.find('-') + 1)) partial_sums *= size_of(torus, a);
  if (partial_sums > 1) text += fmt::format("; {} partial sums", partial_sums);
  if (const int copies = torus.chips() / blocks / partial_sums; copies > 1)
    text += fmt::format("; {} copies", copies);
  return text;
}

std::vector<std::string> expected_group(const Torus& torus, int number, const std::string& axes) {
  const Chip mine = chip_of(torus, number);
  std::map<int, std::string> members;
  for (int other = 0; other < torus.chips(); ++other) {
    const Chip chip = chip_of(torus, other);
    bool same = true;
    for (char a : {'x', 'y', 'z'})
      same = same && (axes.find(a) != std::string::npos || chip[a] == mine[a]);
    if (same)
      members[block_of(torus, chip, axes)] = fmt::format("({},{},{})", chip.x, chip.y, chip.z);
  }
  std::vector<std::string> names;
  for (const auto& [block, name] : members) names.push_back(name);
  return names;
}

std::map<std::string, Type> types_of(const Program& program, const Torus& torus,
                                     const std::map<char, std::int64_t>& extents) {
  std::map<std::string, Shape> inputs;
  for (const ValueDecl& input : program.inputs)
    for (const Layout::Dim& dim : input.layout.dims())
      inputs[input.name].push_back(extents.at(dim.letter));
  return check(program, inputs, torus);
}

/// "", or what a picture gets wrong.
std::string wrong(const Program& program, const std::map<std::string, Type>& types,
                  const Torus& torus, int chip) {
  PictureOptions options;
  options.chip = chip;
  const Document document(picture(program, types, torus, {}, {}, options));
  const Xml root = document.root();
  std::map<std::string, int> ids;
  visit(root, [&](const Xml& e) { ++ids[attribute(e, "id")]; });
  ids.erase("");
  for (const auto& [id, times] : ids)
    if (times != 1) return id + " twice";
  if (const std::string text = misplaced(root); !text.empty()) return "misplaced " + text;
  const auto held = [&](const std::string& name) {
    const Type& type = types.at(name);
    return expected_hold(type.layout.to_string(), type.shape, torus, chip);
  };
  std::vector<ValueDecl> values = program.inputs;
  std::size_t collectives = 0;
  for (const Op& op : program.ops) {
    values.insert(values.end(), op.results.begin(), op.results.end());
    if (!is_collective(op.kind)) continue;
    ++collectives;
    const std::string& name = op.results[0].name;
    const Xml card = by_id(root, "value-" + name);
    if (!card) return "no " + name;
    const auto groups = of_class(card, "group");
    if (groups.size() != 1) return "no group in " + name;
    std::vector<std::string> members;
    std::set<std::string> places;
    for (const Xml& e : groups[0].children())
      if (std::string_view(e.name()) == "rect") {
        members.push_back(content(e.first_child()));
        places.insert(attribute(e, "x") + " " + attribute(e, "y"));
      }
    if (members != expected_group(torus, chip, op.axes.to_string()))
      return fmt::format("group of {}: {}", name, fmt::join(members, " "));
    if (places.size() != members.size()) return "chips of " + name + " on one another";
    if (words(of_class(card, "held-before").at(0)) != "had " + held(op.args[0]))
      return name + ": " + words(card);
    if (words(of_class(card, "held").at(0)) != "has " + held(name))
      return name + ": " + words(card);
    if (words(card).find(op.to_string()) == std::string::npos) return name + ": no statement";
  }
  if (of_class(root, "group").size() != collectives) return "groups";
  if (of_class(root, "value").size() != values.size()) return "values";
  for (const ValueDecl& value : values) {
    const Xml row = by_id(root, "value-" + value.name);
    if (!row) return "no " + value.name;
    const std::string text = words(row);
    if (text.find(value.name + " : " + value.layout.to_string()) == std::string::npos ||
        text.find(held(value.name) + " (") == std::string::npos)
      return value.name + ": " + text;
  }
  return "";
}

std::string layer_text(const char* axes) {
  return fmt::format(R"(
    input x : BLE_{0} is in
    input w : E_xF_{0} is weight w_gate
    xg : BLE = all_gather(x, E, {0}) is in
    xs : BLE_x = slice(xg, E, x) is in
    h : BLF_{0} partialsum-x = einsum(BLE,EF->BLF; xs, w) is gate
    hr : BLF_{0}x = reduce_scatter(h, F, x) is gate
    output hr
  )",
                     axes);
}
const std::map<char, std::int64_t> kExtents{{'B', 2}, {'L', 1}, {'E', 24}, {'F', 48}};

TEST(Picture, SaysWhatTheExampleChipHolds) {
  const Torus torus(4, 2, 3);
  EXPECT_EQ(torus.name(example_chip(torus)), "(1,0,2)");
  const Program program = parse_program("layer", layer_text("zy"));
  const auto types = types_of(program, torus, kExtents);
  const Document document(picture(program, types, torus, {}, {}));
  const Xml root = document.root();
  EXPECT_EQ(words(by_id(root, "value-w")),
            "input w : E_xF_zy "
            "000 010 001 011 002 012 100 110 101 111 102 112 "
            "200 210 201 211 202 212 300 310 301 311 302 312 "
            "E[6:12] F[32:40] (6x8) weight w_gate");
  EXPECT_EQ(words(by_id(root, "value-hr")),
            "hr : BLF_zyx = reduce_scatter(h, F, x) "
            "sends BLF/YZ (1-1/X) = 12 elements, 48 bytes (23 %) "
            "F_zy +00 +10 +01 +11 +02 +12 "
            "F_zyx 000 100 200 300 010 110 210 310 001 101 201 301 011 111 211 311 "
            "002 102 202 302 012 112 212 312 0 1 2 3 "
            "6 groups of 4, over x had F[32:40]; 4 partial sums has F[34:36] (2x1x2) gate");
}

TEST(Picture, ShowsAWrongOrderOfAxes) {
  const Torus torus(4, 2, 3);
  const auto drawn = [&](const char* axes) {
    const Program program = parse_program("layer", layer_text(axes));
    return Document(picture(program, types_of(program, torus, kExtents), torus, {}, {}));
  };
  const Document right = drawn("zy"), swapped = drawn("yz");
  EXPECT_NE(words(by_id(right.root(), "value-x")).find("E[16:20]"), std::string::npos);
  EXPECT_NE(words(by_id(swapped.root(), "value-x")).find("E[8:12]"), std::string::npos);
  for (const char* value : {"value-x", "value-w", "value-h", "value-hr"})
    EXPECT_NE(words(by_id(right.root(), value)), words(by_id(swapped.root(), value))) << value;
}

RC_GTEST_PROP(Picture, HoldsForEveryStrategyTorusAndModel, ()) {
  const Torus torus = draw_int(0, 9) > 0 ? draw_torus() : Torus(4, 4, 4);
  const Strategy strategy = *rc::gen::elementOf(all_strategies());
  const std::int64_t n = torus.chips();
  const std::int64_t K =
      torus.size(Axes::parse(*rc::gen::element<std::string>("", "z", "zy", "zyx")));
  std::map<char, std::int64_t> extents{
      {'K', K * draw_int(1, 2)}, {'M', draw_int(1, 999)}, {'P', 2048}};
  for (char c : {'E', 'F', 'V'}) extents[c] = n * draw_int(1, 300);
  extents['H'] = n * extents['K'];
  extents['Q'] = 2 * torus.size(Axis::y) * draw_int(1, 64);
  extents['J'] = extents['Q'] / 2;
  ModelConfig model = with_dims(parse_model("palm-tiny"), extents['E'], extents['F'], extents['H'],
                                extents['K'], extents['V']);
  model.Q = extents['Q'];
  Case run = run_under(strategy, model, torus);
  run.prompt = run.chunk = run.prompt * draw_int(1, 3);
  run.batch *= draw_int(1, 300);
  extents['L'] = run.prompt;
  extents['B'] = run.batch;
  run.numerics.weights = *rc::gen::element(NumberFormat::f32, NumberFormat::int8);
  run.numerics.loop =
      *rc::gen::element(Loop::none, Loop::one_way, Loop::both_full, Loop::both_half);
  const int chip = draw_int(0, torus.chips() - 1);
  const PhasePrograms phase = make_plan(run).prefill;
  for (const Program* program : {&phase.embed, &phase.layer, &phase.head, &phase.sample}) {
    const std::string found = wrong(*program, types_of(*program, torus, extents), torus, chip);
    if (!found.empty()) RC_LOG() << strategy.to_string() << " on " << torus.to_string() << "\n";
    RC_ASSERT(found == "");
  }
}

TEST(Picture, HoldsForHandOversAndUnusualTori) {
  for (const char* size : {"1x1x1", "3x1x2", "4x4x4", "1x1x16", "16x1x4", "1x16x2", "2x1x11"}) {
    const Torus torus = Torus::parse(size);
    const std::int64_t n = torus.chips();
    const ModelConfig model = with_dims(parse_model("palm-tiny,Q=48"), n, n, n, n, n);
    // The sample has caches of each kind; all layouts would be hundreds of pairs on every torus.
    const std::vector<Layout> caches = cache_layouts(sample_strategies(), model, torus);
    for (const Layout& from : caches)
      for (const Layout& to : caches) {
        const Program program = hand_over(from, to, extents_of(model, n, 1), torus);
        const auto types = types_of(program, torus, {{'B', n}, {'M', 5}, {'K', n}, {'Q', 48}});
        EXPECT_EQ(wrong(program, types, torus, example_chip(torus)), "") << size;
      }
  }
}

TEST(Picture, PermutationsNameTheirPartners) {
  const Torus torus(2, 2, 3);
  const Program program = parse_program("p", R"(
    input x : BLE_zy is in
    xp : BLE_yz = permute_axes(x, E, zy->yz) is in
    output xp
  )");
  const auto types = types_of(program, torus, kExtents);
  EXPECT_EQ(wrong(program, types, torus, example_chip(torus)), "");
  const Document document(picture(program, types, torus, {}, {}));
  const Xml root = document.root();
  // Block 4 of zy, (1,0,2) gives to block 4 of yz, (1,1,1); block 2 comes from (1,0,1).
  EXPECT_NE(words(by_id(root, "value-xp")).find("sends to (1,1,1), gets from (1,0,1)"),
            std::string::npos)
      << words(by_id(root, "value-xp"));
}

TEST(Picture, EscapesWhatItIsTold) {
  EXPECT_EQ(escape_xml("a<b>&\"'\n\xc3\xa9"), "a&lt;b&gt;&amp;&quot;&apos;???");
  const Program program = parse_program("layer", layer_text("zy"));
  const Torus torus(1, 2, 3);
  PictureOptions options;
  options.title = "<script>&\"'";
  options.notes = {"]]></svg>", "\x01 &amp;"};
  const std::string svg =
      picture(program, types_of(program, torus, kExtents), torus, {}, {}, options);
  const Document document(svg);
  const Xml root = document.root();
  EXPECT_EQ(content(root.first_child()), options.title);
  EXPECT_NE(words(root).find(options.title + " ]]></svg> ? &amp;"), std::string::npos);
  for (const char* foreign : {"href", "<script", "url(h", "@import", "<image", "<use"})
    EXPECT_EQ(svg.find(foreign), std::string::npos) << foreign;
}

TEST(Picture, RefusesWhatNobodyCouldRead) {
  const Program program = parse_program("p", "input x : BLE is in\noutput x");
  const auto drawn = [&](const Torus& torus) {
    return label_of([&] { picture(program, types_of(program, torus, kExtents), torus, {}, {}); });
  };
  EXPECT_EQ(drawn(Torus(4, 4, 4)), "");
  EXPECT_EQ(drawn(Torus(5, 13, 1)), "picture_c1");
  std::string text = "input x0 : BLE is in\n";
  for (int i = 1; i <= 2000; ++i)
    text += fmt::format("x{} : BLE = add(x{}, x0) is out\n", i, i - 1);
  const Program longest = parse_program("p", text);
  EXPECT_EQ(label_of([&] { picture(longest, types_of(longest, {}, kExtents), Torus(), {}, {}); }),
            "picture_c2");
}

}  // namespace
}  // namespace shardproof
