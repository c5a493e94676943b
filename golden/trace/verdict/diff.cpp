#include "golden/trace/verdict/diff.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <set>

#include "golden/trace/claim/claim.h"
#include "golden/trace/write/detail/copies.h"

namespace shardproof {
namespace {

using dump::find;
using dump::StoredArray;
using dump::Value;

/// One trace's value: the array that holds it, and its layout.
class View {
 public:
  View(const dump::Dump& dump, const std::string& name, const Torus& torus)
      : name_(name), torus_(torus), value_(&dump.values.find(name)->second) {
    if (const std::string* const layout = find(value_->attributes, "layout");
        layout != nullptr && layout->find(',') == std::string::npos)
      layout_ = Layout::parse(*layout);
    const std::string* const once = find(value_->attributes, "replicas");
    once_ = once != nullptr && *once == "identical";
    if (const std::string* const same = find(value_->attributes, "same_as")) {
      const auto other = dump.values.find(*same);
      if (other != dump.values.end()) value_ = &other->second;
    }
  }

  bool in_shards() const { return value_->in_shards(); }
  const StoredArray& whole() const { return value_->whole; }
  bool is_partial() const { return layout_ && layout_->is_partial(); }

  /// Returns the shard of a chip, or of a replica; null if the file has neither.
  const StoredArray* shard(int chip) const {
    const auto on = [&](int c) {
      const auto at = value_->chips.find(judged_coordinates(torus_, c));
      return at == value_->chips.end() ? nullptr : &at->second;
    };
    if (const StoredArray* const own = on(chip)) return own;
    return once_ && layout_ ? on(first_copy(*layout_, torus_, chip)) : nullptr;
  }

  /// Returns the elements of a whole value that a chip holds, in its order.
  std::vector<std::size_t> block(int chip) const {
    const Shape& shape = whole().shape;
    if (!layout_ || layout_->is_partial() || !judged_divides(*layout_, shape, torus_))
      throw Error("dump_layout", fmt::format("{}: a whole value [{}] has no blocks of its layout",
                                             name_, fmt::join(shape, ",")));
    std::vector<std::size_t> elements;
    judged_elements(*layout_, shape, torus_, chip, [&](std::int64_t, std::int64_t global) {
      elements.push_back(static_cast<std::size_t>(global));
      return false;
    });
    return elements;
  }

 private:
  const std::string& name_;
  const Torus& torus_;
  const Value* value_;
  std::optional<Layout> layout_;
  bool once_ = false;
};

bool same(const StoredArray& a, std::size_t i, const StoredArray& b, std::size_t j) {
  if (a.encoding == b.encoding) {
    const auto size = static_cast<std::size_t>(bytes_of(a.encoding));
    return std::memcmp(a.elements().data() + i * size, b.elements().data() + j * size, size) == 0;
  }
  return std::bit_cast<std::uint64_t>(a.at(i)) == std::bit_cast<std::uint64_t>(b.at(j));
}

Shape index_of(const Shape& shape, std::size_t element) {
  Shape index(shape.size(), 0);
  for (std::size_t d = shape.size(); d-- > 0;) {
    const auto extent = static_cast<std::size_t>(shape[d]);
    index[d] = static_cast<std::int64_t>(element % extent);
    element /= extent;
  }
  return index;
}

/// Compares two arrays of one shape.
std::optional<TraceDifference> arrays(const StoredArray& a, const StoredArray& b) {
  if (a.shape != b.shape)
    return TraceDifference{.why = fmt::format("shapes [{}] and [{}]", fmt::join(a.shape, ","),
                                              fmt::join(b.shape, ","))};
  if (a.encoding == b.encoding && std::ranges::equal(a.elements(), b.elements()))
    return std::nullopt;
  for (std::size_t i = 0; i < a.size(); ++i)
    if (!same(a, i, b, i))
      return TraceDifference{.index = index_of(a.shape, i), .a = a.at(i), .b = b.at(i)};
  return std::nullopt;
}

/// Compares a whole value's block with a shard.
std::optional<TraceDifference> block_and_shard(const View& whole, const StoredArray& shard,
                                               int chip, bool whole_is_a) {
  const std::vector<std::size_t> elements = whole.block(chip);
  if (elements.size() != shard.size())
    return TraceDifference{.why = fmt::format("{} elements and {}",
                                              whole_is_a ? elements.size() : shard.size(),
                                              whole_is_a ? shard.size() : elements.size())};
  for (std::size_t i = 0; i < elements.size(); ++i)
    if (!same(whole.whole(), elements[i], shard, i)) {
      const double w = whole.whole().at(elements[i]), s = shard.at(i);
      return TraceDifference{
          .index = index_of(shard.shape, i), .a = whole_is_a ? w : s, .b = whole_is_a ? s : w};
    }
  return std::nullopt;
}

std::optional<TraceDifference> difference(const View& a, const View& b, const Torus& torus) {
  if (!a.in_shards() && !b.in_shards()) return arrays(a.whole(), b.whole());
  if (a.is_partial() != b.is_partial())
    return TraceDifference{.why = "partial sums in one, complete in the other"};
  for (int chip = 0; chip < torus.chips(); ++chip) {
    const StoredArray* const in_a = a.in_shards() ? a.shard(chip) : nullptr;
    const StoredArray* const in_b = b.in_shards() ? b.shard(chip) : nullptr;
    std::optional<TraceDifference> found;
    if (a.in_shards() && b.in_shards()) {
      if (in_a == nullptr && in_b == nullptr) continue;
      found = in_a == nullptr   ? TraceDifference{.why = "only in the second"}
              : in_b == nullptr ? TraceDifference{.why = "only in the first"}
                                : arrays(*in_a, *in_b);
    } else if (const StoredArray* const shard = a.in_shards() ? in_a : in_b) {
      found = block_and_shard(a.in_shards() ? b : a, *shard, chip, !a.in_shards());
    }
    if (found) {
      found->chip = chip;
      return found;
    }
  }
  return std::nullopt;
}

}  // namespace

int TraceDiff::exit_code() const {
  return equal > 0 && different.empty() && only_a.empty() && only_b.empty() ? 0 : 1;
}

TraceDiff diff_traces(const dump::Dump& a, const dump::Dump& b) {
  const auto line = a.attributes.find("case");
  std::optional<std::string> of_a;
  if (line != a.attributes.end()) of_a = line->second;
  TraceDiff found;
  found.torus = dump::read_claim(a.attributes, std::nullopt).source_case.torus;
  dump::read_claim(b.attributes, of_a);
  for (const std::string& name : dump::in_order(a)) {
    if (!b.values.contains(name)) {
      found.only_a.push_back(name);
      continue;
    }
    auto one = difference(View(a, name, found.torus), View(b, name, found.torus), found.torus);
    if (!one) {
      ++found.equal;
      continue;
    }
    found.different.push_back(name);
    one->name = name;
    if (!found.first) found.first = std::move(one);
  }
  for (const std::string& name : dump::in_order(b))
    if (!a.values.contains(name)) found.only_b.push_back(name);
  return found;
}

}  // namespace shardproof
