#include "engine/layouts/around.h"

#include <fmt/format.h>

#include <set>

namespace shardproof {
namespace {

Layout layout(const char* text) { return Layout::parse(text); }

Program embedding(ProgramWriter w, const Layout& residual) {
  w.input("ids", layout("BL"), "input ids");
  w.input("table", layout("V_zyE_x"), "weight embed");
  const WrittenValue e =
      w.lead(w.step("e", layout("BLE_x partialsum-yz"), "embed_lookup(ids, table)", "raw embed"),
             residual);
  const WrittenValue x =
      w.step("x", residual, fmt::format("scale_by({}, embed_scale)", e.name), w.unstored("embed"));
  return w.finish({w.stored(x, "embed").name});
}

Program head(ProgramWriter w, const Layout& residual, const ModelConfig& config) {
  const std::size_t L = residual.find('L').value();
  const WrittenValue x = w.lead(w.input("x", residual, "out"), residual.with_axes(L, {}));
  std::vector<Layout::Dim> dims = x.layout.dims();
  dims.erase(dims.begin() + static_cast<std::ptrdiff_t>(L));
  const WrittenValue last =
      w.step("xl", Layout(dims, {}), fmt::format("last({})", x.name), "last out", "x");
  const WrittenValue xn = write_norm(w, config, w.lead(last, layout("BE_x")), {"final_", "", true});
  w.input("table", layout("V_zyE_x"), config.tied ? "weight embed" : "weight unembed");
  const WrittenValue z =
      w.lead(w.step("z", layout("BV_zy partialsum-x"),
                    fmt::format("einsum(BE,VE->BV; {}, table)", xn.name), "raw logits"),
             layout("BV_zyx"));
  const std::string scaled = fmt::format("scale_by({}, logit_scale)", z.name);
  if (!config.unembed_bias) return w.finish({w.step("logits", z.layout, scaled, "logits").name});
  // Once: the logits are complete, and each chip has the bias of its block of the vocabulary.
  const WrittenValue s = w.step("zs", z.layout, scaled, "scaled logits");
  const Layout own({{'V', z.layout.axes('V')}}, {});
  const WrittenValue b = w.input("ub", own, "weight unembed_bias");
  return w.finish(
      {w.step("logits", z.layout, fmt::format("bias({}, {})", s.name, b.name), "logits").name});
}

/// Greedy: the candidates are gathered in the order of the vocabulary, so that of equal logits the
/// lowest id wins.
Program sampling() {
  return parse_program("sample", R"(input logits : BV_zyx is logits
cv : BC_zyx, ci : BC_zyx = local_argmax(logits) is stat candidates, stat indices
gv : BC = all_gather(cv, C, zyx) is stat candidates
gi : BC = all_gather(ci, C, zyx) is stat indices
token : B = argmax(gv, gi) is token
output token)");
}

const ValueDecl& input_of(const Program& program, std::string_view role) {
  for (const ValueDecl& input : program.inputs)
    if (input.role.to_string() == role) return input;
  return program.declared(role);  // throws: require_layer saw to it
}

}  // namespace

PhasePrograms programs_around(Program layer, const Layout& residual, const Layout& cache,
                              const ModelConfig& config, const Extents& extents, const Torus& torus,
                              ActType act) {
  return {embedding(ProgramWriter("embed", act, extents, torus), residual),
          std::move(layer),
          head(ProgramWriter("head", act, extents, torus), residual, config),
          sampling(),
          residual,
          cache,
          torus};
}

PhasePrograms programs_around(Program layer, const ModelConfig& config, const Extents& extents,
                              const Torus& torus, ActType act) {
  const Layout residual = input_of(layer, "in").layout;
  const Layout cache = input_of(layer, "previous k_cache").layout;
  std::set<std::string> taken;
  for (const ValueDecl& input : layer.inputs) taken.insert(input.name);
  for (const Op& op : layer.ops)
    for (const ValueDecl& result : op.results) taken.insert(result.name);
  const ProgramWriter w(std::string(kLayerProgram), act, extents, torus);
  for (std::string& output : layer.outputs) {
    const ValueDecl made = layer.declared(output);
    for (const Move& move : w.path(made.layout, made.role.name == "out" ? residual : cache).moves) {
      Op op = move.op;
      op.args = {output};
      for (int n = 1; taken.contains(output); ++n) output = fmt::format("{}_{}", made.name, n);
      taken.insert(output);
      op.results = {{output, move.to, made.role}};
      layer.ops.push_back(std::move(op));
    }
  }
  return programs_around(std::move(layer), residual, cache, config, extents, torus, act);
}

Program hand_over(const Layout& from, const Layout& to, const Extents& extents,
                  const Torus& torus) {
  ProgramWriter w(std::string(kHandOverProgram), ActType::f32, extents, torus);
  std::vector<std::string> outputs;
  for (const std::string name : {"k", "v"})
    outputs.push_back(w.lead(w.input(name, from, name + "_cache"), to).name);
  return w.finish(outputs);
}

}  // namespace shardproof
