// Sums in which something is missing or counted too often.
#include "tests/golden/diagnosis/planted.h"
#include "tests/sanitized.h"

namespace shardproof::diagnosis {
namespace {

/// The gate of layer 1, asked of with wrong counts of the partial sums over some axes.
class Gate : public Planted {
 public:
  Gate(const Torus& torus, const std::string& keys)
      : Planted(kModel + keys), torus_(torus), int8_(keys.find("int8") != std::string::npos) {
    texts = 3;
  }

  template <class Count>
  Said ask(const Axes& list, const std::string& layout, Count&& count) {
    const bool serial = config().block == Block::serial;
    const bool bf16 = declared.values == NumberFormat::bf16;
    const Value scale = int8_ ? weight("layer1.w_gate_scale") : Value();
    const auto finished = [&](double v, std::size_t i) {
      if (int8_) v = static_cast<float>(v * scale.data[i % scale.data.size()]);
      return bf16 ? as_bf16(v) : v;
    };
    return Planted::ask(
        kGate, layout, torus_,
        counted(kGate, parts(kAt + (serial ? "norm2" : "norm"), "layer1.w_gate", torus_.size(list)),
                layout, torus_, count, finished));
  }

 private:
  Torus torus_;
  bool int8_;
};

struct Site {
  Torus torus;
  const char* keys;
};
const Site kSites[]{{{4, 2, 3}, " seed=1"},
                    {{2, 3, 1}, " seed=2 block=serial"},
                    {{3, 2, 2}, " seed=3 weights=int8"},
                    {{4, 2, 3}, " seed=4 weights=bf16 act=bf16"}};

TEST(Diagnosis, ReductionMissing) {
  // Each list of axes at a site or two.
  const OneInN taken(4, "lists of axes, layouts and sites");
  int run = 0;
  for (const Site& site : kSites) {
    const Torus& torus = site.torus;
    Gate gate(torus, site.keys);
    for (const char* layout : {"BLF_zyx", "B_xLF_y"}) {
      int step = run++;
      for (const char* axes : {"x", "y", "z", "xy", "zx", "zyx"}) {
        const Axes list = Axes::parse(axes);
        if (!taken(step++) || (torus.size(Axis::z) == 1 && list.has(Axis::z))) continue;
        expect_first(
            gate.ask(list, layout, [&](int c, int r) { return torus.block(c, list) == r ? 1 : 0; }),
            fmt::format("reduction missing [{}]", list.sorted().to_string()));
      }
    }
    // Over x and y where it should be over x, y and z as well.
    if (const int Z = torus.size(Axis::z); Z > 1)
      expect_first(
          gate.ask(Axes::parse("xyz"), "BLF_zyx",
                   [&](int c, int r) { return torus.coordinate(c, Axis::z) == r % Z ? 1 : 0; }),
          "reduction missing [z]");
  }
}

TEST(Diagnosis, PartialSumMissingOrTwice) {
  for (const Site& site : kSites) {
    const Torus& torus = site.torus;
    Gate gate(torus, site.keys);
    for (const char* axes : {"x", "y", "xy"}) {
      const Axes list = Axes::parse(axes);
      const int n = torus.size(list);
      const auto expect = [&](int least, const char* fault, auto&& count) {
        if (n > least)
          expect_first(gate.ask(list, "BLF_zyx", count),
                       fmt::format("partial sum {} [{}]", fault, axes));
      };
      expect(2, "missing", [&](int, int r) { return r == n - 1 ? 0 : 1; });
      expect(2, "missing", [&, torus = torus](int c, int r) {
        return r == (torus.block(c, list) + 1) % n ? 0 : 1;
      });
      expect(0, "twice", [](int, int r) { return r == 1 ? 2 : 1; });
      // On one chip alone, and two blocks at once.
      expect(2, "missing", [](int c, int r) { return c == 1 && r == 0 ? 0 : 1; });
      expect(3, "twice", [](int, int r) { return r == 0 || r == 1 || r == 3 ? 2 : 1; });
    }
  }
}

/// A model of the standard matrix, whole prefill: an attention term whose heads are not summed.
TEST(Diagnosis, OfPalmTiny) {
  Planted p("model=palm-tiny batch=24 prompt=7 gen=2 seed=8");
  const auto ffn = p.product(kAt + "hidden", "layer1.w_out");
  std::vector<Planted::Value> parts;
  for (const auto& attn : p.parts(kAt + "attn", "layer1.wo", 2))
    parts.push_back(Planted::sum(attn, ffn));
  expect_first(
      p.ask(kAt + "block_out", "BLE_xyz", kTorus,
            p.counted(kAt + "block_out", parts, "BLE_xyz", kTorus,
                      [](int c, int r) { return kTorus.coordinate(c, Axis::y) == r ? 1 : 0; })),
      "reduction missing [y]: of H_y");
}

/// Chips round their part of a parallel block's one sum, of attention and FFN, before it is
/// reduced.
TEST(Diagnosis, PartialSumsOfTwoTermsAreRounded) {
  Planted p(kModel + " seed=8");
  for (const char* axis : {"x", "y"}) {
    const int n = kTorus.size(Axes::parse(axis));
    const auto attn = p.parts(kAt + "attn", "layer1.wo", n);
    const auto ffn = p.parts(kAt + "hidden", "layer1.w_out", n);
    Planted::Value all = in_bf16(Planted::sum(attn[0], ffn[0]));
    for (int r = 1; r < n; ++r)
      all = Planted::sum(all, in_bf16(Planted::sum(attn[at(r)], ffn[at(r)])));
    expect_first(p.ask(kAt + "block_out", all, kTorus, "BLE"),
                 fmt::format("rounding [{0}]: the partial sums over {0} are rounded", axis));
  }
}

TEST(Diagnosis, ReductionTwiceOrOverAnotherAxis) {
  Gate gate(kTorus, " seed=5");
  const Axes x = Axes::parse("x");
  expect_first(gate.ask(x, "BLF_zy", [](int, int) { return 4; }), "reduction twice [x]");
  // The partial sums lie along x; summed over z, where F is not cut.
  expect_first(
      gate.ask(x, "BLF_y", [](int c, int r) { return kTorus.coordinate(c, Axis::x) == r ? 3 : 0; }),
      "reduction over another axis [x]: over z");
}

TEST(Diagnosis, AddendsNotOnce) {
  for (const bool biased : {false, true}) {
    Planted p(biased ? with_keys(kModel, ",norm=layernorm,bias=all") + " seed=7"
                     : kModel + " seed=6");
    const auto x = p.value("prefill.c0.layer0.out"), y = p.value(kAt + "block_out");
    const auto expect = [&](const char* name, const Planted::Value& v, const char* layout,
                            const std::string& axes, const char* words) {
      expect_first(p.ask(kAt + name, v, kTorus, layout),
                   "addend not added once" + axes + ": " + words);
    };
    expect("out", y, "BLE_xyz", "", "out is added 0 times");
    expect("out", Planted::sum(y, x, 4), "BLE_x", " [x]", "4 times");
    expect("out", Planted::sum(y, x, 2), "BLE_x", " [y]", "2 times");
    expect("block_out", Planted::sum(y, x, 6), "BLE", " [yz]", "out is added 6 times, not 0");
    const auto attn = p.product(kAt + "attn", "layer1.wo");
    const auto ffn = p.product(kAt + "hidden", "layer1.w_out");
    if (!biased) {
      expect("block_out", ffn, "BLE_zyx", "", "attn·wo is added 0 times");
      expect("block_out", Planted::sum(attn, ffn, 2), "BLE_zyx", " [y]",
             "hidden·w_out is added 2 times");
    } else {
      const auto bo = p.weight("layer1.bo"), b = p.weight("layer1.b_out");
      expect(
          "block_out",
          each(Planted::sum(attn, ffn),
               [&](double v, std::size_t i) { return v + bo.data[i % 48] + 3 * b.data[i % 48]; }),
          "BLE_x", " [z]", "b_out is added 3 times");
    }
  }
}

}  // namespace
}  // namespace shardproof::diagnosis
