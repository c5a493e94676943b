// Values that have all their bits are told from those with one other bit, on any chip.
#include <gtest/gtest.h>
// gtest first
#include <rapidcheck/gtest.h>

#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "golden/trace/verdict/measure.h"

namespace shardproof::dump {
namespace {

/// A value of f32 numbers in blocks, each chip's in an array of its own.
struct InBlocks {
  Tensor whole;
  std::vector<StoredArray> arrays;
  DumpedValue dumped;

  InBlocks(const std::string& layout, const Torus& torus, const Shape& shape) : whole(shape) {
    for (std::size_t i = 0; i < whole.data.size(); ++i)
      whole.data[i] = i % 5 == 0 ? 0.0F : static_cast<float>(i) - 3.5F;
    dumped.layout = Layout::parse(layout);
    dumped.torus = torus;
    dumped.subject.shape = shape;
    const auto blocks = std::make_shared<const JudgedBlocks>(dumped.layout, shape, torus);
    for (int chip = 0; chip < torus.chips(); ++chip) {
      const Places places(blocks, chip);
      StoredArray array;
      array.bytes.resize(places.size() * sizeof(float));
      places.each([&](std::size_t i, std::int64_t place) {
        std::memcpy(array.bytes.data() + i * sizeof(float),
                    &whole.data[static_cast<std::size_t>(place)], sizeof(float));
      });
      arrays.push_back(std::move(array));
      dumped.places.push_back(places);
    }
    for (const StoredArray& array : arrays)
      dumped.shards.emplace_back(array, 0, array.bytes.size() / sizeof(float));
  }
};

RC_GTEST_PROP(AllBits, AnyOtherBitIsSeen, ()) {
  const auto size = [](int least = 1) { return *rc::gen::inRange(least, 4); };
  const Torus torus(size(), size(), size());
  const Layout layout =
      Layout::parse(*rc::gen::element<std::string>("E_xF_z", "EF", "E_zyF_x", "EF_y"));
  Shape shape;
  for (const Layout::Dim& dim : layout.dims()) shape.push_back(torus.size(dim.axes) * size(2));
  InBlocks of(layout.to_string(), torus, shape);
  Row row;
  RC_ASSERT(has_all_bits(of.dumped, of.whole, row));
  RC_ASSERT(row.fit == Fit::equal);
  std::int64_t numbers = 0;
  for (const Numbers& shard : of.dumped.shards) numbers += std::ssize(shard);
  RC_ASSERT(row.elements == numbers);
  for (StoredArray& array : of.arrays) {
    std::byte& byte = array.bytes[*rc::gen::inRange<std::size_t>(0, array.bytes.size())];
    const std::byte before = byte;
    byte ^= std::byte{1} << *rc::gen::inRange(0, 8);
    Row other;
    RC_ASSERT(!has_all_bits(of.dumped, of.whole, other));
    RC_ASSERT(other.elements == 0 && other.fit == Fit::not_judged);
    byte = before;
  }
  // A sign of zero is a bit.
  std::byte& sign = of.arrays.back().bytes.back();
  sign ^= std::byte{0x80};
  RC_ASSERT(!has_all_bits(of.dumped, of.whole, row));
}

// So many that threads share them, in parts that begin and end within a chip's runs.
TEST(AllBits, AnyOtherBitOfManyIsSeen) {
  for (const auto& [layout, copies] : {std::pair("EF_x", 1), std::pair("EF", 3)}) {
    InBlocks of(layout, Torus(3, 1, 1), {1029, 1023});
    Row row;
    EXPECT_TRUE(has_all_bits(of.dumped, of.whole, row));
    EXPECT_EQ(row.elements, copies * 1029 * 1023);
    for (StoredArray& array : of.arrays)
      for (std::size_t i = 0; i < array.bytes.size(); i += 1023 * 97) {
        array.bytes[i] ^= std::byte{1};
        Row other;
        EXPECT_FALSE(has_all_bits(of.dumped, of.whole, other)) << layout << " " << i;
        array.bytes[i] ^= std::byte{1};
      }
  }
}

TEST(AllBits, AreNotSaidOfNothingOrOfOtherUnits) {
  InBlocks of("E_xF", Torus(2, 1, 1), {4, 3});
  Row row;
  DumpedValue units = of.dumped, sum = of.dumped, partial = of.dumped, none = of.dumped;
  units.units.assign(12, 1.0);
  sum.terms = 2;
  partial.layout = Layout::parse("EF").with_partial(Axes().with(Axis::x));
  for (Numbers& shard : none.shards) shard.clear();
  for (const DumpedValue& value : {units, sum, partial, none})
    EXPECT_FALSE(has_all_bits(value, of.whole, row));
  DumpedValue one = of.dumped;
  one.shards[0].clear();
  EXPECT_TRUE(has_all_bits(one, of.whole, row));
  EXPECT_EQ(row.elements, 6);
}

}  // namespace
}  // namespace shardproof::dump
