#include "weights/maps/tensor_pattern.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <functional>

#include "tests/weights/expect_error.h"

namespace shardproof {
namespace {

using Extents = std::map<char, std::int64_t>;

/// A tensor whose elements are their places.
Tensor places(const Shape& shape) {
  Tensor tensor(shape);
  for (std::size_t i = 0; i < tensor.data.size(); ++i) tensor.data[i] = static_cast<float>(i);
  return tensor;
}

std::vector<float> taken(const char* pattern, std::size_t take, const Shape& shape,
                         const char* letters, const Extents& extents, std::int64_t skip = 0) {
  return unpack(places(shape), TensorPattern::parse(pattern, take, skip), letters, extents).data;
}

TEST(TensorPattern, ByEye) {
  const Extents extents{{'E', 2}, {'H', 2}, {'K', 1}, {'G', 2}, {'Q', 2}, {'P', 2}, {'F', 3}};
  using Row = std::vector<float>;
  EXPECT_EQ(taken("FE", 0, {3, 2}, "EF", extents), (Row{0, 2, 4, 1, 3, 5}));
  EXPECT_EQ(taken("EF", 0, {2, 3}, "EF", extents), (Row{0, 1, 2, 3, 4, 5}));
  // One matrix of [H by Q, E] as [E, H, Q].
  EXPECT_EQ(taken("(HQ)E", 0, {4, 2}, "EHQ", extents), (Row{0, 2, 4, 6, 1, 3, 5, 7}));
  EXPECT_EQ(taken("([E,F])", 0, {5}, "E", extents), (Row{0, 1}));
  EXPECT_EQ(taken("([E,F])", 1, {5}, "F", extents), (Row{2, 3, 4}));
  EXPECT_EQ(taken("(F[1,1])", 1, {6}, "F", extents), (Row{1, 3, 5}));
  EXPECT_EQ(taken("(H[1,1,1]Q)", 2, {12}, "HQ", extents), (Row{4, 5, 10, 11}));
  EXPECT_EQ(taken("([HQ,KQ])", 0, {6}, "HQ", extents), (Row{0, 1, 2, 3}));
  EXPECT_EQ(taken("([HQ,KQ])", 1, {6}, "KQ", extents), (Row{4, 5}));
  EXPECT_EQ(taken("(K[G,1,1]Q)", 0, {8}, "HQ", extents), (Row{0, 1, 2, 3}));
  EXPECT_EQ(taken("(K[G,1,1]Q)", 1, {8}, "KQ", extents), (Row{4, 5}));
  EXPECT_EQ(taken("F1E", 0, {3, 1, 2}, "EF", extents), (Row{0, 2, 4, 1, 3, 5}));
  EXPECT_EQ(taken("PE", 0, {4, 2}, "PE", extents, 1), (Row{2, 3, 4, 5}));
  EXPECT_EQ(taken("PE", 0, {3, 2}, "PE", extents, 1), (Row{2, 3, 4, 5}));
  EXPECT_EQ(taken("FE", 0, {4, 2}, "FE", extents, 1), (Row{2, 3, 4, 5, 6, 7}));
}

TEST(TensorPattern, OtherShapesAreRefused) {
  const Extents extents{{'E', 2}, {'H', 2}, {'K', 1}, {'G', 3}, {'Q', 2}, {'P', 3}, {'F', 3}};
  const auto label = [&](const char* pattern, const Shape& shape, const char* letters,
                         std::int64_t skip = 0) {
    return label_of([&] { taken(pattern, 0, shape, letters, extents, skip); });
  };
  EXPECT_EQ(label("FE", {3, 2}, "EF"), "");
  EXPECT_EQ(label("FE", {2, 3}, "EF"), "model_map_c5");
  EXPECT_EQ(label("FE", {6}, "EF"), "model_map_c5");
  EXPECT_EQ(label("FE", {3, 2, 1}, "EF"), "model_map_c5");
  EXPECT_EQ(label("FE", {6, 2}, "EF"), "model_map_c5");
  EXPECT_EQ(label("FE", {0, 2}, "EF"), "model_map_c5");
  EXPECT_EQ(label("FE", {3, 2}, "EF", 1), "model_map_c5");
  EXPECT_EQ(label("PE", {2, 2}, "PE"), "model_map_c5");
  EXPECT_EQ(label("PE", {5, 2}, "PE", 3), "model_map_c5");
  EXPECT_EQ(label("EP", {4, 3}, "EP"), "model_map_c5");
  EXPECT_EQ(label("(HQ)E", {4, 2}, "EHF"), "model_map_c5");
  EXPECT_EQ(label("(HQ)E", {4, 2}, "EH"), "model_map_c5");
  EXPECT_EQ(label("(HQ)E", {4, 2}, "EHQF"), "model_map_c5");
  EXPECT_EQ(label("(HX)E", {4, 2}, "EHX"), "model_map_c5");
  EXPECT_EQ(label("(KGQ)E", {6, 2}, "HQE"), "model_map_c5");  // H is not K times G
  EXPECT_EQ(label("(KGQ)E", {6, 2}, "KGQE"), "");
  EXPECT_TRUE(refuses(
      [&] {
        taken("FE", 0, {2, 3}, "EF", extents);
      },
      "model_map_c5", "the tensor's shape [2, 3] is not FE of E=2, F=3"));
}

TEST(TensorPattern, IsNotOne) {
  for (const char* text : {"", "(", "()", "(E", "E)", "((E))", "[E,F]x[E,F]", "([E,F][E,F])", "[E",
                           "[]", "[E,]", "[E2,1]", "E-F", "EE", "(E[E,1])", "[1", "E F"})
    EXPECT_EQ(label_of([&] { TensorPattern::parse(text, 0, 0); }), "model_map_c3") << text;
  EXPECT_EQ(label_of([&] { TensorPattern::parse("([E,F])", 2, 0); }), "model_map_c3");
  EXPECT_EQ(label_of([&] { TensorPattern::parse("E", 1, 0); }), "model_map_c3");
  EXPECT_EQ(TensorPattern::parse("([E,F])", 1, 0).letters(), "F");
  EXPECT_EQ(TensorPattern::parse("(K[G,1]Q)1E", 1, 0).letters(), "KQE");
}

// Axes grouped at random, one of them of parts: what is taken is what loops over the axes find.
RC_GTEST_PROP(TensorPattern, TakesWhatLoopsFind, ()) {
  std::string letters = "ABCDR";
  Extents extents;
  for (const char c : letters) extents[c] = *rc::gen::inRange<std::int64_t>(1, 4);
  std::string order = letters;
  for (std::size_t i = order.size(); i-- > 1;)
    std::swap(order[i], order[*rc::gen::inRange<std::size_t>(0, i + 1)]);
  // The last of the letters is one of three parts: "R" between two of others' extents.
  const std::size_t take = *rc::gen::inRange<std::size_t>(0, 3);
  std::vector<std::string> parts{"A", "1", "BC"};
  parts[take] = "R";
  std::vector<std::int64_t> sizes;
  for (const std::string& part : parts) {
    std::int64_t size = 1;
    for (const char c : part) size *= c == '1' ? 1 : extents.at(c);
    sizes.push_back(size);
  }
  std::string pattern;
  Shape shape;
  bool open = false;
  for (std::size_t i = 0; i < order.size(); ++i) {
    const bool join = open && *rc::gen::inRange(0, 2) == 1;
    if (open && !join) pattern += ")";
    if (!join) pattern += "(", shape.push_back(1);
    open = true;
    pattern += order[i] == 'R' ? "[" + parts[0] + "," + parts[1] + "," + parts[2] + "]"
                               : std::string(1, order[i]);
    shape.back() *= order[i] == 'R' ? sizes[0] + sizes[1] + sizes[2] : extents.at(order[i]);
  }
  pattern += ")";
  const Tensor result =
      unpack(places(shape), TensorPattern::parse(pattern, take, 0), letters, extents);
  std::size_t at = 0;
  std::map<char, std::int64_t> index;
  const std::function<void(std::size_t)> loop = [&](std::size_t depth) {
    if (depth == letters.size()) {
      std::int64_t place = 0;
      for (const char c : order) {
        const bool part = c == 'R';
        std::int64_t begin = 0;
        for (std::size_t i = 0; part && i < take; ++i) begin += sizes[i];
        place = place * (part ? sizes[0] + sizes[1] + sizes[2] : extents.at(c)) + begin + index[c];
      }
      RC_ASSERT(result.data[at++] == static_cast<float>(place));
      return;
    }
    for (std::int64_t i = 0; i < extents.at(letters[depth]); ++i) {
      index[letters[depth]] = i;
      loop(depth + 1);
    }
  };
  loop(0);
  RC_ASSERT(at == result.data.size());
}

}  // namespace
}  // namespace shardproof
