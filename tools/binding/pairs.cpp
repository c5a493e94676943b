#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tools/binding/lines.h"
#include "tools/binding/objects.h"
#include "tools/binding/shardproof.h"
#include "tools/report/pair_json.h"
#include "tools/report/pair_page.h"
#include "tools/report/pair_text.h"

using namespace shardproof;
using namespace shardproof::binding;

namespace {

void take_line(const nlohmann::json& given, const char* name, tools::ComparisonRequest& of) {
  if (!given.contains(name)) return;
  GivenLine line(given.at(name).get<std::string>());
  of.line = std::move(line.line);
  of.text = std::move(line.text);
}

tools::PairComparisonRequest pair_request_of(const nlohmann::json& given) {
  tools::PairComparisonRequest request;
  take_line(given, "case", request.a);
  request.a.weights_file = given.value("weights_file", "");
  request.a.given = given.value("given", std::vector<std::string>());
  request.b = request.a;
  take_line(given, "case_of_b", request.b);
  request.b.weights_file = given.value("weights_file_of_b", request.a.weights_file);
  const auto files = given.value("files", std::vector<std::string>{"A", "B"});
  request.a.file = files.at(0), request.b.file = files.at(1);
  request.same = given.value("same", false);
  request.plain = given.value("plain", false);
  request.runs = given.value("runs", -1);
  return request;
}

std::string pair_form(const tools::PairComparison& pair, const std::string& form) {
  if (form == "text") return tools::pair_text(pair, false);
  if (form == "quiet") return tools::pair_text(pair, true);
  if (form == "json") return tools::pair_json(pair);
  if (form == "html") return tools::pair_page(pair);
  throw Error("binding_form", form + ": legal: text, quiet, json, html");
}

}  // namespace

char* shardproof_compare_pair(ShardproofObject* a, ShardproofObject* b, ShardproofObject* weights_a,
                              ShardproofObject* weights_b, const char* request,
                              ShardproofObject** out) noexcept {
  return object_answer(out, [&] {
    const auto weights = [](ShardproofObject* of) {
      return of == nullptr ? nullptr : &as<WeightsObject>(of).weights;
    };
    return std::make_unique<PairObject>(tools::compare_pair(
        as<DumpObject>(a).dump, as<DumpObject>(b).dump,
        pair_request_of(nlohmann::json::parse(request)), weights(weights_a), weights(weights_b)));
  });
}

char* shardproof_pair(ShardproofObject* object, const char* form) noexcept {
  return answer([&] {
    return nlohmann::json{{"text", pair_form(as<PairObject>(object).pair, form)}};
  });
}
