#include "engine/layouts/writer.h"

#include <fmt/format.h>

#include <algorithm>

#include "weights/registry.h"

namespace shardproof {
namespace {

char letter_of(OpKind kind) {
  switch (kind) {
    case OpKind::all_gather:
      return 'g';
    case OpKind::reduce_scatter:
      return 'r';
    case OpKind::all_reduce:
      return 'a';
    case OpKind::all_to_all:
      return 't';
    case OpKind::permute_axes:
      return 'p';
    default:
      return 's';
  }
}

}  // namespace

Extents extents_of(const ModelConfig& config, std::int64_t batch, std::int64_t L) {
  // M is cut in no layout there is.
  return {{'B', batch},    {'L', L},        {'M', 1},        {'E', config.E}, {'F', config.F},
          {'H', config.H}, {'K', config.K}, {'Q', config.Q}, {'V', config.V}};
}

ProgramWriter::ProgramWriter(Program program, ActType act, Extents extents, const Torus& torus)
    : program_(std::move(program)),
      extents_(std::move(extents)),
      torus_(torus),
      bf16_(act == ActType::bf16) {
  for (const Result& input : program_.inputs) bases_[input.name] = input.name;
  for (const Op& op : program_.ops)
    for (const Result& result : op.results) bases_[result.name] = result.name;
}

std::string ProgramWriter::free_name(const std::string& name, const std::string& base) {
  std::string own = name;
  for (int n = 2; bases_.contains(own); ++n) own = fmt::format("{}{}", name, n);
  bases_[own] = base.empty() ? own : base;
  return own;
}

Result ProgramWriter::input(const std::string& name, const Layout& layout, std::string_view meaning,
                            const std::string& base) {
  program_.inputs.push_back({free_name(name, base), layout, Meaning::parse(meaning)});
  return program_.inputs.back();
}

std::vector<Result> ProgramWriter::steps(Op op, std::vector<std::string> args,
                                         std::vector<Result> results, const std::string& base) {
  for (Result& result : results) result.name = free_name(result.name, base);
  op.args = std::move(args);
  op.results = results;
  program_.ops.push_back(std::move(op));
  return results;
}

Result ProgramWriter::step(Op op, const std::vector<std::string>& args, const std::string& name,
                           const Layout& layout, std::string_view meaning,
                           const std::string& base) {
  return steps(std::move(op), args, {{name, layout, Meaning::parse(meaning)}}, base)[0];
}

Result ProgramWriter::step(OpKind kind, const std::vector<std::string>& args,
                           const std::string& name, const Layout& layout, std::string_view meaning,
                           const std::string& base) {
  Op op;
  op.kind = kind;
  return step(std::move(op), args, name, layout, meaning, base);
}

Result ProgramWriter::move(const Result& value, const Move& move) {
  const std::string base = bases_.at(value.name);
  return step(move.op, {value.name}, base + letter_of(move.op.kind), move.to,
              value.meaning.to_string(), base);
}

Way ProgramWriter::way(const Layout& from, const Layout& to) const {
  Shape shape;
  for (const Layout::Dim& dim : from.dims()) shape.push_back(extents_.at(dim.letter));
  return cheapest_way(from, to, shape, torus_);
}

Result ProgramWriter::lead(Result value, const Layout& to) {
  for (const Move& one : way(value.layout, to).moves) value = move(value, one);
  return value;
}

Result ProgramWriter::stored(const Result& value, std::string_view checkpoint) {
  if (!bf16_) return value;
  return step(OpKind::store, {value.name}, value.name + "_st", value.layout, checkpoint,
              bases_.at(value.name));
}

Program ProgramWriter::finish(std::vector<std::string> outputs, const ModelConfig& config) {
  const std::vector<WeightSpec> specs = weight_specs(config);
  const auto rank = [&](const Result& input) {
    const Meaning& m = input.meaning;
    std::size_t at = 0;
    while (m.kind == Meaning::Kind::weight && at < specs.size() && specs[at].name != m.name &&
           specs[at].name != "layer0." + m.name)
      ++at;
    return std::pair(m.kind == Meaning::Kind::checkpoint ? -1 : static_cast<int>(m.kind), at);
  };
  std::stable_sort(program_.inputs.begin(), program_.inputs.end(),
                   [&](const Result& a, const Result& b) { return rank(a) < rank(b); });
  return finish(std::move(outputs));
}

Program ProgramWriter::finish(std::vector<std::string> outputs) {
  program_.outputs = std::move(outputs);
  return std::move(program_);
}

Result write_norm(ProgramWriter& w, const ModelConfig& config, const Result& x,
                  const NormNames& names) {
  const std::string last = names.last ? "last " : "";
  const auto stat = [&](std::string_view of) {
    return fmt::format("stat {}{}{}{}", last, names.before, of, names.behind);
  };
  const Axes e = x.layout.axes('E');
  const std::string letters = x.layout.letters();
  const std::string rows = letters.substr(0, letters.size() - 1);
  std::vector<Layout::Dim> row_dims = x.layout.dims();
  row_dims.pop_back();
  const Layout row(row_dims, Axes());
  const Layout of_e({{'E', e}}, Axes());

  // A sum over E of `value` times `by`, whole on every chip.
  const auto sum = [&](const std::string& name, const std::string& base, std::string_view of,
                       const Result& value, const Result& by) {
    Op einsum;
    einsum.kind = OpKind::einsum;
    einsum.spec = EinsumSpec::parse(fmt::format("{},{}->{}", letters, by.layout.letters(), rows));
    const Result s = w.step(einsum, {value.name, by.name}, name + names.behind, row.with_partial(e),
                            stat(of), base);
    if (e.empty()) return s;
    Op reduce;
    reduce.kind = OpKind::all_reduce;
    reduce.axes = e;
    return w.move(s, {reduce, row});
  };
  // Gains and bias rest whole; a chip takes its own part.
  const auto part = [&](const std::string& name, const std::string& weight) {
    const Result whole =
        w.input(name + names.behind, Layout::parse("E"),
                fmt::format("weight {}norm{}{}", names.before, names.behind, weight));
    return w.lead(whole, of_e).name;
  };

  Result value = x;
  if (config.norm == Norm::layernorm) {
    const Result ones = w.input("ones", of_e, "constant ones");
    const Result total = sum("sx", "sx", "sum", x, ones);
    Op divide;
    divide.kind = OpKind::divide_by;
    divide.parameter = "E";
    const Result mu = w.step(std::move(divide), {total.name}, "mu" + names.behind, row, stat("mu"));
    value = w.step(OpKind::center, {x.name, mu.name}, "xd" + names.behind, x.layout, stat("d"));
  }
  const Result ss = sum("ss", "s", "ss", value, value);
  std::vector<std::string> args{value.name, ss.name, part("g", "")};
  const auto specs = weight_specs(config);
  if (std::any_of(specs.begin(), specs.end(),
                  [](const WeightSpec& spec) { return spec.name == "final_norm_bias"; }))
    args.push_back(part("gb", "_bias"));
  const std::string checkpoint = fmt::format("{}{}norm{}", last, names.before, names.behind);
  return w.stored(w.step(OpKind::norm, args, "xn" + names.behind, x.layout, w.unstored(checkpoint)),
                  checkpoint);
}

}  // namespace shardproof
