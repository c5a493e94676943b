#include "golden/candidate/held.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "golden/candidate/arrays.h"
#include "golden/candidate/coarse.h"
#include "golden/case_padding.h"
#include "golden/compare/block_map.h"
#include "golden/row_padding.h"
#include "weights/registry.h"
#include "weights/words.h"

namespace shardproof::candidate {
namespace {

const std::string* find(const dump::Attributes& attributes, std::string_view name) {
  const auto at = attributes.find(name);
  return at == attributes.end() ? nullptr : &at->second;
}

std::string text(const Shape& shape) { return fmt::format("[{}]", fmt::join(shape, ",")); }

/// The layouts that a value declares, one for each that is fused in it.
std::vector<Layout> layouts_of(const std::string& name, const dump::Value& value,
                               const Claim& claim, const std::vector<Subject>& subjects) {
  std::vector<Layout> layouts;
  const std::string* const given = find(value.attributes, "layout");
  const std::string* const spec = find(value.attributes, "spec");
  if (given != nullptr) {
    for (const std::string_view word : split(*given, ",")) layouts.push_back(Layout::parse(word));
  } else if (spec != nullptr) {
    const std::string* const partial = find(value.attributes, "partial");
    for (const Subject& s : subjects)
      layouts.push_back(
          claim.mesh.layout(s.dims, *spec, partial == nullptr ? "" : std::string_view(*partial)));
  } else {
    for (const Subject& s : subjects) {
      std::vector<Layout::Dim> dims;
      for (const char letter : s.dims) dims.push_back({letter, Axes()});
      layouts.emplace_back(std::move(dims), Axes());
    }
  }
  if (layouts.size() != subjects.size())
    throw Error("dump_layout",
                fmt::format("{}: {} layouts of {} values", name, layouts.size(), subjects.size()));
  for (std::size_t i = 0; i < layouts.size(); ++i) {
    std::string have = layouts[i].letters(), need = subjects[i].dims;
    std::sort(have.begin(), have.end());
    std::sort(need.begin(), need.end());
    if (have != need)
      throw Error("dump_layout",
                  fmt::format("{}: {} has not the dims of {}, {}", name, layouts[i].to_string(),
                              subjects[i].title(), subjects[i].dims));
  }
  return layouts;
}

/// The subjects of a value of the file: one, or those that are fused in it; none of an unknown
/// name.
std::vector<Subject> subjects_of(const std::string& name, const dump::Value& value,
                                 const Claim& claim, const Passes& passes, WeightType kept) {
  const ModelConfig& model = claim.given.model;
  std::string id = name;
  if (const std::string* const whole = find(value.attributes, "summand_of"))
    id = name.substr(0, name.rfind('.') + 1) + *whole;
  std::vector<Subject> subjects;
  if (const std::string* const fused = find(value.attributes, "fused")) {
    const std::string before = name.substr(0, name.rfind('.') + 1);
    for (const std::string_view part : split(*fused, ",")) {
      const auto s = subject(before + std::string(part), "", model, passes, kept);
      if (!s || s->dims.find('C') != std::string::npos)
        throw Error("dump_attribute", fmt::format("{}: fused={:?}: the model has no {}{}", name,
                                                  *fused, before, part));
      subjects.push_back(*s);
    }
    return subjects;
  }
  const std::string* const meaning = find(value.attributes, "meaning");
  if (const auto s = subject(id, meaning == nullptr ? "" : *meaning, model, passes, kept))
    subjects.push_back(*s);
  return subjects;
}

/// The place of the dim that fused values stand in one after the other.
std::size_t along(const std::string& name, const dump::Value& value, const Layout& first,
                  std::size_t values) {
  if (values == 1) return 0;
  const std::string* const letter = find(value.attributes, "along");
  if (letter == nullptr || letter->size() != 1 || !first.find((*letter)[0]))
    throw Error("dump_attribute", fmt::format("{}: along={:?} is not a dim of {}", name,
                                              letter == nullptr ? "" : *letter, first.to_string()));
  return *first.find((*letter)[0]);
}

/// The writer's global shape, from a chip's: model extents, longer where they are padded, as the
/// value says or the case.
Shape padded_shape(const std::string& name, const dump::Value& value, const Layout& layout,
                   const Subject& subject, const Torus& torus, const Shape& local, const Case& c) {
  const DimPadding padding = dim_padding(c);
  const std::string* const letters = find(value.attributes, "padded");
  Shape padded;
  for (std::size_t d = 0; d < local.size(); ++d) {
    const char letter = layout.dims()[d].letter;
    const std::int64_t extent = subject.shape[subject.dims.find(letter)];
    const std::int64_t theirs = local[d] * torus.size(layout.dims()[d].axes);
    const bool blocks = letter == 'C' && padding.pads('V');  // counted by set_blocks
    const bool may = blocks || padding.placed(letter, extent) == theirs ||
                     (letters != nullptr && letters->find(letter) != std::string::npos);
    if (theirs != extent && !(may && theirs > extent))
      throw Error("dump_layout",
                  fmt::format("{}: {} of shards {} is a value of {} {}, the model's has {}{}", name,
                              layout.to_string(), text(local), letter, theirs, extent,
                              theirs > extent ? fmt::format("; padding is declared: padded={:?}",
                                                            std::string(1, letter))
                                              : ""));
    padded.push_back(theirs);
  }
  return padded;
}

/// Those of value number `which` of a chip's fused shard.
std::vector<double> numbers_of(const Arrays::Shard& shard, const Shape& fused, std::size_t dim,
                               std::int64_t first, const Shape& local) {
  std::vector<double> numbers(static_cast<std::size_t>(element_count(local)));
  std::int64_t inner = 1;
  for (std::size_t d = dim + 1; d < local.size(); ++d) inner *= local[d];
  const std::int64_t mine = (local.empty() ? 1 : local[dim]) * inner;
  const std::int64_t all = (fused.empty() ? 1 : fused[dim]) * inner;
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    const auto at = static_cast<std::int64_t>(i);
    numbers[i] = shard.stored->at(
        shard.first + static_cast<std::size_t>(at / mine * all + first * inner + at % mine));
  }
  return numbers;
}

/// Of what there is one a block of the vocabulary: how many blocks the array has, those apart that
/// the case's padding alone is in.
void set_blocks(const std::string& name, Subject& subject, const Layout& layout,
                const Arrays& arrays, const Case& c) {
  const std::int64_t V = dim_padding(c).placed('V', c.model.V);
  const std::size_t dim = subject.dims.find('C');
  if (dim == std::string::npos) return;
  const std::size_t d = *layout.find('C');
  const std::int64_t blocks = arrays.local[d] * arrays.torus.size(layout.dims()[d].axes);
  if (blocks < 1 || V % blocks != 0)
    throw Error("dump_layout", fmt::format("{}: {} blocks do not divide V {}", name, blocks, V));
  subject.block = V / blocks;
  subject.shape[dim] = (c.model.V + subject.block - 1) / subject.block;
}

/// A layout of a value that stands whole, without its axes: nothing of it is cut.
Layout uncut(const Layout& layout) {
  std::vector<Layout::Dim> dims = layout.dims();
  for (Layout::Dim& dim : dims) dim.axes = Axes();
  return Layout(std::move(dims), Axes());
}

/// What rows leave that are shorter than others; empty: nothing.
std::vector<bool> padding_of(const Subject& subject, const Passes& passes) {
  if (subject.meaning == Meaning::weight || passes.full()) return {};
  for (std::int64_t i = 0; i < passes.size(); ++i)
    if (const PassPlan pass = passes.at(i); pass.name == subject.pass)
      return padding_in_trace(subject.dims, subject.shape,
                              subject.meaning == Meaning::token ||
                                  subject.meaning == Meaning::candidates ||
                                  subject.meaning == Meaning::indices,
                              pass);
  return {};
}

void add(Values& values, const std::string& name, const dump::Value& value, const Claim& claim,
         const Weights& weights, const Passes& passes) {
  std::vector<Subject> subjects = subjects_of(name, value, claim, passes, weights.kept());
  if (subjects.empty()) {
    values.unknown.push_back({name, "no value of the model"});
    return;
  }
  std::vector<Layout> layouts = layouts_of(name, value, claim, subjects);
  const Arrays arrays = arrays_of(name, value, claim.mesh, claim.given.torus, layouts[0].rank());
  const bool declared = find(value.attributes, "layout") || find(value.attributes, "spec");
  if (!arrays.whole && !declared)
    throw Error("dump_layout", fmt::format("{}: shards need a layout", name));
  if (arrays.whole)
    for (Layout& layout : layouts) layout = uncut(layout);
  set_blocks(name, subjects[0], layouts[0], arrays, claim.given);
  const std::size_t dim = along(name, value, layouts[0], subjects.size());
  // What each of the values takes of the fused dim, on a chip.
  std::vector<Shape> locals;
  std::int64_t taken = 0;
  for (std::size_t i = 0; i < subjects.size(); ++i) {
    locals.push_back(arrays.local);
    if (subjects.size() == 1) break;
    const Layout::Dim& d = layouts[i].dims()[dim];
    const std::int64_t extent = subjects[i].shape[subjects[i].dims.find(d.letter)];
    const int parts = arrays.torus.size(d.axes);
    if (extent % parts != 0)
      throw Error("dump_layout", fmt::format("{}: {} does not divide {} {}", name,
                                             layouts[i].to_string(), d.letter, extent));
    locals.back()[dim] = extent / parts;
    taken += extent / parts;
  }
  if (subjects.size() > 1 && taken != arrays.local[dim])
    throw Error("dump_layout", fmt::format("{}: the values fused along {} have {} together, the "
                                           "shards {} have {}",
                                           name, layouts[0].dims()[dim].letter, taken,
                                           text(arrays.local), arrays.local[dim]));
  std::int64_t first = 0;
  for (std::size_t i = 0; i < subjects.size(); ++i) {
    Held held;
    held.name = name;
    held.subject = subjects[i];
    held.layout = layouts[i];
    held.torus = arrays.torus;
    held.whole = arrays.whole;
    held.encoding = arrays.encoding;
    held.units = units_of(subjects[i], claim, weights);
    held.padding = padding_of(subjects[i], passes);
    const Shape padded =
        padded_shape(name, value, layouts[i], subjects[i], arrays.torus, locals[i], claim.given);
    const auto chips = static_cast<std::size_t>(arrays.torus.chips());
    held.shards.resize(chips);
    held.places.resize(chips);
    Place place(held.layout, held.subject, claim, padded);
    for (const Arrays::Shard& shard : arrays.shards) {
      const auto chip = static_cast<std::size_t>(shard.chip);
      held.shards[chip] = numbers_of(shard, arrays.local, dim, first, locals[i]);
      held.places[chip].resize(held.shards[chip].size());
      judged_elements(held.layout, padded, arrays.torus, shard.chip,
                      [&](std::int64_t local, std::int64_t global) {
                        const std::int64_t element = place(global);
                        held.places[chip][static_cast<std::size_t>(local)] =
                            element == Held::kNone || held.padded(element) ? Held::kNone : element;
                        return false;
                      });
    }
    if (subjects.size() > 1) first += locals[i][dim];
    values.held.push_back(std::move(held));
  }
}

/// Adds another summand of the same value.
void add_summand(Held& sum, const Held& other) {
  if (!(sum.layout == other.layout) || sum.places != other.places)
    throw Error("dump_layout", fmt::format("{} and {}, summands of {}, are in different layouts",
                                           sum.name, other.name, sum.subject.id));
  if (sum.sizes.empty()) {
    sum.sizes = sum.shards;
    for (std::vector<double>& shard : sum.sizes)
      for (double& v : shard) v = std::abs(v);
  }
  for (std::size_t chip = 0; chip < sum.shards.size(); ++chip)
    for (std::size_t i = 0; i < sum.shards[chip].size(); ++i) {
      sum.shards[chip][i] += other.shards[chip][i];
      sum.sizes[chip][i] += std::abs(other.shards[chip][i]);
    }
  ++sum.summands;
  sum.name += "+" + other.name;
}

}  // namespace

bool Held::coarser_than(bounds::Format format) const {
  return coarse_of(encoding).unit > bounds::unit_of(format);
}

std::vector<int> Held::group(int chip) const {
  std::vector<int> members = judged_group(layout, torus, chip);
  const bool whole_group = std::none_of(members.begin(), members.end(), [&](int member) {
    return shards[static_cast<std::size_t>(member)].empty();
  });
  return members.front() == chip && whole_group ? members : std::vector<int>();
}

bool Held::complete() const {
  std::vector<bool> seen = padding;
  seen.resize(static_cast<std::size_t>(element_count(subject.shape)), false);
  for (int chip = 0; chip < torus.chips(); ++chip)
    if (!group(chip).empty())
      for (const std::int64_t place : places[static_cast<std::size_t>(chip)])
        if (place != kNone) seen[static_cast<std::size_t>(place)] = true;
  return std::find(seen.begin(), seen.end(), false) == seen.end();
}

Values read_values(const dump::Dump& dump, const Claim& claim, const Weights& weights) {
  const Passes passes = claim.given.passes();
  Values values;
  std::map<std::string, std::size_t> sums;
  for (const std::string& name : dump::in_order(dump)) {
    const dump::Value& value = dump.values.find(name)->second;
    if (const std::string* const same = find(value.attributes, "same_as")) {
      const auto other = dump.values.find(*same);
      if (other == dump.values.end() || find(other->second.attributes, "same_as"))
        throw Error("dump_attribute", fmt::format("{}: same_as={:?}: the trace has no array of "
                                                  "that name",
                                                  name, same->substr(0, 200)));
      // What is said to be the same must be the same value: nothing else judges it.
      const auto of = [&](const std::string& id, const dump::Value& v) {
        const std::vector<Subject> s = subjects_of(id, v, claim, passes, weights.kept());
        return s.empty() ? std::string() : s[0].title();
      };
      const std::string mine = of(name, value), theirs = of(*same, other->second);
      if (!mine.empty() && mine != theirs)
        throw Error("dump_attribute",
                    fmt::format("{}: same_as={:?}: this is {}, that {}", name, same->substr(0, 200),
                                mine, theirs.empty() ? "no value of the model" : theirs));
      ++values.copies;
      continue;
    }
    add(values, name, value, claim, weights, passes);
    if (!find(value.attributes, "summand_of") || values.held.empty() ||
        values.held.back().name != name)
      continue;
    const Held& last = values.held.back();
    const auto [at, is_first] = sums.emplace(last.subject.title(), values.held.size() - 1);
    if (is_first) continue;
    add_summand(values.held[at->second], last);
    values.held.pop_back();
  }
  return values;
}

}  // namespace shardproof::candidate
