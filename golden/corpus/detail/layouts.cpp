#include "golden/corpus/detail/layouts.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "engine/shards/sharded.h"
#include "golden/corpus/detail/stacked.h"
#include "golden/corpus/document.h"
#include "golden/corpus/not_equal.h"

namespace shardproof::corpus {
namespace {

/// A chip's block of each dim is two elements long, so that an order within it shows, too.
constexpr std::int64_t kBlock = 2;

/// Returns true if no axis is in two of the lists.
bool disjoint(const std::vector<Axes>& lists) {
  Axes used;
  for (const Axes& axes : lists) {
    if (used.has_any(axes)) return false;
    used = used.with(axes);
  }
  return true;
}

/// Returns [X, Y, Z, 2, 2, 2].
Shape shape_of(const Layout& layout, const Torus& torus) {
  return stacked_shape(torus, Shape(layout.rank(), kBlock));
}

void put_layout(dump::Dump& golden, const Layout& layout, const Torus& torus) {
  Shape shape;
  for (const Layout::Dim& dim : layout.dims()) shape.push_back(kBlock * torus.size(dim.axes));
  std::vector<std::int32_t> numbers(static_cast<std::size_t>(element_count(shape)));
  std::iota(numbers.begin(), numbers.end(), 0);
  const std::vector<std::int32_t> shards = stacked<std::int32_t>(
      layout, shape, torus, [&](int) -> const auto& { return numbers; });
  IntTensor whole(shape);
  whole.data = numbers;
  const Sharded cut = shard(whole, layout, torus);
  const std::size_t block = shards.size() / static_cast<std::size_t>(torus.chips());
  for (std::size_t chip = 0; chip < cut.i32().size(); ++chip)
    if (!std::equal(cut.i32()[chip].begin(), cut.i32()[chip].end(),
                    shards.begin() + static_cast<std::ptrdiff_t>(chip * block),
                    shards.begin() + static_cast<std::ptrdiff_t>((chip + 1) * block)))
      throw NotEqual(fmt::format("{}: the engine gives chip {} another block", layout.to_string(),
                                 torus.name(static_cast<int>(chip))));
  put(golden, layout.to_string(), shape_of(layout, torus), std::span<const std::int32_t>(shards),
      {{"layout", layout.to_string()}});
}

dump::Dump on_torus(const Torus& torus) {
  dump::Dump golden = empty_golden(Kind::layouts);
  golden.attributes["torus"] = torus.to_string();
  return golden;
}

}  // namespace

std::vector<Axes> ordered_axes() {
  std::vector<Axes> lists{Axes()};
  for (std::size_t i = 0; i < lists.size(); ++i)
    for (const Axis axis : {Axis::x, Axis::y, Axis::z})
      if (!lists[i].has(axis)) lists.push_back(lists[i].with(axis));
  return lists;
}

Torus torus_of(const dump::Dump& golden) {
  const auto at = golden.attributes.find("torus");
  if (at == golden.attributes.end())
    throw Error("golden_torus", "the golden has no attribute torus");
  return Torus::parse(at->second);
}

dump::Dump layouts_golden(const Torus& torus) {
  dump::Dump golden = on_torus(torus);
  const std::vector<Axes> lists = ordered_axes();
  for (const Axes& b : lists)
    for (const Axes& l : lists)
      for (const Axes& e : lists)
        if (disjoint({b, l, e}))
          put_layout(golden, {{{'B', b}, {'L', l}, {'E', e}}, Axes()}, torus);
  return golden;
}

dump::Dump expected_layouts(const dump::Dump& golden) {
  const Torus torus = torus_of(golden);
  dump::Dump expected = on_torus(torus);
  for (const std::string& name : dump::in_order(golden)) {
    const Layout layout = Layout::parse(name);
    if (layout.is_partial() || layout.to_string() != name)
      throw Error("golden_layout", fmt::format("{:?} is not a layout without partial sums", name));
    // Check the size before anything of that size is allocated.
    if (golden.values.find(name)->second.whole.shape != shape_of(layout, torus))
      throw Error("golden_layout",
                  fmt::format("{} is not stacked, {} elements of each dim a chip", name, kBlock));
    put_layout(expected, layout, torus);
  }
  return expected;
}

}  // namespace shardproof::corpus
