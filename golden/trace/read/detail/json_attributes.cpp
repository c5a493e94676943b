#include "golden/trace/read/detail/json_attributes.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <set>
#include <utility>
#include <vector>

#include "golden/trace/read/detail/allowance.h"
#include "golden/trace/read/detail/json_text.h"

namespace shardproof::dump {
namespace {

using nlohmann::json;

constexpr int kDeepest = 32;

[[noreturn]] void refuse(std::string_view label, const std::string& why) {
  throw Error(label, fmt::format("its member \"shardproof\" {}", why));
}

/// Rejects a document while it is parsed: duplicate names, and a depth that would overflow the
/// stack of recursive readers.
class Watch {
 public:
  bool operator()(int depth, json::parse_event_t event, const json& parsed) {
    if (depth > kDeepest) refuse("dump_format", fmt::format("is nested deeper than {}", kDeepest));
    switch (event) {
      case json::parse_event_t::object_start:
        names_.emplace_back();
        break;
      case json::parse_event_t::object_end:
        names_.pop_back();
        break;
      case json::parse_event_t::key:
        if (!names_.back().insert(parsed.get<std::string>()).second)
          refuse("dump_format", fmt::format("names {} twice", parsed.dump()));
        break;
      default:
        break;
    }
    return true;
  }

 private:
  std::vector<std::set<std::string>> names_;
};

json parse(std::string_view text) {
  try {
    // Captured by reference: the parser copies its callback.
    Watch watch;
    return json::parse(text, [&](int depth, json::parse_event_t event, json& parsed) {
      return watch(depth, event, parsed);
    });
  } catch (const json::exception& error) {
    std::string why = error.what();
    for (char& c : why)
      if (static_cast<unsigned char>(c) < ' ') c = ' ';
    refuse("dump_format", fmt::format("is not JSON: {}", why.substr(0, 300)));
  }
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
  const json document = parse(text);
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
