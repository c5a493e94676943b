// Each hazard against a fault that it makes visible, and that goes unseen without it.
#include "engine/shards/hazards.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <functional>
#include <mutex>
#include <numeric>

#include "engine/program/liveness.h"
#include "tests/engine/run_program.h"
#include "tests/engine/written_values.h"
#include "weights/base/error.h"

namespace shardproof {
namespace {

/// Calls `see` for every value of a run, inputs included.
class Watcher : public Observer {
 public:
  using See = std::function<void(const std::string& name, const Sharded& value)>;
  explicit Watcher(See see) : see_(std::move(see)) {}
  void observe(const Scope&, const Program&, const Op*, const ValueDecl& declared,
               const Sharded& value) override {
    see_(declared.name, value);
  }

 private:
  See see_;
};

/// Runs y = x + x under all hazards or none; `see` is called for x and for y.
void run_sum(Threads& threads, bool hostile, Watcher::See see) {
  Watcher watcher(std::move(see));
  const Program program =
      parse_program("test", "input x : BLE is in\ny : BLE = add(x, x) is in\noutput y");
  execute(program, {{"x", shared(iota("BLE", {1, 1, 4}, Torus(1, 1, 2)))}},
          any_execution(threads, &watcher, hostile ? Hazards::hostile() : Hazards{}));
}

// ---- fresh buffers

/// Adds 1 to every element but each chip's last, which it forgets.
Sharded add_one_but_last(const Sharded& t, Threads& threads) {
  Chips chips(t.f32().size());
  threads.for_each(t.torus().chips(), [&](std::int64_t chip) {
    const auto& in = t.f32()[static_cast<std::size_t>(chip)];
    auto& out = chips[static_cast<std::size_t>(chip)];
    out.resize(in.size());
    for (std::size_t i = 0; i + 1 < in.size(); ++i) out[i] = in[i] + 1;
  });
  return {t.torus(), t.layout(), t.shape(), std::move(chips)};
}

TEST(FreshNaN, ShowsAnElementThatAnOpForgets) {
  // Memory is used again: what the right op left there makes the wrong one look right.
  const Sharded t = iota("E_z", {1000}, Torus(1, 1, 2));
  float forgotten[2];
  for (const bool hostile : {false, true}) {
    {
      Chips right(2, Buffer<float>(500));
      for (std::size_t c = 0; c < 2; ++c)
        for (std::size_t i = 0; i < 500; ++i) right[c][i] = t.f32()[c][i] + 1;
    }
    Hazards hazards;
    hazards.fresh_nan = hostile;
    const HazardScope scope(hazards, one());
    const Sharded out = add_one_but_last(t, one());
    forgotten[hostile ? 1 : 0] = out.f32()[1].back();
    EXPECT_EQ(out.f32()[1][7], 508);
  }
  EXPECT_FALSE(std::isnan(forgotten[0])) << "the fault shows without the hazard";
  EXPECT_TRUE(std::isnan(forgotten[1]));
}

TEST(FreshNaN, FillsEveryTypeOfNumberAndAnySize) {
  const chip_memory::Hostile hostile(true, false);
  for (std::size_t n : {1U, 3U, 16U, 17U, 1000U, 12345U}) {
    for (float v : Buffer<float>(n)) ASSERT_TRUE(std::isnan(v));
    for (double v : Buffer<double>(n)) ASSERT_TRUE(std::isnan(v));
    for (std::int32_t v : Buffer<std::int32_t>(n)) ASSERT_EQ(v, -1);
  }
}

TEST(FreshNaN, HoldsWhileAProgramRuns) {
  for (const bool hostile : {false, true}) {
    { const Buffer<float> ones(321, 1.0F); }
    int fresh_nan = 0;
    run_sum(one(), hostile, [&](const std::string&, const Sharded&) {
      fresh_nan += std::isnan(Buffer<float>(321)[320]) ? 1 : 0;
    });
    EXPECT_EQ(fresh_nan, hostile ? 2 : 0);
  }
}

// ---- poison

// y is past its last use when w is made, and w is too large to take its place in memory.
constexpr const char* kChain = R"(
  input x : BLE_z is in
  y : BLE_z = add(x, x) is in
  z : BLE_z = add(y, x) is in
  w : BLE = all_gather(z, E, z) is in
  output w
)";

/// Runs kChain with an op w that takes the second half from a stale y in place of z: by value the
/// same, as long as y is still what it was.
Chips with_stale_read(const Hazards& hazards) {
  const float* stale = nullptr;
  Watcher watcher([&](const std::string& name, const Sharded& value) {
    if (name == "y") stale = value.f32()[1].data();
    if (name != "w") return;
    for (const auto& chip : value.f32())
      for (std::size_t i = 0; i < 100; ++i) const_cast<float&>(chip[100 + i]) = stale[i] * 1.5F;
  });
  return execute(parse_program("test", kChain),
                 {{"x", shared(iota("BLE_z", {1, 1, 200}, Torus(1, 1, 2)))}},
                 any_execution(one(), &watcher, hazards))
      .at("w")
      ->f32();
}

TEST(Poison, ShowsAReadAfterTheLastUse) {
  if (!chip_memory::recycles())
    GTEST_SKIP() << "the address sanitizer ends the program at the fault";
  const Chips right =
      run_program(kChain, Torus(1, 1, 2), {{"x", tensor_of({1, 1, 200})}}).at("w")->f32();
  Hazards hazards;
  hazards.replicas = true;  // the others do not help
  hazards.order = 3;
  EXPECT_EQ(with_stale_read(hazards), right) << "the fault shows without the hazard";
  hazards.poison = true;
  EXPECT_TRUE(std::isnan(with_stale_read(hazards)[1][100]));
}

TEST(Poison, ReachesInputsThatTheCallerGivesUp) {
  const Program program = parse_program("test", R"(
    input x : BLE is in
    input g : E is weight norm
    y : BLE = add(x, x) is in
    z : BLE = add(y, y) is in
    output z
  )");
  const auto x = shared(iota("BLE", {1, 1, 4}, Torus(1, 1, 2)));
  const auto g = shared(iota("E", {4}, Torus(1, 1, 2)));
  for (const bool given_up : {false, true}) {
    float late = 0;  // what is left of x when z is made
    Watcher watcher([&](const std::string& name, const Sharded&) {
      if (name == "z") late = x->f32()[1][3];
    });
    Hazards hazards;
    hazards.poison = true;
    execute(program, {{"x", x}, {"g", g}},
            {.config = any_config(),
             .threads = one(),
             .observer = &watcher,
             .scope = {},
             .hazards = hazards,
             .donate_inputs = given_up});
    EXPECT_EQ(std::isnan(late), given_up);
    EXPECT_EQ(g->f32()[1][3], 3) << "weights are kept";
  }
}

TEST(Poison, ReachesWhatSomebodyStillRefersTo) {
  // A copy of the partial p keeps its operand x alive, which is past its use once r is complete.
  const Program program = parse_program("test", R"(
    input a : BLE_z is in
    input w : E_zF is weight w_gate
    x : BLE_z = add(a, a) is in
    p : BLF partialsum-z = einsum(BLE,EF->BLF; x, w) is stat ss
    r : BLF = all_reduce(p, z) is stat ss
    t : BLF = add(r, r) is stat ss
    output t
  )");
  const Torus torus(1, 1, 2);
  const auto a = shared(iota("BLE_z", {1, 1, 4}, torus));
  const auto w = shared(iota("E_zF", {4, 2}, torus));
  const auto kept_sum = [&](bool poisoned) {
    Partial kept;
    Watcher watcher([&](const std::string& name, const Sharded& value) {
      if (name == "p") kept = value.partial();
    });
    Hazards hazards;
    hazards.poison = poisoned;
    const auto t =
        execute(program, {{"a", a}, {"w", w}}, any_execution(one(), &watcher, hazards)).at("t");
    EXPECT_EQ(t->f32(), Chips(2, {112, 136}));  // twice 2·(1·2 + 2·4 + 3·6), 2·(1·3 + 2·5 + 3·7)
    EXPECT_EQ(a->f32(), (Chips{{0, 1}, {2, 3}})) << "inputs are the caller's";
    return kept.sum_of_origins({{0, 0}, {1, 0}});
  };
  EXPECT_EQ(kept_sum(false), 56) << "the fault shows without the hazard";
  EXPECT_NE(kept_sum(true), 56);
}

TEST(Poison, LeavesOperandsOfAPartialUntilItIsComplete) {
  // No f64 sum with a bound decides these (laws_test.cpp, Tie): the operands are asked again, after
  // the last op that names them, through a move of the partial.
  const char* text = R"(
    input a : BLE_z is in
    input w : E_zF is weight w_gate
    x : BLE_z = scale_by(a, embed_scale) is stat x
    p : BLF partialsum-z = einsum(BLE,EF->BLF; x, w) is stat p
    m : BLF_y partialsum-z = slice(p, F, y) is stat p
    r : BLF_y = all_reduce(m, z) is stat p
    later : BLF_y = add(r, r) is stat p
    output r, later
  )";
  const Program program = parse_program("test", text);
  const auto until = needed_until(program);
  EXPECT_EQ(until.at("x"), 3U);  // until r, though p is the last op that names it
  EXPECT_EQ(until.at("w"), 3U);
  EXPECT_EQ(until.at("p"), 2U);
  EXPECT_EQ(until.at("m"), 3U);
  EXPECT_EQ(until.at("r"), 5U);  // an output

  ModelConfig config = any_config();
  config.embed_scale = 1;
  const Torus torus(1, 2, 2);
  const auto run = [&](const Hazards& hazards) {
    return execute(program,
                   {{"a", shared(shard(tensor_of({1, 1, 4}, {1, 0x1p-24F, 0x1p-53F, 0x1p-80F}),
                                       Layout::parse("BLE_z"), torus))},
                    {"w", shared(shard(tensor_of({4, 2}, {1, -1, 1, -1, 1, -1, 1, -1}),
                                       Layout::parse("E_zF"), torus))}},
                   {.config = config, .threads = one(), .scope = {}, .hazards = hazards})
        .at("r")
        ->f32();
  };
  constexpr float kUp = 1 + 0x1p-23F;
  const Chips right{{kUp}, {kUp}, {-kUp}, {-kUp}};
  EXPECT_EQ(run({}), right);
  EXPECT_EQ(run(Hazards::hostile()), right);
}

// ---- order

TEST(Order, ShowsAnOpWhoseResultDependsOnIt) {
  // Every chip adds its number to a running sum that only ascending visits make a prefix sum.
  const auto prefix_sums = [](Threads& threads) {
    Buffer<float> sums(10);
    float running = 0;
    threads.for_each(10, [&](std::int64_t chip) {
      running += static_cast<float>(chip);
      sums[static_cast<std::size_t>(chip)] = running;
    });
    return sums;
  };
  const Buffer<float> right{0, 1, 3, 6, 10, 15, 21, 28, 36, 45};
  EXPECT_EQ(prefix_sums(one()), right) << "the fault shows without the hazard";
  {
    Hazards hazards;
    hazards.order = 1;
    const HazardScope scope(hazards, one());
    EXPECT_NE(prefix_sums(one()), right);
  }
  EXPECT_EQ(prefix_sums(one()), right);
}

TEST(Order, IsAPermutationThatTheSeedRepeats) {
  for (int threads : {1, 3}) {
    Threads pool(threads);
    const auto orders = [&](std::uint64_t seed) {
      pool.shuffle(seed);
      std::vector<std::vector<std::int64_t>> seen;
      for (std::int64_t n : {0, 1, 2, 7, 60}) {
        std::mutex mutex;
        seen.emplace_back();
        pool.for_each(n, [&](std::int64_t i) {
          const std::lock_guard lock(mutex);
          seen.back().push_back(i);
        });
        auto sorted = seen.back();
        std::sort(sorted.begin(), sorted.end());
        std::vector<std::int64_t> all(static_cast<std::size_t>(n));
        std::iota(all.begin(), all.end(), 0);
        EXPECT_EQ(sorted, all);
      }
      return seen;
    };
    const auto first = orders(5);
    if (threads == 1) {
      EXPECT_EQ(orders(5), first);
      EXPECT_NE(orders(6), first);
    }
  }
}

TEST(Order, IsThatOfEveryOpOfAProgram) {
  Threads threads(1);
  for (const bool hostile : {false, true}) {
    std::vector<std::int64_t> order;
    run_sum(threads, hostile, [&](const std::string& name, const Sharded&) {
      if (name == "y") threads.for_each(30, [&](std::int64_t chip) { order.push_back(chip); });
    });
    EXPECT_EQ(std::is_sorted(order.begin(), order.end()), !hostile);
  }
}

// ---- replicas

/// Runs `text` on x of four elements over 2x3x2 and flips the lowest bit of one element of `name`
/// on `chip`.
void run_with_flipped_bit(const char* text, const char* name, std::size_t chip,
                          const Hazards& hazards) {
  Watcher watcher([&](const std::string& seen, const Sharded& value) {
    if (seen != name) return;
    if (value.holds_partial()) {
      double& v = const_cast<double&>(value.partial().values[chip].back());
      v = std::bit_cast<double>(std::bit_cast<std::uint64_t>(v) ^ 1);
    } else {
      float& v = const_cast<float&>(value.f32()[chip].back());
      v = std::bit_cast<float>(std::bit_cast<std::uint32_t>(v) ^ 1);
    }
  });
  const Program program = parse_program("test", text);
  const Sharded x =
      shard(tensor_of({1, 1, 4}), Layout::parse("BLE_z"), Torus(2, 3, 2), Replicas::own);
  execute(program, {{"x", shared(x)}},
          {.config = any_config(),
           .threads = one(),
           .observer = &watcher,
           .scope = {.pass = "decode.1", .previous = "", .layer = 0},
           .hazards = hazards});
}

constexpr const char* kReplicas = R"(
  input x : BLE_z is in
  y : BLE_z = add(x, x) is in
  ss : BL partialsum-z = einsum(BLE,BLE->BL; y, y) is stat ss
  sa : BL = all_reduce(ss, z) is stat ss
  output sa
)";

TEST(Replicas, AFlippedBitIsNamedByStepChipsAndElement) {
  Hazards alone;  // else a bit would be flipped for all that share a buffer
  alone.alone = true;
  Hazards hazards = alone;
  hazards.replicas = true;
  const auto message = [&](const char* value, std::size_t chip) -> std::string {
    run_with_flipped_bit(kReplicas, value, chip, alone);  // goes unseen
    try {
      run_with_flipped_bit(kReplicas, value, chip, hazards);
    } catch (const Error& error) {
      EXPECT_EQ(error.label(), "hazard_replicas");
      return error.what();
    }
    return "not caught";
  };
  // Chip (1,2,1) is number 11; the first with its z is (0,0,1).
  EXPECT_EQ(message("y", 11),
            "hazard_replicas: decode.1.test.y : BLE_z: chips (0,0,1) and (1,2,1) hold the same "
            "block, but their "
            "values differ at local element 1: 0x40c00000 and 0x40c00001");
  EXPECT_NE(message("ss", 4).find("chips (0,0,0) and (0,2,0)"), std::string::npos);
  EXPECT_NE(message("ss", 4).find("partial values"), std::string::npos);
  EXPECT_NE(message("sa", 1).find("chips (0,0,0) and (0,0,1)"), std::string::npos);
  EXPECT_NE(message("x", 2).find("decode.1.test.x"), std::string::npos);
}

TEST(Replicas, BlocksOfDifferentChipsMayDiffer) {
  for (const char* layout : {"BLE_xzy", "B_xLE_zy", "BL_zE_x", "BLE"})
    EXPECT_FALSE(
        replica_difference("s", Layout::parse(layout), iota(layout, {24, 24, 24}, Torus(2, 3, 4))));
  const auto found =
      replica_difference("s", Layout::parse("BLE_x"), iota("BLE_xz", {1, 1, 24}, Torus(2, 3, 4)));
  ASSERT_TRUE(found);
  EXPECT_EQ(found->detector, Detector::replicas);
  EXPECT_EQ(found->step, "s");
  EXPECT_EQ(found->chip, "(0,0,1)");
  EXPECT_EQ(found->index, (Shape{0}));
  EXPECT_EQ(found->expected, "0x00000000");
}

}  // namespace
}  // namespace shardproof
