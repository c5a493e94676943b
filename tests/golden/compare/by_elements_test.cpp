// The comparison run by run, in blocks and by threads finds what one that reads element after
// element finds: the same first mismatch, the same count, the same reach.
#include <gtest/gtest.h>
// gtest first
#include <rapidcheck/gtest.h>

#include <bit>
#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "golden/compare/block_map.h"
#include "golden/compare/comparison.h"
#include "golden/faults/detail/one_term_each.h"
#include "tests/engine/random_layout.h"

namespace shardproof {
namespace {

/// What a comparison says, as text.
std::string told(const Comparison& c) {
  std::string text = std::to_string(c.elements);
  if (!c.mismatch) return text;
  const Mismatch& m = *c.mismatch;
  const auto index = [](const Shape& at) {
    std::string all = "[";
    for (const std::int64_t i : at) all += std::to_string(i) + " ";
    return all + "]";
  };
  text += " " + m.chip + index(m.index) + m.expected + " " + m.actual;
  if (m.reach)
    text += " " + m.reach->extent() + " " + m.reach->worst() + index(m.reach->worst_index);
  return text;
}

/// One element after the other, chip after chip, or group after group of partial sums.
/// `held(chips, local, want)` is what is compared.
template <class Word, class Held>
Comparison by_elements(const Words<Word>& words, const ExpectedBits& expected, const Layout& layout,
                       const Sharded& value, bool sums, Held&& held) {
  const Torus& torus = value.torus();
  std::int64_t parts = 1;
  for (Axis a : layout.partial())
    if (!sums) parts *= torus.size(a);
  std::vector<std::vector<int>> groups;
  for (int chip = 0; chip < torus.chips(); ++chip) {
    const std::vector<int> members =
        sums ? judged_group(layout, torus, chip) : std::vector<int>{chip};
    if (members.front() == chip) groups.push_back(members);
  }
  Comparison result;
  ReachMeter<Word> meter(torus, value.shape(), expected.integer, parts);
  for (const std::vector<int>& group : groups) {
    const std::int64_t first =
        parts == 1 ? 0
                   : static_cast<std::int64_t>(judged_part(layout, torus, group.front())) *
                         element_count(value.shape());
    judged_elements(
        layout, value.shape(), torus, group.front(), [&](std::int64_t local, std::int64_t global) {
          if (!expected.padding.empty() && expected.padding[static_cast<std::size_t>(global)])
            return false;
          const Word want = words[static_cast<std::size_t>(first + global)];
          const Word got = held(group, static_cast<std::size_t>(local), want);
          meter.see(group, first + global, want, got);
          if (result.mismatch) return false;
          ++result.elements;
          if (got != want)
            result.mismatch = {.chip = torus.name(group.front()),
                               .index = global_index(value.shape(), first + global),
                               .expected = element_text(want, expected.integer),
                               .actual = element_text(got, expected.integer),
                               .reach = {}};
          return false;
        });
  }
  if (result.mismatch) result.mismatch->reach = meter.finish();
  return result;
}

Comparison by_elements(const ExpectedBits& expected, const Layout& layout, const Sharded& value) {
  const auto c = [](const std::vector<int>& group) {
    return static_cast<std::size_t>(group.front());
  };
  if (value.holds_field()) {
    const FieldShards& field = value.field();
    return by_elements(expected.numbers, expected, layout, value, layout.is_partial(),
                       [&](const std::vector<int>& group, std::size_t i, const FieldElement&) {
                         FieldElement sum = field.values[c(group)][i];
                         for (std::size_t m = 1; m < group.size(); ++m)
                           sum = field.field->add(
                               sum, field.values[static_cast<std::size_t>(group[m])][i]);
                         return sum;
                       });
  }
  if (value.holds_partial()) {
    const Partial& partial = value.partial();
    const std::int64_t block = element_count(judged_block(layout, value.shape(), value.torus()));
    const std::int64_t step = std::max<std::int64_t>(1, block / 4);
    return by_elements(expected.bits, expected, layout, value, true,
                       [&](const std::vector<int>& group, std::size_t i, std::uint32_t want) {
                         std::vector<Element> sum;
                         for (const int chip : group)
                           sum.push_back({chip, static_cast<std::int64_t>(i)});
                         const auto rounded =
                             std::bit_cast<std::uint32_t>(partial.rounded_sum(sum));
                         if (rounded != want || static_cast<std::int64_t>(i) % step != 0)
                           return rounded;
                         return std::bit_cast<std::uint32_t>(partial.sum_of_origins(sum));
                       });
  }
  return by_elements(expected.bits, expected, layout, value, false,
                     [&](const std::vector<int>& group, std::size_t i, std::uint32_t) {
                       return value.stores_int32()
                                  ? static_cast<std::uint32_t>(value.i32()[c(group)][i])
                                  : std::bit_cast<std::uint32_t>(value.f32()[c(group)][i]);
                     });
}

/// Random words, most of them floats that are no neighbours, some of them special.
std::uint32_t draw_word() {
  return *rc::gen::oneOf(rc::gen::element(0U, 0x80000000U, 0x7fc00000U, 0x7fc00001U, 0xffc00000U,
                                          0x7f800000U, 0xff800000U, 1U, 0x3f800000U),
                         rc::gen::cast<std::uint32_t>(rc::gen::inRange(0x3f000000, 0x40800000)));
}

/// Elements [B, E] of which a block has as many as there are chips, or twice, and rows of up to 40
/// times that, so that runs are short and long, and blocks of more than a thread reads at a time.
Shape draw_sizes(const Torus& torus) {
  const std::int64_t many = *rc::gen::weightedElement<int>({{6, 1}, {3, 7}, {1, 40}});
  return {torus.chips() * draw_int(1, 2), torus.chips() * many};
}

std::vector<bool> draw_mask(std::int64_t count) {
  if (draw_int(0, 2) != 0) return {};
  std::vector<bool> mask(static_cast<std::size_t>(count), false);
  for (int holes = draw_int(0, 5); holes-- > 0;) {
    const auto from = static_cast<std::size_t>(draw_int(0, static_cast<int>(count) - 1));
    for (std::size_t i = from;
         i < std::min(mask.size(), from + static_cast<std::size_t>(draw_int(1, 9))); ++i)
      mask[i] = true;
  }
  return mask;
}

void expect_same(const ExpectedBits& expected, const Layout& layout, const Sharded& value) {
  static Threads threads(3);
  const std::string wanted = told(by_elements(expected, layout, value));
  RC_ASSERT(told(compare(expected, layout, value)) == wanted);
  RC_ASSERT(told(compare(expected, layout, value, threads)) == wanted);
  threads.shuffle(draw_int(0, 1000));
  RC_ASSERT(told(compare(expected, layout, value, threads)) == wanted);
}

/// Some chip holds what another one does, whatever block it must hold. Of chips that must hold the
/// same block many do.
template <class Chips>
void draw_shared(Chips& chips, const std::function<std::int64_t(int)>& block) {
  const auto count = static_cast<int>(chips.size());
  for (int chip = 1; chip < count; ++chip)
    for (int other = 0; other < chip; ++other)
      if (block(chip) == block(other)) {
        if (draw_int(0, 2) > 0)
          chips.share(static_cast<std::size_t>(chip), static_cast<std::size_t>(other));
        break;
      }
  if (draw_int(0, 2) == 0)
    chips.share(static_cast<std::size_t>(draw_int(0, count - 1)),
                static_cast<std::size_t>(draw_int(0, count - 1)));
}

/// An element of some chip: the first, the last or any.
std::size_t draw_place(std::size_t size) {
  const int last = static_cast<int>(size) - 1;
  return static_cast<std::size_t>(*rc::gen::element(0, last, draw_int(0, last)));
}

RC_GTEST_PROP(ComparisonByElements, OfFloatsAndOfF32PartialSums, ()) {
  const Torus torus = draw_torus();
  const Layout layout = draw_layout("BE", draw_int(0, 1) == 1);
  const Shape shape = draw_sizes(torus);
  const Layout whole = layout.with_partial(Axes());
  std::int64_t parts = 1;
  for (Axis a : layout.partial()) parts *= torus.size(a);
  std::vector<Sharded> of_part;
  std::vector<std::vector<float>> words;
  const std::vector<std::uint32_t> pattern =
      *rc::gen::container<std::vector<std::uint32_t>>(7, rc::gen::exec(draw_word));
  for (std::int64_t part = 0; part < parts; ++part) {
    Tensor t(shape);
    for (std::size_t i = 0; i < t.data.size(); ++i)
      t.data[i] = std::bit_cast<float>(pattern[(i + static_cast<std::size_t>(part)) % 7] ^
                                       static_cast<std::uint32_t>(i % 5));
    of_part.push_back(shard(t, whole, torus));
    words.push_back(t.data);
  }
  ChipArrays<float> chips;
  for (int chip = 0; chip < torus.chips(); ++chip)
    chips.push_back(
        of_part[judged_part(layout, torus, chip)].f32()[static_cast<std::size_t>(chip)]);
  const JudgedBlocks blocks(layout, shape, torus);
  draw_shared(chips, [&](int chip) {
    const auto part = static_cast<std::int64_t>(judged_part(layout, torus, chip));
    return part * element_count(shape) + blocks.first(chip);
  });
  Sharded value(torus, layout, shape, std::move(chips));
  const ExpectedBits expected{.shape = shape,
                              .bits = Words<std::uint32_t>::of_parts(words),
                              .integer = false,
                              .padding = draw_mask(element_count(shape))};
  expect_same(expected, layout, value);
  for (int faults = draw_int(1, 3); faults-- > 0;) {
    const auto numbers = value.f32_of(draw_int(0, torus.chips() - 1));
    float& v = numbers[draw_place(numbers.size())];
    v = std::bit_cast<float>(std::bit_cast<std::uint32_t>(v) ^ 1U << draw_int(0, 31));
    expect_same(expected, layout, value);
  }
}

RC_GTEST_PROP(ComparisonByElements, OfIntegers, ()) {
  const Torus torus = draw_torus();
  const Layout layout = draw_layout("BE");
  IntTensor t(draw_sizes(torus));
  for (std::size_t i = 0; i < t.data.size(); ++i) t.data[i] = static_cast<std::int32_t>(i * 7919);
  Sharded value = shard(t, layout, torus);
  const ExpectedBits expected{.shape = t.shape,
                              .bits = Words<std::uint32_t>::of(t.data),
                              .integer = true,
                              .padding = draw_mask(element_count(t.shape))};
  expect_same(expected, layout, value);
  const auto numbers = value.i32_of(draw_int(0, torus.chips() - 1));
  ++numbers[draw_place(numbers.size())];
  expect_same(expected, layout, value);
}

RC_GTEST_PROP(ComparisonByElements, OfExactPartialSums, ()) {
  const Torus torus = draw_torus();
  const Layout layout = draw_layout("BE", true);
  if (!layout.is_partial()) RC_DISCARD("complete");
  const Shape shape = draw_sizes(torus);
  const auto count = static_cast<std::size_t>(element_count(judged_block(layout, shape, torus)));
  auto terms = std::make_shared<OneTermEach>();
  Partial partial;
  const bool bounded = draw_int(0, 1) == 1;
  const bool moved = draw_int(0, 1) == 1;  // origins beside the elements
  for (int chip = 0; chip < torus.chips(); ++chip) {
    std::vector<float>& of_chip = terms->of_chip.emplace_back();
    Buffer<double> values;
    Buffer<float> bounds;
    Buffer<Origin> origins;
    for (std::size_t i = 0; i < count; ++i) {
      // By turns of chips 2^60, its negative and a small number: their sums lose what is small, and
      // then the large ones are gone.
      const float sizes[] = {i % 3 == 0 ? 0x1p60F : 3.0F, i % 3 == 0 ? -0x1p60F : 5.0F, 7.0F};
      of_chip.push_back(sizes[chip % 3] * static_cast<float>(i % 17 + 1));
      values.push_back(static_cast<double>(of_chip.back()));
      if (bounded) bounds.push_back(i % 11 == 0 ? 1e6F : 1e-9F);
      if (moved) origins.push_back({chip, static_cast<std::uint32_t>(i)});
    }
    partial.values.push_back(std::move(values));
    partial.bounds.push_back(std::move(bounds));
    partial.origins.push_back(std::move(origins));
  }
  partial.source = terms;
  // What the sums must be, by their terms.
  std::vector<std::uint32_t> bits(static_cast<std::size_t>(element_count(shape)));
  for (int chip = 0; chip < torus.chips(); ++chip)
    judged_elements(layout, shape, torus, chip, [&](std::int64_t local, std::int64_t global) {
      std::vector<Element> sum;
      for (const int member : judged_group(layout, torus, chip)) sum.push_back({member, local});
      bits[static_cast<std::size_t>(global)] =
          std::bit_cast<std::uint32_t>(partial.sum_of_origins(sum));
      return false;
    });
  const ExpectedBits expected{
      .shape = shape, .bits = bits, .integer = false, .padding = draw_mask(element_count(shape))};
  const auto same = [&] { expect_same(expected, layout, Sharded(torus, layout, shape, partial)); };
  same();
  for (int faults = draw_int(1, 3); faults-- > 0;) {
    const auto chip = static_cast<std::size_t>(draw_int(0, torus.chips() - 1));
    const std::size_t i = draw_place(count);
    const int kind = draw_int(0, 3);
    if (kind == 0) partial.values[chip][i] += *rc::gen::element(1.0, -3.0, 1e-3, 0x1p31);
    if (kind == 1) partial.values[chip][i] = std::numeric_limits<double>::quiet_NaN();
    if (kind == 2 && bounded) partial.bounds[chip][i] = *rc::gen::element(0.0F, 1e-12F, 1e9F);
    if (kind == 3 && moved)
      partial.origins[chip][i].index = static_cast<std::uint32_t>(draw_place(count));
    same();
  }
}

RC_GTEST_PROP(ComparisonByElements, OfFieldNumbers, ()) {
  const Torus torus = draw_torus();
  const Layout layout = draw_layout("BE", draw_int(0, 1) == 1);
  const Shape shape = draw_sizes(torus);
  const auto field = std::make_shared<const Field>(FieldSetting{.bits = 31, .lanes = 2});
  const auto count = static_cast<std::size_t>(element_count(judged_block(layout, shape, torus)));
  // Every partial sum of an element is its number.
  std::vector<FieldElement> numbers(static_cast<std::size_t>(element_count(shape)));
  FieldShards shards{{}, field, FieldSort::number, {}};
  for (int chip = 0; chip < torus.chips(); ++chip) {
    Buffer<FieldElement> held(count);
    const auto members = static_cast<std::int64_t>(judged_group(layout, torus, chip).size());
    judged_elements(layout, shape, torus, chip, [&](std::int64_t local, std::int64_t global) {
      held[static_cast<std::size_t>(local)] = field->integer(global + 1);
      numbers[static_cast<std::size_t>(global)] =
          field->integer((global + 1) * (layout.is_partial() ? members : 1));
      return false;
    });
    shards.values.push_back(std::move(held));
  }
  const ExpectedBits expected{.shape = shape,
                              .bits = {},
                              .integer = false,
                              .numbers = numbers,
                              .padding = draw_mask(element_count(shape))};
  Sharded value(torus, layout, shape, shards);
  expect_same(expected, layout, value);
  const auto held = value.field_of(draw_int(0, torus.chips() - 1));
  FieldElement& v = held[draw_place(held.size())];
  v = field->add(v, field->integer(1));
  expect_same(expected, layout, value);
}

}  // namespace
}  // namespace shardproof
