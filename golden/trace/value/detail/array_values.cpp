#include "golden/trace/value/detail/array_values.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "golden/compare/block_map.h"
#include "golden/compare/case_padding.h"
#include "golden/compare/row_padding.h"
#include "golden/trace/claim/arithmetic_declaration.h"
#include "golden/trace/layout/hints.h"
#include "golden/trace/value/all_positions.h"
#include "weights/base/detail/words.h"
#include "weights/model/registry.h"

namespace shardproof::dump {
namespace {

/// Returns a layout without axes: nothing is cut.
Layout uncut(std::string_view letters) {
  std::vector<Layout::Dim> dims;
  for (const char letter : letters) dims.push_back({letter, Axes()});
  return Layout(std::move(dims), Axes());
}

/// Returns one value's numbers from a chip's fused shard; it starts at `first` in the fused dim.
Numbers numbers_of(const Arrays::Shard& shard, const Shape& fused, std::size_t dim,
                   std::int64_t first, const Shape& local) {
  const auto count = static_cast<std::size_t>(element_count(local));
  if (local == fused) return {*shard.stored, shard.first, count};
  std::vector<double> numbers(count);
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

std::int64_t extent_of(const Subject& subject, char letter) {
  return subject.shape[subject.dims.find(letter)];
}

}  // namespace

ArrayValues::ArrayValues(const std::string& name, const dump::Value& value, const RunOfTrace& run)
    : name_(name), value_(value), run_(run), subjects_(find_subjects()) {}

const std::string* ArrayValues::said(std::string_view attribute) const {
  return dump::find(value_.attributes, attribute);
}

template <class... Args>
void ArrayValues::refuse(std::string_view label, fmt::format_string<Args...> why,
                         Args&&... args) const {
  throw Error(label, fmt::format("{}: {}", name_, fmt::format(why, std::forward<Args>(args)...)));
}

// ---- what the array says of itself ----

std::vector<Subject> ArrayValues::find_subjects() const {
  const auto subject_of = [&](std::string_view id, std::string_view meaning) {
    return subject(id, meaning, run_.claim.source_case.model, run_.passes,
                   run_.weights.stored_type());
  };
  const std::string before = name_.substr(0, name_.rfind('.') + 1);
  std::vector<Subject> subjects;
  if (const std::string* const fused = said("fused")) {
    for (const std::string_view part : split(*fused, ",")) {
      const auto s = subject_of(before + std::string(part), "");
      if (!s || s->of_blocks())
        refuse("dump_attribute", "fused={:?}: the model has no {}{}", *fused, before, part);
      subjects.push_back(*s);
    }
    return subjects;
  }
  const std::string *const whole = said("summand_of"), *const meaning = said("meaning");
  if (const auto s =
          subject_of(whole ? before + *whole : name_, meaning ? *meaning : std::string()))
    subjects.push_back(*s);
  return subjects;
}

std::vector<Layout> ArrayValues::layouts(const std::vector<Subject>& subjects) const {
  std::vector<Layout> layouts;
  if (const std::string* const given = said("layout")) {
    for (const std::string_view word : split(*given, ",")) layouts.push_back(Layout::parse(word));
  } else {
    const std::string *const spec = said("spec"), *const partial = said("partial");
    for (const Subject& s : subjects)
      layouts.push_back(spec == nullptr
                            ? uncut(s.dims)
                            : run_.claim.mesh.layout(s.dims, *spec, partial ? *partial : ""));
  }
  if (layouts.size() != subjects.size())
    refuse("dump_layout", "{} layouts of {} values", layouts.size(), subjects.size());
  for (std::size_t i = 0; i < layouts.size(); ++i) {
    const Subject& s = subjects[i];
    const std::string have = layouts[i].letters();
    if (!std::is_permutation(have.begin(), have.end(), s.dims.begin(), s.dims.end()))
      refuse("dump_layout", "{} has not the dims of {}, {}", layouts[i].to_string(), s.title(),
             s.dims);
    if (layouts[i].is_partial_max())
      refuse("dump_layout", "{} is a partial maximum; write the maximum that it becomes",
             layouts[i].to_string());
  }
  return layouts;
}

/// Returns the index of the dim along which fused values are concatenated.
std::size_t ArrayValues::along(const Layout& first) const {
  if (subjects_.size() == 1) return 0;
  const std::string* const letter = said("along");
  if (letter == nullptr || letter->size() != 1 || !first.find((*letter)[0]))
    refuse("dump_attribute", "along={:?} is not a dim of {}", letter == nullptr ? "" : *letter,
           first.to_string());
  return *first.find((*letter)[0]);
}

/// Flags the padding of rows that are shorter than others; empty: none.
std::vector<bool> ArrayValues::padding_of(const Subject& subject) const {
  if (subject.meaning == Meaning::weight || run_.passes.full()) return {};
  const bool of_samples =
      subject.meaning == Meaning::token || subject.meaning == Meaning::candidates ||
      subject.meaning == Meaning::drawing || subject.meaning == Meaning::indices;
  const ValueRow* const row = value_row(subject.name, run_.claim.source_case.model.rows.get());
  const bool of_row = row != nullptr && row->cache && subject.meaning != Meaning::joined;
  return padding_in_trace(subject.dims, subject.shape, of_samples,
                          pass_named(subject.pass, run_.passes), row != nullptr && !of_row);
}

// ---- whether it fits ----

/// Rejects arrays with the tokens of all rows in one dim.
void ArrayValues::require_rows(const Subject& subject) const {
  const Shape& shape = value_.in_shards() ? value_.chips.begin()->second.shape : value_.whole.shape;
  const std::size_t stacked = value_.in_shards() ? 0 : run_.claim.mesh.order().size();
  const bool short_of_one = shape.size() + 1 == subject.dims.size();
  if (!short_of_one && shape.size() + 1 != subject.dims.size() + stacked) return;
  const auto first = shape.begin() + static_cast<std::ptrdiff_t>(short_of_one ? 0 : stacked);
  const std::string hint = hint_of_flat_tokens("", Shape(first, shape.end()), subject);
  if (!hint.empty())
    refuse("dump_layout", "an array {} has not the dims {}{}", in_brackets(shape), subject.dims,
           hint);
}

/// For a value with one element per block of the vocabulary: sets the number of blocks, without
/// those that hold only the case's padding.
void ArrayValues::set_blocks(Subject& subject, const Layout& layout, const Arrays& arrays) const {
  const Case& c = run_.claim.source_case;
  const std::int64_t V = dim_padding(c).placed('V', c.model.V);
  if (!subject.of_blocks()) return;
  const std::size_t dim = subject.dims.find('C');
  const std::size_t d = *layout.find('C');
  const std::int64_t blocks = arrays.local[d] * arrays.torus.size(layout.dims()[d].axes);
  if (blocks < 1 || V % blocks != 0)
    refuse("dump_layout", "{} blocks do not divide V {}", blocks, V);
  subject.block = V / blocks;
  subject.shape[dim] = (c.model.V + subject.block - 1) / subject.block;
}

/// Returns a chip's shape of each value, which differ in the dim in which they are fused.
std::vector<Shape> ArrayValues::local_shapes(const std::vector<Subject>& subjects,
                                             const std::vector<Layout>& layouts,
                                             const Arrays& arrays, std::size_t dim) const {
  std::vector<Shape> locals(subjects.size(), arrays.local);
  if (subjects.size() == 1) return locals;
  std::int64_t taken = 0;
  for (std::size_t i = 0; i < subjects.size(); ++i) {
    const Layout::Dim& d = layouts[i].dims()[dim];
    const std::int64_t extent = extent_of(subjects[i], d.letter);
    const int parts = arrays.torus.size(d.axes);
    if (extent % parts != 0)
      refuse("dump_layout", "{} does not divide {} {}{}", layouts[i].to_string(), d.letter, extent,
             d.letter == 'K' ? hint_of_kv_heads(layouts[i], arrays.torus, parts, extent) : "");
    locals[i][dim] = extent / parts;
    taken += extent / parts;
  }
  if (taken != arrays.local[dim])
    refuse("dump_layout", "the values fused along {} have {} together, the shards {} have {}",
           layouts[0].dims()[dim].letter, taken, in_brackets(arrays.local), arrays.local[dim]);
  return locals;
}

/// Returns the writer's global shape, given a chip's: the model's extents, or larger ones in dims
/// that the value or the case declares as padded.
Shape ArrayValues::padded_shape(const Layout& layout, const Subject& subject, const Torus& torus,
                                const Shape& local) const {
  const DimPadding padding = dim_padding(run_.claim.source_case);
  const std::string* const letters = said("padded");
  Shape theirs;
  for (std::size_t d = 0; d < local.size(); ++d)
    theirs.push_back(local[d] * torus.size(layout.dims()[d].axes));
  for (std::size_t d = 0; d < local.size(); ++d) {
    const char letter = layout.dims()[d].letter;
    const std::int64_t extent = extent_of(subject, letter);
    const bool blocks =
        letter == 'C' && subject.of_blocks() && padding.pads('V');  // counted by set_blocks
    const bool may = blocks || padding.placed(letter, extent) == theirs[d] ||
                     (letters != nullptr && letters->find(letter) != std::string::npos);
    if (theirs[d] == extent || (may && theirs[d] > extent)) continue;
    std::string hint = hint_of_flat_tokens(layout.letters(), theirs, subject);
    if (hint.empty() && letter == 'K') hint = hint_of_kv_heads(layout, torus, theirs[d], extent);
    if (hint.empty() && theirs[d] > extent)
      hint = fmt::format("; padding is declared: padded={:?}", std::string(1, letter));
    refuse("dump_layout", "{} of shards {} is a value of {} {}, the model's has {}{}",
           layout.to_string(), in_brackets(local), letter, theirs[d], extent, hint);
  }
  return theirs;
}

/// Returns whether each chip holds a block of the model's value; padding and other orders of heads
/// or channels prevent that.
bool ArrayValues::is_plain(const Shape& padded, const Layout& layout,
                           const Subject& subject) const {
  bool plain = run_.claim.heads.empty() && !run_.claim.pairs;
  for (std::size_t d = 0; d < padded.size(); ++d)
    plain = plain && padded[d] == extent_of(subject, layout.dims()[d].letter);
  return plain;
}

// ---- its values ----

DumpedValue ArrayValues::described(const Subject& subject, const Layout& layout,
                                   const Arrays& arrays) const {
  const Claim& claim = run_.claim;
  DumpedValue dumped;
  dumped.name = name_;
  dumped.subject = subject;
  dumped.layout = layout;
  Arithmetic arithmetic{claim.declared, claim.exact, claim.arithmetic_said};
  if (says_arithmetic(value_.attributes)) {
    arithmetic = read_arithmetic(value_.attributes, arithmetic);
    if (said("folded")) arithmetic.bounds.folded += claim.gain_folded ? 1 : 0;
    dumped.declared = arithmetic.bounds;
  }
  dumped.exact = arithmetic.exact;
  dumped.own_wire = said("wire") != nullptr;
  dumped.torus = arrays.torus;
  dumped.whole = arrays.whole;
  dumped.encoding = arrays.encoding;
  dumped.units = units_of(subject, claim, run_.weights);
  dumped.padding = padding_of(subject);
  return dumped;
}

/// Adds the values that the array holds. Throws Error("dump_layout", ...) if it does not fit.
void ArrayValues::add(Values& to) const {
  if (!value_.unread.empty()) throw Error("dump_layout", value_.unread);
  const Claim& claim = run_.claim;
  std::vector<Subject> subjects = subjects_;
  const bool all_positions = has_all_positions(subjects[0], value_, claim.mesh);
  if (all_positions) subjects[0] = at_all_positions(subjects[0], run_.passes);
  std::vector<Layout> layouts = this->layouts(subjects);
  require_rows(subjects[0]);
  const Arrays arrays =
      arrays_of(name_, value_, claim.mesh, claim.source_case.torus, layouts[0].rank());
  const bool declared = said("layout") || said("spec");
  if (!arrays.whole && !declared) refuse("dump_layout", "shards need a layout");
  const std::vector<Layout> on_chips = layouts;
  if (arrays.whole)
    for (Layout& layout : layouts) layout = uncut(layout.letters());
  set_blocks(subjects[0], layouts[0], arrays);
  const std::size_t dim = along(layouts[0]);
  const std::vector<Shape> locals = local_shapes(subjects, layouts, arrays, dim);
  std::int64_t first = 0;
  for (std::size_t i = 0; i < subjects.size(); ++i) {
    DumpedValue dumped = described(subjects[i], layouts[i], arrays);
    const Shape padded = padded_shape(layouts[i], subjects[i], arrays.torus, locals[i]);
    if (declared)
      to.laid.push_back({subjects[i], on_chips[i], is_plain(padded, layouts[i], subjects[i])});
    const auto chips = static_cast<std::size_t>(arrays.torus.chips());
    dumped.shards.resize(chips);
    dumped.places.resize(chips);
    Place place(dumped.layout, dumped.subject, claim, padded);
    std::shared_ptr<const JudgedBlocks> blocks;
    if (place.changes_nothing() && dumped.padding.empty())
      blocks = std::make_shared<const JudgedBlocks>(dumped.layout, padded, arrays.torus);
    for (const Arrays::Shard& shard : arrays.shards) {
      const auto chip = static_cast<std::size_t>(shard.chip);
      dumped.shards[chip] = numbers_of(shard, arrays.local, dim, first, locals[i]);
      if (blocks) {
        dumped.places[chip] = Places(blocks, shard.chip);
        continue;
      }
      std::vector<std::int64_t> places(dumped.shards[chip].size());
      judged_elements(dumped.layout, padded, arrays.torus, shard.chip,
                      [&](std::int64_t local, std::int64_t global) {
                        const std::int64_t element = place(global);
                        places[static_cast<std::size_t>(local)] =
                            element == DumpedValue::kNone || dumped.padded(element)
                                ? DumpedValue::kNone
                                : element;
                        return false;
                      });
      dumped.places[chip] = std::move(places);
    }
    if (subjects.size() > 1) first += locals[i][dim];
    if (all_positions) {
      take_last_positions(dumped, run_.passes);
      dumped.units = units_of(dumped.subject, claim, run_.weights);
      dumped.padding = padding_of(dumped.subject);
    }
    to.dumped.push_back(std::move(dumped));
  }
}

Values ArrayValues::read() const {
  Values of;
  try {
    add(of);
  } catch (const Error& error) {
    if (error.label() != "dump_layout") throw;
    of = {};
    for (const Subject& s : subjects_) of.dumped.push_back(misfit(name_, s, error.message()));
  }
  return of;
}

DumpedValue misfit(const std::string& name, const Subject& subject, std::string_view why) {
  DumpedValue dumped;
  dumped.name = name;
  dumped.subject = subject;
  dumped.layout = uncut(subject.dims);
  dumped.torus = Torus(1, 1, 1);
  dumped.whole = dumped.misfit = true;
  dumped.shards.resize(1);
  dumped.places.resize(1);
  const std::string prefix = name + ": ";
  dumped.why_not = why.starts_with(prefix) ? why.substr(prefix.size()) : why;
  return dumped;
}

}  // namespace shardproof::dump
