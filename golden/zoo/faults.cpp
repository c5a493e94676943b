#include "golden/zoo/faults.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "golden/corpus/detail/listed.h"
#include "golden/diagnosis/diagnosis.h"
#include "weights/base/detail/words.h"

namespace shardproof::zoo {
namespace {

class Reader {
 public:
  std::vector<Fault> faults;

  void read(std::string_view text) {
    std::size_t number = 0;
    for (const std::string_view line : split(text, "\n")) {
      ++number;
      if (line.empty() || line.front() == '#') continue;
      number_ = number;
      line_ = line;
      const std::string_view key = line.substr(0, line.find(' '));
      const std::string_view rest = trim(line.substr(key.size()));
      if (rest.empty()) refuse("a key without a text");
      take(key, std::string(rest));
    }
    require_whole();
    if (faults.empty()) throw Error("zoo_faults", "no fault is listed");
  }

 private:
  [[noreturn]] void refuse(std::string_view why) const {
    throw Error("zoo_faults", fmt::format("line {}: {:?}: {}", number_, line_.substr(0, 200), why));
  }

  void take(std::string_view key, const std::string& text) {
    if (key == "fault") return begin_fault(text);
    if (faults.empty()) refuse("before the first fault");
    Fault& fault = faults.back();
    if (key == "dump") return begin_dump(fault, text);
    const bool of_dump = !fault.dumps.empty();
    if (key == "report" && !of_dump)
      fault.reports.push_back(text);
    else if (key == "says" && !of_dump)
      set(fault.says, text);
    else if (key == "met" && !of_dump)
      set(fault.met, text);
    else if (key == "case" && of_dump)
      set(fault.dumps.back().line, text);
    else if (key == "first" && of_dump)
      set(fault.dumps.back().first, text);
    else if (key == "cause" && of_dump)
      set(fault.dumps.back().cause, text);
    else if (key == "named" && of_dump && text == "not yet" && fault.dumps.back().named)
      fault.dumps.back().named = false;
    else
      refuse(of_dump ? "a dump has case, first, cause and perhaps \"named not yet\", each once"
                     : "a fault has says, met, any number of report, then dumps");
  }

  void begin_fault(const std::string& text) {
    require_whole();
    if (text != std::to_string(faults.size() + 1))
      refuse(fmt::format("the next fault is {}", faults.size() + 1));
    faults.emplace_back();
  }

  void begin_dump(Fault& fault, const std::string& id) {
    require_whole();
    if (!corpus::is_id(id)) refuse("an id has small letters, digits, '-', '.' and '/'");
    if (!ids_.insert(id).second) refuse("an id that occurs twice");
    fault.dumps.emplace_back();
    fault.dumps.back().id = id;
    fault.dumps.back().named = true;
  }

  void set(std::string& to, const std::string& text) const {
    if (!to.empty()) refuse("a key that occurs twice");
    to = text;
  }

  /// What was begun last has all of its keys.
  void require_whole() const {
    if (faults.empty()) return;
    const Fault& fault = faults.back();
    if (fault.says.empty() || fault.met.empty())
      refuse(fmt::format("fault {} has no {}", faults.size(), fault.says.empty() ? "says" : "met"));
    if (fault.dumps.empty()) return;
    const Specimen& dump = fault.dumps.back();
    for (const auto& [key, text] : {std::pair{"case", &dump.line}, std::pair{"first", &dump.first},
                                    std::pair{"cause", &dump.cause}})
      if (text->empty()) refuse(fmt::format("dump {} has no {}", dump.id, key));
    const std::vector<std::string>& known = diagnosis::faults();
    if (dump.named && std::find(known.begin(), known.end(), dump.cause) == known.end())
      refuse(fmt::format("dump {}: the diagnosis names no cause {:?}", dump.id, dump.cause));
  }

  std::size_t number_ = 0;
  std::string_view line_;
  std::set<std::string> ids_;
};

}  // namespace

std::vector<Fault> parse_faults(std::string_view text) {
  Reader reader;
  reader.read(text);
  return std::move(reader.faults);
}

}  // namespace shardproof::zoo
