#include "weights/json/strict_json.h"

#include <fmt/format.h>

#include <set>
#include <vector>

namespace shardproof {
namespace {

using nlohmann::json;
using Refuse = std::function<void(const std::string& why)>;

/// Beyond it readers that recurse would overflow the stack.
constexpr int kDeepest = 32;

/// Rejects a document while it is parsed.
class Watch {
 public:
  explicit Watch(const Refuse& refuse) : refuse_(refuse) {}

  bool operator()(int depth, json::parse_event_t event, const json& parsed) {
    if (depth > kDeepest) refuse_(fmt::format("is nested deeper than {}", kDeepest));
    switch (event) {
      case json::parse_event_t::object_start:
        names_.emplace_back();
        break;
      case json::parse_event_t::object_end:
        names_.pop_back();
        break;
      case json::parse_event_t::key:
        if (!names_.back().insert(parsed.get<std::string>()).second)
          refuse_(fmt::format("names {} twice", parsed.dump()));
        break;
      default:
        break;
    }
    return true;
  }

 private:
  const Refuse& refuse_;
  std::vector<std::set<std::string>> names_;
};

}  // namespace

json parse_strict_json(std::string_view text, const Refuse& refuse) {
  std::string why;
  try {
    // Captured by reference: the parser copies its callback.
    Watch watch(refuse);
    return json::parse(text, [&](int depth, json::parse_event_t event, json& parsed) {
      return watch(depth, event, parsed);
    });
  } catch (const json::exception& error) {
    why = error.what();
  }
  for (char& c : why)
    if (static_cast<unsigned char>(c) < ' ') c = ' ';
  refuse(fmt::format("is not JSON: {}", why.substr(0, 300)));
  return {};
}

}  // namespace shardproof
