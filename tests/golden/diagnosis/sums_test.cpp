// Sums in which something is missing or counted too often.
#include "tests/golden/diagnosis/planted.h"
#include "tests/sanitized.h"
#include "weights/base/bf16.h"

namespace shardproof::diagnosis {
namespace {

struct Site {
  const char* torus;
  const char* keys;
};
const std::vector<Site> kSites{{"4x2x3", " seed=1"},
                               {"2x3x1", " seed=2 block=serial"},
                               {"3x2x2", " seed=3 weights=int8"},
                               {"4x2x3", " seed=4 weights=bf16 act=bf16"}};

/// The summand of each chip: the block of `letter`'s E over `list`.
int block_of(const Torus& torus, int chip, const Axes& list) { return torus.block(chip, list); }

class Gate {
 public:
  Gate(Planted& planted, std::string layout, const Torus& torus)
      : p(planted), layout_(std::move(layout)), torus_(torus) {
    const bool serial = p.config().block == Block::serial;
    x = p.value(serial ? "prefill.c0.layer1.norm2" : "prefill.c0.layer1.norm");
    w = p.weight("layer1.w_gate");
    if (p.config().E * p.config().F == std::ssize(w.data))
      width = static_cast<std::size_t>(p.config().E);
  }
  /// Shards in which chip c counts block r of E over `list` count(c, r) times.
  template <class Count>
  Planted::Shards counted(const Axes& list, Count&& count) const {
    const auto blocks = static_cast<std::size_t>(torus_.size(list));
    Planted::Shards shards(static_cast<std::size_t>(torus_.chips()));
    std::vector<Planted::Value> parts;
    for (std::size_t r = 0; r < blocks; ++r)
      parts.push_back(Planted::product(
          x, w, width, [&](std::size_t k) { return k / (width / blocks) == r ? 1.0 : 0.0; }));
    const Planted::Value& right = p.value("prefill.c0.layer1.gate");
    const bool bf16 = p.declared.values == bounds::Format::bf16;
    for (int chip = 0; chip < torus_.chips(); ++chip)
      judged_elements(Layout::parse(layout_), right.shape, torus_, chip,
                      [&](std::int64_t, std::int64_t g) {
                        const auto i = static_cast<std::size_t>(g);
                        double v = 0;
                        for (std::size_t r = 0; r < blocks; ++r)
                          v += count(chip, static_cast<int>(r)) * parts[r].data[i];
                        v = static_cast<float>(v);
                        if (p.declared.values == bounds::Format::f32 && scale.size() > 0)
                          v = static_cast<float>(v * scale[i % scale.size()]);
                        if (bf16) v = round_to_bf16(static_cast<float>(v));
                        shards[static_cast<std::size_t>(chip)].push_back(v);
                        return false;
                      });
    return shards;
  }
  template <class Count>
  std::vector<Hypothesis> ask(const Axes& list, Count&& count) const {
    return p.ask("prefill.c0.layer1.gate", layout_, torus_, counted(list, count));
  }

  Planted& p;
  std::vector<double> scale;
  Planted::Value x, w;
  std::size_t width = 0;

 private:
  std::string layout_;
  Torus torus_;
};

TEST(Diagnosis, ReductionMissing) {
  // Each list of axes at a site or two.
  const OneInN taken(4, "lists of axes, layouts and sites");
  int run = 0;
  for (const Site& site : kSites) {
    const Torus torus = Torus::parse(site.torus);
    Planted p(kModel + std::string(site.keys));
    for (const char* layout : {"BLF_zyx", "B_xLF_y"}) {
      int step = run++;
      for (const char* axes : {"x", "y", "z", "xy", "zx", "zyx"}) {
        const Axes list = Axes::parse(axes);
        if (!taken(step++)) continue;
        if (torus.size(Axis::z) == 1 && list.has(Axis::z)) continue;
        Gate gate(p, layout, torus);
        if (p.weight("layer1.w_gate").data.size() > 0 &&
            std::string(site.keys).find("int8") != std::string::npos)
          gate.scale = p.weight("layer1.w_gate_scale").data;
        expect_first(
            gate.ask(list, [&](int c, int r) { return block_of(torus, c, list) == r ? 1 : 0; }),
            "reduction missing", list.sorted().to_string());
      }
    }
    // Over x and y where it should be over x, y and z as well.
    const Axes list = Axes::parse("xyz");
    if (torus.size(Axis::z) == 1) continue;
    Gate gate(p, "BLF_zyx", torus);
    if (std::string(site.keys).find("int8") != std::string::npos)
      gate.scale = p.weight("layer1.w_gate_scale").data;
    expect_first(gate.ask(list,
                          [&](int c, int r) {
                            return torus.coordinate(c, Axis::z) == r % torus.size(Axis::z) ? 1 : 0;
                          }),
                 "reduction missing", "z");
  }
}

TEST(Diagnosis, SummandMissingOrTwice) {
  for (const Site& site : kSites) {
    const Torus torus = Torus::parse(site.torus);
    Planted p(kModel + std::string(site.keys));
    for (const char* axes : {"x", "y", "xy"}) {
      const Axes list = Axes::parse(axes);
      const int n = torus.size(list);
      Gate gate(p, "BLF_zyx", torus);
      if (std::string(site.keys).find("int8") != std::string::npos)
        gate.scale = p.weight("layer1.w_gate_scale").data;
      if (n > 2)
        expect_first(gate.ask(list, [&](int, int r) { return r == n - 1 ? 0 : 1; }),
                     "summand missing", axes);
      if (n > 2)
        expect_first(
            gate.ask(list,
                     [&](int c, int r) { return r == (torus.block(c, list) + 1) % n ? 0 : 1; }),
            "summand missing", axes);
      expect_first(gate.ask(list, [&](int, int r) { return r == 1 ? 2 : 1; }), "summand twice",
                   axes);
      // On one chip alone, and two blocks at once.
      if (n > 2)
        expect_first(gate.ask(list, [&](int c, int r) { return c == 1 && r == 0 ? 0 : 1; }),
                     "summand missing", axes);
      if (n > 3)
        expect_first(gate.ask(list, [&](int, int r) { return r == 0 || r == 1 || r == 3 ? 2 : 1; }),
                     "summand twice", axes);
    }
  }
}

/// A model of the standard matrix, whole prefill: an attention term whose heads are not summed.
TEST(Diagnosis, OfPalmTiny) {
  const Torus torus(4, 2, 3);
  Planted p("model=palm-tiny batch=24 prompt=7 gen=2 seed=8");
  const std::string at = "prefill.c0.layer1.";
  const Planted::Value right = p.value(at + "block_out");
  const auto ffn = Planted::product(p.value(at + "hidden"), p.weight("layer1.w_out"), 384);
  Planted::Shards shards;
  for (int chip = 0; chip < 24; ++chip) {
    const int y = torus.coordinate(chip, Axis::y);
    const auto attn =
        Planted::product(p.value(at + "attn"), p.weight("layer1.wo"), 192,
                         [y](std::size_t k) { return static_cast<int>(k / 96) == y ? 1.0 : 0.0; });
    const auto mine = Planted::cut(Planted::f32(Planted::sum(attn, ffn), right.shape),
                                   Layout::parse("BLE_xyz"), torus);
    shards.push_back(mine[static_cast<std::size_t>(chip)]);
  }
  expect_first(p.ask(at + "block_out", "BLE_xyz", torus, shards), "reduction missing", "y",
               "of H_y");
}

TEST(Diagnosis, ReductionTwiceOrOverAnotherAxis) {
  const Torus torus(4, 2, 3);
  Planted p(std::string(kModel) + " seed=5");
  Gate gate(p, "BLF_zy", torus);
  expect_first(gate.ask(Axes::parse("x"), [](int, int) { return 4; }), "reduction twice", "x");
  // The summands lie along x; summed over z, where F is not cut.
  Gate whole(p, "BLF_y", torus);
  expect_first(whole.ask(Axes::parse("x"),
                         [&](int c, int r) { return torus.coordinate(c, Axis::x) == r ? 3 : 0; }),
               "reduction over another axis", "x", "over z");
}

TEST(Diagnosis, AddendsNotOnce) {
  for (const char* keys : {" seed=6", ",norm=layernorm,bias=all seed=7"}) {
    const std::string model = kModel;
    const std::size_t space = model.find(' ');
    Planted p(keys[0] == ',' ? model.substr(0, space) +
                                   std::string(keys).substr(0, std::string(keys).find(' ')) +
                                   model.substr(space) + " seed=7"
                             : model + keys);
    const Torus torus(4, 2, 3);
    const std::string at = "prefill.c0.layer1.";
    const auto x = p.value("prefill.c0.layer0.out"), y = p.value(at + "block_out");
    const auto ask = [&](const char* name, const Planted::Value& v, const char* layout) {
      const auto was = p.dump;
      const auto all = p.ask(at + name, Planted::f32(v, x.shape), layout, torus);
      p.dump = was;
      return all;
    };
    expect_first(ask("out", y, "BLE_xyz"), "addend not added once", "", "out is added 0 times");
    expect_first(ask("out", Planted::sum(y, x, 4), "BLE_x"), "addend not added once", "x",
                 "4 times");
    expect_first(ask("out", Planted::sum(y, x, 2), "BLE_x"), "addend not added once", "y",
                 "2 times");
    expect_first(ask("block_out", Planted::sum(y, x, 6), "BLE"), "addend not added once", "yz",
                 "out is added 6 times, not 0");
    const auto attn = Planted::product(p.value(at + "attn"), p.weight("layer1.wo"), 96);
    const auto ffn = Planted::product(p.value(at + "hidden"), p.weight("layer1.w_out"), 96);
    if (keys[0] != ',') {
      expect_first(ask("block_out", ffn, "BLE_zyx"), "addend not added once", "",
                   "attn·wo is added 0 times");
      expect_first(ask("block_out", Planted::sum(attn, ffn, 2), "BLE_zyx"), "addend not added once",
                   "y", "hidden·w_out is added 2 times");
    } else {
      auto v = Planted::sum(attn, ffn);
      const auto bo = p.weight("layer1.bo"), b = p.weight("layer1.b_out");
      for (std::size_t i = 0; i < v.data.size(); ++i)
        v.data[i] += bo.data[i % 48] + 3 * b.data[i % 48];
      expect_first(ask("block_out", v, "BLE_x"), "addend not added once", "z",
                   "b_out is added 3 times");
    }
  }
}

}  // namespace
}  // namespace shardproof::diagnosis
