#include "golden/trace/verdict/wrong_value.h"

#include <set>

#include "golden/compare/block_map.h"
#include "golden/trace/reference/reference.h"
#include "golden/trace/verdict/token_faults.h"
#include "weights/base/detail/index.h"
#include "weights/model/registry.h"

namespace shardproof::dump {
namespace {

/// Returns the writer's layout with dims in the model's order.
Layout in_order(const Layout& layout, const std::string& letters) {
  std::vector<Layout::Dim> dims;
  for (const char letter : letters) dims.push_back({letter, layout.axes(letter)});
  return Layout(std::move(dims), layout.partial());
}

/// Returns the shards in the model's order; nullopt if they are not blocks of the model's value.
std::optional<std::vector<std::vector<double>>> blocks(const DumpedValue& dumped,
                                                       const Layout& layout) {
  const Shape& shape = dumped.subject.shape;
  if (!judged_divides(layout, shape, dumped.torus)) return std::nullopt;
  std::vector<std::vector<double>> shards(dumped.shards.size());
  std::vector<std::int64_t> local(at(element_count(shape)));
  for (std::size_t chip = 0; chip < shards.size(); ++chip) {
    std::fill(local.begin(), local.end(), DumpedValue::kNone);
    std::int64_t count = 0;
    judged_elements(layout, shape, dumped.torus, static_cast<int>(chip),
                    [&](std::int64_t here, std::int64_t global) {
                      local[at(global)] = here;
                      shards[chip].push_back(0.0);
                      count += dumped.padded(global) ? 0 : 1;
                      return false;
                    });
    for (std::size_t i = 0; i < dumped.shards[chip].size(); ++i) {
      const std::int64_t place = dumped.places[chip][i];
      if (place == DumpedValue::kNone) continue;
      if (local[at(place)] == DumpedValue::kNone) return std::nullopt;
      shards[chip][at(local[at(place)])] = dumped.shards[chip][i] * dumped.unit(place);
      --count;
    }
    if (count != 0) return std::nullopt;
  }
  return shards;
}

}  // namespace

std::optional<diagnosis::Wrong> wrong_value(const DumpedValue& dumped, const Values& values,
                                            const Torus& torus, const ModelRows* rows) {
  const Subject& s = dumped.subject;
  const bool raw = s.meaning == Meaning::raw;
  // Among sums before their scale, only products with a matrix are replayed.
  const bool known = s.meaning == Meaning::checkpoint || s.meaning == Meaning::weight ||
                     (raw && (s.name == "logits" || value_row(s.name, rows)->acc));
  if (!known || s.last || !dumped.complete()) return std::nullopt;
  diagnosis::Wrong wrong{
      dumped.subject.id, torus, in_order(dumped.layout, dumped.subject.dims), {}, {}};
  wrong.padding = dumped.padding;
  wrong.raw = raw;
  // If a value has several arrays, the next step reads the last.
  for (const DumpedValue& other : values.dumped)
    if (other.subject.meaning == Meaning::checkpoint && !other.subject.last && !other.whole &&
        !other.layout.is_partial())
      wrong.layouts.insert_or_assign(other.subject.id, in_order(other.layout, other.subject.dims));
  if (!dumped.whole)
    if (auto shards = blocks(dumped, wrong.layout)) {
      wrong.shards = std::move(*shards);
      return wrong;
    }
  std::vector<Layout::Dim> dims;
  for (const char letter : dumped.subject.dims) dims.push_back({letter, Axes()});
  wrong.layout = Layout(std::move(dims), Axes());
  wrong.shards.push_back(assembled_value(dumped)->center);
  return wrong;
}

namespace {

/// Number of other values of the name to compare with, wrong and right ones each.
constexpr std::size_t kMost = 3;

using Sound = std::function<bool(const std::string&)>;

bool is_wrong(const Row& row) { return row.fit == Fit::different || row.fit == Fit::unlikely; }

/// Returns a predicate: whether a value follows from its operands, by the verdict.
Sound sound(const Verdict& verdict, const Values& values) {
  std::set<std::string> wrong;
  for (const Row& row : verdict.rows)
    if (is_wrong(row) && !row.follows) wrong.insert(values.dumped[row.dumped].subject.id);
  return [wrong = std::move(wrong)](const std::string& id) { return !wrong.contains(id); };
}

/// Returns later values of the first one's name that are computed alike: of the same phase and
/// layout, and, for caches, of another layer. Wrong ones precede right ones; those of the same
/// layer precede others.
std::vector<const Row*> others_of(const Verdict& verdict, const Values& values,
                                  const bounds::Derivation& replay) {
  const DumpedValue& wrong_one = values.dumped[verdict.rows[*verdict.first].dumped];
  const Subject& first = wrong_one.subject;
  const ModelRows* const rows = replay.weights().config().rows.get();
  const auto cache = [&](const std::string& name) { return value_row(name, rows)->cache; };
  std::vector<const Row*> others;
  std::set<std::string> seen{first.id};
  if (first.meaning != Meaning::checkpoint || first.last) return others;
  for (const bool wrong : {true, false}) {
    std::size_t count = 0;
    for (const bool same_layer : {true, false})
      for (std::size_t i = *verdict.first + 1; i < verdict.rows.size(); ++i) {
        const Row& row = verdict.rows[i];
        const DumpedValue& dumped = values.dumped[row.dumped];
        const Subject& s = dumped.subject;
        if (s.meaning != first.meaning || s.last || s.name != first.name) continue;
        if (row.fit == Fit::not_judged || !dumped.complete() || count == kMost) continue;
        if (is_wrong(row) != wrong || (s.layer == first.layer) != same_layer) continue;
        if (replay.pass(s.pass).phase != replay.pass(first.pass).phase ||
            !(dumped.layout == wrong_one.layout) || (same_layer && cache(s.name)))
          continue;
        if (!seen.insert(s.id).second) continue;
        others.push_back(&row);
        ++count;
      }
  }
  return others;
}

}  // namespace

std::vector<diagnosis::Hypothesis> diagnosed(const Verdict& verdict, const Values& values,
                                             const Claim& claim, Reference& reference,
                                             std::string_view without) {
  if (!verdict.first) return {};
  if (values.dumped[verdict.rows[*verdict.first].dumped].subject.meaning == Meaning::token)
    return token_faults(values, claim, reference, without);
  const Sound follows = sound(verdict, values);
  const auto asked = [&](const Row& row) {
    auto wrong = wrong_value(values.dumped[row.dumped], values, claim.source_case.torus,
                             claim.source_case.model.rows.get());
    if (!wrong) return wrong;
    wrong->sound = follows;
    wrong->masked_any = claim.masked_any;
    wrong->unlikely = row.fit == Fit::unlikely;
    return wrong;
  };
  const auto wrong = asked(verdict.rows[*verdict.first]);
  if (!wrong) return {};
  std::vector<diagnosis::Wrong> others;
  for (const Row* const row : others_of(verdict, values, reference.replay()))
    if (auto other = asked(*row)) others.push_back(std::move(*other));
  return diagnosis::diagnose(reference.replay(), *wrong, others, without);
}

}  // namespace shardproof::dump
