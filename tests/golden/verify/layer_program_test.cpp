// Layer programs as text, judged as a user's: printed, read back, edited letter by letter.
#include <fmt/format.h>

#include <algorithm>
#include <regex>
#include <sstream>

#include "golden/verify/verify.h"
#include "tests/engine/random_layout.h"
#include "tests/engine/strategy_sample.h"
#include "tests/golden/case_gen.h"
#include "tests/golden/layer_text.h"

namespace shardproof {
namespace {

std::string edited(std::string text, const std::string& from, const std::string& to) {
  const auto at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return at == std::string::npos ? text : text.replace(at, from.size(), to);
}

TEST(LayerProgram, EveryModelFamilysTextIsJudgedEqual) {
  OracleMemo memo;
  for (const char* family :
       {"block=serial", "model=palm-tiny,ffn=gelu,rope=none,norm=layernorm",
        "model=palm-tiny,ffn=geglu,norm=layernorm,bias=all,rope=interleaved,tied=false",
        "block=serial model=palm-tiny,ffn=gelu-erf,bias=all,K=24"})
    for (NumberFormat act : {NumberFormat::f32, NumberFormat::bf16})
      for (const Strategy& strategy : sample_strategies()) {
        Case c = parse_case(fmt::format("torus=2x1x3 {} batch=6 prompt=3 gen=2", family));
        c.model.E = c.model.F = 24;
        c.model.V = 24;
        c.model.Q = 2;
        c.numerics.act = act;
        c = fitted(c, strategy);
        const std::string text = text_of(strategy, c);
        EXPECT_EQ(print_program(parse_program("layer", text)), text);
        const Judgement j = judge(text, c, memo);
        EXPECT_EQ(j.verdict, Verdict::equal)
            << family << " " << strategy.to_string() << " " << j.explanation();
      }
}

TEST(LayerProgram, EveryStrategysTextIsJudgedEqual) {
  // Each in both storages, by turns with one of the four ways in which K is sharded, and with int8
  // weights, whose scales come before biases or not: what a strategy computes for every K is the
  // standard matrix's to judge.
  constexpr int kHeads[] = {1, 3, 6, 24};
  OracleMemo memo;
  std::size_t turn = 0;
  for (const Strategy& strategy : all_strategies()) {
    const int K = kHeads[turn % 4];
    Case int8 = small(K, turn % 3 == 0 ? NumberFormat::bf16 : NumberFormat::f32);
    int8.numerics.weights = NumberFormat::int8;
    if (turn / 4 % 2 == 0) int8.model.bias = Bias::all;
    if (turn / 8 % 2 == 0) int8.model.block = Block::serial;
    ++turn;
    for (const Case& of : {small(K), small(K, NumberFormat::bf16), int8}) {
      const Case c = fitted(of, strategy);
      const std::string text = text_of(strategy, c);
      EXPECT_EQ(text.find("_scale : ") != std::string::npos, of == int8);
      EXPECT_EQ(print_program(parse_program("layer", text)), text);
      const Judgement j = judge(text, c, memo);
      EXPECT_EQ(j.verdict, Verdict::equal) << print_case(c) << " " << j.explanation();
    }
  }
}

RC_GTEST_PROP(LayerProgram, PrintAndParseAreInverseForEveryCase, ()) {
  const Case c = *any_case();
  const RunPlan plan = make_plan(c);
  std::vector<const Program*> programs{&plan.hand_over};
  std::vector<const PhasePrograms*> phases{&plan.prefill, &plan.decode};
  if (c.prefix.given()) {
    phases.push_back(&plan.prefix);
    programs.insert(programs.end(), {&plan.prefix_hand_over, &plan.prefix_to_decode});
  }
  for (const PhasePrograms* phase : phases)
    programs.insert(programs.end(), {&phase->embed, &phase->layer, &phase->head, &phase->sample});
  for (const Program* p : programs) RC_ASSERT(parse_program(p->name, print_program(*p)) == *p);
}

/// The program with the axes of sums in one order: theirs says nothing.
Program in_one_order(Program program) {
  for (Op& op : program.ops)
    if (op.kind == OpKind::all_reduce) op.axes = op.axes.sorted();
  return program;
}

TEST(LayerProgram, EverySwappedPairOfAxesIsRefused) {
  int swapped = 0;
  for (int K : {1, 6, 24})
    for (const Strategy& strategy : sample_strategies()) {
      const Case c = fitted(small(K), strategy);
      const std::string text = text_of(strategy, c);
      const Program program = in_one_order(parse_program("layer", text));
      for (const char* pair : {"zy", "yz"})
        for (auto at = text.find(pair); at != std::string::npos; at = text.find(pair, at + 1)) {
          std::string swap = text;
          swap.replace(at, 2, std::string(pair) == "zy" ? "yz" : "zy");
          if (in_one_order(parse_program("layer", swap)) == program) continue;
          std::string why;
          EXPECT_TRUE(refused(swap, c, why)) << strategy.to_string() << "\n" << swap;
          EXPECT_NE(why.find("p.txt line "), std::string::npos) << why;
          EXPECT_NE(why.find("(docs/"), std::string::npos) << why;
          ++swapped;
        }
    }
  EXPECT_GE(swapped, 500);
}

/// Every text that differs in one axis letter, in a declared layout or an op's axes: replaced by
/// each other letter, dropped, or dropped with its underscore.
std::vector<std::string> one_letter_edits(const std::string& text) {
  static const std::regex axes(
      "_([xyz]+)|partialsum-([xyz]+)|(?:, |->| as )([xyz]+)(?=[)]|->| as )");
  std::vector<std::string> all;
  for (std::sregex_iterator m(text.begin(), text.end(), axes), end; m != end; ++m)
    for (std::size_t group = 1; group <= 3; ++group)
      for (std::ptrdiff_t i = 0; i < m->length(group); ++i) {
        const auto at = static_cast<std::size_t>(m->position(group) + i);
        for (char c : {'x', 'y', 'z'}) {
          all.push_back(text);
          all.back()[at] = c;
          if (all.back() == text) all.pop_back();
        }
        all.push_back(text);
        all.back().erase(at, 1);
        if (group == 1 && m->length(group) == 1) {
          all.push_back(text);
          all.back().erase(at - 1, 2);
        }
      }
  return all;
}

/// Every text that differs in one dim letter of a declared layout: replaced, dropped, or doubled by
/// another one after it.
std::vector<std::string> dim_letter_edits(const std::string& text) {
  static const std::regex layouts(": ([A-Z][A-Z_xyz]*)");
  std::vector<std::string> all;
  for (std::sregex_iterator m(text.begin(), text.end(), layouts), end; m != end; ++m)
    for (std::ptrdiff_t i = 0; i < m->length(1); ++i) {
      const auto at = static_cast<std::size_t>(m->position(1) + i);
      if (text[at] < 'A' || text[at] > 'Z') continue;
      for (char c : {'B', 'L', 'E', 'Q', 'M'}) {
        all.push_back(text);
        all.back()[at] = c;
        if (c == text[at]) all.pop_back();
        all.push_back(text);
        all.back().insert(at + 1, 1, c);
      }
      all.push_back(text);
      all.back().erase(at, 1);
      if (i + 1 < m->length(1) && text[at + 1] >= 'A' && text[at + 1] <= 'Z') {
        all.push_back(text);
        std::swap(all.back()[at], all.back()[at + 1]);
      }
    }
  return all;
}

TEST(LayerProgram, EveryWrongDimLetterIsRefused) {
  int edits = 0;
  // Of every second kind of strategy: the kinds of ops are the same in the others.
  for (std::size_t i = 0; i < sample_strategies().size(); i += 2) {
    const Strategy& strategy = sample_strategies()[i];
    const Case c = fitted(small(24), strategy);
    for (const std::string& edit : dim_letter_edits(text_of(strategy, c))) {
      ++edits;
      std::string why;
      if (!refused(edit, c, why)) ADD_FAILURE() << strategy.to_string() << "\n" << edit;
      EXPECT_EQ(why.find('\n'), std::string::npos) << why;
      EXPECT_NE(why.find("p.txt line "), std::string::npos) << why;
    }
  }
  EXPECT_GE(edits, 5000);
}

TEST(LayerProgram, EveryOneLetterEditIsRefusedOrDifferent) {
  OracleMemo memo;
  int edits = 0;
  std::size_t turn = 0;
  for (int K : {1, 6, 24})
    for (const Strategy& strategy : sample_strategies()) {
      // A strategy of each kind, by turns with one K: a text has hundreds of letters.
      if (turn++ % 3 != 0) continue;
      const Case c = fitted(small(K), strategy);
      const std::string text = text_of(strategy, c);
      const Program program = in_one_order(parse_program("layer", text));
      for (const std::string& edit : one_letter_edits(text)) {
        ++edits;
        std::string why;
        if (refused(edit, c, why) || in_one_order(parse_program("layer", edit)) == program)
          continue;
        const Judgement j = judge(edit, c, memo);
        EXPECT_NE(j.verdict, Verdict::equal) << strategy.to_string() << " K=" << K << "\n" << edit;
      }
    }
  EXPECT_GE(edits, 3000);
}

RC_GTEST_PROP(LayerProgram, AnyResidualLayoutIsLedInAndOut, ()) {
  // ws2d between two reshardings: in comes `in`, out goes `out`, wherever they lie.
  const Torus torus = *rc::gen::element(Torus(4, 2, 3), Torus(3, 2, 2), Torus(2, 3, 1),
                                        Torus(1, 4, 2), Torus(2, 2, 2));
  Case c =
      small(*rc::gen::element(1, 24), *rc::gen::element(NumberFormat::f32, NumberFormat::bf16));
  c.torus = torus;
  const auto residual = [] {
    const std::vector<Axes> bins = draw_bins(3);
    return Layout({{'B', bins[1]}, {'L', Axes()}, {'E', bins[2]}}, Axes());
  };
  const Layout in = residual();
  const Layout out = residual();
  RC_CLASSIFY(!(in == out), "resharded between layers");
  Program layer = parse_program("layer", text_of(Strategy::parse("ws2d:heads"), c));
  /// The ops of the cheapest path, after `value`; the name of the last.
  const auto lead = [&](ValueDecl value, const Layout& to, std::vector<Op>& ops) {
    const Path path = cheapest_path(value.layout, to, {c.batch, 1, c.model.E}, torus);
    for (const Move& move : path.moves) {
      Op op = move.op;
      op.args = {value.name};
      value = {.name = value.name + "_", .layout = move.to, .role = value.role};
      op.results = {value};
      ops.push_back(std::move(op));
    }
    return value.name;
  };
  const Layout own = layer.inputs[0].layout;
  layer.inputs[0].layout = in;
  std::vector<Op> before;
  const std::string led = lead(layer.inputs[0], own, before);
  for (Op& op : layer.ops)
    for (std::string& arg : op.args)
      if (arg == "x") arg = led;
  layer.ops.insert(layer.ops.begin(), before.begin(), before.end());
  layer.outputs[0] = lead(layer.declared(layer.outputs[0]), out, layer.ops);

  OracleMemo memo;
  const std::string text = print_program(layer);
  RC_LOG() << torus.to_string() << "\n" << text;
  const Judgement j = judge(text, c, memo);
  RC_LOG() << j.explanation();
  RC_ASSERT(j.verdict == Verdict::equal);
}

TEST(LayerProgram, ALegalButWrongOneIsDifferentAtItsFirstWrongStep) {
  OracleMemo memo;
  const Case c = small(1);
  const std::string text = text_of(Strategy::parse("ws2d:batch"), c);
  struct Fault {
    const char *from, *to, *step;
  };
  for (const Fault& f : {
           Fault{"out : BLE_xzy = add(x, yr) is out",  // the residual twice
                 "o1 : BLE_xzy = add(x, yr) is out\nout : BLE_xzy = add(x, o1) is out",
                 "prefill.c0.layer0.out"},
           {"add(x, yr)", "add(yr, yr)", "prefill.c0.layer0.out"},  // no residual
           {"qp : B_zyxLHQ = rope(qt, ps, cos, sin) is q_rot",      // no rotation: of zeros, one
            "q0 : B_zyxLHQ = all_to_all(qr, H->B, zyx) is q_rot\nqp : B_zyxLHQ = rope(qt, ps, cos, "
            "sin) is q_rot",
            "prefill.c0.layer0.q0"},
           {"attend(qp, kc", "attend(qt, kc", "prefill.c0.layer0.s"},         // rope left out
           {"append(k_old, kp", "append(k_old, kr", "prefill.c0.layer0.kc"},  // cached unrotated
           {"rope(qt, ps, cos, sin)", "rope(qt, ps, sin, cos)", "prefill.c0.layer0.qp"},
           {"append(v_old, vr", "append(k_old, vr",
            "decode.1.layer0.vc"},  // one cache for the other
           {"swiglu(hr, ur)", "swiglu(ur, hr)", "prefill.c0.layer0.a"},
           {"xns, wk)", "xns, wv)", "prefill.c0.layer0.k"},
           {"is weight w_gate", "is weight w_up", "prefill.c0.layer0.h"},
           {"norm(xg, sa, gs) is norm", "norm(xg, sa, gs) is in", "prefill.c0.layer0.xn"},
       }) {
    const Judgement j = judge(edited(text, f.from, f.to), c, memo);
    ASSERT_EQ(j.verdict, Verdict::different) << f.to << " " << j.explanation();
    EXPECT_EQ(j.difference()->step, f.step) << f.to;
    EXPECT_TRUE(j.difference()->where.starts_with("p.txt line ")) << j.explanation();
  }
}

TEST(LayerProgram, OneThatLeavesACheckpointUnsaidIsNotJudged) {
  // Right in every value, but nothing is ever said to be `up` itself.
  OracleMemo memo;
  const Case c = small(1);
  std::string text = text_of(Strategy::parse("ws2d:heads"), c);
  text = edited(text, "u : BLF_zy partialsum-x", "u0 : BLF_zy partialsum-x");
  text = edited(text, "ur : BLF_zyx = reduce_scatter(u, F, x) is up",
                "ur : BLF_zyx = reduce_scatter(u0, F, x) is raw up");
  const Judgement j = judge(text, c, memo);
  EXPECT_EQ(j.verdict, Verdict::not_judged) << j.explanation();
  EXPECT_EQ(j.reason(), "no complete value of the run is declared as decode.1.layer0.up");
}

TEST(LayerProgram, OneThatAsksForWhatTheModelHasNotIsRefused) {
  OracleMemo memo;
  const Case c = small(1);
  const std::string text = text_of(Strategy::parse("ws2d:batch"), c);
  const std::string hidden = "a : BLF_zyx = swiglu(hr, ur) is ";
  for (const auto& [role, label] : {std::pair{"raw hidden", "judge_c1"},
                                    {"norm2", "layer_c5"},
                                    {"raw mid", "layer_c5"},
                                    {"stat mu", "judge_c1"},
                                    {"stat candidates", "layer_c5"},
                                    {"last k_cache", "program_c5"},
                                    {"previous token", "layer_c5"},
                                    {"weight w_updown", "layer_c5"},
                                    {"logits", "layer_c5"}}) {
    const std::string from = std::string(role) == "stat mu" ? "sa : BL = all_reduce(ss, x) is "
                             : std::string(role) == "last k_cache"
                                 ? "kc : B_zyxMKQ = append(k_old, kp, ps) is "
                                 : hidden;
    const std::string old = from == hidden ? "hidden" : from[0] == 's' ? "stat ss" : "k_cache";
    std::string found;
    try {
      judge(edited(text, from + old, from + role), c, memo);
    } catch (const Error& error) {
      found = error.label();
      EXPECT_NE(std::string(error.what()).find("p.txt"), std::string::npos) << error.what();
    }
    // A cache that is not called so is missed at the outputs first.
    EXPECT_EQ(found, std::string(role) == "last k_cache" ? "layer_c2" : label) << role;
  }
}

TEST(LayerProgram, TheShippedOnesAreProvedOnManyTori) {
  OracleMemo memo;
  for (const char* name : {"b_first_x.txt", "b_first_xyz.txt"}) {
    const Program layer = load_layer(std::string(SHARDPROOF_SOURCE "/docs/programs/") + name);
    for (const Torus& torus : {Torus(4, 2, 3), Torus(3, 2, 2), Torus(2, 3, 1), Torus(1, 4, 2),
                               Torus(1, 1, 1), Torus(5, 1, 2)})
      for (const char* H : {"", ",H=24"}) {
        Case c = parse_case(fmt::format(
            "torus={} model=palm-tiny,E=120,F=120,V=120,Q=2,H={} prompt=5 chunk=2 gen=3 seed=7",
            torus.to_string(), *H != '\0' ? 24 : torus.size(Axes::parse("zy"))));
        c.prefill = c.decode = Strategy(layer);
        c.batch = smallest_batch(c.prefill, torus);
        const Judgement j = verify_case(c, memo);
        EXPECT_EQ(j.verdict, Verdict::equal) << name << " " << print_case(c) << j.explanation();
      }
  }
}

}  // namespace
}  // namespace shardproof
