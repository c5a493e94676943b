#include "engine/layouts/around.h"

namespace shardproof {
namespace {

Layout layout(const char* text) { return Layout::parse(text); }

Program embedding(ProgramWriter w, const Layout& residual, const ModelConfig& config) {
  const Result ids = w.input("ids", layout("BL"), "input ids");
  const Result table = w.input("table", layout("V_zyE_x"), "weight embed");
  const Result e = w.step(OpKind::embed_lookup, {ids.name, table.name}, "e",
                          layout("BLE_x partialsum-yz"), "raw embed");
  Op scale;
  scale.kind = OpKind::scale_by;
  scale.parameter = "embed_scale";
  const Result x = w.step(scale, {w.lead(e, residual).name}, "x", residual, w.unstored("embed"));
  return w.finish({w.stored(x, "embed").name}, config);
}

Program head(ProgramWriter w, const Layout& residual, const ModelConfig& config) {
  Result x = w.input("x", residual, "out");
  const std::size_t L = residual.find('L').value();
  x = w.lead(x, residual.with_axes(L, Axes()));
  std::vector<Layout::Dim> dims = x.layout.dims();
  dims.erase(dims.begin() + static_cast<std::ptrdiff_t>(L));
  const Result last = w.step(OpKind::last, {x.name}, "xl", Layout(dims, Axes()), "last out", "x");
  const Result xn = write_norm(w, config, w.lead(last, layout("BE_x")), {"final_", "", true});
  const Result table =
      w.input("table", layout("V_zyE_x"), config.tied ? "weight embed" : "weight unembed");
  Op einsum;
  einsum.kind = OpKind::einsum;
  einsum.spec = EinsumSpec::parse("BE,VE->BV");
  const Result z =
      w.step(einsum, {xn.name, table.name}, "z", layout("BV_zy partialsum-x"), "raw logits");
  Op scale;
  scale.kind = OpKind::scale_by;
  scale.parameter = "logit_scale";
  w.step(scale, {w.lead(z, layout("BV_zyx")).name}, "logits", layout("BV_zyx"), "logits");
  return w.finish({"logits"}, config);
}

/// Greedy: the candidates are gathered in the order of the vocabulary, so that of equal logits the
/// lowest id wins.
Program sampling(ProgramWriter w, const ModelConfig& config) {
  const Result logits = w.input("logits", layout("BV_zyx"), "logits");
  Op best;
  best.kind = OpKind::local_argmax;
  const std::vector<Result> own =
      w.steps(best, {logits.name},
              {{"cv", layout("BC_zyx"), Meaning::parse("stat candidates")},
               {"ci", layout("BC_zyx"), Meaning::parse("stat indices")}});
  Op gather;
  gather.kind = OpKind::all_gather;
  gather.dim = 'C';
  gather.axes = Axes::parse("zyx");
  std::vector<std::string> all;
  for (const Result& one : own) all.push_back(w.move(one, {gather, layout("BC")}).name);
  w.step(OpKind::argmax, all, "token", layout("B"), "token");
  return w.finish({"token"}, config);
}

const Result& input_of(const Program& program, std::string_view meaning) {
  for (const Result& input : program.inputs)
    if (input.meaning.to_string() == meaning) return input;
  return program.declared(meaning);  // throws: require_layer saw to it
}

}  // namespace

PhasePrograms programs_around(Program layer, const Layout& residual, const Layout& cache,
                              const ModelConfig& config, const Extents& extents, const Torus& torus,
                              ActType act) {
  const auto writer = [&](const char* name) { return ProgramWriter(name, act, extents, torus); };
  return {embedding(writer("embed"), residual, config),
          std::move(layer),
          head(writer("head"), residual, config),
          sampling(writer("sample"), config),
          residual,
          cache};
}

PhasePrograms programs_around(const Program& layer, const ModelConfig& config,
                              const Extents& extents, const Torus& torus, ActType act) {
  const Layout& residual = input_of(layer, "in").layout;
  const Layout& cache = input_of(layer, "previous k_cache").layout;
  ProgramWriter w(layer, act, extents, torus);
  std::vector<std::string> outputs;
  for (const std::string& output : layer.outputs) {
    const Result& made = layer.declared(output);
    outputs.push_back(w.lead(made, made.meaning.name == "out" ? residual : cache).name);
  }
  return programs_around(w.finish(std::move(outputs)), residual, cache, config, extents, torus,
                         act);
}

Program hand_over(const Layout& from, const Layout& to, const ModelConfig& config,
                  const Extents& extents, const Torus& torus) {
  ProgramWriter w("hand_over", ActType::f32, extents, torus);
  std::vector<std::string> outputs;
  for (const char* name : {"k", "v"})
    outputs.push_back(w.lead(w.input(name, from, std::string(name) + "_cache"), to).name);
  return w.finish(std::move(outputs), config);
}

}  // namespace shardproof
