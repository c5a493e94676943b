#include <cmath>
#include <nlohmann/json.hpp>

#include "tools/bench/table.h"

namespace shardproof::bench {
namespace {

using Json = nlohmann::json;

/// Returns a number, or null if it is not finite.
Json number(double value) { return std::isfinite(value) ? Json(value) : Json(nullptr); }

Json both(Cost cost) {
  return {{"processor", number(cost.processor)}, {"wall", number(cost.wall)}};
}

Json object(const Measured& measured) {
  const Row& row = measured.row;
  constexpr const char* kUnits[] = {"ratio", "bytes", "seconds", "per minute", "share"};
  constexpr const char* kClocks[] = {"processor", "wall", "both", "neither"};
  Json result{{"id", row.id},
              {"group", row.group},
              {"what", row.what},
              {"unit", kUnits[static_cast<int>(row.unit)]},
              {"decides", kClocks[static_cast<int>(row.decides)]},
              {"others", measured.others},
              {"repeats", measured.samples.size()},
              {"verdict", measured.verdict()}};
  if (row.target)
    result["target"] = {{row.target->at_least ? "at_least" : "at_most", row.target->value}};
  if (!measured.error.empty()) result["error"] = measured.error;
  if (measured.samples.empty()) return result;
  result["figure"] = both(measured.figure());
  result["ours"] = both(measured.ours());
  if (const auto theirs = measured.theirs()) result["theirs"] = both(*theirs);
  result["spread"] = number(measured.figure_spread());
  return result;
}

}  // namespace

std::string json(const std::vector<Measured>& rows, const Load& load) {
  Json all = Json::array();
  for (const Measured& measured : rows) all.push_back(object(measured));
  const Json result{{"schema", 1},
                    {"load",
                     {{"before", load.before},
                      {"after", load.after},
                      {"processors", load.processors},
                      {"others", load.others}}},
                    {"rows", all}};
  return result.dump(1) + "\n";
}

}  // namespace shardproof::bench
