// Blocks that lie where others belong.
#include "tests/golden/diagnosis/planted.h"
#include "tests/sanitized.h"
#include "tests/weights/expect_error.h"

namespace shardproof::diagnosis {
namespace {

const Torus kTori[]{kTorus, {2, 3, 1}, {2, 2, 2}, {3, 2, 4}};
const std::string kOut = kAt + "out";

class Blocks : public testing::Test {
 protected:
  /// Of a value that is declared as one layout and cut as another, of chips from(chip).
  template <class From>
  Planted::Said from(const std::string& id, const std::string& declared, const std::string& dumped,
                     const Torus& torus, From&& chip) {
    return p.ask(id, declared, torus, Planted::cut(p.value(id), dumped, torus, chip));
  }
  Planted::Said held(const std::string& declared, const std::string& dumped, const Torus& torus) {
    return from(kOut, declared, dumped, torus, [](int chip) { return chip; });
  }
  Planted p{kModel + " seed=1"};
};

TEST_F(Blocks, OfARightValueAreNothing) {
  for (const Torus& torus : kTori)
    for (const std::string name : {"norm", "gate", "block_out", "out"})
      for (const char* axes : {"", "_x", "_yx", "_zyx"})
        expect_right(p.ask(kAt + name, p.value(kAt + name), torus,
                           (name == "gate" ? "BLF" : "BLE") + std::string(axes)));
}

TEST_F(Blocks, ThatDoNotFitTheValueAreRefused) {
  const Torus torus(2, 1, 1);
  const auto asked = [&](const char* layout, std::size_t chips, std::size_t elements) {
    return label_of(
        [&] { p.ask(kOut, layout, torus, Planted::Shards(chips, std::vector<double>(elements))); });
  };
  const std::size_t whole = p.value(kOut).data.size();
  EXPECT_EQ(asked("BLE_x", 2, whole / 2), "");
  EXPECT_EQ(asked("BLE_x", 2, whole), "diagnosis_c1") << "too many elements";
  EXPECT_EQ(asked("BLE_x", 3, whole / 2), "diagnosis_c1") << "too many chips";
}

TEST_F(Blocks, AxesInAnotherOrder) {
  for (const Torus& torus : kTori) {
    const std::string fault = "axes in another order ";
    if (torus.size(Axis::z) > 1)
      expect_first(held("BLE_xyz", "BLE_xzy", torus), fault + "[yz]: holds BLE_xzy");
    expect_first(held("BLE_xy", "BLE_yx", torus), fault + "[xy]");
    if (torus.size(Axis::x) == torus.size(Axis::y))
      expect_first(held("B_yLE_x", "B_xLE_y", torus), fault + "[xy]");
  }
  // Blocks in that order are no fault of another kind.
  const Torus cube(2, 2, 2);
  const Planted::Said said = held("BLE_yz", "BLE_zy", cube);
  expect_first(said, "axes in another order [yz]");
  expect_none(said, "chunks in another order");
  const int other[] = {1, 2, 0, 3};
  expect_first(from(kOut, "BLE_yz", "BLE_yz", cube,
                    [&](int chip) { return chip / 4 * 4 + other[chip % 4]; }),
               "chunks in another order [yz]: the blocks over yz are 1,2,0,3");
}

TEST_F(Blocks, ChunksInAnotherOrder) {
  const std::string fault = "chunks in another order [x]: ";
  const auto along_x = [&](auto x) {
    return from(kAt + "gate", "BLF_zyx", "BLF_zyx", kTorus,
                [&](int chip) { return x(chip / 6) * 6 + chip % 6; });
  };
  expect_first(along_x([](int x) { return 3 - x; }), fault + "the blocks over x are reversed");
  expect_first(along_x([](int x) { return (4 - x) % 4; }), fault + "the blocks over x are with");
  expect_first(along_x([](int x) { return (x + 1) % 4; }),
               fault + "the blocks over x are rotated by 1");
  expect_first(along_x([](int x) { return (x + 3) % 4; }),
               fault + "the blocks over x are rotated by -1");
  // Gathered over x, in the ring's other order.
  Planted::Shards shards = Planted::cut(p.value(kAt + "gate"), "BLF_zy", kTorus);
  for (std::size_t chip = 0; chip < 24; ++chip) {
    const std::vector<double> was = shards[chip];
    for (std::size_t i = 0; i < was.size(); ++i) {
      const std::size_t f = i % 16;
      shards[chip][i] = was[i - f + (2 * (chip / 6) + 4 - f / 4) % 4 * 4 + f % 4];
    }
  }
  expect_first(p.ask(kAt + "gate", "BLF_zy", kTorus, shards),
               "chunks in another order [x]: the chunks of F over x are with the ring's sign "
               "changed, from a chip's own on");
}

TEST_F(Blocks, OfAnotherChip) {
  for (const Torus& torus : kTori) {
    const int last = torus.chips() - 1, other = last - torus.size(Axis::z) * torus.size(Axis::y);
    expect_first(from(kOut, "BLE_xyz", "BLE_xyz", torus, [](int) { return 0; }),
                 fmt::format("another chip's block [{}]: all chips hold block 0",
                             torus.size(Axis::z) == 1 ? "xy" : "xyz"));
    expect_first(
        from(kOut, "BLE_xyz", "BLE_xyz", torus, [&](int c) { return c == last ? other : c; }),
        "another chip's block [x]");
  }
}

TEST_F(Blocks, SplitAndConcatSwapped) {
  const std::string id = kAt + "q_rot";
  for (const Torus& torus : {kTori[0], kTori[1], kTori[2]}) {
    const bool deep = torus.size(Axis::z) > 1;
    const std::string layout = deep ? "B_zyxLHQ" : "B_yxLHQ";
    const std::size_t n = at(torus.chips()), h = 24 / n, Q = 4;
    const auto expect = [&](auto&& filled) {
      Planted::Shards shards = Planted::cut(p.value(id), layout, torus);
      for (std::vector<double>& s : shards) s = filled(s);
      expect_first(p.ask(id, layout, torus, shards),
                   fmt::format("split and concat swapped [{}]", deep ? "xyz" : "xy"));
    };
    // The pieces' dim stands behind H: head j·h + i is where i·n + j belongs.
    if (h > 1)
      expect([&](std::vector<double> s) {
        const std::vector<double> was = s;
        for (std::size_t i = 0; i < s.size(); ++i) {
          const std::size_t head = i / Q % 24, from = head % n * h + head / n;
          s[i] = was[i + from * Q - head * Q];
        }
        return s;
      });
    // The pieces' dim stands first: the bytes as they arrived.
    expect([&](const std::vector<double>& was) {
      std::vector<double> s;
      for (std::size_t piece = 0; piece < n; ++piece)
        for (std::size_t i = 0; i < was.size(); ++i)
          if (i / Q % 24 / h == piece) s.push_back(was[i]);
      return s;
    });
  }
}

/// An odd axis, and one of one chip between two.
TEST(Diagnosis, OnAnOddTorus) {
  const Torus torus(5, 1, 2);
  Planted p(
      "model=palm-tiny,layers=2,E=40,F=80,H=20,K=2,Q=4,V=40 batch=20 prompt=4 chunk=3 gen=3 "
      "seed=10");
  const auto from = [&](const char* declared, const char* dumped, auto&& chip) {
    return p.ask(kOut, declared, torus, Planted::cut(p.value(kOut), dumped, torus, chip));
  };
  const auto own = [](int chip) { return chip; };
  expect_right(from("BLE_xz", "BLE_xyz", own));
  expect_first(from("BLE_xz", "BLE_zx", own), "axes in another order [xz]");
  expect_first(
      from("B_zLE_x", "B_zLE_x", [](int chip) { return (5 - chip / 2) % 5 * 2 + chip % 2; }),
      "chunks in another order [x]: the blocks over x are with the ring's sign");
  expect_first(from("BLE_xz", "BLE_xz", [](int) { return 3; }),
               "another chip's block [xz]: along x and z all chips hold block 3");
  for (const char* axes : {"x", "z", "xz", "zx"}) {
    const Axes list = Axes::parse(axes);
    const auto parts = p.parts(kAt + "norm", "layer1.w_gate", torus.size(list));
    expect_first(p.ask(kAt + "gate", "BLF_zx", torus,
                       p.counted(kAt + "gate", parts, "BLF_zx", torus,
                                 [&](int c, int r) { return torus.block(c, list) == r ? 1 : 0; })),
                 fmt::format("reduction missing [{}]", list.sorted().to_string()));
  }
}

/// Counts that are fitted to a value explain no factor that is no count, however large.
TEST_F(Blocks, AFactorThatIsNoCountIsNoCount) {
  for (const std::string id : {"decode.1.logits", "decode.1.layer1.out"})
    for (const double factor : {200.5, 3000.5})
      for (const Hypothesis& h : p.ask(id, scaled(p.value(id), factor)))
        EXPECT_TRUE(!h.explains || h.fault == "another factor") << h.fault << ": " << h.detail;
}

TEST(Diagnosis, NoiseIsNotExplained) {
  // Each value in each dtype, with one size by turns.
  const OneInN taken(3, "noisy values");
  int run = 0;
  for (const char* keys : {" seed=6", " seed=7 act=bf16 weights=bf16", " seed=8 weights=int8"})
    for (const double size : {1e-4, 1.0, 1e3}) {
      int step = run++;
      Planted p(kModel + keys);
      p.texts = 2;
      Noise noise;
      // Of each kind of step one.
      for (const std::string name :
           {"attn", "block_out", "exp", "hidden", "k_cache", "k_rot", "norm", "out", "q", "q_rot",
            "score", "up", "v_cache", "logits"}) {
        const std::string id = (name == "logits" ? "decode.1." : "decode.1.layer1.") + name;
        if (step++ % 3 == 0 && taken(step / 3))
          expect_unexplained(p.ask(id, noise.on(p.value(id), size)), id + keys);
      }
    }
}

}  // namespace
}  // namespace shardproof::diagnosis
