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
  // Once: the logits are complete, and each chip adds the bias of its block of the vocabulary.
  const WrittenValue s = w.step("zs", z.layout, scaled, "scaled logits");
  const Layout own({{'V', z.layout.axes('V')}}, {});
  const WrittenValue b = w.input("ub", own, "weight unembed_bias");
  return w.finish(
      {w.step("logits", z.layout, fmt::format("bias({}, {})", s.name, b.name), "logits").name});
}

const ValueDecl& input_of(const Program& program, std::string_view role) {
  for (const ValueDecl& input : program.inputs)
    if (input.role.to_string() == role) return input;
  return program.declared(role);  // throws; cannot happen after require_layer
}

/// A hand-over: the program's name, and the word before "k_cache" and "v_cache" in its roles.
struct HandOver {
  std::string_view program, word;
};

Program cache_moves(const HandOver& of, const Layout& from, const Layout& to,
                    const Extents& extents, const Torus& torus) {
  ProgramWriter w(std::string(of.program), NumberFormat::f32, extents, torus);
  std::vector<std::string> outputs;
  for (const std::string name : {"k", "v"})
    outputs.push_back(
        w.lead(w.input(name, from, fmt::format("{}{}_cache", of.word, name)), to).name);
  return w.finish(outputs);
}

using NamedLayouts = std::vector<std::pair<std::string, Layout>>;

/// Returns the names and layouts of the caches that a program has as inputs of a kind.
NamedLayouts caches_in(const Program& program, Role::Kind kind) {
  NamedLayouts caches;
  for (const ValueDecl& input : program.inputs)
    if (input.role.kind == kind) caches.emplace_back(input.role.name, input.layout);
  return caches;
}

/// The hand-over of the caches of a text's model.
Program cache_moves(const HandOver& of, const NamedLayouts& from, const NamedLayouts& to,
                    const std::shared_ptr<const ModelRows>& rows, const Extents& extents,
                    const Torus& torus) {
  ProgramWriter w(std::string(of.program), NumberFormat::f32, extents, torus);
  w.set_rows(rows);
  std::vector<std::string> outputs;
  for (std::size_t i = 0; i < from.size(); ++i) {
    const auto& [name, layout] = from[i];
    outputs.push_back(
        w.lead(w.input(name, layout, fmt::format("{}{}", of.word, name)), to.at(i).second).name);
  }
  if (!outputs.empty()) return w.finish(outputs);
  Program none;
  none.name = of.program;
  none.rows = rows;
  return none;
}

}  // namespace

PhasePrograms programs_around(PartitionedLayer made, const ModelConfig& config,
                              const Extents& extents, const Torus& torus, NumberFormat act,
                              const Sampling& sampling) {
  return {embedding(ProgramWriter("embed", act, extents, torus), made.residual),
          std::move(made.layer),
          head(ProgramWriter("head", act, extents, torus), made.residual, config),
          sampling_program(sampling),
          made.residual,
          made.cache,
          torus,
          made.prefix_cache};
}

PhasePrograms programs_around(Program layer, const ModelConfig& config, const Extents& extents,
                              const Torus& torus, NumberFormat act, const Sampling& sampling) {
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
  return programs_around(PartitionedLayer{std::move(layer), residual, cache, {}, {}}, config,
                         extents, torus, act, sampling);
}

Program sampling_program(const Sampling& sampling) {
  // Gathered blocks are in vocabulary order: of equal logits the lowest id wins, and a chip's block
  // begins where the blocks before it end.
  std::string text =
      "input logits : BV_zyx is logits\n"
      "cv : BC_zyx, ci : BC_zyx = local_argmax(logits) is stat candidates, "
      "stat indices\n"
      "gv : BC = all_gather(cv, C, zyx) is stat candidates\n";
  if (sampling.sample == Sample::greedy) {
    text +=
        "gi : BC = all_gather(ci, C, zyx) is stat indices\n"
        "token : B = argmax(gv, gi) is token\n";
  } else {
    text += "e : BV_zyx = weigh(logits, gv) is stat chances\n";
    std::string_view kept = "e";
    if (sampling.top_k > 0) {
      text +=
          "kn : BW, kf : B, ek : BV_zyx = top_k(e, zyx) is stat top_k_counts, "
          "stat top_k_floor, stat top_k_chances\n";
      kept = "ek";
    }
    if (sampling.top_p < 1) {
      text += fmt::format(
          "ps : BW, pf : B, ep : BV_zyx = top_p({}, zyx) is stat top_p_sums, "
          "stat top_p_floor, stat top_p_chances\n",
          kept);
      kept = "ep";
    }
    text += fmt::format(
        "m : BC_zyxW = masses({0}) is stat masses\n"
        "gm : BCW = all_gather(m, C, zyx) is stat masses\n"
        "hv : BC_zyx, hi : BC_zyx = draw({0}, gm) is stat hits, stat drawn\n"
        "gh : BC = all_gather(hv, C, zyx) is stat hits\n"
        "gi : BC = all_gather(hi, C, zyx) is stat drawn\n"
        "token : B = argmax(gh, gi) is token\n",
        kept);
  }
  return parse_program("sample", text + "output token");
}

Program hand_over(const Layout& from, const Layout& to, const Extents& extents,
                  const Torus& torus) {
  return cache_moves({kHandOverProgram, ""}, from, to, extents, torus);
}

std::vector<std::pair<std::string, Layout>> PhasePrograms::caches(std::int64_t index) const {
  if (layer.rows == nullptr) return {{"k_cache", cache}, {"v_cache", cache}};
  return caches_in(layer_program(index), Role::Kind::previous);
}

std::vector<std::pair<std::string, Layout>> PhasePrograms::prefix_caches(std::int64_t index) const {
  if (layer.rows == nullptr) return {{"k_cache", prefix_cache}, {"v_cache", prefix_cache}};
  return caches_in(layer_program(index), Role::Kind::prefix);
}

Program hand_over(const PhasePrograms& from, const PhasePrograms& to, std::int64_t index,
                  const Extents& extents, const Torus& torus) {
  if (from.layer.rows == nullptr) return hand_over(from.cache, to.cache, extents, torus);
  return cache_moves({kHandOverProgram, ""}, from.caches(index), to.caches(index), from.layer.rows,
                     extents, torus);
}

Layout as_prefixes(const Layout& cache) {
  std::vector<Layout::Dim> dims = cache.dims();
  for (Layout::Dim& dim : dims)
    if (dim.letter == 'B')
      dim.letter = 'N';
    else if (dim.letter == 'M')
      dim.letter = 'T';
  return Layout(std::move(dims), cache.partial());
}

Program prefix_hand_over(const PhasePrograms& prefix, const PhasePrograms& prefill,
                         std::int64_t index, const Extents& extents, const Torus& torus) {
  if (prefix.layer.rows == nullptr)
    return prefix_hand_over(as_prefixes(prefix.cache), prefill.prefix_cache, extents, torus);
  NamedLayouts before = prefix.caches(index);
  for (auto& [name, layout] : before) layout = as_prefixes(layout);
  return cache_moves({kPrefixHandOverProgram, "prefix "}, before, prefill.prefix_caches(index),
                     prefix.layer.rows, extents, torus);
}

Program prefix_to_decode(const PhasePrograms& from, const PhasePrograms& to, std::int64_t index,
                         const Extents& extents, const Torus& torus) {
  if (from.layer.rows == nullptr)
    return prefix_to_decode(from.prefix_cache, to.prefix_cache, extents, torus);
  return cache_moves({kPrefixToDecodeProgram, "prefix "}, from.prefix_caches(index),
                     to.prefix_caches(index), from.layer.rows, extents, torus);
}

Program prefix_hand_over(const Layout& from, const Layout& to, const Extents& extents,
                         const Torus& torus) {
  return cache_moves({kPrefixHandOverProgram, "prefix "}, from, to, extents, torus);
}

Program prefix_to_decode(const Layout& from, const Layout& to, const Extents& extents,
                         const Torus& torus) {
  return cache_moves({kPrefixToDecodeProgram, "prefix "}, from, to, extents, torus);
}

}  // namespace shardproof
