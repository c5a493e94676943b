#include "golden/cases/cases.h"

#include <nlohmann/json.hpp>

#include "engine/numeric/cpu.h"
#include "golden/memo/oracle_memo.h"
#include "golden/verify/verify.h"
#include "tools/binding/boundary.h"
#include "tools/binding/lines.h"
#include "tools/binding/shardproof.h"
#include "tools/runner/json_report.h"

namespace shardproof::binding {
namespace {

nlohmann::json described(const Case& c) {
  return {{"case", with_text(print_case(c), c.model)},
          {"torus", c.torus.to_string()},
          {"model", with_text(print_model(c.model), c.model)},
          {"batch", c.batch},
          {"prompt", c.prompt},
          {"chunk", c.chunk},
          {"gen", c.gen},
          {"seed", c.seed}};
}

}  // namespace
}  // namespace shardproof::binding

using namespace shardproof;
using namespace shardproof::binding;

int shardproof_interface() noexcept { return 3; }

const char* shardproof_missing_feature() noexcept { return missing_cpu_feature(); }

void shardproof_free(char* text) noexcept { std::free(text); }

void shardproof_release(ShardproofObject* object) noexcept { delete object; }

char* shardproof_case(const char* line) noexcept {
  return answer([&] { return described(case_of(line)); });
}

char* shardproof_draw(std::uint64_t seed, std::uint64_t index) noexcept {
  return answer([&] { return described(cases::draw(seed, index)); });
}

char* shardproof_simpler(const char* line) noexcept {
  return answer([&] {
    nlohmann::json lines = nlohmann::json::array();
    for (const Case& c : cases::simpler(case_of(line)))
      lines.push_back(with_text(print_case(c), c.model));
    return nlohmann::json{{"cases", lines}};
  });
}

char* shardproof_verify(const char* line) noexcept {
  return answer([&] {
    const Case c = case_of(line);
    OracleMemo memo;
    const tools::CaseAnswer answered{verify_case(c, memo), 0.0};
    return tools::case_json({}, c, answered);
  });
}
