#include "golden/trace/read/detail/json_attributes.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <utility>

#include "golden/trace/read/detail/allowance.h"
#include "golden/trace/read/detail/json_text.h"
#include "weights/json/strict_json.h"

namespace shardproof::dump {
namespace {

using nlohmann::json;

[[noreturn]] void refuse(std::string_view label, const std::string& why) {
  throw Error(label, fmt::format("its member \"shardproof\" {}", why));
}

void put(Attributes& attributes, const std::string& name, const json& value) {
  if (value.is_null()) return;
  std::string text = json_text(value);
  if (text.size() > kLongestText || name.size() > kLongestText)
    refuse("dump_value",
           fmt::format("has {:?} of more than {} bytes", name.substr(0, 80), kLongestText));
  attributes.insert_or_assign(name, std::move(text));
}

}  // namespace

JsonAttributes parse_json_attributes(std::string_view text) {
  const json document =
      parse_strict_json(text, [](const std::string& why) { refuse("dump_format", why); });
  if (!document.is_object())
    refuse("dump_format", "holds no JSON object, as json.dumps({...}) makes");
  JsonAttributes out;
  for (const auto& [name, value] : document.items())
    if (name != "values") put(out.file, name, value);
  const auto values = document.find("values");
  if (values == document.end()) return out;
  if (!values->is_object()) refuse("dump_value", "its values are not an object");
  for (const auto& [id, attributes] : values->items()) {
    if (!attributes.is_object())
      refuse("dump_value",
             fmt::format(
                 "describes {:?} by something that is not an object; legal: its attributes, as "
                 "{{\"layout\": \"BLE\"}}",
                 id));
    Attributes& of = out.values[id];
    for (const auto& [name, value] : attributes.items()) put(of, name, value);
  }
  return out;
}

}  // namespace shardproof::dump
