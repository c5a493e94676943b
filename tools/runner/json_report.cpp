#include "tools/runner/json_report.h"

#include <fmt/format.h>

#include <utility>

#include "tools/text/json_text.h"

namespace shardproof::tools {
namespace {

nlohmann::json as_json(const Finding& d) {
  nlohmann::json out{{"pass", d.pass},         {"checkpoint", d.checkpoint},
                     {"step", d.step},         {"op", d.op},
                     {"chip", d.chip},         {"index", d.index},
                     {"expected", d.expected}, {"actual", d.actual}};
  if (!d.where.empty()) out["where"] = d.where.substr(0, d.where.size() - 2);
  if (!d.reach) return out;
  const Reach& r = *d.reach;
  out["reach"] = {{"chips", r.chips},
                  {"of_chips", r.of_chips},
                  {"elements", r.elements},
                  {"of_elements", r.of_elements},
                  {"replicas", to_string(r.replicas)},
                  {"worst",
                   {{"chip", r.worst_chip},
                    {"index", r.worst_index},
                    {"expected", r.worst_expected},
                    {"actual", r.worst_actual}}}};
  return out;
}

}  // namespace

nlohmann::json case_json(const CaseSource& source, const Case& c, const CaseAnswer& answered) {
  const Judgement& j = answered.judgement;
  nlohmann::json out{{"case", print_case(c)},
                     {"verdict", to_string(j.verdict)},
                     {"tensors", j.tensors},
                     {"elements", j.elements},
                     {"seconds", answered.seconds}};
  for (const auto& [member, file] : source.files.members()) out[member] = file;
  if (j.drift)
    out["drift"] = {{"relative", j.drift->relative},
                    {"equal_tokens", j.drift->equal_tokens},
                    {"tokens", j.drift->tokens}};
  if (j.from_plain)
    out["from_plain"] = {{"logits", j.from_plain->logits},
                         {"equal_tokens", j.from_plain->equal_tokens},
                         {"tokens", j.from_plain->tokens},
                         {"apart", j.from_plain->apart}};
  if (j.field)
    out["field"] = {{"exponent", j.field->exponent()},
                    {"log2_counted", j.field->log2_counted},
                    {"degree", j.field->degree},
                    {"applications", j.field->applications},
                    {"ids_met", j.field->ids_met},
                    {"ids", j.field->ids},
                    {"distinct_ids", j.field->distinct_ids},
                    {"seed", j.field->seed}};
  if (!j.reading.empty()) out["reading"] = j.reading;
  if (j.bounds)
    out["bounds"] = {{"within", j.bounds->within},
                     {"sums", j.bounds->running},
                     {"functions", j.bounds->formula},
                     {"near", j.bounds->near},
                     {"loose", j.bounds->loose},
                     {"least_slack", j.bounds->least_slack},
                     {"median_slack", j.bounds->median_slack()},
                     {"tightest", j.bounds->tightest}};
  if (!j.notes.empty()) out["notes"] = j.notes;
  if (j.verdict == Verdict::equal) return out;
  if (j.difference() != nullptr) out["difference"] = as_json(*j.difference());
  if (const std::string detector = j.detector(); !detector.empty()) out["detector"] = detector;
  if (const std::string reason = j.reason(); !reason.empty()) out["reason"] = reason;
  if (j.findings.size() > 1)
    for (const Finding& finding : j.findings)
      out["findings"].push_back(
          {{"detector", to_string(finding.detector)}, {"said", finding.to_string()}});
  out["reproduce"] = source.command(c);
  return out;
}

JsonReport::JsonReport(CaseSource source) : source_(std::move(source)) {}

std::string JsonReport::answered(const Case& c, const CaseAnswer& answered, const Tally&) {
  results_.push_back(case_json(source_, c, answered));
  return "";
}

nlohmann::json JsonReport::totals(const Ending& ending) {
  const Tally& tally = ending.tally;
  return {{"cases", std::move(results_)},
          {"totals",
           {{"equal", tally.equal},
            {"different", tally.different},
            {"not_judged", tally.not_judged},
            {"refused", tally.refused},
            {"tensors", tally.tensors},
            {"elements", tally.elements},
            {"seconds", ending.seconds}}}};
}

std::string JsonReport::end(const Ending& ending) {
  nlohmann::json out = totals(ending);
  out["held"] = ending.passed();
  if (!ending.least.empty()) out["reproduce"] = ending.least;
  if (const std::string missing = ending.shortfall(); !missing.empty()) out["coverage"] = missing;
  if (!ending.skipped.empty()) out["skipped"] = ending.skipped;
  return json_text(out) + "\n";
}

std::string JsonReport::interrupted(const Ending& so_far, int signal) {
  nlohmann::json out = totals(so_far);
  out["held"] = false;
  out["interrupted"] = signal_name(signal);
  return json_text(out) + "\n";
}

}  // namespace shardproof::tools
