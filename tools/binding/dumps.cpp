#include <algorithm>
#include <cstring>
#include <map>
#include <nlohmann/json.hpp>
#include <utility>

#include "golden/trace/write/dump_file.h"
#include "tools/binding/lines.h"
#include "tools/binding/objects.h"
#include "tools/binding/shardproof.h"
#include "tools/report/comparison_ci.h"
#include "tools/report/comparison_json.h"
#include "tools/report/comparison_page.h"
#include "tools/report/comparison_text.h"

using namespace shardproof;
using namespace shardproof::binding;

namespace {

/// Attributes as a dump keeps them: texts as they are, all else as JSON.
dump::Attributes attributes_of(const nlohmann::json& given) {
  dump::Attributes attributes;
  for (const auto& [name, value] : given.items())
    attributes[name] = value.is_string() ? value.get<std::string>() : value.dump();
  return attributes;
}

NumberFormat encoding_of(const std::string& word) {
  static const std::map<std::string, NumberFormat> encodings{
      {"f64", NumberFormat::f64},    {"f32", NumberFormat::f32},   {"f16", NumberFormat::f16},
      {"bf16", NumberFormat::bf16},  {"int8", NumberFormat::int8}, {"int32", NumberFormat::int32},
      {"int64", NumberFormat::int64}};
  const auto at = encodings.find(word);
  if (at == encodings.end())
    throw Error("dump_value", "encoding " + word +
                                  ": legal: f64, f32, f16, bf16, int8, int32, "
                                  "int64");
  return at->second;
}

enum class Memory { copied, lent };

void add_array(dump::Dump& dump, const nlohmann::json& what, const void* numbers, std::size_t bytes,
               Memory memory) {
  const std::string name = what.at("name").get<std::string>();
  dump::StoredArray array{
      what.at("shape").get<Shape>(), encoding_of(what.at("encoding").get<std::string>()), {}};
  const auto width = static_cast<std::size_t>(bytes_of(array.encoding));
  if (static_cast<std::size_t>(element_count(array.shape)) * width != bytes)
    throw Error("dump_value", name + ": " + std::to_string(bytes) + " bytes are not its shape's");
  const auto* const from = static_cast<const std::byte*>(numbers);
  if (memory == Memory::lent)
    array.lent = {from, bytes};
  else
    array.bytes.assign(from, from + bytes);
  const auto [at, is_new] = dump.values.try_emplace(name);
  dump::Value& value = at->second;
  dump::Attributes attributes = attributes_of(what.value("attributes", nlohmann::json::object()));
  if (is_new) {
    dump.order.push_back(name);
    value.attributes = std::move(attributes);
  } else if (!value.in_shards() || value.attributes != attributes) {
    throw Error("dump_value", name + " is added twice, or its shards differ in what they declare");
  }
  if (!what.contains("chip") || what.at("chip").is_null()) {
    if (!is_new) throw Error("dump_value", name + " is whole and in shards");
    value.whole = std::move(array);
  } else if (!value.chips.emplace(what.at("chip").get<std::array<int, 3>>(), std::move(array))
                  .second) {
    throw Error("dump_value", name + " is added twice for one chip");
  }
}

std::string form_of(const tools::Comparison& comparison, const std::string& form) {
  if (form == "text") return tools::comparison_text(comparison, false);
  if (form == "quiet") return tools::comparison_text(comparison, true);
  if (form == "json") return tools::comparison_json(comparison);
  if (form == "html") return tools::comparison_page(comparison);
  if (form == "junit") return tools::comparison_junit(comparison);
  if (form == "annotations") return tools::comparison_annotations(comparison);
  throw Error("binding_form", form + ": legal: text, quiet, json, html, junit, annotations");
}

tools::ComparisonRequest request_of(const nlohmann::json& given) {
  tools::ComparisonRequest request;
  request.file = given.value("file", "dump");
  if (given.contains("case")) {
    GivenLine line(given.at("case").get<std::string>());
    request.line = std::move(line.line);
    request.text = std::move(line.text);
  }
  request.weights_file = given.value("weights_file", "");
  request.golden = given.value("golden", "");
  request.given = given.value("given", std::vector<std::string>());
  const std::string word = given.value("fail_on", "unlikely");
  const auto fit = bounds::parse_fit(word);
  if (!fit || *fit == bounds::Fit::equal || *fit == bounds::Fit::not_judged)
    throw Error("compare_fail_on", word + ": no verdict that can fail");
  request.fail_on = *fit;
  return request;
}

}  // namespace

char* shardproof_dump(const char* attributes, ShardproofObject** out) noexcept {
  return object_answer(out, [&] {
    auto object = std::make_unique<DumpObject>();
    object->dump.attributes = attributes_of(nlohmann::json::parse(attributes));
    return object;
  });
}

char* shardproof_dump_load(const char* path, ShardproofObject** out) noexcept {
  return object_answer(out, [&] {
    auto object = std::make_unique<DumpObject>();
    object->dump = dump::read_dump(path, dump::Unread::left);
    return object;
  });
}

char* shardproof_dump_add(ShardproofObject* object, const char* what, const void* numbers,
                          std::size_t bytes) noexcept {
  return answer([&] {
    add_array(as<DumpObject>(object).dump, nlohmann::json::parse(what), numbers, bytes,
              Memory::copied);
    return nlohmann::json::object();
  });
}

char* shardproof_dump_lend(ShardproofObject* object, const char* what, const void* numbers,
                           std::size_t bytes) noexcept {
  return answer([&] {
    add_array(as<DumpObject>(object).dump, nlohmann::json::parse(what), numbers, bytes,
              Memory::lent);
    return nlohmann::json::object();
  });
}

char* shardproof_dump_save(ShardproofObject* object, const char* path) noexcept {
  return answer([&] {
    write_dump(as<DumpObject>(object).dump, path);
    return nlohmann::json::object();
  });
}

char* shardproof_compare(ShardproofObject* object, ShardproofObject* weights, const char* request,
                         ShardproofObject** out) noexcept {
  return object_answer(out, [&] {
    return std::make_unique<ComparisonObject>(
        tools::compare(as<DumpObject>(object).dump, request_of(nlohmann::json::parse(request)),
                       weights == nullptr ? nullptr : &as<WeightsObject>(weights).weights));
  });
}

char* shardproof_comparison(ShardproofObject* object, const char* form) noexcept {
  return answer([&] {
    return nlohmann::json{{"text", form_of(as<ComparisonObject>(object).comparison, form)}};
  });
}
