#include "tools/verbs/golden_zoo.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "golden/zoo/zoo.h"
#include "tools/text/json_text.h"
#include "tools/text/wrapped.h"

namespace shardproof::tools {
namespace {

void print_row(const zoo::Specimen& specimen, const zoo::CheckResult& checked) {
  fmt::print("{:<38} {:<9} {}\n", specimen.id, zoo::to_string(checked.verdict),
             checked.fault.empty() ? specimen.cause : "");
  if (!checked.fault.empty()) fmt::print("{}\n", wrapped("  " + checked.fault, kWidth, "    "));
}

nlohmann::json as_json(const zoo::Specimen& specimen, const zoo::CheckResult& checked) {
  nlohmann::json out{{"id", specimen.id},
                     {"first", specimen.first},
                     {"cause", specimen.cause},
                     {"said", checked.said},
                     {"verdict", zoo::to_string(checked.verdict)}};
  if (!checked.fault.empty()) out["fault"] = checked.fault;
  return out;
}

}  // namespace

int check_zoo_folder(const std::string& folder, const ZooOutput& output) {
  nlohmann::json rows = nlohmann::json::array();
  zoo::CheckedZoo found =
      zoo::check_zoo(folder, [&](const zoo::Specimen& specimen, const zoo::CheckResult& checked) {
        if (output.json)
          rows.push_back(as_json(specimen, checked));
        else if (!output.quiet || !checked.fault.empty())
          print_row(specimen, checked);
      });
  if (output.released && found.release == nullptr) found.fault = "it is not a released zoo";
  if (output.json) {
    nlohmann::json out{{"zoo", folder},
                       {"dumps", rows},
                       {"faults", found.faults},
                       {"named", found.named},
                       {"unnamed", found.unnamed},
                       {"of", found.dumps},
                       {"verdict", found.exit_code() == 0 ? "equal" : "different"}};
    if (found.release != nullptr) out["version"] = found.release->version;
    if (!found.fault.empty()) out["fault"] = found.fault;
    fmt::print("{}\n", json_text(out));
    return found.exit_code();
  }
  const std::string of_release = found.release != nullptr
                                     ? fmt::format("released as version {}", found.release->version)
                                     : "not a released zoo";
  fmt::print("{} faults, {} dumps: {} named, {} not yet, {} different; {}\n", found.faults,
             found.dumps, found.named, found.unnamed, found.dumps - found.named - found.unnamed,
             of_release);
  if (!found.fault.empty()) fmt::print("{}: {}\n", folder, found.fault);
  return found.exit_code();
}

}  // namespace shardproof::tools
