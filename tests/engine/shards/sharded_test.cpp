// A value on a torus keeps layout, shape and data together: what does not fit is not made.
#include "engine/shards/sharded.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "engine/collectives/collectives.h"
#include "engine/shards/hazards.h"
#include "tests/engine/run_program.h"
#include "tests/weights/expect_error.h"

namespace shardproof {
namespace {

using Chips = ChipArrays<float>;
using Ints = ChipArrays<std::int32_t>;

const Torus kTwo(1, 1, 2);

Sharded made(const char* layout, const Shape& shape, Sharded::Data data) {
  return {kTwo, Layout::parse(layout), shape, std::move(data)};
}

Partial partial_of(const ChipArrays<double>& values) {
  Partial partial;
  partial.values = values;
  partial.bounds.resize(values.size());
  partial.origins.resize(values.size());
  return partial;
}

TEST(Sharded, IsMadeOfWhatFits) {
  const Sharded t = made("B_zE", {4, 3}, Chips(2, Buffer<float>(6, 1.0F)));
  EXPECT_EQ(t.local(), (Shape{2, 3}));
  EXPECT_EQ(t.type(), (Type{Layout::parse("B_zE"), {4, 3}, false}));
  EXPECT_TRUE(made("B", {3}, Ints(2, {1, 2, 3})).stores_int32());
  EXPECT_TRUE(made("B partialsum-z", {1}, partial_of({{1.0}, {2.0}})).holds_partial());
  // Partial sums of the f32 regime.
  EXPECT_FALSE(made("B partialsum-z", {1}, Chips{{1}, {2}}).holds_partial());
  EXPECT_EQ(made("B_zE", {4, 0}, Chips(2)).local(), (Shape{2, 0}));
}

struct Unfit {
  const char* layout;
  Shape shape;
  Sharded::Data data;
  const char* names;
};

TEST(Sharded, RefusesWhatDoesNotFitAndNamesIt) {
  const Chips three(2, {1, 2, 3});
  const ChipArrays<double> values{{1}, {2}};
  const auto changed = [&](const std::function<void(Partial&)>& change) {
    Partial p = partial_of(values);
    change(p);
    return p;
  };
  const auto origins = [&](const Buffer<Origin>& first, int terms) {
    return changed([&](Partial& p) { p.origins[0] = first, p.terms = terms; });
  };
  const char* const summed = "B partialsum-z";
  const Unfit broken[] = {
      {"BE", {3}, three, "BE [3]: 2 dims, 1 extents"},
      {"B", {3, 1}, three, "B [3,1]: 1 dims, 2 extents"},
      {"B_z", {3}, three, "B_z [3]: B=3 of B_z is not divisible by z=2"},
      {"B", {3}, Chips(1, {1, 2, 3}), "values for 1 chips on torus 1x1x2"},
      {"B", {3}, Chips(3, {1, 2, 3}), "values for 3 chips"},
      {"B", {3}, Chips{{1, 2, 3}, {1, 2}}, "2 values on chip (0,0,1), 3 in a shard"},
      {"B", {3}, Chips(2), "0 values on chip (0,0,0), 3 in a shard"},
      {"B_z", {6}, Ints{{1, 2, 3}, {1}}, "1 integers on chip (0,0,1), 3 in a"},
      {summed, {3}, Ints(2, {1, 2, 3}), "integers under a partial layout"},
      {"B", {1}, partial_of(values), "partial sums under a complete layout"},
      {summed, {2}, partial_of(values), "1 partial values on chip (0,0,0)"},
      {summed, {1}, changed([](Partial& p) { p.bounds.pop_back(); }), "bounds for 1 chips"},
      {summed,
       {1},
       changed([](Partial& p) { p.bounds[1].assign(2, 1); }),
       "2 bounds on chip (0,0,1)"},
      {summed, {1}, origins({{0, 0}, {1, 0}}, 1), "2 origins on chip"},
      {summed, {1}, origins({{0, 0}}, 2), "1 origins on"},
      {summed, {1}, changed([](Partial& p) { p.origins.resize(0); }), "origins for 0 chips"},
      {summed, {1}, changed([](Partial& p) { p.terms = 0; }), "partial sums of no terms"},
  };
  for (const auto& [layout, shape, data, names] : broken) {
    const std::string message =
        message_of([&, l = layout, &s = shape, &d = data] { made(l, s, d); });
    EXPECT_TRUE(message.starts_with("sharded_c1: ")) << message;
    EXPECT_NE(message.find(names), std::string::npos) << message;
  }
}

TEST(Sharded, IsRelabelledOnlyToWhatFits) {
  const Sharded t = made("H_zQ", {4, 3}, Chips(2, Buffer<float>(6, 1.0F)));
  const Sharded view = t.relabelled(Layout::parse("S_zRQ"), {2, 2, 3});
  EXPECT_EQ(view.local(), (Shape{1, 2, 3}));
  EXPECT_EQ(view.f32(), t.f32());
  EXPECT_EQ(label_of([&] { t.relabelled(Layout::parse("HQ"), {4, 3}); }), "sharded_c1");
  EXPECT_EQ(label_of([&] { t.relabelled(Layout::parse("H_zQ"), {4}); }), "sharded_c1");
}

TEST(Sharded, ItsNumbersMayChangeButNotTheirNumber) {
  Sharded t = made("B_z", {4}, Chips{{1, 2}, {3, 4}});
  t.f32_of(1)[0] = 7;
  EXPECT_EQ(t.f32(), (Chips{{1, 2}, {7, 4}}));
  Sharded partial = made("B partialsum-z", {1}, partial_of({{1.0}, {2.0}}));
  t.poison();
  partial.poison();
  EXPECT_TRUE(std::isnan(t.f32()[0][1]));
  EXPECT_TRUE(std::isnan(partial.partial().values[1][0]));
  EXPECT_EQ(t.local(), Shape{2});
  Sharded ids = made("B_z", {4}, Ints{{1, 2}, {3, 4}});
  ids.poison();
  EXPECT_EQ(ids.i32(), (Ints{{-1, -1}, {-1, -1}}));
}

// ---- values of a program that runs without the type check

std::map<std::string, SharedValue> run_unchecked(const char* text) {
  const Program program = parse_program("test", text);
  Threads one(1);
  return execute(program,
                 {{"x", shared(shard(tensor_of({1, 1, 4}), Layout::parse("BLE_z"), kTwo))}},
                 {any_config(), one, nullptr, {"decode.1", "", 0}, {}, {}});
}

TEST(Execute, GivesAValueTheLayoutThatItsOpYields) {
  for (const char* declared : {"BLE", "BLE_z", "B_zLE", "BL", "BLE partialsum-z", "BLE_xyz"}) {
    const auto out =
        run_unchecked((std::string("input x : BLE_z is in\ny : ") + declared +
                       " = all_gather(x, E, z) is in\nz : BLE = add(y, y) is in\noutput y, z")
                          .c_str());
    EXPECT_EQ(out.at("y")->layout().to_string(), "BLE") << declared;
    EXPECT_EQ(out.at("z")->f32(), Chips(2, {0, 2, 4, 6})) << declared;
  }
}

TEST(Execute, EndsWhereAnOpYieldsNothing) {
  const std::pair<const char*, const char*> broken[] = {
      {"y : BLE = all_gather(x, E, x) is in", "all_gather_c2"},
      {"y : BLE = all_gather(x, F, z) is in", "all_gather_c1"},
      {"y : BLE_z = slice(x, B, z) is in", "slice_c2"},
      {"y : BL_zE = all_to_all(x, E->L, z) is in", "local_c1"},
      {"y : BLE_z = scale_by(x, gamma) is in", "scale_by_c2"},
      {"y : BLE_z, w : BLE_z = add(x, x) is in, in", "1 results, not 2"},
      {"s : BL partialsum-z = einsum(BLE,BLE->BL; x, x) is stat ss\ny : BL = add(s, s) is in",
       "add_c1"},
      {"y : BLE_z = add(x) is in", "program_c4"},
  };
  for (const auto& [step, why] : broken) {
    const auto run = [statement = step] {
      run_unchecked((std::string("input x : BLE_z is in\n") + statement + "\noutput y").c_str());
    };
    EXPECT_EQ(label_of(run), "engine_types") << step;
    EXPECT_NE(message_of(run).find(why), std::string::npos) << message_of(run);
    EXPECT_NE(message_of(run).find("decode.1.test.y = "), std::string::npos) << message_of(run);
  }
}

}  // namespace
}  // namespace shardproof
