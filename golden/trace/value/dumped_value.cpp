#include "golden/trace/value/dumped_value.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <map>
#include <set>
#include <utility>

#include "golden/compare/block_map.h"
#include "golden/compare/case_padding.h"
#include "golden/compare/row_padding.h"
#include "golden/trace/claim/declared.h"
#include "golden/trace/claim/given.h"
#include "golden/trace/layout/arrays.h"
#include "golden/trace/layout/hints.h"
#include "golden/trace/value/all_positions.h"
#include "golden/trace/value/coarse.h"
#include "golden/trace/value/wire.h"
#include "weights/base/detail/stable_sort.h"
#include "weights/base/detail/words.h"
#include "weights/model/registry.h"

namespace shardproof::candidate {
namespace {

const std::string* find(const dump::Attributes& attributes, std::string_view name) {
  const auto at = attributes.find(name);
  return at == attributes.end() ? nullptr : &at->second;
}

std::string text(const Shape& shape) { return fmt::format("[{}]", fmt::join(shape, ",")); }

/// Returns the layouts that a value declares, one per value fused in it.
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

/// Returns the subjects of a file's value: one, or those fused in it; none if unknown.
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

/// Returns the index of the dim along which fused values are concatenated.
std::size_t along(const std::string& name, const dump::Value& value, const Layout& first,
                  std::size_t values) {
  if (values == 1) return 0;
  const std::string* const letter = find(value.attributes, "along");
  if (letter == nullptr || letter->size() != 1 || !first.find((*letter)[0]))
    throw Error("dump_attribute", fmt::format("{}: along={:?} is not a dim of {}", name,
                                              letter == nullptr ? "" : *letter, first.to_string()));
  return *first.find((*letter)[0]);
}

/// Returns the writer's global shape, given a chip's: the model's extents, or larger ones in dims
/// that the value or the case declares as padded.
Shape padded_shape(const std::string& name, const dump::Value& value, const Layout& layout,
                   const Subject& subject, const Torus& torus, const Shape& local, const Case& c) {
  const DimPadding padding = dim_padding(c);
  const std::string* const letters = find(value.attributes, "padded");
  Shape theirs;
  for (std::size_t d = 0; d < local.size(); ++d)
    theirs.push_back(local[d] * torus.size(layout.dims()[d].axes));
  for (std::size_t d = 0; d < local.size(); ++d) {
    const char letter = layout.dims()[d].letter;
    const std::int64_t extent = subject.shape[subject.dims.find(letter)];
    const bool blocks = letter == 'C' && padding.pads('V');  // counted by set_blocks
    const bool may = blocks || padding.placed(letter, extent) == theirs[d] ||
                     (letters != nullptr && letters->find(letter) != std::string::npos);
    if (theirs[d] == extent || (may && theirs[d] > extent)) continue;
    std::string hint = hint_of_flat_tokens(layout.letters(), theirs, subject);
    if (hint.empty() && letter == 'K') hint = hint_of_kv_heads(layout, torus, theirs[d], extent);
    if (hint.empty() && theirs[d] > extent)
      hint = fmt::format("; padding is declared: padded={:?}", std::string(1, letter));
    throw Error("dump_layout",
                fmt::format("{}: {} of shards {} is a value of {} {}, the model's has {}{}", name,
                            layout.to_string(), text(local), letter, theirs[d], extent, hint));
  }
  return theirs;
}

/// Returns one value's numbers from a chip's fused shard; it starts at `first` in the fused dim.
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

/// For a value with one element per block of the vocabulary: sets the number of blocks, without
/// those that hold only the case's padding.
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

/// Returns the layout of a whole value, without axes: nothing is cut.
Layout uncut(const Layout& layout) {
  std::vector<Layout::Dim> dims = layout.dims();
  for (Layout::Dim& dim : dims) dim.axes = Axes();
  return Layout(std::move(dims), Axes());
}

/// Flags the padding of rows that are shorter than others; empty: none.
std::vector<bool> padding_of(const Subject& subject, const Passes& passes) {
  if (subject.meaning == Meaning::weight || passes.full()) return {};
  for (std::int64_t i = 0; i < passes.size(); ++i)
    if (const PassPlan pass = passes.at(i); pass.name == subject.pass)
      return padding_in_trace(
          subject.dims, subject.shape,
          subject.meaning == Meaning::token || subject.meaning == Meaning::candidates ||
              subject.meaning == Meaning::drawing || subject.meaning == Meaning::indices,
          pass);
  return {};
}

/// Rejects arrays with the tokens of all rows in one dim.
void require_rows(const std::string& name, const dump::Value& value, const Mesh& mesh,
                  const Subject& subject) {
  const Shape& shape = value.in_shards() ? value.chips.begin()->second.shape : value.whole.shape;
  const std::size_t stacked = value.in_shards() ? 0 : mesh.order().size();
  const bool short_of_one = shape.size() + 1 == subject.dims.size();
  if (!short_of_one && shape.size() + 1 != subject.dims.size() + stacked) return;
  const auto first = shape.begin() + static_cast<std::ptrdiff_t>(short_of_one ? 0 : stacked);
  const std::string hint = hint_of_flat_tokens("", Shape(first, shape.end()), subject);
  if (!hint.empty())
    throw Error("dump_layout", fmt::format("{}: an array {} has not the dims {}{}", name,
                                           text(shape), subject.dims, hint));
}

/// Reads the value's own attributes.
void describe(DumpedValue& dumped, const dump::Value& value, const Claim& claim) {
  Arithmetic arithmetic{claim.declared, claim.exact, claim.arithmetic_said};
  if (says_arithmetic(value.attributes)) {
    arithmetic = read_arithmetic(value.attributes, arithmetic);
    if (find(value.attributes, "folded")) arithmetic.bounds.folded += claim.gain_folded ? 1 : 0;
    dumped.declared = arithmetic.bounds;
  }
  dumped.exact = arithmetic.exact;
  dumped.own_wire = find(value.attributes, "wire") != nullptr;
}

/// Returns whether each chip holds a block of the model's value; padding and other orders of heads
/// or channels prevent that.
bool is_plain(const Shape& padded, const Layout& layout, const Subject& subject,
              const Claim& claim) {
  bool plain = claim.heads.empty() && !claim.pairs;
  for (std::size_t d = 0; d < padded.size(); ++d)
    plain = plain && padded[d] == subject.shape[subject.dims.find(layout.dims()[d].letter)];
  return plain;
}

/// Adds the values that an array holds. Throws Error("dump_layout", ...) if it does not fit.
void add(Values& to, const std::string& name, const dump::Value& value,
         std::vector<Subject> subjects, const Claim& claim, const Weights& weights,
         const Passes& passes) {
  if (!value.unread.empty()) throw Error("dump_layout", value.unread);
  const bool all_positions = has_all_positions(subjects[0], value, claim.mesh);
  if (all_positions) subjects[0] = at_all_positions(subjects[0], passes);
  std::vector<Layout> layouts = layouts_of(name, value, claim, subjects);
  require_rows(name, value, claim.mesh, subjects[0]);
  const Arrays arrays = arrays_of(name, value, claim.mesh, claim.given.torus, layouts[0].rank());
  const bool declared = find(value.attributes, "layout") || find(value.attributes, "spec");
  if (!arrays.whole && !declared)
    throw Error("dump_layout", fmt::format("{}: shards need a layout", name));
  const std::vector<Layout> on_chips = layouts;
  if (arrays.whole)
    for (Layout& layout : layouts) layout = uncut(layout);
  set_blocks(name, subjects[0], layouts[0], arrays, claim.given);
  const std::size_t dim = along(name, value, layouts[0], subjects.size());
  // Local shapes of the values in the fused dim.
  std::vector<Shape> locals;
  std::int64_t taken = 0;
  for (std::size_t i = 0; i < subjects.size(); ++i) {
    locals.push_back(arrays.local);
    if (subjects.size() == 1) break;
    const Layout::Dim& d = layouts[i].dims()[dim];
    const std::int64_t extent = subjects[i].shape[subjects[i].dims.find(d.letter)];
    const int parts = arrays.torus.size(d.axes);
    if (extent % parts != 0)
      throw Error(
          "dump_layout",
          fmt::format(
              "{}: {} does not divide {} {}{}", name, layouts[i].to_string(), d.letter, extent,
              d.letter == 'K' ? hint_of_kv_heads(layouts[i], arrays.torus, parts, extent) : ""));
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
    DumpedValue dumped;
    dumped.name = name;
    dumped.subject = subjects[i];
    dumped.layout = layouts[i];
    describe(dumped, value, claim);
    dumped.torus = arrays.torus;
    dumped.whole = arrays.whole;
    dumped.encoding = arrays.encoding;
    dumped.units = units_of(subjects[i], claim, weights);
    dumped.padding = padding_of(subjects[i], passes);
    const Shape padded =
        padded_shape(name, value, layouts[i], subjects[i], arrays.torus, locals[i], claim.given);
    if (declared)
      to.laid.push_back(
          {subjects[i], on_chips[i], is_plain(padded, layouts[i], subjects[i], claim)});
    const auto chips = static_cast<std::size_t>(arrays.torus.chips());
    dumped.shards.resize(chips);
    dumped.places.resize(chips);
    Place place(dumped.layout, dumped.subject, claim, padded);
    for (const Arrays::Shard& shard : arrays.shards) {
      const auto chip = static_cast<std::size_t>(shard.chip);
      dumped.shards[chip] = numbers_of(shard, arrays.local, dim, first, locals[i]);
      dumped.places[chip].resize(dumped.shards[chip].size());
      judged_elements(dumped.layout, padded, arrays.torus, shard.chip,
                      [&](std::int64_t local, std::int64_t global) {
                        const std::int64_t element = place(global);
                        dumped.places[chip][static_cast<std::size_t>(local)] =
                            element == DumpedValue::kNone || dumped.padded(element)
                                ? DumpedValue::kNone
                                : element;
                        return false;
                      });
    }
    if (subjects.size() > 1) first += locals[i][dim];
    if (all_positions) {
      take_last_positions(dumped, passes);
      dumped.units = units_of(dumped.subject, claim, weights);
      dumped.padding = padding_of(dumped.subject, passes);
    }
    to.dumped.push_back(std::move(dumped));
  }
}

/// Returns a value that has only a name, and the reason.
DumpedValue misfit(const std::string& name, const Subject& subject, std::string_view why) {
  DumpedValue dumped;
  dumped.name = name;
  dumped.subject = subject;
  std::vector<Layout::Dim> dims;
  for (const char letter : subject.dims) dims.push_back({letter, Axes()});
  dumped.layout = Layout(std::move(dims), Axes());
  dumped.torus = Torus(1, 1, 1);
  dumped.whole = dumped.misfit = true;
  dumped.shards.resize(1);
  dumped.places.resize(1);
  const std::string prefix = name + ": ";
  dumped.why_not = why.starts_with(prefix) ? why.substr(prefix.size()) : why;
  return dumped;
}

/// Returns the values that an array holds, or misfits if it does not fit.
Values held_in(const std::string& name, const dump::Value& value,
               const std::vector<Subject>& subjects, const Claim& claim, const Weights& weights,
               const Passes& passes) {
  Values of;
  try {
    add(of, name, value, subjects, claim, weights, passes);
  } catch (const Error& error) {
    if (error.label() != "dump_layout") throw;
    of = {};
    for (const Subject& s : subjects) of.dumped.push_back(misfit(name, s, error.message()));
  }
  return of;
}

/// Returns the names by the file's `order`; names without one follow, by passes, because an HDF5
/// file lists them alphabetically, the decode before the prefill.
std::vector<std::string> names_in_order(const dump::Dump& dump, const Passes& passes) {
  std::vector<std::pair<std::int64_t, std::string>> sorted;
  for (std::string& name : dump::in_order(dump)) {
    const bool has_place = dump::place_in_run(dump.values.find(name)->second).has_value();
    const std::int64_t rank =
        has_place ? std::numeric_limits<std::int64_t>::min() : pass_of(name, passes);
    sorted.emplace_back(rank, std::move(name));
  }
  stable_sort(sorted, [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<std::string> names;
  for (auto& [rank, name] : sorted) names.push_back(std::move(name));
  return names;
}

/// Adds another part of the same value.
void add_summand(DumpedValue& sum, const DumpedValue& other) {
  if (sum.misfit) return;
  if (other.misfit || !(sum.layout == other.layout) || sum.places != other.places) {
    sum = misfit(sum.name, sum.subject,
                 other.misfit ? fmt::format("its summand {}: {}", other.name, other.why_not)
                              : fmt::format("{} and {}, its summands, are in different layouts",
                                            sum.name, other.name));
    return;
  }
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

bool DumpedValue::coarser_than(bounds::Format format) const {
  return coarse_of(encoding).unit > bounds::unit_of(format);
}

bool DumpedValue::finer_than_f32() const {
  if (encoding != dump::Encoding::f64) return false;
  return std::any_of(shards.begin(), shards.end(), [](const std::vector<double>& shard) {
    return std::any_of(shard.begin(), shard.end(), [](double v) {
      return !std::isnan(v) && bounds::values({v, v}, bounds::Format::f32).low != v;
    });
  });
}

std::vector<int> DumpedValue::group(int chip) const {
  std::vector<int> members = judged_group(layout, torus, chip);
  const bool whole_group = std::none_of(members.begin(), members.end(), [&](int member) {
    return shards[static_cast<std::size_t>(member)].empty();
  });
  return members.front() == chip && whole_group ? members : std::vector<int>();
}

bool DumpedValue::complete() const {
  std::vector<bool> seen = padding;
  seen.resize(static_cast<std::size_t>(element_count(subject.shape)), false);
  for (int chip = 0; chip < torus.chips(); ++chip)
    if (!group(chip).empty())
      for (const std::int64_t place : places[static_cast<std::size_t>(chip)])
        if (place != kNone) seen[static_cast<std::size_t>(place)] = true;
  return std::find(seen.begin(), seen.end(), false) == seen.end();
}

namespace {

/// Checks that an array declared the same as another is the same value: nothing else judges it.
void require_same_value(const dump::Dump& dump, const std::string& name, const dump::Value& value,
                        const std::string& same, const Claim& claim, const Passes& passes,
                        WeightType kept) {
  const auto other = dump.values.find(same);
  if (other == dump.values.end() || find(other->second.attributes, "same_as"))
    throw Error("dump_attribute", fmt::format("{}: same_as={:?}: the trace has no array of "
                                              "that name",
                                              name, same.substr(0, 200)));
  const auto of = [&](const std::string& id, const dump::Value& v) {
    const std::vector<Subject> s = subjects_of(id, v, claim, passes, kept);
    return s.empty() ? std::string() : s[0].title();
  };
  const std::string mine = of(name, value), theirs = of(same, other->second);
  if (!mine.empty() && mine != theirs)
    throw Error("dump_attribute",
                fmt::format("{}: same_as={:?}: this is {}, that {}", name, same.substr(0, 200),
                            mine, theirs.empty() ? "no value of the model" : theirs));
}

/// Marks as operands given values, and caches of a pass of which the file has nothing else.
void say_operands(std::vector<DumpedValue>& dumped, const Passes& passes) {
  std::set<std::string> in_file;
  const auto handed_in = [&](const DumpedValue& h) {
    const std::int64_t pass = pass_of(h.name, passes);
    return pass >= 0 && passes.at(pass).name != h.subject.pass;
  };
  for (const DumpedValue& h : dumped)
    if (h.subject.meaning != Meaning::weight && !handed_in(h)) in_file.insert(h.subject.pass);
  for (DumpedValue& h : dumped) {
    if (!h.why_not.empty()) continue;
    if (h.given)
      h.why_not = "given";
    else if (h.subject.meaning == Meaning::checkpoint && handed_in(h) &&
             !in_file.contains(h.subject.pass))
      h.why_not = fmt::format("handed in: the trace has nothing else of {}", h.subject.pass);
  }
}

}  // namespace

Values read_values(const dump::Dump& dump, const Claim& claim, const Weights& weights) {
  const Passes passes = claim.given.passes();
  Values values;
  Given given(claim.operands);
  std::map<std::string, std::size_t> sums;
  for (const std::string& name : names_in_order(dump, passes)) {
    const dump::Value& value = dump.values.find(name)->second;
    const bool is_given = given(name, value.attributes);
    if (const std::string* const same = find(value.attributes, "same_as")) {
      require_same_value(dump, name, value, *same, claim, passes, weights.stored_type());
      ++values.copies;
    }
    const std::vector<Subject> subjects =
        subjects_of(name, value, claim, passes, weights.stored_type());
    if (find(value.attributes, "same_as")) {
      if (!subjects.empty() && find(value.attributes, "layout"))
        values.laid.push_back({subjects[0], layouts_of(name, value, claim, subjects)[0]});
      continue;
    }
    if (subjects.empty()) {
      values.unknown.push_back(
          {name, is_given ? "given, and no value of the model: say which it stands for by meaning"
                          : "no value of the model"});
      continue;
    }
    Values in_array = held_in(name, value, subjects, claim, weights, passes);
    for (DumpedValue& dumped : in_array.dumped) dumped.given = is_given;
    std::move(in_array.laid.begin(), in_array.laid.end(), std::back_inserter(values.laid));
    if (find(value.attributes, "summand_of")) {
      const auto [at, is_first] = sums.emplace(subjects[0].title(), values.dumped.size());
      if (!is_first) {
        add_summand(values.dumped[at->second], in_array.dumped[0]);
        continue;
      }
    }
    std::move(in_array.dumped.begin(), in_array.dumped.end(), std::back_inserter(values.dumped));
  }
  given.require_all_met();
  const bool any_given = std::any_of(values.dumped.begin(), values.dumped.end(),
                                     [](const DumpedValue& dumped) { return dumped.given; });
  if (any_given && claim.exact)
    throw Error("compare_given",
                "what follows a given value has other bits than the model's; legal "
                "arithmetic: f32, f64, bf16, f16");
  say_operands(values.dumped, passes);
  leave_out_wire(values, claim);
  return values;
}

}  // namespace shardproof::candidate
