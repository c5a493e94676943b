#include "golden/trace/verdict/field_verdict.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <cstring>
#include <set>

#include "engine/run/plan.h"
#include "golden/compare/case_padding.h"
#include "golden/compare/comparison.h"
#include "golden/judge/expected.h"
#include "golden/memo/oracle_memo.h"
#include "golden/trace/write/detail/copies.h"
#include "golden/trace/write/field_words.h"
#include "weights/base/detail/index.h"
#include "weights/base/detail/stable_sort.h"
#include "weights/model/registry.h"

namespace shardproof::dump {
namespace {

std::vector<std::int32_t> int32s(const StoredArray& stored) {
  if (stored.encoding != NumberFormat::int32)
    throw Error("dump_layout", "numbers of the field regime are int32 words");
  std::vector<std::int32_t> words(stored.size());
  const std::span<const std::byte> bytes = stored.elements();
  if (!bytes.empty()) std::memcpy(words.data(), bytes.data(), bytes.size());
  return words;
}

/// The first lane of a number as its words in a message have it.
double first_lane(const std::string& text) {
  std::uint64_t lane = 0;
  const std::size_t at = text.starts_with("0x") ? 2 : 0;
  std::from_chars(text.data() + at, text.data() + text.size(), lane, at == 2 ? 16 : 10);
  return static_cast<double>(lane);
}

class FieldJudging {
 public:
  FieldJudging(const Dump& dump, const Claim& claim)
      : dump_(dump),
        claim_(claim),
        plan_(make_plan(claim.source_case)),
        passes_(claim.source_case.passes()) {
    const std::string* const setting = find(dump.attributes, "field");
    if (setting == nullptr)
      throw Error("compare_case", "the trace is of the field regime and has no `field`");
    const FieldSetting given = parse_field(*setting);
    // In a smaller field wrong numbers are equal by chance.
    if (given.bits != FieldSetting().bits || given.lanes != FieldSetting().lanes)
      throw Error("dump_attribute", fmt::format("field={:?}: legal: bits={} lanes={}", *setting,
                                                FieldSetting().bits, FieldSetting().lanes));
    field_ = std::make_shared<const Field>(given);
    known_ = memo_.of_field(plan_, field_->setting());
  }

  Verdict judge(Values& values) {
    Verdict verdict;
    std::set<std::string> seen;
    for (const std::string& name : in_order(dump_)) {
      const Value& value = dump_.values.find(name)->second;
      const std::string* const meaning = find(value.attributes, "meaning");
      const auto s = subject(name, meaning ? *meaning : "", claim_.source_case.model, passes_,
                             claim_.source_case.numerics.weights);
      if (!s) {
        verdict.unknown.push_back({name, "no value of the model"});
        continue;
      }
      DumpedValue dumped;
      dumped.name = name;
      dumped.subject = *s;
      Row row = row_of(name, value, dumped);
      row.dumped = values.dumped.size();
      if (row.fit != Fit::not_judged &&
          (s->meaning == Meaning::checkpoint || s->meaning == Meaning::token) &&
          !dumped.layout.is_partial() && (!s->last || is_whole_if_last(*s)))
        seen.insert(s->id);
      verdict.misfits += dumped.misfit ? 1 : 0;
      values.dumped.push_back(std::move(dumped));
      verdict.rows.push_back(std::move(row));
    }
    const auto place = [&](const Row& row) {
      return order_of(values.dumped[row.dumped].subject, claim_.source_case.model, passes_);
    };
    stable_sort(verdict.rows, [&](const Row& a, const Row& b) { return place(a) < place(b); });
    for (std::size_t i = 0; i < verdict.rows.size() && !verdict.first; ++i)
      if (verdict.rows[i].fit == Fit::different) verdict.first = i;
    verdict.compared = std::ssize(seen);
    verdict.whole = count_checkpoints(claim_.source_case.model, passes_);
    return verdict;
  }

 private:
  bool is_whole_if_last(const Subject& s) const {
    return value_row(s.name, claim_.source_case.model.rows.get())->last_rows;
  }

  /// Returns the value's chips as the trace has them, under its layout.
  Sharded chips_of(const Value& value, const Layout& layout, const ExpectedBits& expected) const {
    const Torus& torus = claim_.source_case.torus;
    const Shape& shape = expected.shape;
    const bool integer = is_int32(value);  // ids and positions
    ChipArrays<FieldElement> numbers;
    ChipArrays<std::int32_t> integers;
    const auto push = [&](std::span<const std::int32_t> words) {
      if (integer) {
        integers.push_back(Buffer<std::int32_t>(words.begin(), words.end()));
        return;
      }
      const std::vector<FieldElement> of = from_words(words, field_->setting());
      numbers.push_back(Buffer<FieldElement>(of.begin(), of.end()));
    };
    const std::vector<std::int32_t> whole =
        value.in_shards() ? std::vector<std::int32_t>() : int32s(value.whole);
    const auto each = static_cast<std::size_t>(integer ? 1 : words_of(field_->setting()));
    for (int chip = 0; chip < torus.chips(); ++chip) {
      if (value.in_shards()) {
        const auto at = value.chips.find(judged_coordinates(torus, chip));
        const auto first =
            value.chips.find(judged_coordinates(torus, first_copy(layout, torus, chip)));
        if (at == value.chips.end() && first == value.chips.end())
          throw Error("dump_layout", fmt::format("chip {} has no shard", torus.name(chip)));
        push(int32s(at != value.chips.end() ? at->second : first->second));
        continue;
      }
      if (std::ssize(whole) != element_count(shape) * static_cast<std::int64_t>(each))
        throw Error("dump_layout", "the array has another number of words than its shape");
      std::vector<std::int32_t> words;
      judged_elements(layout, shape, torus, chip, [&](std::int64_t, std::int64_t global) {
        const auto from = whole.begin() + global * static_cast<std::ptrdiff_t>(each);
        words.insert(words.end(), from, from + static_cast<std::ptrdiff_t>(each));
        return false;
      });
      push(words);
    }
    if (integer) return {torus, layout, shape, std::move(integers)};
    return {torus, layout, shape,
            FieldShards{std::move(numbers), field_,
                        expected.integer ? FieldSort::token : FieldSort::number}};
  }

  Row row_of(const std::string& name, const Value& value, DumpedValue& dumped) {
    const Subject& s = dumped.subject;
    Row row;
    row.name = name;
    row.title = s.title();
    row.weight = s.meaning == Meaning::weight;
    row.of_run = !row.weight && s.meaning != Meaning::ids && s.meaning != Meaning::positions;
    row.chips = claim_.source_case.torus.chips();
    dumped.torus = claim_.source_case.torus;
    if (find(value.attributes, "same_as")) {
      row.why = "the same as another";
      return row;
    }
    try {
      hold(value, dumped, row);
    } catch (const Error& error) {
      row.why = error.message();
      dumped.misfit = true;
    }
    return row;
  }

  void hold(const Value& value, DumpedValue& dumped, Row& row) {
    const Subject& s = dumped.subject;
    const std::string* const layout = find(value.attributes, "layout");
    if (layout == nullptr) throw Error("dump_layout", "a value of the field regime has a layout");
    dumped.layout = Layout::parse(*layout);
    const Shape shape = shape_of(value);
    shardproof::Expected expected = expected_of(s, shape, dumped.layout);
    // A program may see heads as groups of them.
    if (has_elements(shape, element_count(expected.shape))) expected.shape = shape;
    if (dumped.layout.rank() != expected.shape.size() ||
        !judged_divides(dumped.layout, expected.shape, dumped.torus))
      throw Error("dump_layout", fmt::format("{} is not a layout of {}", *layout, s.title()));
    const Sharded chips = chips_of(value, dumped.layout, expected);
    const Comparison found = compare(expected, dumped.layout, chips);
    row.elements = found.elements;
    row.fit = found.mismatch ? Fit::different : Fit::equal;
    if (!found.mismatch) return;
    int chip = 0;
    while (chip + 1 < row.chips && dumped.torus.name(chip) != found.mismatch->chip) ++chip;
    const double right = first_lane(found.mismatch->expected);
    row.add_wrong({chip}, HUGE_VAL);
    row.first = row.worst =
        WrongElement{chip, found.mismatch->index, right, right, first_lane(found.mismatch->actual)};
    row.why = fmt::format("first {}: {}, expected {}", found.mismatch->chip, found.mismatch->actual,
                          found.mismatch->expected);
  }

  static bool is_int32(const Value& value) {
    const std::string* const dtype = find(value.attributes, "dtype");
    return dtype != nullptr && *dtype == "int32";
  }

  shardproof::Expected expected_of(const Subject& s, const Shape& shape, const Layout& layout) {
    const oracle::field::Answer& answer = known_->answer;
    const DimPadding padding = dim_padding(claim_.source_case);
    const std::string letters = whole_letters(layout);
    if (s.meaning == Meaning::weight) {
      const oracle::field::Tensor& weight = answer.weight(s.id);
      shardproof::Expected of{{weight.shape, {}, false, Words<FieldElement>::of(weight.data)},
                              s.id};
      return as_placed(std::move(of), Role::parse("weight " + s.id.substr(s.id.rfind('.') + 1)),
                       letters, padding);
    }
    Shape of = s.shape;
    if (s.of_blocks()) {
      const std::int64_t V = padding.placed('V', claim_.source_case.model.V);
      const std::int64_t blocks = shape.empty() ? 1 : shape.back();
      if (blocks < 1 || V % blocks != 0)
        throw Error("dump_layout", fmt::format("{} blocks do not divide V {}", blocks, V));
      of.back() = blocks;
    }
    const std::string title = s.title();
    const Role role = Role::parse(title.substr(0, title.size() - s.id.size()) +
                                  (s.meaning == Meaning::ids || s.meaning == Meaning::positions
                                       ? "input " + s.name
                                       : s.name));
    return as_placed(
        expected_value(answer,
                       {s.pass, "", static_cast<int>(s.layer), claim_.source_case.model.rows.get()},
                       role, of, padding),
        role, letters, padding);
  }

  /// Returns whether a shape, which may be any numbers, is of so many elements.
  static bool has_elements(const Shape& shape, std::int64_t count) {
    for (const std::int64_t extent : shape) {
      if (extent < 1 || count % extent != 0) return false;
      count /= extent;
    }
    return count == 1;
  }

  /// The global shape that the writer gives, in whatever form its file has numbers; empty if none.
  static Shape shape_of(const Value& value) {
    const std::string* const text = find(value.attributes, "shape");
    Shape shape;
    const char* at = text == nullptr ? nullptr : text->data();
    const char* const end = text == nullptr ? nullptr : at + text->size();
    while (at != end) {
      std::int64_t extent = 0;
      const auto [next, error] = std::from_chars(at, end, extent);
      if (error == std::errc()) shape.push_back(extent);
      at = error == std::errc() ? next : at + 1;
    }
    return shape;
  }

  const Dump& dump_;
  const Claim& claim_;
  RunPlan plan_;
  Passes passes_;
  OracleMemo memo_;
  std::shared_ptr<const Field> field_;
  std::shared_ptr<const OracleMemo::OfField> known_;
};

}  // namespace

Verdict judge_in_field(const Dump& dump, const Claim& claim, Values& values) {
  return FieldJudging(dump, claim).judge(values);
}

}  // namespace shardproof::dump
