#include "golden/corpus/detail/collectives.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <random>

#include "engine/collectives/collectives.h"
#include "engine/program/program.h"
#include "golden/corpus/detail/collective_samples.h"
#include "golden/corpus/detail/layouts.h"
#include "golden/corpus/detail/operand.h"
#include "golden/corpus/detail/stacked.h"
#include "golden/corpus/document.h"
#include "golden/corpus/not_equal.h"
#include "golden/trace/value/same_bits.h"

namespace shardproof::corpus {
namespace {

using dump::same_bits;

/// A chip's block of each dim is two elements long, so that an order within it shows, too.
constexpr std::int64_t kBlock = 2;

Sharded engine_result(const Op& op, const Sharded& t) {
  if (op.by_max)
    throw Error("golden_operand", fmt::format("{} is not of partial sums", op.to_string()));
  switch (op.kind) {
    case OpKind::all_gather:
      return all_gather(t, op.dim, op.axes);
    case OpKind::reduce_scatter:
      return reduce_scatter(t, op.dim, op.axes);
    case OpKind::all_reduce:
      return all_reduce(t, op.axes);
    case OpKind::all_to_all:
      return all_to_all(t, op.dim, op.to, op.axes, op.as);
    case OpKind::permute_axes:
      return permute_axes(t, op.dim, op.axes, op.as);
    case OpKind::slice:
      return slice(t, op.dim, op.axes);
    default:
      throw Error("golden_operand", fmt::format("{} is not a collective", op.to_string()));
  }
}

/// Returns a program of a single op.
Program program_of(const std::string& name, const std::string& call, const Layout& operand,
                   const Layout& result) {
  Program program =
      parse_program("collective", fmt::format("input t : {} is in\nr : {} = {} is in\noutput r\n",
                                              operand.to_string(), result.to_string(), call));
  if (program.ops.size() != 1 || program.inputs.size() != 1 ||
      program.ops[0].args != std::vector<std::string>{"t"} || program.ops[0].to_string() != call)
    throw Error("golden_operand",
                fmt::format("{}: op={:?} is not one collective of t", name, call.substr(0, 200)));
  return program;
}

/// Adds operand and result to a golden.
void put_collective(dump::Dump& golden, const std::string& name, const std::string& call,
                    const Layout& layout, const Operand& operand, const Torus& torus) {
  std::vector<float> given;
  for (const Buffer<float>& shard : operand.shards)
    given.insert(given.end(), shard.begin(), shard.end());
  const Shape operand_block = judged_block(operand.layout, operand.shape, torus);
  put(golden, name + std::string(kOperandSuffix), stacked_shape(torus, operand_block),
      std::span<const float>(given), {{"layout", operand.layout.to_string()}});
  const Program program = program_of(name, call, operand.layout, layout);
  if (layout.letters() != operand.layout.letters() ||
      !operand.layout.partial().has_all(layout.partial()) ||
      !judged_divides(layout, operand.shape, torus))
    throw Error("golden_operand", fmt::format("{}: {} cannot become {}", name,
                                              operand.layout.to_string(), layout.to_string()));
  const std::vector<float> shards =
      result_of(operand, layout, torus, counts_keeping(layout.partial(), operand.layout, torus));
  const Sharded made = engine_result(program.ops[0], operand.sharded(torus));
  if (!(made.layout() == layout))
    throw NotEqual(fmt::format("{}: {} gives {}, expected {}", name, call,
                               made.layout().to_string(), layout.to_string()));
  const std::size_t block = shards.size() / static_cast<std::size_t>(torus.chips());
  for (std::size_t i = 0; i < shards.size(); ++i)
    if (!same_bits(made.f32()[i / block].at(i % block), shards[i]))
      throw NotEqual(fmt::format("{}: the engine gives chip {} other elements", name,
                                 torus.name(static_cast<int>(i / block))));
  put(golden, name, stacked_shape(torus, judged_block(layout, operand.shape, torus)),
      std::span<const float>(shards), {{"layout", layout.to_string()}, {"op", call}});
}

/// Checks the size before anything of the layout's size is allocated: chips can gather far more
/// than a file holds.
void require_size(const std::string& name, const dump::Value& value, const Layout& layout,
                  const Shape& shape, const Torus& torus) {
  if (!judged_divides(layout, shape, torus))
    throw Error("golden_operand", fmt::format("{}: {} does not divide [{}]", name,
                                              layout.to_string(), fmt::join(shape, ",")));
  const Shape stacked = stacked_shape(torus, judged_block(layout, shape, torus));
  if (value.whole.shape != stacked)
    throw Error("golden_operand", fmt::format("{} is [{}], of {} expected [{}]", name,
                                              fmt::join(value.whole.shape, ","), layout.to_string(),
                                              fmt::join(stacked, ",")));
}

dump::Dump on_torus(const Torus& torus) {
  dump::Dump golden = empty_golden(Kind::collectives);
  golden.attributes["torus"] = torus.to_string();
  return golden;
}

/// Returns an operand of pairwise different numbers; for partial sums, whole numbers from 1 to 9
/// and their negatives.
Operand drawn_operand(const CollectiveSample& sample, const Torus& torus, std::mt19937_64& source) {
  Operand operand;
  operand.layout = sample.operand;
  for (const Layout::Dim& dim : sample.operand.dims()) {
    Axes axes = dim.axes;
    for (const Axis axis : sample.result.axes(dim.letter))
      if (!axes.has(axis)) axes = axes.with(axis);
    operand.shape.push_back(kBlock * torus.size(axes));
  }
  const auto size = static_cast<std::size_t>(element_count(operand.shape));
  operand.parts.resize(static_cast<std::size_t>(torus.size(sample.operand.partial())),
                       std::vector<float>(size));
  for (std::vector<float>& part : operand.parts)
    for (std::size_t i = 0; i < size; ++i) {
      const std::uint64_t bits = source();
      const float digit = static_cast<float>(1 + bits % 9) * (bits >> 63 != 0 ? -1.0F : 1.0F);
      part[i] = sample.operand.is_partial() ? digit : static_cast<float>(i + 1);
    }
  const std::vector<float> shards = stacked<float>(
      sample.operand, operand.shape, torus, [&](int chip) -> const auto& {
        return operand.parts[judged_part(sample.operand, torus, chip)];
      });
  const std::size_t block = shards.size() / static_cast<std::size_t>(torus.chips());
  for (std::size_t i = 0; i < shards.size(); ++i) {
    if (i % block == 0) operand.shards.push_back({});
    operand.shards.back().push_back(shards[i]);
  }
  return operand;
}

}  // namespace

dump::Dump collectives_golden(const Torus& torus) {
  dump::Dump golden = on_torus(torus);
  std::mt19937_64 source(1);  // the C++ standard fixes its output
  std::map<std::string, int> numbers;
  for (const CollectiveSample& sample : collective_samples())
    put_collective(golden, fmt::format("{}.{}", sample.op, numbers[sample.op]++), sample.call,
                   sample.result, drawn_operand(sample, torus, source), torus);
  return golden;
}

dump::Dump expected_collectives(const dump::Dump& golden) {
  const Torus torus = torus_of(golden);
  dump::Dump expected = on_torus(torus);
  for (const std::string& name : dump::in_order(golden)) {
    if (name.ends_with(kOperandSuffix)) continue;
    const dump::Value& value = golden.values.find(name)->second;
    const auto operand = golden.values.find(name + std::string(kOperandSuffix));
    const auto call = value.attributes.find("op"), layout = value.attributes.find("layout");
    if (operand == golden.values.end() || call == value.attributes.end() ||
        layout == value.attributes.end())
      throw Error("golden_operand", fmt::format("{}: no operand, op or layout", name));
    const Layout result = Layout::parse(layout->second);
    const Operand given = read_operand(operand->first, operand->second, torus);
    require_size(name, value, result, given.shape, torus);
    put_collective(expected, name, call->second, result, given, torus);
  }
  return expected;
}

}  // namespace shardproof::corpus
