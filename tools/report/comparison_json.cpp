#include "tools/report/comparison_json.h"

#include <nlohmann/json.hpp>

#include "tools/report/sentence.h"
#include "tools/text/json_text.h"

namespace shardproof::tools {
namespace {

using dump::Row;
using dump::WrongElement;

nlohmann::json as_json(const Comparison& of, const dump::DumpedValue& dumped,
                       const WrongElement& e) {
  nlohmann::json out{{"index", e.index},
                     {"actual", json_number(e.actual)},
                     {"expected", {json_number(e.low), json_number(e.high)}}};
  if (!dumped.whole) {
    out["chip"] = dumped.torus.name(e.chip);
    out["rank"] = of.claim.mesh.rank(dumped.torus, e.chip);
  }
  return out;
}

nlohmann::json as_json(const rerun::Evidence& e) {
  constexpr const char* kSays[] = {"rounding", "unclear", "not rounding"};
  return {{"drift", json_number(e.drift)},   {"runs", e.runs},
          {"least", json_number(e.least)},   {"most", json_number(e.most)},
          {"limit", json_number(e.limit())}, {"says", kSays[static_cast<std::size_t>(e.says)]}};
}

}  // namespace

std::string comparison_json(const Comparison& of) {
  const dump::Verdict& v = of.verdict;
  nlohmann::json out{{"file", of.request.file},
                     {"case", of.of},
                     {"exact", of.claim.exact},
                     {"compared", v.compared},
                     {"of", v.whole},
                     {"values", nlohmann::json::array()},
                     {"unknown", nlohmann::json::array()},
                     {"verdict", of.exit_code() == 0 ? "right"
                                 : v.first           ? "different"
                                                     : "not judged"}};
  if (!of.request.golden.empty()) out["golden"] = of.request.golden;
  out["sentence"] = sentence(of);
  out["reproduce"] = command(of);
  out["notes"] = of.notes;
  out["rows"] = v.rows.size();
  out["given"] = count_given(of);
  for (const Row& row : v.rows) {
    nlohmann::json value{{"id", row.title},
                         {"name", row.name},
                         {"fit", bounds::to_string(row.fit)},
                         {"elements", row.elements},
                         {"wrong", row.wrong},
                         {"slack", json_number(row.slack)},
                         {"found", json_number(row.found())},
                         {"allowed", json_number(row.allowed())},
                         {"allowed_likely", json_number(row.allowed_likely())},
                         {"unequal", row.unequal}};
    if (row.drift >= 0) value["drift"] = json_number(row.drift);
    if (!row.why.empty()) value["why"] = row.why;
    if (!row.needs.empty()) value["needs"] = row.needs;
    if (row.outliers > 0) value["outliers"] = row.outliers;
    if (row.not_finite > 0) value["not_finite"] = row.not_finite;
    if (row.rounding)
      value["rounding"] = {{"way", row.rounding->best},
                           {"misses", row.rounding->misses},
                           {"others_miss", row.rounding->others},
                           {"elements", row.rounding->elements}};
    if (row.evidence) value["evidence"] = as_json(*row.evidence);
    if (!row.signs.empty()) value["signs"] = row.signs;
    if (row.copies_differ) value["copies_differ"] = true;
    if (row.incomplete) value["incomplete"] = true;
    if (row.unknown > 0) value["unknown"] = row.unknown;
    if (of.dumped(row).given) value["given"] = true;
    if (row.follows) value["follows"] = true;
    out["values"].push_back(value);
  }
  for (const dump::Unknown& u : v.unknown)
    out["unknown"].push_back({{"name", u.name}, {"why", u.why}});
  out["first"] = nullptr;
  if (of.first() != nullptr) {
    const Row& row = *of.first();
    const dump::DumpedValue& dumped = of.dumped(row);
    out["first"] = {{"step", row.title},
                    {"name", row.name},
                    {"chips", row.chips},
                    {"wrong_chips", row.wrong_parts.size()},
                    {"elements", row.elements},
                    {"wrong", row.wrong},
                    {"first", as_json(of, dumped, *row.first)},
                    {"worst", as_json(of, dumped, *row.worst)}};
    for (std::size_t d = 0; d < row.box.size(); ++d)
      if (std::ssize(row.box[d]) != dumped.subject.shape[d])
        out["first"]["exactly"][std::string(1, dumped.subject.dims[d])] = row.box[d];
    if (!dumped.whole) {
      out["first"]["layout"] = dumped.layout.to_string();
      out["first"]["ranks"] = wrong_ranks(of);
      for (const auto& [chip, part] : row.wrong_parts)
        out["first"]["parts"].push_back(
            {{"chip", dumped.torus.name(chip)},
             {"wrong", part.wrong},
             {"off", json_number(bounds::relative(part.off, row.extent.scale))}});
    }
    out["remedy"] = remedy(of);
    out["operands"] = nlohmann::json::array();
    for (const Operand& operand : of.operands) {
      nlohmann::json one{{"id", operand.id}, {"fit", nullptr}};
      if (operand.fit) one["fit"] = bounds::to_string(*operand.fit);
      out["operands"].push_back(std::move(one));
    }
  }
  out["not_shown"] = v.not_shown;
  out["diagnosis"] = nlohmann::json::array();
  for (const diagnosis::Hypothesis& h : of.diagnosis)
    out["diagnosis"].push_back({{"fault", h.fault},
                                {"detail", h.detail},
                                {"axes", h.axes},
                                {"explains", h.explains},
                                {"left", json_number(h.left)},
                                {"residual", json_number(h.residual)}});
  return json_text(out) + "\n";
}

}  // namespace shardproof::tools
