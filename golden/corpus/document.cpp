#include "golden/corpus/document.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>
#include <cstring>

#include "golden/trace/write/dump_file.h"
#include "golden/trace/write/trace.h"

namespace shardproof::corpus {
namespace {

using dump::Attributes;
using dump::StoredArray;

constexpr std::array kKinds = {std::pair{Kind::layouts, std::string_view("layouts")},
                               std::pair{Kind::collectives, std::string_view("collectives")},
                               std::pair{Kind::model, std::string_view("model")}};

template <class T>
void put_array(dump::Dump& golden, const std::string& name, const Shape& shape,
               std::span<const T> elements, NumberFormat encoding, Attributes attributes) {
  attributes["order"] = std::to_string(golden.order.size());
  dump::Value value;
  value.attributes = std::move(attributes);
  value.whole.shape = shape;
  value.whole.encoding = encoding;
  value.whole.bytes.resize(elements.size_bytes());
  if (!elements.empty())
    std::memcpy(value.whole.bytes.data(), elements.data(), elements.size_bytes());
  golden.values.emplace(name, std::move(value));
  golden.order.push_back(name);
}

std::string in_brackets(const Shape& shape) { return fmt::format("[{}]", fmt::join(shape, ",")); }

/// Returns for example "gate [0,1,2]".
std::string place(const std::string& name, const Shape& shape, std::size_t element) {
  Shape index(shape.size());
  auto rest = static_cast<std::int64_t>(element);
  for (std::size_t d = shape.size(); d-- > 0;) {
    index[d] = rest % shape[d];
    rest /= shape[d];
  }
  return fmt::format("{} {}", name, in_brackets(index));
}

std::optional<std::string> difference(const std::string& where, const Attributes& expected,
                                      const Attributes& found) {
  for (const auto& [name, value] : expected) {
    const auto at = found.find(name);
    if (at == found.end())
      return fmt::format("{} has no attribute {}, expected {:?}", where, name,
                         value.substr(0, 200));
    if (at->second != value)
      return fmt::format("{}: {}={:?}, expected {:?}", where, name, at->second.substr(0, 200),
                         value.substr(0, 200));
  }
  for (const auto& [name, value] : found)
    if (!expected.contains(name))
      return fmt::format("{}: {}={:?} is one attribute too many", where, name,
                         value.substr(0, 200));
  return std::nullopt;
}

std::optional<std::string> difference(const std::string& name, const StoredArray& expected,
                                      const StoredArray& found) {
  if (expected.encoding != found.encoding)
    return fmt::format("{} is of {}, expected {}", name, to_string(found.encoding),
                       to_string(expected.encoding));
  if (expected.shape != found.shape)
    return fmt::format("{} is {}, expected {}", name, in_brackets(found.shape),
                       in_brackets(expected.shape));
  const auto size = static_cast<std::size_t>(bytes_of(expected.encoding));
  for (std::size_t i = 0; i < expected.size(); ++i)
    if (std::memcmp(expected.elements().data() + i * size, found.elements().data() + i * size,
                    size) != 0)
      return fmt::format("{} is {:.9g}, expected {:.9g}", place(name, expected.shape, i),
                         found.at(i), expected.at(i));
  return std::nullopt;
}

}  // namespace

std::string_view to_string(Kind kind) {
  for (const auto& [one, name] : kKinds)
    if (one == kind) return name;
  return "?";
}

dump::Dump empty_golden(Kind kind) {
  dump::Dump golden;
  golden.attributes = {{"format", "shardproof trace"},
                       {"version", std::to_string(kTraceFormat)},
                       {"golden", std::string(to_string(kind))},
                       {"arithmetic", "exact"}};
  return golden;
}

Kind kind_of(const dump::Dump& golden) {
  const auto at = golden.attributes.find("golden");
  if (at == golden.attributes.end())
    throw Error("golden_kind", "a trace without the attribute golden is not a golden");
  for (const auto& [kind, name] : kKinds)
    if (name == at->second) return kind;
  throw Error("golden_kind", fmt::format("golden={:?}; legal: layouts, collectives, model",
                                         at->second.substr(0, 200)));
}

void put(dump::Dump& golden, const std::string& name, const Shape& shape,
         std::span<const float> elements, Attributes attributes) {
  put_array(golden, name, shape, elements, NumberFormat::f32, std::move(attributes));
}
void put(dump::Dump& golden, const std::string& name, const Shape& shape,
         std::span<const std::int32_t> elements, Attributes attributes) {
  put_array(golden, name, shape, elements, NumberFormat::int32, std::move(attributes));
}
void put(dump::Dump& golden, const std::string& name, const Shape& shape,
         std::span<const std::int8_t> elements, Attributes attributes) {
  put_array(golden, name, shape, elements, NumberFormat::int8, std::move(attributes));
}

void save(const dump::Dump& golden, const std::filesystem::path& path) {
  write_dump(golden, path, "golden_write");
}

std::optional<std::string> first_difference(const dump::Dump& expected, const dump::Dump& golden) {
  if (auto found = difference("the file", expected.attributes, golden.attributes)) return found;
  for (const std::string& name : expected.order) {
    const auto at = golden.values.find(name);
    if (at == golden.values.end()) return fmt::format("{} is missing", name);
    const dump::Value& value = expected.values.find(name)->second;
    if (at->second.in_shards()) return fmt::format("{} is stored as shards, expected whole", name);
    if (auto found = difference(name, value.attributes, at->second.attributes)) return found;
    if (auto found = difference(name, value.whole, at->second.whole)) return found;
  }
  for (const auto& [name, value] : golden.values)
    if (!expected.values.contains(name)) return fmt::format("{} is one value too many", name);
  if (!golden.ignored.empty())
    return fmt::format("{} is not an array: a golden has nothing else", golden.ignored.front());
  return std::nullopt;
}

}  // namespace shardproof::corpus
