#include "golden/trace/pair/plain_array.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <functional>
#include <sstream>
#include <tuple>

#include "golden/compare/block_map.h"
#include "golden/compare/reach_meter.h"
#include "golden/trace/claim/mesh.h"
#include "golden/trace/layout/arrays.h"
#include "golden/trace/pair/places.h"
#include "golden/trace/value/same_bits.h"
#include "weights/base/detail/index.h"
#include "weights/base/detail/stable_sort.h"
#include "weights/model/registry.h"
#include "weights/text/model_text.h"

namespace shardproof::dump {
namespace {

std::string mesh_text(const Dump& dump) {
  const std::string* const mesh = find(dump.attributes, "mesh");
  return mesh == nullptr ? "x y z" : *mesh;
}

/// Returns the dims of a layout as the array has them, "BLF", of its text.
std::size_t rank_of(const std::string& layout) {
  return static_cast<std::size_t>(std::count_if(
      layout.begin(),
      layout.begin() + static_cast<std::ptrdiff_t>(std::min(layout.find(' '), layout.size())),
      [](char c) { return c >= 'A' && c <= 'Z'; }));
}

/// Returns the torus that the trace names, or that its shards and stacked arrays have.
Torus torus_of(const Dump& dump) {
  if (const std::string* const torus = find(dump.attributes, "torus")) return Torus::parse(*torus);
  if (const std::string* const line = find(dump.attributes, "case")) {
    std::istringstream words(*line);
    for (std::string word; words >> word;)
      if (word.starts_with("torus=")) return Torus::parse(word.substr(6));
  }
  std::array<int, 3> size{1, 1, 1};
  std::vector<std::size_t> axes;  // of the stacked dims
  std::istringstream words(mesh_text(dump));
  for (std::string word; words >> word;)
    if (const char axis = word.back(); axis >= 'x' && axis <= 'z')
      axes.push_back(static_cast<std::size_t>(axis - 'x'));
  for (const auto& [name, value] : dump.values) {
    for (const auto& [chip, array] : value.chips)
      for (std::size_t a = 0; a < 3; ++a) size[a] = std::max(size[a], chip[a] + 1);
    const std::string* const layout = find(value.attributes, "layout");
    if (layout == nullptr || value.in_shards() ||
        value.whole.shape.size() != rank_of(*layout) + axes.size())
      continue;
    for (std::size_t d = 0; d < axes.size(); ++d)
      size[axes[d]] = std::max(size[axes[d]], static_cast<int>(std::min<std::int64_t>(
                                                  value.whole.shape[d], Torus::kMaxChips)));
  }
  return Torus(size[0], size[1], size[2]);
}

/// Returns whether numbers are words of the field regime, in a last dim of their own.
bool in_words(const Dump& dump) {
  const std::string* const arithmetic = find(dump.attributes, "arithmetic");
  return arithmetic != nullptr && *arithmetic == "field";
}

/// Returns the dims of a value whose name is known; else letters that stand for nothing.
std::string letters_of(const std::string& name, std::size_t rank) {
  const std::string last = name.substr(name.rfind('.') + 1);
  const std::string word = last.substr(last.rfind(' ') + 1);
  const ValueRow* const row = value_row(word);
  if (row != nullptr && std::string(row->dims).size() == rank) return std::string(row->dims);
  return std::string("abcdefgh").substr(0, std::min<std::size_t>(rank, 8));
}

/// Splits "layers.3.gate" into layer and rest; -1: none.
std::pair<std::int64_t, std::string> layer_of(const std::string& rest) {
  for (const std::string_view word : {"layers.", "layer"}) {
    std::int64_t layer = -1;
    if (!rest.starts_with(word)) continue;
    const char* const end = rest.data() + rest.size();
    const auto [at, error] = std::from_chars(rest.data() + word.size(), end, layer);
    if (error == std::errc() && at != end && *at == '.' && layer >= 0)
      return {layer, std::string(at + 1, static_cast<std::size_t>(end - at - 1))};
  }
  return {-1, rest};
}

void describe(PlainArray& array, const Dump& dump, const Value& value, const Torus& torus) {
  const auto said = [&](std::string_view name) { return find(value.attributes, name); };
  if (said("fused") || said("summand_of"))
    throw Error("dump_layout", "what it is made of is known of a model alone");
  if (!value.unread.empty()) throw Error("dump_layout", value.unread);
  const Mesh mesh = Mesh::parse(mesh_text(dump), torus);
  const StoredArray& one = value.in_shards() ? value.chips.begin()->second : value.whole;
  if (const std::string* const layout = said("layout")) {
    array.layout = Layout::parse(*layout);
  } else {
    const std::string* const spec = said("spec");
    const std::size_t stacked = value.in_shards() || spec == nullptr ? 0 : mesh.order().size();
    const std::string letters =
        letters_of(array.title, one.shape.size() - std::min(stacked, one.shape.size()));
    const std::string* const partial = said("partial");
    array.layout = spec == nullptr ? Layout::parse(letters.empty() ? "A" : letters)
                                   : mesh.layout(letters, *spec, partial ? *partial : "");
    if (letters.empty()) throw Error("dump_layout", "a number without dims");
  }
  if (in_words(dump) && one.shape.size() == array.layout.rank() + 1 && !array.layout.find(kWords)) {
    std::vector<Layout::Dim> dims = array.layout.dims();
    dims.push_back({kWords, Axes()});
    array.layout = Layout(std::move(dims), array.layout.partial());
  }
  const Arrays arrays = arrays_of(array.name, value, mesh, torus, array.layout.rank());
  if (arrays.local.size() != array.layout.rank())
    throw Error("dump_layout", fmt::format("an array {} is not of layout {}",
                                           in_brackets(arrays.local), array.layout.to_string()));
  array.whole = arrays.whole;
  array.torus = arrays.torus;
  array.encoding = arrays.encoding;
  if (array.whole) {
    std::vector<Layout::Dim> dims = array.layout.dims();
    for (Layout::Dim& dim : dims) dim.axes = Axes();
    array.layout = Layout(std::move(dims), Axes());
  }
  for (std::size_t d = 0; d < arrays.local.size(); ++d)
    array.shape.push_back(arrays.local[d] * arrays.torus.size(array.layout.dims()[d].axes));
  if (const std::string* const padded = said("padded")) array.padded = *padded;
  // A few bytes must not ask for a large array.
  if (element_count(shape_of(array)) > element_count(arrays.local) * std::ssize(arrays.shards))
    throw Error("dump_layout", fmt::format("the trace has shards of {} chips alone, of {}",
                                           arrays.shards.size(), arrays.torus.chips()));
}

}  // namespace

std::vector<PlainArray> plain_arrays(const Dump& dump) {
  const Torus torus = torus_of(dump);
  using Key = std::tuple<std::int64_t, std::int64_t, const void*>;
  std::vector<std::pair<Key, PlainArray>> sorted;
  for (const std::string& name : in_order(dump)) {
    const Value& value = dump.values.find(name)->second;
    PlainArray array;
    array.name = name;
    const std::size_t dot = name.find('.', name.find('.') + 1);
    const bool of_pass = dot != std::string::npos && place_of_pass(name.substr(0, dot)) >= 0;
    if (of_pass) array.pass = name.substr(0, dot);
    const auto [layer, last] = layer_of(of_pass ? name.substr(dot + 1) : name);
    if (last == "rows" || last == "positions") continue;  // maps
    const std::string* const meaning = find(value.attributes, "meaning");
    array.group = (layer >= 0 ? fmt::format("layer{}.", layer) : std::string()) +
                  (meaning == nullptr ? last : *meaning);
    array.title = of_pass ? array.pass + "." + array.group : array.group;
    const std::string* const same = find(value.attributes, "same_as");
    const auto other = same == nullptr ? dump.values.end() : dump.values.find(*same);
    try {
      describe(array, dump, other == dump.values.end() ? value : other->second, torus);
    } catch (const Error& error) {
      if (error.label() == "dump_mesh") throw;
      array.why = error.message();
    }
    if (other != dump.values.end()) array.name = other->first;
    const ValueRow* const row = value_row(array.group.substr(array.group.find_last_of(". ") + 1));
    const bool head = row != nullptr && !row->per_layer &&
                      row->name != result_of(TextSection::embedding) && row->name != "ids";
    sorted.emplace_back(Key{of_pass ? place_of_pass(array.pass) : -1,
                            layer >= 0 ? layer
                            : head     ? 1 << 30
                                       : -1,
                            row},
                        std::move(array));
  }
  // Rows of the registry stand in the order of computation.
  stable_sort(sorted,
              [](const auto& a, const auto& b) { return std::less<Key>()(a.first, b.first); });
  std::vector<PlainArray> arrays;
  for (auto& [key, array] : sorted) arrays.push_back(std::move(array));
  return arrays;
}

std::string dims_of(const PlainArray& array) {
  return (array.layout.is_partial() ? std::string(1, kParts) : "") + array.layout.letters();
}

Shape shape_of(const PlainArray& array) {
  Shape shape = array.shape;
  if (array.layout.is_partial())
    shape.insert(shape.begin(), array.torus.size(array.layout.partial()));
  return shape;
}

namespace {

/// Puts the numbers of chips together, and remembers which chip each is of.
class Assembly {
 public:
  Assembly(PlainArray& array, const Torus& torus, const std::string& letters, const Layout& layout)
      : array_(array), torus_(torus), by_part_(!letters.empty() && letters[0] == kParts) {
    for (const char letter : letters) {
      if (letter == kParts) {
        whole.shape.push_back(torus.size(layout.partial()));
        continue;
      }
      from_.push_back(*layout.find(letter));
      whole.shape.push_back(array.shape[from_.back()]);
    }
    whole.numbers.resize(at(element_count(whole.shape)));
    whole.present.resize(whole.numbers.size(), false);
    holder_.resize(whole.numbers.size(), -1);
    whole.computed = !by_part_ && torus.size(layout.partial()) > 1;
    array_.replicas.clear();
  }

  bool by_part() const { return by_part_; }
  void put(std::int64_t global, std::size_t part, int chip, double v) {
    const Shape index = global_index(array_.shape, global);
    auto place = by_part_ ? static_cast<std::int64_t>(part) : 0;
    for (const std::size_t d : from_) place = place * array_.shape[d] + index[d];
    if (!whole.present[at(place)]) {
      whole.numbers[at(place)] = v;
      whole.present[at(place)] = true;
      holder_[at(place)] = chip;
    } else if (!whole.copies_differ && !same_bits(whole.numbers[at(place)], v)) {
      whole.copies_differ = true;
      array_.replicas = fmt::format("replicas differ: chips {} and {} at [{}]: {:.9g} and {:.9g}",
                                    torus_.name(holder_[at(place)]), torus_.name(chip),
                                    fmt::join(index, ","), whole.numbers[at(place)], v);
    }
  }

  WholeValue whole;

 private:
  PlainArray& array_;
  const Torus& torus_;
  bool by_part_;
  std::vector<std::size_t> from_;  // of each dim of the result
  std::vector<int> holder_;
};

}  // namespace

WholeValue whole_array(const Dump& dump, PlainArray& array, const Layout& layout,
                       const std::string& letters) {
  const Value& value = dump.values.find(array.name)->second;
  const Torus torus = torus_of(dump);
  const Arrays arrays =
      arrays_of(array.name, value, Mesh::parse(mesh_text(dump), torus), torus, layout.rank());
  std::vector<const Arrays::Shard*> shards(at(arrays.torus.chips()), nullptr);
  for (const Arrays::Shard& shard : arrays.shards) shards[at(shard.chip)] = &shard;
  Assembly assembly(array, arrays.torus, letters, layout);
  for (int chip = 0; chip < arrays.torus.chips(); ++chip) {
    std::vector<int> group{chip};
    if (!assembly.by_part()) group = judged_group(layout, arrays.torus, chip);
    const bool complete = std::all_of(group.begin(), group.end(),
                                      [&](int member) { return shards[at(member)] != nullptr; });
    if (group.front() != chip || !complete) continue;
    judged_elements(layout, array.shape, arrays.torus, chip,
                    [&](std::int64_t local, std::int64_t global) {
                      double v = 0.0;
                      for (const int member : group) {
                        const Arrays::Shard& shard = *shards[at(member)];
                        const double part = shard.stored->at(shard.first + at(local));
                        v = group.size() == 1 ? part : v + part;
                      }
                      assembly.put(global, judged_part(layout, arrays.torus, chip), chip, v);
                      return false;
                    });
  }
  return std::move(assembly.whole);
}

}  // namespace shardproof::dump
