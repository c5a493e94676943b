#include "engine/layouts/writer.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "weights/model/registry.h"
#include "weights/text/text_model.h"

namespace shardproof {

Extents extents_of(const ModelConfig& config, std::int64_t batch, std::int64_t L,
                   const SharedPrefix& prefix) {
  // No layout shards M or T.
  if (const TextModel* const of_text = text_model(config)) {
    Extents all(of_text->sizes().extents.begin(), of_text->sizes().extents.end());
    all.insert({{'B', batch}, {'L', L}, {'M', 1}});
    if (prefix.given()) all.insert({{'N', prefix.rows}, {'T', 1}});
    return all;
  }
  Extents all{{'B', batch},    {'L', L},        {'M', 1},        {'E', config.E}, {'F', config.F},
              {'H', config.H}, {'K', config.K}, {'Q', config.Q}, {'V', config.V}};
  if (prefix.given()) all.insert({{'N', prefix.rows}, {'T', 1}});
  return all;
}

WrittenValue ProgramWriter::input(const std::string& name, const Layout& layout,
                                  const std::string& role, const std::string& base) {
  const int n = ++taken_[name];
  const std::string own = n == 1 ? name : name + std::to_string(n);
  const Role::Kind kind = Role::parse(role).kind;
  const WeightRow* const row = weight_row(Role::parse(role).name, rows_.get());
  const bool weight =
      kind == Role::Kind::weight &&
      (row == nullptr || (row->kind != WeightKind::rope_table && row->kind != WeightKind::slopes));
  inputs_[kind == Role::Kind::checkpoint ? 0
          : weight                       ? 1
                   : 2] += fmt::format("input {} : {} is {}\n", own, layout.to_string(), role);
  return {own, layout, role, base.empty() ? own : base};
}

WrittenValue ProgramWriter::step(const std::string& name, const Layout& layout,
                                 const std::string& call, const std::string& role,
                                 const std::string& base) {
  const int n = ++taken_[name];
  const std::string own = n == 1 ? name : name + std::to_string(n);
  line(fmt::format("{} : {} = {} is {}", own, layout.to_string(), call, role));
  return {own, layout, role, base.empty() ? own : base};
}

void ProgramWriter::line(const std::string& text) {
  steps_ += text + "\n";
  ++length_;
}

WrittenValue ProgramWriter::move(const WrittenValue& value, const Move& move) {
  Op op = move.op;
  op.args = {value.name};
  return step(value.base + op_row(op.kind).suffix, move.to, op.to_string(), value.role, value.base);
}

Path ProgramWriter::path(const Layout& from, const Layout& to) const {
  Shape shape;
  for (const Layout::Dim& dim : from.dims()) shape.push_back(extents_.at(dim.letter));
  return cheapest_path(from, to, shape, torus_);
}

WrittenValue ProgramWriter::lead(WrittenValue value, const Layout& to) {
  for (const Move& one : path(value.layout, to).moves) value = move(value, one);
  return value;
}

WrittenValue ProgramWriter::stored(const WrittenValue& value, const std::string& checkpoint) {
  if (!bf16_) return value;
  return step(value.name + "_st", value.layout, fmt::format("store({})", value.name), checkpoint,
              value.base);
}

Program ProgramWriter::finish(const std::vector<std::string>& outputs) const {
  Program program = parse_program(name_, fmt::format("{}{}output {}", fmt::join(inputs_, ""),
                                                     steps_, fmt::join(outputs, ", ")));
  program.rows = rows_;
  return program;
}

WrittenValue write_norm(ProgramWriter& w, const ModelConfig& config, const WrittenValue& x,
                        const NormNames& names) {
  const std::string last = names.last ? "last " : "", &n = names.suffix;
  const std::string norm = names.prefix + "norm" + n;
  const auto stat = [&](const char* of) {
    return fmt::format("stat {}{}", last, statistic_row(norm, of).name);
  };
  const Axes e = x.layout.axes('E');
  const std::string letters = x.layout.letters(), rows = letters.substr(0, letters.size() - 1);
  std::vector<Layout::Dim> row_dims = x.layout.dims();
  row_dims.pop_back();
  const Layout row(row_dims, {}), of_e({{'E', e}}, {});
  // The sum over E of the product of two values, complete on every chip.
  const auto sum = [&](const std::string& name, const std::string& base, const char* of,
                       const WrittenValue& a, const WrittenValue& b) {
    const WrittenValue s = w.step(
        name + n, row.with_partial(e),
        fmt::format("einsum({},{}->{}; {}, {})", letters, b.layout.letters(), rows, a.name, b.name),
        stat(of));
    if (e.empty()) return s.name;
    return w
        .step(base + "a" + n, row, fmt::format("all_reduce({}, {})", s.name, e.to_string()),
              stat(of))
        .name;
  };
  // Gains and biases are resident unsharded; a chip slices out its own part.
  const auto part = [&](const std::string& name, const char* weight) {
    return w
        .lead(w.input(name + n, Layout::parse("E"), fmt::format("weight {}{}", norm, weight)), of_e)
        .name;
  };
  WrittenValue value = x;
  if (config.norm == Norm::layernorm) {
    const std::string total = sum("sx", "sx", "sum", x, w.input("ones", of_e, "constant ones"));
    const WrittenValue mu =
        w.step("mu" + n, row, fmt::format("divide_by({}, E)", total), stat("mu"));
    value = w.step("xd" + n, x.layout, fmt::format("center({}, {})", x.name, mu.name), stat("d"));
  }
  const std::string ss = sum("ss", "s", "ss", value, value);
  std::string args = fmt::format("{}, {}, {}", value.name, ss, part("g", ""));
  if (has_weight(config, norm + "_bias")) args += ", " + part("gb", "_bias");
  const std::string checkpoint = last + norm;
  return w.stored(w.step("xn" + n, x.layout, fmt::format("norm({})", args), w.unstored(checkpoint)),
                  checkpoint);
}

}  // namespace shardproof
