#include "golden/corpus/collectives.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <map>
#include <random>

#include "engine/collectives.h"
#include "engine/program/program.h"
#include "golden/corpus/collective_samples.h"
#include "golden/corpus/document.h"
#include "golden/corpus/layouts.h"
#include "golden/corpus/not_equal.h"
#include "golden/corpus/stacked.h"

namespace shardproof::corpus {
namespace {

/// A chip's block of each dim is two elements long, so that an order within it shows, too.
constexpr std::int64_t kBlock = 2;
constexpr std::string_view kOperand = ".operand";

bool same_bits(float a, float b) {
  return std::bit_cast<std::uint32_t>(a) == std::bit_cast<std::uint32_t>(b);
}

/// An operand: the shards of every chip, and the tensors that they stand for, one for each place on
/// the axes of partial sums.
struct Operand {
  Layout layout;
  Shape shape;                            // global
  std::vector<Buffer<float>> shards;      // by chip
  std::vector<std::vector<float>> parts;  // by judged_part

  Sharded sharded(const Torus& torus) const { return {torus, layout, shape, shards}; }
};

[[noreturn]] void refuse_operand(const std::string& name, const std::string& why) {
  throw Error("golden_operand", fmt::format("{}: {}", name, why));
}

Operand read_operand(const std::string& name, const dump::Value& value, const Torus& torus) {
  const auto layout = value.attributes.find("layout");
  if (layout == value.attributes.end()) refuse_operand(name, "no layout");
  Operand operand;
  operand.layout = Layout::parse(layout->second);
  const dump::Stored& stored = value.whole;
  const std::size_t rank = operand.layout.rank();
  const Shape local(stored.shape.begin() + std::min<std::ptrdiff_t>(3, std::ssize(stored.shape)),
                    stored.shape.end());
  if (value.in_shards() || stored.encoding != dump::Encoding::f32 || local.size() != rank ||
      stored.shape != stacked_shape(torus, local))
    refuse_operand(name, "not f32, stacked over x, y, z");
  for (std::size_t d = 0; d < rank; ++d)
    operand.shape.push_back(local[d] * torus.size(operand.layout.dims()[d].axes));
  const auto block = static_cast<std::size_t>(element_count(local));
  operand.parts.resize(static_cast<std::size_t>(torus.size(operand.layout.partial())));
  for (int chip = 0; chip < torus.chips(); ++chip) {
    Buffer<float>& shard = operand.shards.emplace_back();
    for (std::size_t i = 0; i < block; ++i)
      shard.push_back(static_cast<float>(stored.at(static_cast<std::size_t>(chip) * block + i)));
    std::vector<float>& part = operand.parts[judged_part(operand.layout, torus, chip)];
    part.resize(static_cast<std::size_t>(element_count(operand.shape)), std::nanf(""));
    judged_elements(operand.layout, operand.shape, torus, chip,
                    [&](std::int64_t mine, std::int64_t global) {
                      float& known = part[static_cast<std::size_t>(global)];
                      const float own = shard[static_cast<std::size_t>(mine)];
                      if (!std::isnan(known) && !same_bits(known, own))
                        refuse_operand(name, "copies on several chips differ");
                      known = own;
                      return false;
                    });
  }
  if (operand.layout.is_partial())
    for (std::size_t i = 0; i < operand.parts[0].size(); ++i) {
      double sizes = 0.0;
      for (const std::vector<float>& part : operand.parts) {
        const auto v = static_cast<double>(part[i]);
        if (v != std::floor(v)) refuse_operand(name, "a summand is no whole number");
        sizes += std::abs(v);
      }
      if (!(sizes < 0x1p24)) refuse_operand(name, "summands whose sums f32 cannot hold");
    }
  return operand;
}

/// Which places on the operand's partial axes a chip's result is the sum of: all that agree with
/// the chip where the result is still partial.
std::vector<std::size_t> summands_of(int chip, const Layout& operand, const Layout& result,
                                     const Torus& torus) {
  std::vector<std::size_t> parts;
  for (const int member : judged_group(operand, torus, chip))
    if (judged_part(result, torus, member) == judged_part(result, torus, chip))
      parts.push_back(judged_part(operand, torus, member));
  return parts;
}

/// The result's shards, chip after chip.
std::vector<float> expected_result(const Operand& operand, const Layout& result,
                                   const Torus& torus) {
  std::map<std::vector<std::size_t>, std::vector<float>> sums;
  for (int chip = 0; chip < torus.chips(); ++chip) {
    const std::vector<std::size_t> parts = summands_of(chip, operand.layout, result, torus);
    std::vector<float>& sum = sums[parts];
    if (!sum.empty()) continue;
    if (parts.size() == 1) {  // moved only: the bits stay
      sum = operand.parts[parts[0]];
      continue;
    }
    sum.resize(operand.parts[0].size());
    for (std::size_t i = 0; i < sum.size(); ++i) {
      double all = 0.0;
      for (const std::size_t part : parts) all += static_cast<double>(operand.parts[part][i]);
      sum[i] = static_cast<float>(all);
    }
  }
  return stacked<float>(
      result, operand.shape, torus, [&](int chip) -> const auto& {
        return sums.at(summands_of(chip, operand.layout, result, torus));
      });
}

Sharded engine_result(const Op& op, const Sharded& t) {
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
      throw Error("golden_operand", fmt::format("{} is no collective", op.to_string()));
  }
}

/// Adds operand and result to a golden.
void put_collective(dump::Dump& golden, const std::string& name, const std::string& call,
                    const Layout& layout, const Operand& operand, const Torus& torus) {
  std::vector<float> given;
  for (const Buffer<float>& shard : operand.shards)
    given.insert(given.end(), shard.begin(), shard.end());
  const Shape operand_block = judged_block(operand.layout, operand.shape, torus);
  put(golden, name + std::string(kOperand), stacked_shape(torus, operand_block),
      std::span<const float>(given), {{"layout", operand.layout.to_string()}});
  const std::vector<float> shards = expected_result(operand, layout, torus);
  const Program program = parse_program(
      "collective", fmt::format("input t : {} is in\nr : {} = {} is in\noutput r\n",
                                operand.layout.to_string(), layout.to_string(), call));
  const Sharded made = engine_result(program.ops.at(0), operand.sharded(torus));
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

dump::Dump on_torus(const Torus& torus) {
  dump::Dump golden = empty_golden(Kind::collectives);
  golden.attributes["torus"] = torus.to_string();
  return golden;
}

/// An operand of numbers that are all different; of partial sums, whole numbers from 1 to 9 and
/// their negatives.
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
    if (i % block == 0) operand.shards.emplace_back();
    operand.shards.back().push_back(shards[i]);
  }
  return operand;
}

}  // namespace

dump::Dump collectives_golden(const Torus& torus) {
  dump::Dump golden = on_torus(torus);
  std::mt19937_64 source(1);  // the standard says what it gives
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
    if (name.ends_with(kOperand)) continue;
    const dump::Value& value = golden.values.find(name)->second;
    const auto operand = golden.values.find(name + std::string(kOperand));
    const auto call = value.attributes.find("op"), layout = value.attributes.find("layout");
    if (operand == golden.values.end() || call == value.attributes.end() ||
        layout == value.attributes.end())
      refuse_operand(name, "no operand, op or layout");
    put_collective(expected, name, call->second, Layout::parse(layout->second),
                   read_operand(operand->first, operand->second, torus), torus);
  }
  return expected;
}

}  // namespace shardproof::corpus
