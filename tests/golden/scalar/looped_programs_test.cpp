// Random programs of looped all_gathers, einsums and reduce_scatters: engine and scalar model make
// the same bits, on any torus, over rings of one to three axes.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "golden/scalar/ops.h"
#include "tests/engine/random_layout.h"
#include "tests/engine/run_program.h"

namespace shardproof {
namespace {

constexpr Loop kLoops[] = {Loop::one_way, Loop::both_full, Loop::both_half};

Torus draw_small_torus() {
  const auto size = [] { return *rc::gen::element(1, 2, 3, 5); };
  int X = size(), Y = size(), Z = size();
  while (X * Y * Z > 30) (X >= Y && X >= Z ? X : Y >= Z ? Y : Z) -= 2;
  return {X, Y, Z};
}

std::string shuffled_letters(std::string letters) {
  for (std::size_t i = letters.size(); i > 1; --i)
    std::swap(letters[i - 1],
              letters[static_cast<std::size_t>(draw_int(0, static_cast<int>(i - 1)))]);
  return letters;
}

Loop draw_loop() {
  return *rc::gen::element(Loop::none, Loop::one_way, Loop::both_full, Loop::both_half);
}
std::string note(Loop loop) {
  return loop == Loop::none ? "" : fmt::format(" loop {}", to_string(loop));
}

/// A program and the layouts and shapes of its inputs.
struct Drawn {
  Torus torus;
  std::string text;
  std::map<std::string, Type> inputs;
  Numerics numerics;
};

/// An input with these letters.
Type type_of(const std::string& letters, const std::map<char, Axes>& axes,
             const std::map<char, std::int64_t>& extents) {
  std::vector<Layout::Dim> dims;
  Shape shape;
  for (const char letter : letters) {
    dims.push_back({letter, axes.at(letter)});
    shape.push_back(extents.at(letter));
  }
  return {Layout(dims, {}), shape};
}

/// B and F are the result's letters, of which `own` is that of the gathered operand and the other
/// has the ring's axes; E, H and Q are contracted, V in a second term.
Drawn draw_program() {
  Drawn drawn{draw_small_torus(), "", {}, {.regime = Regime::f32}};
  const Torus& torus = drawn.torus;
  std::vector<Axes> bins = draw_bins(5);
  while (bins[1].empty()) bins = draw_bins(5);
  const Axes &ring = bins[1], &rows = bins[4];
  const bool second = draw_int(0, 1) == 1;
  const char own = second ? 'F' : 'B', other = second ? 'B' : 'F';
  const std::string contracted =
      shuffled_letters("EHQ").substr(0, static_cast<std::size_t>(draw_int(1, 3)));
  const bool decides = draw_int(0, 5) > 0;
  const char looped = decides ? contracted[0] : own;

  // Without the ring's axes on the gathered letter.
  std::map<char, Axes> axes{{own, rows}, {other, shuffled(ring)}, {'E', {}}, {'H', {}}, {'Q', {}}};
  axes[contracted.front()] = bins[2];
  axes[contracted.back()] = axes[contracted.back()].with(bins[3]);
  const Axes partial = bins[2].with(bins[3]);
  axes['V'] = shuffled(partial);
  std::map<char, std::int64_t> extents;
  for (const auto& [letter, of] : axes)
    extents[letter] = torus.size(of) *
                      torus.size(letter == looped || letter == 'V' ? ring : Axes()) *
                      draw_int(1, 3);
  const Axes scattered = partial.empty() ? partial : draw_suffix(shuffled(partial));
  const char to = draw_int(0, 1) == 0 ? 'B' : 'F';
  extents[to] *= torus.size(scattered);

  std::string terms, operands;
  const auto add_term = [&](const std::string& names, const std::string& sum, char dim,
                            const Axes& over) {
    const std::string a = shuffled_letters("B" + sum), b = shuffled_letters("F" + sum);
    const Loop loop = draw_loop();
    std::map<char, Axes> before = axes;
    before[dim] = before[dim].with(over);
    const std::string left = names.substr(0, 1), right = names.substr(1, 1);
    drawn.inputs[left] = type_of(a, second ? axes : before, extents);
    drawn.inputs[right] = type_of(b, second ? before : axes, extents);
    for (const std::string& name : {left, right})
      drawn.text +=
          fmt::format("input {} : {} is in\n", name, drawn.inputs.at(name).layout.to_string());
    drawn.text += fmt::format("{0}g : B = all_gather({0}, {1}, {2}{3}) is in\n",
                              second ? right : left, dim, over.to_string(), note(loop));
    const std::string gathered =
        fmt::format("{}{}g", loop == Loop::none ? "" : "loop ", second ? right : left);
    terms += fmt::format("{}{},{}->BF", terms.empty() ? "" : " + ", a, b);
    operands += fmt::format("; {}, {}", second ? left : gathered, second ? gathered : right);
  };
  add_term("ab", contracted, looped, ring);
  if (draw_int(0, 1) == 0) add_term("cd", "V", 'V', draw_suffix(shuffled(ring)));
  drawn.text += fmt::format("p : B = einsum({}{}) is raw gate\n", terms, operands);
  if (scattered.empty())
    drawn.text += "output p\n";
  else
    drawn.text += fmt::format("r : B = reduce_scatter(p, {}, {}{}) is raw gate\noutput p, r\n", to,
                              scattered.to_string(), note(draw_loop()));
  drawn.numerics.schedule =
      *rc::gen::element(Schedule::group, Schedule::ring, Schedule::tree, Schedule::biring);
  drawn.numerics.acc = *rc::gen::element(NumberFormat::f32, NumberFormat::bf16);
  drawn.numerics.wire = *rc::gen::element(NumberFormat::f32, NumberFormat::bf16);
  RC_CLASSIFY(ring.size() == 3, "ring: of three axes");
  RC_CLASSIFY(ring.size() == 2, "ring: of two axes");
  RC_CLASSIFY(torus.size(ring) >= 3, "ring: of three chips or more");
  RC_CLASSIFY(!decides, "ring: of a letter that is not contracted");
  RC_CLASSIFY(torus.size(scattered) >= 3, "reduce_scatter: of three chips or more");
  return drawn;
}

/// The program with the layouts that its ops yield.
Program typed(const Drawn& drawn) {
  Program program = parse_program("drawn", drawn.text);
  std::map<std::string, Type> types = drawn.inputs;
  for (Op& op : program.ops) {
    std::vector<Type> args;
    for (const std::string& arg : op.args) args.push_back(types.at(arg));
    types[op.results[0].name] = infer(op, args, drawn.torus).at(0);
    op.results[0].layout = types.at(op.results[0].name).layout;
  }
  return program;
}

std::map<std::string, Tensor> inputs_of(const Drawn& drawn, unsigned seed) {
  std::minstd_rand random(seed);
  std::map<std::string, Tensor> all;
  for (const auto& [name, type] : drawn.inputs) {
    Tensor t(type.shape);
    for (float& v : t.data)
      v = std::ldexp(static_cast<float>(random() % (1U << 25)) - 0x1p24F, -24) + 0x1p-30F;
    all.emplace(name, std::move(t));
  }
  return all;
}

std::map<std::string, scalar::Value> by_the_model(const Program& program, const Drawn& drawn,
                                                  const std::map<std::string, Tensor>& inputs) {
  std::map<std::string, scalar::Value> values;
  for (const auto& [name, t] : inputs)
    values[name] = {drawn.inputs.at(name).layout, t.shape, {{t.data.begin(), t.data.end()}}, {}};
  for (const Op& op : program.ops) {
    const bool sums = op.results[0].role.to_string() == "raw gate";
    scalar::Setting setting{any_config(), drawn.torus, drawn.numerics.schedule};
    setting.acc_bf16 = sums && drawn.numerics.acc == NumberFormat::bf16;
    setting.wire_bf16 = sums && drawn.numerics.wire == NumberFormat::bf16;
    std::vector<const scalar::Value*> args;
    for (const std::string& arg : op.args) args.push_back(&values.at(arg));
    scalar::Value value = scalar::apply(op, args, setting).at(0);
    value.layout = op.results[0].layout;
    values[op.results[0].name] = std::move(value);
  }
  return values;
}

/// Whether every chip holds its block of the part that its place on the partial axes stands for.
bool holds(const Sharded& sharded, const scalar::Value& value) {
  const Torus& torus = sharded.torus();
  if (sharded.shape() != value.shape || !(sharded.layout() == value.layout)) return false;
  for (int chip = 0; chip < torus.chips(); ++chip) {
    scalar::Place place;
    for (const char* axis : {"x", "y", "z"})
      place[*Axes::parse(axis).begin()] = torus.block(chip, Axes::parse(axis));
    Tensor part(value.shape);
    const std::vector<float>& numbers =
        value.parts.at(scalar::part_of(value.layout.partial(), torus, place));
    std::copy(numbers.begin(), numbers.end(), part.data.begin());
    const Sharded blocks = shard(part, Layout(value.layout.dims(), {}), torus);
    const auto at = static_cast<std::size_t>(chip);
    if (!std::equal(sharded.f32()[at].begin(), sharded.f32()[at].end(), blocks.f32()[at].begin(),
                    blocks.f32()[at].end(), [](float a, float b) {
                      return std::bit_cast<std::uint32_t>(a) == std::bit_cast<std::uint32_t>(b);
                    }))
      return false;
  }
  return true;
}

bool agree(const std::map<std::string, SharedValue>& engine,
           const std::map<std::string, scalar::Value>& model) {
  return std::all_of(engine.begin(), engine.end(), [&](const auto& named) {
    return holds(*named.second, model.at(named.first));
  });
}

std::map<std::string, SharedValue> by_the_engine(const Program& program, const Drawn& drawn,
                                                 const std::map<std::string, Tensor>& tensors) {
  Threads one(1);
  std::map<std::string, SharedValue> inputs;
  for (const auto& [name, t] : tensors)
    inputs[name] = shared(shard(t, drawn.inputs.at(name).layout, drawn.torus));
  return execute(program, inputs,
                 {.config = any_config(),
                  .threads = one,
                  .scope = {},
                  .numerics = drawn.numerics,
                  .hazards = Hazards::hostile()});
}

RC_GTEST_PROP(LoopedPrograms, OfTheEngineAndOfTheScalarModelAreEqual, ()) {
  const Drawn drawn = draw_program();
  RC_LOG() << drawn.text;
  const Program program = typed(drawn);
  const std::map<std::string, Tensor> tensors = inputs_of(drawn, *rc::gen::arbitrary<unsigned>());
  RC_ASSERT(agree(by_the_engine(program, drawn, tensors), by_the_model(program, drawn, tensors)));
}

// A ring of five chips along x, and sums of five along z: with another loop of either the bits are
// others, on some chip.
TEST(LoopedPrograms, OfAnotherLoopAreNotEqual) {
  Drawn drawn{{5, 1, 5}, "", {}, {.regime = Regime::f32}};
  drawn.inputs["a"] = {Layout::parse("BE_zx"), {15, 75}};
  drawn.inputs["b"] = {Layout::parse("E_zF_x"), {75, 5}};
  const std::map<std::string, Tensor> tensors = inputs_of(drawn, 1);
  for (const Loop gather : kLoops)
    for (const Loop scatter : kLoops) {
      const auto with = [&](Loop first, Loop second) {
        drawn.text = fmt::format(
            "input a : BE_zx is in\ninput b : E_zF_x is in\n"
            "ag : B = all_gather(a, E, x loop {}) is in\n"
            "p : B = einsum(BE,EF->BF; loop ag, b) is raw gate\n"
            "r : B = reduce_scatter(p, B, z loop {}) is raw gate\noutput p, r\n",
            to_string(first), to_string(second));
        return typed(drawn);
      };
      const auto right = by_the_engine(with(gather, scatter), drawn, tensors);
      EXPECT_TRUE(agree(right, by_the_model(with(gather, scatter), drawn, tensors)));
      for (const Loop other : kLoops) {
        if (other != gather) {
          EXPECT_FALSE(agree(right, by_the_model(with(other, scatter), drawn, tensors)));
        }
        if (other != scatter) {
          EXPECT_FALSE(agree(right, by_the_model(with(gather, other), drawn, tensors)));
        }
      }
    }
}

}  // namespace
}  // namespace shardproof
