#include "golden/trace/verdict/wrong_value.h"

#include <set>

#include "golden/compare/block_map.h"
#include "golden/trace/reference/reference.h"
#include "weights/model/registry.h"

namespace shardproof::candidate {
namespace {

std::size_t at(std::int64_t i) { return static_cast<std::size_t>(i); }

/// Returns the writer's layout with dims in the model's order.
Layout in_order(const Layout& layout, const std::string& letters) {
  std::vector<Layout::Dim> dims;
  for (const char letter : letters) dims.push_back({letter, layout.axes(letter)});
  return Layout(std::move(dims), layout.partial());
}

/// Returns the shards in the model's order; nullopt if they are not blocks of the model's value.
std::optional<std::vector<std::vector<double>>> blocks(const Held& held, const Layout& layout) {
  const Shape& shape = held.subject.shape;
  if (!judged_divides(layout, shape, held.torus)) return std::nullopt;
  std::vector<std::vector<double>> shards(held.shards.size());
  std::vector<std::int64_t> local(at(element_count(shape)));
  for (std::size_t chip = 0; chip < shards.size(); ++chip) {
    std::fill(local.begin(), local.end(), Held::kNone);
    std::int64_t count = 0;
    judged_elements(layout, shape, held.torus, static_cast<int>(chip),
                    [&](std::int64_t here, std::int64_t global) {
                      local[at(global)] = here;
                      shards[chip].push_back(0.0);
                      count += held.padded(global) ? 0 : 1;
                      return false;
                    });
    for (std::size_t i = 0; i < held.shards[chip].size(); ++i) {
      const std::int64_t place = held.places[chip][i];
      if (place == Held::kNone) continue;
      if (local[at(place)] == Held::kNone) return std::nullopt;
      shards[chip][at(local[at(place)])] = held.shards[chip][i] * held.unit(place);
      --count;
    }
    if (count != 0) return std::nullopt;
  }
  return shards;
}

}  // namespace

std::optional<diagnosis::Wrong> wrong_value(const Held& held, const Values& values,
                                            const Torus& torus) {
  const Subject& s = held.subject;
  const bool raw = s.meaning == Meaning::raw;
  // Among sums before their scale, only products with a matrix are replayed.
  const bool known =
      s.meaning == Meaning::checkpoint || (raw && (s.name == "logits" || value_row(s.name)->acc));
  if (!known || s.last || !held.complete()) return std::nullopt;
  diagnosis::Wrong wrong{held.subject.id, torus, in_order(held.layout, held.subject.dims), {}, {}};
  wrong.padding = held.padding;
  wrong.raw = raw;
  // If a value has several arrays, the next step reads the last.
  for (const Held& other : values.held)
    if (other.subject.meaning == Meaning::checkpoint && !other.subject.last && !other.whole &&
        !other.layout.is_partial())
      wrong.layouts.insert_or_assign(other.subject.id, in_order(other.layout, other.subject.dims));
  if (!held.whole)
    if (auto shards = blocks(held, wrong.layout)) {
      wrong.shards = std::move(*shards);
      return wrong;
    }
  std::vector<Layout::Dim> dims;
  for (const char letter : held.subject.dims) dims.push_back({letter, Axes()});
  wrong.layout = Layout(std::move(dims), Axes());
  wrong.shards.push_back(assembled_value(held)->center);
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
    if (is_wrong(row) && !row.follows) wrong.insert(values.held[row.held].subject.id);
  return [wrong = std::move(wrong)](const std::string& id) { return !wrong.contains(id); };
}

/// Returns later values of the first one's name that are computed alike: of the same phase and
/// layout, and, for caches, of another layer. Wrong ones precede right ones; those of the same
/// layer precede others.
std::vector<const Row*> others_of(const Verdict& verdict, const Values& values,
                                  const bounds::Replay& replay) {
  const Held& wrong_one = values.held[verdict.rows[*verdict.first].held];
  const Subject& first = wrong_one.subject;
  std::vector<const Row*> others;
  std::set<std::string> seen{first.id};
  if (first.meaning != Meaning::checkpoint || first.last) return others;
  for (const bool wrong : {true, false}) {
    std::size_t count = 0;
    for (const bool same_layer : {true, false})
      for (std::size_t i = *verdict.first + 1; i < verdict.rows.size(); ++i) {
        const Row& row = verdict.rows[i];
        const Held& held = values.held[row.held];
        const Subject& s = held.subject;
        if (s.meaning != first.meaning || s.last || s.name != first.name) continue;
        if (row.fit == Fit::not_judged || !held.complete() || count == kMost) continue;
        if (is_wrong(row) != wrong || (s.layer == first.layer) != same_layer) continue;
        if (replay.pass(s.pass).phase != replay.pass(first.pass).phase ||
            !(held.layout == wrong_one.layout) || (value_row(s.name)->cache && same_layer))
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
                                             const Claim& claim, Reference& reference) {
  if (!verdict.first) return {};
  const Sound follows = sound(verdict, values);
  const auto asked = [&](const Row& row) {
    auto wrong = wrong_value(values.held[row.held], values, claim.given.torus);
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
  return diagnosis::diagnose(reference.replay(), *wrong, others);
}

}  // namespace shardproof::candidate
