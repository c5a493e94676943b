// Right models as engines run them, which nothing may call wrong, and what they hide.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include "tests/golden/trace/engine.h"
#include "tests/sanitized.h"

namespace shardproof::dump {
namespace {

std::string name_of(const Row& row) { return last_word(row.name); }

std::string text(const Verdict& v) {
  std::string lines;
  for (const Row& row : v.rows)
    if (row.fit > Fit::near)
      lines +=
          fmt::format("{} {} {} {}\n", row.name, bounds::to_string(row.fit), row.why, row.found());
  return lines;
}

/// All of a right run is judged but its prompt, and right; fused attention alone may be loose.
void expect_right(const Verdict& v) {
  for (const Row& row : v.rows)
    if (row.name != "prefill.c0.ids") {
      EXPECT_LE(row.fit, name_of(row) == "attn" ? Fit::loose : Fit::near) << row.name << row.why;
    }
  EXPECT_LE(20 * v.count(Fit::loose), std::ssize(v.rows)) << text(v);
  EXPECT_EQ(v.exit_code(), 0);
}

const std::string kPasses = " batch=2 prompt=5 gen=3 seed=3";
const std::string kDims = ",layers=2,E=32,F=48,H=8,K=4,Q=8,V=40";

/// hidden of the dump's own gate, in f32.
Verdict with_hidden(const std::string& model, float (*of)(float)) {
  const ExactRun run("torus=1x1x1 model=" + model + kPasses);
  std::vector<Written> values = run.values();
  std::erase_if(values, [](const Written& w) {
    const std::string name = last_word(w.name);
    return name != "gate" && name != "up" && name != "hidden" && name != "norm" && name != "norm2";
  });
  for (Written& w : values) {
    if (!w.name.ends_with(".hidden")) continue;
    const std::string at = w.name.substr(0, w.name.rfind('.') + 1);
    const Tensor gate = run.value(at + "gate");
    const bool gated = run.answer().checkpoints.contains(at + "up");
    const Tensor factor = run.value(at + (gated ? "up" : "gate"));
    for (std::size_t i = 0; i < w.numbers.size(); ++i)
      w.numbers[i] = static_cast<double>(of(gate.data[i]) * (gated ? factor.data[i] : 1.0F));
  }
  return run.judged(values, "f32");
}

/// As PyTorch's documentation and its users write them.
TEST(Engines, GeluOfTextbooksIsWithin) {
  const auto by_erf = [](float x) { return 0.5F * x * (1 + std::erf(x / std::sqrt(2.0F))); };
  const auto by_tanh = [](float x) {
    return 0.5F * x * (1 + std::tanh(0.7978845608F * (x + 0.044715F * x * x * x)));
  };
  struct Family {
    const char* model;
    bool erf;
  };
  for (const Family& f :
       {Family{"gptj,layers=2,E=32,F=48,H=4,K=4,Q=8,V=40", false},
        {"falcon,layers=2,E=32,F=48,H=8,K=1,Q=8,V=40", true},
        {"phi-2,layers=2,E=40,F=48,H=2,K=2,Q=20,V=40", false},
        {"llama,ffn=geglu,tied=true,eps=1e-6,layers=2,E=32,F=48,H=4,K=1,Q=8,V=40", false},
        {"gptj,block=serial,bias=all,rope=half,rotary=1,layers=2,E=32,F=48,H=4,K=2,Q=8,V=40",
         false}})
    for (const bool erf : {false, true}) {
      const Verdict v = with_hidden(f.model, erf ? +by_erf : +by_tanh);
      int hidden = 0;
      for (const Row& row : v.rows) {
        if (name_of(row) != "hidden") continue;
        ++hidden;
        EXPECT_EQ(row.fit, erf == f.erf ? Fit::within : Fit::different)
            << f.model << (erf ? " erf " : " tanh ") << row.name;
      }
      EXPECT_EQ(hidden, 6);
    }
}

/// Norms, activations, rotations, scores and probabilities are rounded on their way.
TEST(Engines, RoundingsOfALibraryAreWithinAndNamed) {
  const std::string tables = "sines and cosines are rounded, both products are rounded";
  for (const std::string model : {"llama", "llama,block=parallel"})
    for (const bool library : {true, false}) {
      const ExactRun run("torus=1x1x1 act=bf16 weights=bf16 model=" + model + kDims + kPasses);
      Engine engine(run);
      engine.library = library;
      const Verdict v = run.judged(engine.trace(with(kHooks, {"gate", "up"})));
      expect_right(v);
      std::map<std::string, std::set<std::string>> named;
      for (const Row& row : v.rows) {
        if (!row.rounding) continue;
        EXPECT_EQ(row.rounding->misses, 0) << row.name << ": " << row.rounding->best;
        if (row.rounding->others > 0) named[name_of(row)].insert(row.rounding->best);
      }
      const std::string none = "nothing is rounded before the value";
      for (const char* rope : {"q_rot", "k_rot"})
        EXPECT_EQ(named[rope], std::set{library ? tables : none}) << model;
      for (const char* norm : {"norm", "final_norm"})
        EXPECT_EQ(named[norm], std::set{library ? "x·r is rounded" : none}) << model;
      EXPECT_EQ(named["hidden"], std::set{library ? "the activation is rounded" : none}) << model;
      // One addition is rounded whatever an engine does.
      EXPECT_EQ(named.contains("out"), model != "llama") << model;
    }
}

/// Blocks of four keys, a running maximum, and exponentials that are rounded where they meet the
/// values.
Floats flash(const Floats& s, const std::vector<const float*>& v, bool rescaled) {
  float top = -INFINITY, Z = 0;
  Floats o(8);
  for (std::size_t at = 0; at < s.size(); at += 4) {
    const std::size_t end = std::min(at + 4, s.size());
    float most = top;
    for (std::size_t m = at; m < end; ++m) most = std::max(most, s[m]);
    const float by = rescaled || at == 0 ? std::exp(top - most) : 1.0F;
    Z *= by;
    for (float& one : o) one *= by;
    for (std::size_t m = at; m < end; ++m) {
      const float p = std::exp(s[m] - most);
      Z += p;
      for (std::size_t c = 0; c < 8; ++c) o[c] += round_to_bf16(p) * v[m][c];
    }
    top = most;
  }
  for (float& one : o) one /= Z;
  return o;
}

TEST(Engines, FlashAttentionIsWithin) {
  const ExactRun run("torus=2x1x1 act=bf16 weights=bf16 model=llama" + kDims +
                     " batch=2 prompt=24 gen=3 seed=3");
  Engine engine(run);
  for (const auto& names : {kHooks, kLean}) {
    engine.attention = [](const auto& scores, const auto& of) { return flash(scores, of, true); };
    const Verdict v = run.judged(engine.trace(names));
    if (names == kHooks) {
      expect_right(v);
      EXPECT_EQ(v.count(Fit::loose), 0) << text(v);
    }
    EXPECT_EQ(v.count(Fit::different) + v.count(Fit::unlikely), 0) << text(v);
    // A maximum that grows and rescales nothing is no rounding.
    engine.attention = [](const auto& scores, const auto& of) { return flash(scores, of, false); };
    const Verdict wrong = run.judged(engine.trace(names));
    ASSERT_TRUE(wrong.first);
    EXPECT_EQ(wrong.rows[*wrong.first].name, "prefill.c0.layer0.attn");
  }
}

/// In bf16 the outputs of layers alone have bounds that hold any attention.
TEST(Engines, CoarseDumpsProveNoAttention) {
  const ExactRun run("torus=2x1x1 act=bf16 weights=bf16 model=llama" + kDims +
                     " batch=2 prompt=8 gen=3 seed=3");
  Engine engine(run);
  EXPECT_EQ(run.judged(engine.trace(kCoarse)).exit_code(), 0);
  struct Fault {
    const char *name, *pass;
    std::function<void(Engine&)> plant;
  };
  using Size = std::size_t;
  for (const Fault& fault : {
           Fault{"kv head h mod 4", "prefill.c0",
                 [](Engine& e) { e.kv_head = [](Size h) { return h % 4; }; }},
           Fault{"one head reads another", "prefill.c0",
                 [](Engine& e) { e.kv_head = [](Size h) { return h == 7 ? 2 : h / 2; }; }},
           Fault{"neighbours exchanged", "prefill.c0",
                 [](Engine& e) { e.part_of = [](Size h) { return h < 2 ? 1 - h : h; }; }},
           Fault{"no mask", "prefill.c0",
                 [](Engine& e) { e.sees = [](Size, Size) { return true; }; }},
           Fault{
               "decode without its newest key", "decode.1",
               [](Engine& e) { e.sees = [](Size q, Size k) { return k < q + (q < 8 ? 1 : 0); }; }},
           Fault{"decode.2 without the first key", "decode.2",
                 [](Engine& e) { e.sees = [](Size q, Size k) { return k <= q && k + 9 != q; }; }},
           Fault{"scale 1", "prefill.c0", [](Engine& e) { e.scale = 1; }},
           Fault{"scale 1/sqrt(E)", "prefill.c0",
                 [](Engine& e) { e.scale = 1 / std::sqrt(32.0F); }},
           Fault{"scale 5 % off", "prefill.c0", [](Engine& e) { e.scale *= 1.05F; }},
           Fault{"a maximum that rescales nothing", "prefill.c0",
                 [](Engine& e) {
                   e.attention = [](const auto& s, const auto& v) { return flash(s, v, false); };
                 }},
       }) {
    Engine wrong(run);
    fault.plant(wrong);
    const Verdict v = run.judged(wrong.trace(kCoarse));
    EXPECT_EQ(v.exit_code(), 1) << fault.name;
    for (const Row& row : v.rows) {
      if (row.fit != Fit::not_judged || row.name == "prefill.c0.ids") continue;
      EXPECT_EQ(row.why, "operands are missing") << row.name;
      const std::string layer = row.name.substr(0, row.name.rfind('.') + 1);
      EXPECT_EQ(std::count(row.needs.begin(), row.needs.end(), layer + "attn"), 1)
          << row.name << fmt::format(": {}", fmt::join(row.needs, " "));
    }
    const Verdict hooks = run.judged(wrong.trace(kHooks));
    ASSERT_TRUE(hooks.first) << fault.name;
    EXPECT_EQ(hooks.rows[*hooks.first].name, std::string(fault.pass) + ".layer0.attn")
        << fault.name;
  }
}

/// What is rounded between chips is attn_out and ffn_out, and nothing else is excused by it.
TEST(Engines, RoundingsOnTheWireExcuseNoOtherFault) {
  struct Cut {
    const char *torus, *wire, *axes;
    std::size_t chips;
  };
  for (const Cut& cut : {Cut{"2x1x1", "1", "x", 2}, Cut{"4x2x1", "8", "xy", 8}}) {
    const ExactRun run(std::string("torus=") + cut.torus +
                       " model=llama,E=64,F=160,H=8,K=4,Q=8,V=128,layers=1 batch=2 prompt=5 gen=1");
    const std::string axes = cut.axes, tokens = "BLH_" + axes + "Q", columns = "BLF_" + axes;
    std::map<std::string, std::string> layouts{
        {"q", tokens}, {"q_rot", tokens}, {"attn", tokens}, {"k", "BLK_xQ"}, {"v", "BLK_xQ"}};
    for (const char* name : {"gate", "up", "hidden"}) layouts[name] = columns;
    for (const char* name :
         {"embed", "norm", "attn_out", "mid", "norm2", "ffn_out", "out", "final_norm"})
      layouts[name] = "BLE";
    const auto judged = [&](const std::function<void(Engine&)>& plant) {
      Engine engine(run);
      engine.chips = cut.chips, engine.bf16_wire = true;
      plant(engine);
      dump::Dump d = engine.trace(with(kHooks, {"gate", "up"}), layouts);
      d.attributes["wire"] = cut.wire;
      return run.judged(d);
    };
    const Verdict right = judged([](Engine&) {});
    EXPECT_EQ(right.exit_code(), 0);
    for (const Row& row : right.rows)
      if (name_of(row) != "attn_out" && name_of(row) != "ffn_out" && row.name != "prefill.c0.ids") {
        EXPECT_LE(row.fit, Fit::near) << row.name << ": it does not travel";
      }
    const auto expect_different = [&](const char* id, const std::function<void(Engine&)>& plant) {
      const Verdict v = judged(plant);
      ASSERT_TRUE(v.first) << cut.torus << id;
      EXPECT_EQ(v.rows[*v.first].name, std::string("prefill.c0.layer0.") + id) << cut.torus;
      EXPECT_EQ(v.rows[*v.first].fit, Fit::different);
    };
    const auto scale = [](Engine& e, std::size_t rows, float by) {
      for (std::size_t i = 0; i < rows * 64; ++i) e.weights.at("layer0.w_out")[i] *= by;
    };
    expect_different("gate", [](Engine& e) {
      for (float& w : e.weights.at("layer0.w_gate")) {
        int exponent = 0;
        const float digits = std::frexp(w, &exponent);
        w = std::ldexp(std::nearbyint(digits * 16) / 16, exponent);
      }
    });
    expect_different("ffn_out", [&](Engine& e) { scale(e, 160 / cut.chips, 1.05F); });
    expect_different("ffn_out", [&](Engine& e) { scale(e, 160, 1.01F); });
  }
}

std::set<std::string> without(std::set<std::string> names, const std::set<std::string>& less) {
  for (const std::string& name : less) names.erase(name);
  return names;
}

std::int64_t bad(const Verdict& v) { return v.count(Fit::different) + v.count(Fit::unlikely); }

/// Epilogues of products and fused kernels never store what they hand on; a fault in it is seen
/// behind it.
TEST(Engines, FusedOperationsAreWithin) {
  OneInN take(4, "fused operations");
  struct Fused {
    std::set<std::string> names;
    const char* weight;
  };
  for (const std::string model : {"llama", "llama,block=parallel"})
    for (const Fused& f :
         {Fused{{"attn_out", "ffn_out"}, "wo"}, Fused{{"attn_out"}, "wo"},
          Fused{{"ffn_out"}, "w_out"}, Fused{{"gate", "up"}, "w_up"}, Fused{{"gate"}, "w_gate"},
          Fused{{"q", "k"}, "wk"}, Fused{{"mid"}, "wo"}, Fused{{"out"}, "w_out"}}) {
      if (!take()) continue;
      const ExactRun run("torus=1x1x1 act=bf16 weights=bf16 model=" + model + kDims + kPasses);
      Engine engine(run);
      engine.fused = f.names;
      const auto names = without(with(kHooks, {"gate", "up"}), f.names);
      const Verdict right = run.judged(engine.trace(names));
      EXPECT_EQ(bad(right), 0) << model << " " << fmt::format("{}", fmt::join(f.names, ",")) << "\n"
                               << text(right);
      for (const std::string layer : {"layer0.", "layer1."})
        for (float& w : engine.weights.at(layer + f.weight)) w = round_to_bf16(w * 1.5F);
      EXPECT_GT(run.judged(engine.trace(names)).count(Fit::different), 0) << model << f.weight;
    }
}

/// (x + a) + f, of an x that is much larger, where no term is in the dump; and x as part of the
/// first chip's partial sum.
TEST(Engines, LargeResidualsInF32AreWithin) {
  for (const std::string model : {"llama", "llama,block=parallel"})
    for (const bool first : {false, true}) {
      const ExactRun run("torus=2x1x1 model=" + model + kDims + ",embed_scale=1000" + kPasses);
      Engine engine(run);
      engine.chips = 2;
      engine.residual_first = first && model == "llama";
      const Verdict v =
          run.judged(engine.trace(without(kHooks, {"attn_out", "ffn_out", "block_out"})));
      EXPECT_EQ(bad(v), 0) << model << first << "\n" << text(v);
      EXPECT_EQ(v.exit_code(), 0) << text(v);
    }
}

/// Keys cut over two chips, whose weighted parts travel as bf16; a part that is left out is seen.
TEST(Engines, PartsOfKeysMayTravelAsBf16) {
  const ExactRun run("torus=2x1x1 act=bf16 weights=bf16 model=llama" + kDims +
                     " batch=2 prompt=6 gen=1 seed=3");
  for (const bool right : {true, false}) {
    Engine engine(run);
    engine.attention = [right](const Floats& s, const std::vector<const float*>& v) {
      const float top = *std::max_element(s.begin(), s.end());
      float Z = 0;
      for (const float one : s) Z += std::exp(one - top);
      Floats o(8);
      for (const std::size_t begin : {0U, 3U}) {
        Floats part(8);
        for (std::size_t m = begin; m < std::min(begin + 3, s.size()); ++m)
          for (std::size_t c = 0; c < 8; ++c) part[c] += std::exp(s[m] - top) / Z * v[m][c];
        for (std::size_t c = 0; c < 8; ++c)
          o[c] += begin == 0 || right ? round_to_bf16(part[c]) : 0.0F;
      }
      return o;
    };
    for (const auto& names : {kHooks, with(kHooks, {"score", "max", "exp", "denom"})}) {
      const Verdict v =
          run.judged(engine.trace(names, {{"k_cache", "BM_xKQ"}, {"v_cache", "BM_xKQ"}}));
      EXPECT_EQ(bad(v) == 0, right) << text(v);
    }
  }
}

/// A gain that is folded into the next weight: x·r is what was rounded.
TEST(Engines, NormsWithoutTheirGainAreWithin) {
  const ExactRun run("torus=1x1x1 act=bf16 weights=bf16 model=llama" + kDims + kPasses);
  for (const bool right : {true, false}) {
    Engine engine(run);
    for (auto& [name, gain] : engine.weights)
      if (name.ends_with("norm") || name.ends_with("norm2"))
        std::fill(gain.begin(), gain.end(), right ? 1.0F : 1.0078125F);
    dump::Dump d = engine.trace({"ids", "embed", "norm"});
    std::erase_if(d.values, [](const auto& v) {
      return !v.first.starts_with("prefill.c0.embed") && v.first != "prefill.c0.ids" &&
             v.first != "prefill.c0.layer0.norm";
    });
    d.order = {"prefill.c0.ids", "prefill.c0.embed", "prefill.c0.layer0.norm"};
    d.attributes["norm_gain"] = "folded";
    EXPECT_EQ(bad(run.judged(d)) == 0, right);
    // Whatever is known of roundings before it.
    d.attributes["rounding"] = "spec";
    EXPECT_EQ(bad(run.judged(d)) == 0, right);
  }
}

/// What overflowed is infinite, and nothing else follows from it.
TEST(Engines, AnInfiniteOperandIsANumber) {
  const ExactRun run("torus=1x1x1 model=llama" + kDims + kPasses);
  for (const double sign : {1.0, -1.0})
    for (const double out : {HUGE_VAL, -HUGE_VAL, 5.0}) {
      std::vector<Written> values = run.values();
      named(values, "prefill.c0.layer1.ffn_out").numbers.back() = sign * HUGE_VAL;
      named(values, "prefill.c0.layer1.out").numbers.back() = out;
      std::erase_if(values, [](const Written& w) {
        return w.name.ends_with("final_norm") || w.name.ends_with("logits");
      });
      const Verdict v = run.judged(values, "f32");
      const bool wrong = row_of(v, "prefill.c0.layer1.out").fit == Fit::different;
      EXPECT_EQ(wrong, out != sign * HUGE_VAL) << sign << " " << out;
    }
}

/// NaN is further from right than any number, wherever it stands; also where 0 is right.
TEST(Engines, ANaNIsTheWorstElement) {
  const ExactRun run("torus=1x1x1 model=llama" + kDims + kPasses);
  for (const char* const name : {"prefill.c0.layer0.mid", "prefill.c0.layer0.score"})
    for (const bool first : {true, false}) {
      std::vector<Written> values = run.values();
      std::vector<double>& numbers = named(values, name).numbers;
      numbers[first ? numbers.size() - 1 : 0] = 1e30;
      numbers[first ? 1 : numbers.size() - 2] = NAN;
      const Verdict v = run.judged(values, "f32");
      const Row& row = row_of(v, name);
      ASSERT_TRUE(row.fit == Fit::different && row.worst) << name;
      EXPECT_TRUE(std::isnan(row.worst->actual)) << name << first;
    }
}

}  // namespace
}  // namespace shardproof::dump
