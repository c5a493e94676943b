// Blocks that lie where others belong.
#include "tests/golden/diagnosis/planted.h"
#include "tests/sanitized.h"
#include "tests/weights/expect_error.h"

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

TEST(Diagnosis, ShardsThatDoNotFitTheValueAreRefused) {
  Planted p(std::string(kModel) + " seed=1");
  const std::string id = "prefill.c0.layer1.out";
  const Torus torus(2, 1, 1);
  const auto asked = [&](const char* layout, std::size_t chips, std::size_t elements) {
    return label_of(
        [&] { p.ask(id, layout, torus, Planted::Shards(chips, std::vector<double>(elements))); });
  };
  const std::size_t whole = p.value(id).data.size();
  EXPECT_EQ(asked("BLE_x", 2, whole / 2), "");
  EXPECT_EQ(asked("BLE_x", 2, whole), "diagnosis_c1") << "too many elements";
  EXPECT_EQ(asked("BLE_x", 3, whole / 2), "diagnosis_c1") << "too many chips";
}

TEST(Diagnosis, AxesInAnotherOrder) {
  for (const Torus& torus : kTori) {
    Planted p(std::string(kModel) + " seed=2");
    const std::string id = "prefill.c0.layer1.out";
    const auto holds = [&](const char* dumped, const char* declared) {
      return p.ask(id, declared, torus, Planted::cut(p.value(id), Layout::parse(dumped), torus));
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

/// An odd axis, and one of one chip between two.
TEST(Diagnosis, OnAnOddTorus) {
  const Torus torus(5, 1, 2);
  Planted p(
      "model=palm-tiny,layers=2,E=40,F=80,H=20,K=2,Q=4,V=40 batch=20 prompt=4 chunk=3 gen=3 "
      "seed=10");
  const std::string at = "prefill.c0.layer1.";
  const auto from = [&](const char* declared, const char* dumped, auto&& chip) {
    return p.ask(at + "out", declared, torus,
                 Planted::cut(p.value(at + "out"), Layout::parse(dumped), torus, chip));
  };
  const auto own = [](int chip) { return chip; };
  EXPECT_TRUE(from("BLE_xz", "BLE_xyz", own).empty());
  expect_first(from("BLE_xz", "BLE_zx", own), "axes in another order", "xz");
  expect_first(
      from("B_zLE_x", "B_zLE_x", [](int chip) { return (5 - chip / 2) % 5 * 2 + chip % 2; }),
      "chunks in another order", "x", "sign");
  expect_first(from("BLE_xz", "BLE_xz", [](int) { return 3; }), "another chip's block", "xz",
               "block 3");
  const auto norm = p.value(at + "norm"), w = p.weight("layer1.w_gate");
  for (const char* axes : {"x", "z", "xz", "zx"}) {
    const Axes list = Axes::parse(axes);
    const auto n = static_cast<std::size_t>(torus.size(list));
    Planted::Shards shards(10);
    for (int chip = 0; chip < 10; ++chip) {
      const auto r = static_cast<std::size_t>(torus.block(chip, list));
      const auto mine = Planted::f32(
          Planted::product(norm, w, 40,
                           [&](std::size_t k) { return k / (40 / n) == r ? 1.0 : 0.0; }),
          p.value(at + "gate").shape);
      shards[static_cast<std::size_t>(chip)] =
          Planted::cut(mine, Layout::parse("BLF_zx"), torus)[static_cast<std::size_t>(chip)];
    }
    expect_first(p.ask(at + "gate", "BLF_zx", torus, shards), "reduction missing",
                 list.sorted().to_string());
  }
}

/// Counts that are fitted to a value explain no factor that is no count, however large.
TEST(Diagnosis, AFactorThatIsNoCountIsNotExplained) {
  const Torus torus(4, 2, 3);
  Planted p(std::string(kModel) + " seed=6");
  for (const char* name : {"decode.1.logits", "decode.1.layer1.out"})
    for (const double factor : {200.5, 3000.5}) {
      const Planted::Value value = p.dump[name];
      Planted::Value wrong = value;
      for (double& v : wrong.data) v = static_cast<float>(v * factor);
      for (const Hypothesis& h : p.ask(name, wrong, torus))
        EXPECT_FALSE(h.explains) << name << " times " << factor << ": " << h.fault << " "
                                 << h.detail;
      p.dump[name] = value;
    }
}

TEST(Diagnosis, NoiseIsNotExplained) {
  const Torus torus(4, 2, 3);
  // Each value once, each dtype and size with several.
  const OneInN taken(9, "noisy values");
  int run = 0;
  for (const char* keys : {" seed=6", " seed=7 act=bf16 weights=bf16", " seed=8 weights=int8"})
    for (const double size : {1e-4, 1.0, 1e3}) {
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
