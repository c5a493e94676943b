#include "golden/candidate/wrong_value.h"

#include "golden/candidate/reference.h"
#include "golden/compare/block_map.h"
#include "weights/registry.h"

namespace shardproof::candidate {
namespace {

std::size_t at(std::int64_t i) { return static_cast<std::size_t>(i); }

/// The writer's layout with dims in the model's order.
Layout in_order(const Layout& layout, const std::string& letters) {
  std::vector<Layout::Dim> dims;
  for (const char letter : letters) dims.push_back({letter, layout.axes(letter)});
  return Layout(std::move(dims), layout.partial());
}

/// The shards by the model's order; nothing where they are no blocks of it.
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
  // Products with a matrix are replayed, and no other sums.
  const bool known =
      s.meaning == Meaning::checkpoint || (raw && (s.name == "logits" || value_row(s.name)->acc));
  if (!known || s.last || !held.complete()) return std::nullopt;
  diagnosis::Wrong wrong{held.subject.id, torus, in_order(held.layout, held.subject.dims), {}, {}};
  wrong.padding = held.padding;
  wrong.raw = raw;
  // Of several arrays of one value the last is what the next step takes.
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

}  // namespace shardproof::candidate
