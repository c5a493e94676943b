// Blocks that lie where others belong.
#include "tests/golden/diagnosis/planted.h"
#include "tests/sanitized.h"

namespace shardproof::diagnosis {
namespace {

const std::vector<Torus> kTori{Torus(4, 2, 3), Torus(2, 3, 1), Torus(2, 2, 2), Torus(3, 2, 4)};

TEST(Diagnosis, OfARightValueIsNothing) {
  for (const Torus& torus : kTori) {
    Planted p(std::string(kModel) + " seed=1");
    for (const char* name : {"norm", "gate", "block_out", "out"})
      for (const char* axes : {"", "x", "yx", "zyx"}) {
        const std::string id = "prefill.c0.layer1." + std::string(name);
        std::string layout = name == std::string("gate") ? "BLF" : "BLE";
        if (*axes != 0) layout += std::string("_") + axes;
        EXPECT_TRUE(p.ask(id, p.value(id), layout, torus).empty());
      }
  }
}

TEST(Diagnosis, AxesInAnotherOrder) {
  for (const Torus& torus : kTori) {
    Planted p(std::string(kModel) + " seed=2");
    const std::string id = "prefill.c0.layer1.out";
    const auto holds = [&](const char* held, const char* declared) {
      return p.ask(id, declared, torus, Planted::cut(p.value(id), Layout::parse(held), torus));
    };
    const bool two = torus.size(Axis::z) == 1;
    if (!two)
      expect_first(holds("BLE_xzy", "BLE_xyz"), "axes in another order", "yz", "holds BLE_xzy");
    expect_first(holds("BLE_yx", "BLE_xy"), "axes in another order", "xy");
    if (torus.size(Axis::x) == torus.size(Axis::y))
      expect_first(holds("B_xLE_y", "B_yLE_x"), "axes in another order", "xy");
  }
}

TEST(Diagnosis, ChunksInAnotherOrder) {
  const Torus torus(4, 2, 3);
  Planted p(std::string(kModel) + " seed=3");
  const std::string id = "prefill.c0.layer1.gate";
  const Layout layout = Layout::parse("BLF_zyx");
  const auto moved = [&](auto x) {
    return p.ask(id, "BLF_zyx", torus, Planted::cut(p.value(id), layout, torus, [&](int chip) {
                   return x(chip / 6) * 6 + chip % 6;
                 }));
  };
  expect_first(moved([](int x) { return 3 - x; }), "chunks in another order", "x", "reversed");
  expect_first(moved([](int x) { return (4 - x) % 4; }), "chunks in another order", "x", "sign");
  expect_first(moved([](int x) { return (x + 1) % 4; }), "chunks in another order", "x",
               "rotated by 1");
  expect_first(moved([](int x) { return (x + 3) % 4; }), "chunks in another order", "x",
               "rotated by -1");
  // Gathered over x, in the ring's other order.
  Planted::Shards shards = Planted::cut(p.value(id), Layout::parse("BLF_zy"), torus);
  const std::size_t length = 96 / 6 / 4;
  for (int chip = 0; chip < 24; ++chip) {
    std::vector<double>& s = shards[static_cast<std::size_t>(chip)];
    const std::vector<double> was = s;
    for (std::size_t i = 0; i < s.size(); ++i) {
      const std::size_t f = i % 16, own = static_cast<std::size_t>(chip) / 6;
      s[i] = was[i - f + (2 * own + 4 - f / length) % 4 * length + f % length];
    }
  }
  expect_first(p.ask(id, "BLF_zy", torus, shards), "chunks in another order", "x", "chip's own on");
}

TEST(Diagnosis, AnotherChipsBlock) {
  for (const Torus& torus : kTori) {
    Planted p(std::string(kModel) + " seed=4");
    const std::string id = "prefill.c0.layer1.out";
    const Layout layout = Layout::parse("BLE_xyz");
    expect_first(p.ask(id, "BLE_xyz", torus,
                       Planted::cut(p.value(id), layout, torus, [](int) { return 0; })),
                 "another chip's block", torus.size(Axis::z) == 1 ? "xy" : "xyz", "block 0");
    // One chip alone.
    const int chip = torus.chips() - 1;
    const int other = chip - torus.size(Axis::z) * torus.size(Axis::y);
    expect_first(p.ask(id, "BLE_xyz", torus,
                       Planted::cut(p.value(id), layout, torus,
                                    [&](int c) { return c == chip ? other : c; })),
                 "another chip's block", "x");
  }
}

TEST(Diagnosis, SplitAndConcatSwapped) {
  for (const Torus& torus : {Torus(4, 2, 3), Torus(2, 3, 1), Torus(2, 2, 2)}) {
    Planted p(std::string(kModel) + " seed=5");
    const std::string id = "prefill.c0.layer1.q_rot";
    const Axes all = torus.size(Axis::z) > 1 ? Axes::parse("zyx") : Axes::parse("yx");
    const std::string layout = "B_" + all.to_string() + "LHQ";
    Planted::Shards shards = Planted::cut(p.value(id), Layout::parse(layout), torus);
    const std::size_t n = static_cast<std::size_t>(torus.chips()), h = 24 / n, Q = 4;
    // The pieces' dim stands behind H: head j·h + i is where i·n + j belongs.
    for (std::vector<double>& s : shards) {
      const std::vector<double> was = s;
      for (std::size_t i = 0; i < s.size(); ++i) {
        const std::size_t head = i / Q % 24;
        const std::size_t from = head % n * h + head / n;
        s[i] = was[i + from * Q - head * Q];
      }
    }
    if (h > 1)
      expect_first(p.ask(id, layout, torus, shards), "split and concat swapped",
                   all.sorted().to_string());
    // The pieces' dim stands first: the bytes as they arrived.
    shards = Planted::cut(p.value(id), Layout::parse(layout), torus);
    for (std::vector<double>& s : shards) {
      const std::vector<double> was = s;
      std::size_t next = 0;
      for (std::size_t piece = 0; piece < n; ++piece)
        for (std::size_t i = 0; i < was.size(); ++i)
          if (i / Q % 24 / h == piece) s[next++] = was[i];
    }
    expect_first(p.ask(id, layout, torus, shards), "split and concat swapped",
                 all.sorted().to_string());
  }
}

TEST(Diagnosis, NoiseIsNotExplained) {
  const Torus torus(4, 2, 3);
  // Each value once, each dtype and size with several.
  const OneInN taken(6, "noisy values");
  int run = 0;
  for (const char* keys : {" seed=6", " seed=7 act=bf16 weights=bf16", " seed=8 weights=int8"})
    for (const double size : {1e-4, 1.0}) {
      int step = run++;
      Planted p(kModel + std::string(keys));
      std::uint64_t state = 88172645463325252U;
      const auto noise = [&] {
        state ^= state << 13, state ^= state >> 7, state ^= state << 17;
        return size * (static_cast<double>(state >> 11) * 0x1p-52 - 1.0);
      };
      for (auto& [id, value] : std::map<std::string, Planted::Value>(p.dump)) {
        // Of each kind of step one.
        const std::string name = id.substr(id.rfind('.') + 1);
        if (!id.starts_with("decode.1.layer1.") && id != "decode.1.logits") continue;
        if (name == "gate" || name == "v" || name == "k" || name == "max" || name == "denom")
          continue;
        if (!taken(step++)) continue;
        Planted::Value noisy = value;
        for (double& v : noisy.data) v = static_cast<float>(v + noise());
        for (const Hypothesis& h : p.ask(id, noisy, torus))
          EXPECT_FALSE(h.explains) << id << " " << size << " " << keys << "\n"
                                   << h.fault << " " << h.detail;
        p.dump[id] = value;
      }
    }
}

}  // namespace
}  // namespace shardproof::diagnosis
