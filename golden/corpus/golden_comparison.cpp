#include "golden/corpus/golden_comparison.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "engine/run/case.h"
#include "golden/compare/reach_meter.h"
#include "golden/corpus/detail/collectives.h"
#include "golden/corpus/detail/explained.h"
#include "golden/corpus/detail/layouts.h"
#include "golden/corpus/detail/stacked.h"
#include "golden/corpus/golden.h"
#include "golden/trace/layout/arrays.h"
#include "golden/trace/value/same_bits.h"

namespace shardproof::corpus {
namespace {

using dump::same_bits;

using dump::DumpedValue;
using dump::Fit;
using dump::Row;
using dump::WrongElement;

const std::string* find(const dump::Attributes& attributes, std::string_view name) {
  const auto at = attributes.find(name);
  return at == attributes.end() ? nullptr : &at->second;
}

/// A golden's value: layout, global shape, and the shard of each chip.
struct Right {
  Layout layout;
  Shape shape;
  std::vector<std::vector<double>> shards;
};

Right right_value(const dump::Value& value, const Torus& torus) {
  Right right;
  right.layout = Layout::parse(value.attributes.find("layout")->second);
  const dump::StoredArray& stored = value.whole;
  std::size_t block = 1;
  for (std::size_t d = 0; d < right.layout.rank(); ++d) {
    const std::int64_t local = stored.shape[d + 3];
    right.shape.push_back(local * torus.size(right.layout.dims()[d].axes));
    block *= static_cast<std::size_t>(local);
  }
  for (std::size_t i = 0; i < stored.size(); ++i) {
    if (i % block == 0) right.shards.emplace_back();
    right.shards.back().push_back(stored.at(i));
  }
  return right;
}

/// Returns an attribute of a value that goldens of this kind do not support; "" if there is none.
std::string other_meaning(const dump::Value& value) {
  for (const std::string_view said :
       {"same_as", "summand_of", "fused", "along", "padded", "meaning"})
    if (find(value.attributes, said) != nullptr) return fmt::format("{} is not read here", said);
  const bool partial = find(value.attributes, "partial") != nullptr;
  return partial && find(value.attributes, "spec") == nullptr ? "partial without spec" : "";
}

/// Throws Error("compare_case", ...) if a file names another torus than the golden's.
void require_torus(const dump::Attributes& attributes, const Torus& torus) {
  const std::string* const line = find(attributes, "case");
  const std::string* const text = find(attributes, "torus");
  for (const auto& theirs : {line == nullptr ? torus : parse_case(*line).torus,
                             text == nullptr ? torus : Torus::parse(*text)})
    if (!(theirs == torus))
      throw Error("compare_case", fmt::format("the trace is of torus={}, not of torus={}",
                                              theirs.to_string(), torus.to_string()));
}

/// Throws Error("dump_layout", ...) if a value declares another layout than the golden's.
void require_layout(const std::string& name, const dump::Value& value, const dump::Mesh& mesh,
                    const Layout& layout) {
  const std::string* const given = find(value.attributes, "layout");
  const std::string* const spec = find(value.attributes, "spec");
  const std::string* const partial = find(value.attributes, "partial");
  if (given == nullptr && spec == nullptr) return;
  const Layout theirs = given != nullptr
                            ? Layout::parse(*given)
                            : mesh.layout(layout.letters(), *spec,
                                          partial == nullptr ? "" : std::string_view(*partial));
  if (!(theirs == layout))
    throw Error("dump_layout", fmt::format("{}: {}, the golden's is {}", name, theirs.to_string(),
                                           layout.to_string()));
}

DumpedValue held_value(const std::string& name, const dump::Value& value, const Right& right,
                       const dump::Mesh& mesh, const Torus& torus) {
  require_layout(name, value, mesh, right.layout);
  const dump::Arrays arrays = dump::arrays_of(name, value, mesh, torus, right.layout.rank());
  const Shape block = judged_block(right.layout, right.shape, torus);
  if (arrays.whole || arrays.local != block)
    throw Error("dump_layout", fmt::format("{}: {} [{}], the golden has shards [{}]", name,
                                           arrays.whole ? "a whole array" : "shards",
                                           fmt::join(arrays.local, ","), fmt::join(block, ",")));
  DumpedValue dumped;
  dumped.name = name;
  dumped.subject.id = dumped.subject.name = name;
  dumped.subject.dims = right.layout.letters();
  dumped.subject.shape = right.shape;
  dumped.layout = right.layout;
  dumped.torus = torus;
  dumped.encoding = arrays.encoding;
  dumped.shards.resize(static_cast<std::size_t>(torus.chips()));
  dumped.places.resize(dumped.shards.size());
  for (const dump::Arrays::Shard& shard : arrays.shards) {
    const auto chip = static_cast<std::size_t>(shard.chip);
    for (std::size_t i = 0; i < right.shards[chip].size(); ++i)
      dumped.shards[chip].own().push_back(shard.stored->at(shard.first + i));
    judged_elements(right.layout, right.shape, torus, shard.chip,
                    [&](std::int64_t, std::int64_t global) {
                      dumped.places[chip].own().push_back(global);
                      return false;
                    });
  }
  return dumped;
}

Row judged(const DumpedValue& dumped, const Right& right, std::size_t number) {
  Row row;
  row.name = row.title = dumped.name;
  row.dumped = number;
  row.of_run = !dumped.name.ends_with(kOperandSuffix);
  row.chips = dumped.torus.chips();
  row.fit = Fit::equal;
  double most = -1.0;
  for (std::size_t chip = 0; chip < dumped.shards.size(); ++chip) {
    row.incomplete = row.incomplete || dumped.shards[chip].empty();
    for (std::size_t i = 0; i < dumped.shards[chip].size(); ++i) {
      const double v = dumped.shards[chip][i], expected = right.shards[chip][i];
      ++row.elements;
      if (same_bits(v, expected)) continue;
      const WrongElement element{static_cast<int>(chip),
                                 global_index(right.shape, dumped.places[chip][i]), expected,
                                 expected, v};
      if (!row.first) row.first = element;
      const double distance = std::isnan(v) ? HUGE_VAL : std::abs(v - expected);
      row.add_wrong({static_cast<int>(chip)}, distance);
      if (distance > most) most = distance, row.worst = element;
    }
  }
  if (row.wrong > 0) row.fit = Fit::different;
  if (row.elements == 0) {
    row.fit = Fit::not_judged;
    row.why = "it holds no number";
  }
  return row;
}

}  // namespace

GoldenComparison judge_against(const dump::Dump& golden, const dump::Dump& file) {
  if (const CheckResult sound = check(golden); !sound.fault.empty())
    throw Error("golden_value", fmt::format("the golden is damaged: {}", sound.fault));
  const Torus torus = torus_of(golden);
  require_torus(file.attributes, torus);
  const std::string* const named = find(file.attributes, "mesh");
  const dump::Mesh mesh = dump::Mesh::parse(named == nullptr ? "x y z" : *named, torus);
  GoldenComparison against;
  dump::Verdict& verdict = against.verdict;
  for (const std::string& name : golden.order)
    if (!name.ends_with(kOperandSuffix)) ++verdict.whole;
  std::vector<std::string> names;
  for (const std::string& name : dump::in_order(golden))
    if (file.values.contains(name)) names.push_back(name);
  for (const std::string& name : dump::in_order(file))
    if (!golden.values.contains(name)) names.push_back(name);
  for (const std::string& name : names) {
    const auto at = golden.values.find(name);
    const dump::Value& value = file.values.find(name)->second;
    if (const std::string why =
            at == golden.values.end() ? "no value of the golden" : other_meaning(value);
        !why.empty()) {
      against.values.unknown.push_back({name, why});
      continue;
    }
    const Right right = right_value(at->second, torus);
    against.values.dumped.push_back(held_value(name, value, right, mesh, torus));
    verdict.rows.push_back(
        judged(against.values.dumped.back(), right, against.values.dumped.size() - 1));
    Row& row = verdict.rows.back();
    // A file that declares its replicas identical stores them once.
    if (const std::string* const copies = find(value.attributes, "replicas");
        copies != nullptr && *copies == "identical")
      row.incomplete = !against.values.dumped.back().complete();
    if (row.of_run && !row.incomplete && row.fit != Fit::not_judged) ++verdict.compared;
    if (row.fit == Fit::different && !verdict.first) verdict.first = verdict.rows.size() - 1;
  }
  verdict.unknown = against.values.unknown;
  if (verdict.first)
    against.diagnosis =
        explained(golden, against.values.dumped[verdict.rows[*verdict.first].dumped]);
  return against;
}

}  // namespace shardproof::corpus
