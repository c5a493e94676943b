#include "tools/faults/outcomes.h"

#include <fmt/format.h>

#include <fstream>

#include "golden/faults/equivalence.h"

namespace shardproof::tools {
namespace {

constexpr std::string_view kDigits =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
constexpr std::size_t kCode = 4;
constexpr auto kFieldBit = static_cast<std::size_t>(faults::Seer::field);

std::string_view code_at(const std::string& codes, std::size_t number) {
  return std::string_view(codes).substr(kCode * number, kCode);
}

nlohmann::json count_json(const faults::Count& count) {
  nlohmann::json seen, others, values;
  for (std::size_t i = 0; i < faults::kDetectors; ++i)
    seen[std::string(faults::detector_names()[i])] = count.own[i];
  for (std::size_t i = 0; i < faults::kOtherChecks; ++i) {
    others[std::string(faults::other_check_names()[i])] = count.end_to_end[i];
    values[std::string(faults::other_check_names()[i])] = count.per_value[i];
  }
  return {{"mutants", count.mutants},  {"killed", count.killed}, {"equivalent", count.equivalent},
          {"left", count.survivors},   {"seen", seen},           {"others_end_to_end", others},
          {"others_per_value", values}};
}

nlohmann::json alarms_json(const faults::OtherCounts& alarms) {
  nlohmann::json all;
  for (std::size_t i = 0; i < faults::kOtherChecks; ++i)
    all[std::string(faults::other_check_names()[i])] = alarms[i];
  return all;
}

[[noreturn]] void refuse(const std::string& path, const std::string& why) {
  throw Error("faults_against", fmt::format("{}: {}", path, why));
}

}  // namespace

std::string code_of(const faults::Sights& sights, bool equivalent) {
  std::size_t own = 0, others = 0;
  for (std::size_t i = 0; i < faults::kDetectors; ++i)
    if (sights.own[i] == faults::Sight::seen) own |= std::size_t{1} << i;
  if (sights.own[kFieldBit] == faults::Sight::not_run) own |= std::size_t{1} << faults::kDetectors;
  for (std::size_t i = 0; i < faults::kOtherChecks; ++i) {
    if (sights.others.end_to_end[i]) others |= std::size_t{1} << i;
    if (sights.others.per_value[i]) others |= std::size_t{1} << (faults::kOtherChecks + i);
  }
  if (equivalent) others |= std::size_t{1} << (2 * faults::kOtherChecks);
  return {kDigits[own], kDigits[others & 31U], kDigits[others >> 5U & 31U], kDigits[others >> 10U]};
}

faults::Sights sights_of(std::string_view code, bool& equivalent) {
  const auto digit = [&](std::size_t i) { return kDigits.find(code[i]) & 63U; };
  const std::size_t own = digit(0), others = digit(1) | digit(2) << 5U | digit(3) << 10U;
  const auto has = [](std::size_t bits, std::size_t i) { return (bits >> i & 1U) != 0; };
  faults::Sights sights;
  for (std::size_t i = 0; i < faults::kDetectors; ++i)
    sights.own[i] = has(own, i) ? faults::Sight::seen : faults::Sight::silent;
  if (has(own, faults::kDetectors)) sights.own[kFieldBit] = faults::Sight::not_run;
  for (std::size_t i = 0; i < faults::kOtherChecks; ++i) {
    sights.others.end_to_end[i] = has(others, i);
    sights.others.per_value[i] = has(others, faults::kOtherChecks + i);
  }
  equivalent = has(others, 2 * faults::kOtherChecks);
  return sights;
}

nlohmann::json faults_json(const faults::Study& study, const std::vector<faults::Result>& results,
                           const faults::Matrix& matrix,
                           const std::vector<std::string>& survivors) {
  std::vector<std::string> codes;
  for (const std::size_t size : study.sizes) {
    codes.emplace_back();
    for (std::size_t i = 0; i < size; ++i) codes.back() += kNotJudged;
  }
  nlohmann::json equivalent = nlohmann::json::array();
  for (const faults::Result& one : results) {
    codes[one.planned.of_case].replace(kCode * one.planned.number, kCode,
                                       code_of(one.sights, !one.reason.empty()));
    if (!one.reason.empty())
      equivalent.push_back(
          {{"case", one.planned.of_case}, {"mutant", one.planned.number}, {"reason", one.reason}});
  }
  nlohmann::json cases = nlohmann::json::array();
  for (std::size_t i = 0; i < study.cases.size(); ++i)
    cases.push_back({{"case", print_case(study.cases[i].source_case)},
                     {"kind", study.cases[i].kind},
                     {"strategy", study.cases[i].strategy},
                     {"outcomes", codes[i]}});
  nlohmann::json classes, strategies, operators, both;
  for (const auto& [name, count] : matrix.by_class) classes[name] = count_json(count);
  for (const auto& [name, count] : matrix.by_strategy) strategies[name] = count_json(count);
  for (const auto& [name, count] : matrix.by_operator) operators[name] = count_json(count);
  for (const auto& [name, count] : matrix.by_both)
    both[name.first][name.second] = count_json(count);
  return {{"cases", cases},
          {"all", count_json(matrix.all)},
          {"classes", classes},
          {"strategies", strategies},
          {"operators", operators},
          {"classes_by_strategy", both},
          {"equivalent", equivalent},
          {"left", survivors},
          {"right_runs",
           {{"runs", matrix.right_runs},
            {"bounds", matrix.bounds_alarms},
            {"end_to_end", alarms_json(matrix.end_to_end_alarms)},
            {"per_value", alarms_json(matrix.per_value_alarms)}}}};
}

KnownOutcomes read_outcomes(const std::string& path, const faults::Study& study) {
  std::ifstream in(path, std::ios::binary);
  if (!in) refuse(path, "cannot be read");
  KnownOutcomes known;
  known.file = nlohmann::json::parse(in, nullptr, /*allow_exceptions=*/false);
  const std::string other = "is not what faults --all --json wrote of these cases and operators";
  try {
    const nlohmann::json& cases = known.file.at("cases");
    if (cases.size() != study.cases.size()) refuse(path, other);
    for (std::size_t i = 0; i < cases.size(); ++i) {
      known.codes.push_back(cases.at(i).at("outcomes"));
      if (cases.at(i).at("case") != print_case(study.cases[i].source_case) ||
          known.codes.back().size() != kCode * study.sizes[i])
        refuse(path, other);
    }
    for (const nlohmann::json& one : known.file.at("equivalent"))
      if (one.at("case").get<std::size_t>() >= study.cases.size() ||
          !one.at("mutant").is_number() || !one.at("reason").is_string())
        refuse(path, other);
  } catch (const nlohmann::json::exception&) {
    refuse(path, other);
  }
  return known;
}

std::vector<faults::Result> results_of(const KnownOutcomes& known, const faults::Study& study) {
  std::map<std::pair<std::size_t, std::size_t>, std::string> reasons;
  for (const nlohmann::json& one : known.file.at("equivalent"))
    reasons[{one.at("case").get<std::size_t>(), one.at("mutant").get<std::size_t>()}] =
        one.at("reason");
  std::vector<faults::Result> results;
  for (const faults::Planned& planned : study.mutants) {
    const std::string_view code = code_at(known.codes[planned.of_case], planned.number);
    if (code == kNotJudged) continue;
    faults::Result result;
    result.planned = planned;
    bool equivalent = false;
    result.sights = sights_of(code, equivalent);
    if (equivalent) result.reason = reasons[{planned.of_case, planned.number}];
    results.push_back(std::move(result));
  }
  return results;
}

faults::Matrix matrix_of(const KnownOutcomes& known, const faults::Study& study) {
  faults::Matrix matrix = faults::matrix_of(study, results_of(known, study));
  const nlohmann::json& right = known.file.at("right_runs");
  matrix.right_runs = right.at("runs");
  matrix.bounds_alarms = right.at("bounds");
  for (std::size_t i = 0; i < faults::kOtherChecks; ++i) {
    const std::string name(faults::other_check_names()[i]);
    matrix.end_to_end_alarms[i] = right.at("end_to_end").at(name);
    matrix.per_value_alarms[i] = right.at("per_value").at(name);
  }
  return matrix;
}

std::vector<std::string> differences(const KnownOutcomes& known,
                                     const std::vector<faults::Result>& results) {
  std::vector<std::string> lines;
  for (const faults::Result& one : results) {
    const std::string_view before = code_at(known.codes[one.planned.of_case], one.planned.number);
    if (const std::string now = code_of(one.sights, !one.reason.empty());
        before != kNotJudged && before != now)
      lines.push_back(
          fmt::format("{}: {} in the file, now {}", one.planned.mutant.to_string(), before, now));
  }
  return lines;
}

}  // namespace shardproof::tools
