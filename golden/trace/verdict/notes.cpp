#include "golden/trace/verdict/notes.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "golden/compare/reach_meter.h"
#include "golden/trace/value/detail/each_number.h"
#include "golden/trace/verdict/other_ids.h"
#include "weights/base/detail/index.h"
#include "weights/model/registry.h"

namespace shardproof::dump {
namespace {

/// Returns "a, b and 3 more hold".
std::string subjects_of(const std::vector<std::string>& names) {
  constexpr std::size_t kNamed = 2;
  const std::size_t named = std::min(names.size(), kNamed);
  std::string text = fmt::format(
      "{}", fmt::join(names.begin(), names.begin() + static_cast<std::ptrdiff_t>(named), ", "));
  if (names.size() > named) text += fmt::format(" and {} more", names.size() - named);
  return text + (names.size() == 1 ? " holds" : " hold");
}

/// Notes values judged as f32 whose numbers are not representable in f32.
std::optional<std::string> finer(const Values& values, const Claim& claim) {
  if (claim.arithmetic_said) return std::nullopt;
  std::vector<std::string> names;
  for (const DumpedValue& dumped : values.dumped)
    if (!dumped.declared && dumped.why_not.empty() && dumped.subject.meaning != Meaning::weight &&
        dumped.finer_than_f32())
      names.push_back(dumped.name);
  if (names.empty()) return std::nullopt;
  return fmt::format(
      "{} numbers that are not f32: without arithmetic they are judged as what claims "
      "least, f32; declare arithmetic=f64",
      subjects_of(names));
}

/// Notes a number that is within its bound but not representable in its format.
std::optional<std::string> no_number_of_format(const Values& values, const Verdict& verdict) {
  if (!verdict.first) return std::nullopt;
  const Row& row = verdict.rows[*verdict.first];
  const DumpedValue& dumped = values.dumped[row.dumped];
  if (!row.first || dumped.encoding != NumberFormat::f64 || !dumped.finer_than_f32())
    return std::nullopt;
  const WrongElement& e = *row.worst;
  if (!(e.low <= e.actual && e.actual <= e.high)) return std::nullopt;
  return fmt::format(
      "{:.17g} of {} is within its bound, and no f32 number, which arithmetic=f32 "
      "claims: declare arithmetic=f64",
      e.actual, row.title);
}

/// Notes tokens and ids outside of the vocabulary.
void say_no_ids(const Values& values, std::int64_t V, std::vector<std::string>& notes) {
  for (const DumpedValue& dumped : values.dumped) {
    const Meaning meaning = dumped.subject.meaning;
    if (meaning != Meaning::token && meaning != Meaning::ids) continue;
    std::optional<double> none;
    each_number(dumped, [&](double v, const std::vector<int>&, std::int64_t, double) {
      if (!none && !(v >= 0 && v < static_cast<double>(V) && v == std::floor(v))) none = v;
    });
    if (none)
      notes.push_back(
          fmt::format("{}: {} {}", dumped.subject.title(), *none, what_no_id_is(*none, V)));
  }
}

/// Returns the layout with two equal dims swapped under which a weight is right, if any.
std::optional<std::string> right_by(const DumpedValue& dumped, const Tensor& right) {
  const auto whole = assembled_value(dumped);
  if (!whole) return std::nullopt;
  const Shape& shape = right.shape;
  for (std::size_t a = 0; a < shape.size(); ++a)
    for (std::size_t b = a + 1; b < shape.size(); ++b) {
      if (shape[a] != shape[b] || shape[a] < 2) continue;
      bool same = true;
      for (std::size_t i = 0; i < whole->size() && same; ++i) {
        Shape index = global_index(shape, static_cast<std::int64_t>(i));
        std::swap(index[a], index[b]);
        std::int64_t place = 0;
        for (std::size_t d = 0; d < shape.size(); ++d) place = place * shape[d] + index[d];
        same = whole->center[i] == static_cast<double>(right.data[at(place)]);
      }
      if (!same) continue;
      std::string dims = dumped.layout.letters();
      std::swap(dims[dims.find(dumped.subject.dims[a])], dims[dims.find(dumped.subject.dims[b])]);
      return dims;
    }
  return std::nullopt;
}

}  // namespace

std::string what_no_id_is(double number, std::int64_t V) {
  if (number >= static_cast<double>(V) && number == std::floor(number))
    return fmt::format("is a padding id: the vocabulary has {}", V);
  return "is not a token id";
}

std::vector<std::string> notes_of(const Values& values, const Claim& claim, Reference& reference,
                                  const Verdict& verdict) {
  std::vector<std::string> notes;
  const auto add = [&](std::optional<std::string> note) {
    if (note) notes.push_back(std::move(*note));
  };
  if (claim.other_text)
    notes.push_back(fmt::format("the trace is of another text: it is judged by {}, as --case says",
                                print_model(claim.source_case.model)));
  for (const DumpedValue& dumped : values.dumped)
    if (!dumped.note.empty())
      notes.push_back(fmt::format("{}: {}", dumped.subject.title(), dumped.note));
  say_no_ids(values, claim.source_case.model.V, notes);
  add(finer(values, claim));
  add(no_number_of_format(values, verdict));
  add(other_ids(values, claim, reference, verdict));
  for (const Row& row : verdict.rows) {
    const DumpedValue& dumped = values.dumped[row.dumped];
    if (row.fit != Fit::different || dumped.subject.meaning != Meaning::weight) continue;
    if (const auto dims = right_by(dumped, *reference.exact(dumped.subject)))
      notes.push_back(fmt::format("{} is transposed: declare layout={}", row.title, *dims));
  }
  return notes;
}

}  // namespace shardproof::dump
