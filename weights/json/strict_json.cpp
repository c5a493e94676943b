#include "weights/json/strict_json.h"

#include <fmt/format.h>

#include <set>
#include <vector>

namespace shardproof {
namespace {

using nlohmann::json;
using Refuse = std::function<void(const std::string& why)>;

/// Beyond it readers that recurse would overflow the stack.
constexpr std::size_t kDeepest = 32;

/// Rejects a document before it is built. The parser's own callback would take time that is
/// quadratic in the length of an array of objects.
class Watch : public nlohmann::json_sax<json> {
 public:
  explicit Watch(const Refuse& refuse) : refuse_(refuse) {}

  /// Returns why the text is not JSON, or nothing.
  const std::string& why() const { return why_; }

  bool null() override { return value(); }
  bool boolean(bool) override { return value(); }
  bool number_integer(number_integer_t) override { return value(); }
  bool number_unsigned(number_unsigned_t) override { return value(); }
  bool number_float(number_float_t, const string_t&) override { return value(); }
  bool string(string_t&) override { return value(); }
  bool binary(binary_t&) override { return value(); }
  bool start_object(std::size_t) override { return start(); }
  bool start_array(std::size_t) override { return start(); }
  bool end_object() override { return end(); }
  bool end_array() override { return end(); }

  bool key(string_t& name) override {
    if (!names_.back().insert(name).second)
      refuse_(fmt::format("names {} twice", json(name).dump()));
    return value();
  }

  bool parse_error(std::size_t, const std::string&, const json::exception& error) override {
    why_ = error.what();
    return false;
  }

 private:
  bool value() const {
    if (names_.size() > kDeepest) refuse_(fmt::format("is nested deeper than {}", kDeepest));
    return true;
  }
  bool start() {
    value();
    names_.emplace_back();
    return true;
  }
  bool end() {
    names_.pop_back();
    return true;
  }

  const Refuse& refuse_;
  std::vector<std::set<std::string>> names_;  ///< of each object, or none of an array, that is open
  std::string why_;
};

}  // namespace

json parse_strict_json(std::string_view text, const Refuse& refuse) {
  Watch watch(refuse);
  if (json::sax_parse(text, &watch)) return json::parse(text);
  std::string why = watch.why();
  for (char& c : why)
    if (static_cast<unsigned char>(c) < ' ') c = ' ';
  refuse(fmt::format("is not JSON: {}", why.substr(0, 300)));
  return {};
}

}  // namespace shardproof
