#include "tools/report/pair_json.h"

#include <cmath>
#include <nlohmann/json.hpp>

#include "golden/compare/reach_meter.h"
#include "tools/text/json_text.h"

namespace shardproof::tools {
namespace {

using nlohmann::json;

json json_of(const dump::PairRow& row, const dump::Pair* pair) {
  json out{{"id", row.title}, {"verdict", dump::to_string(row.likeness)}};
  if (!row.paired()) out["only"] = row.a ? "A" : "B";
  if (!row.why.empty()) out["why"] = row.why;
  if (row.input) out["input"] = true;
  if (row.other_tokens) out["other_tokens"] = true;
  const dump::Apart& apart = row.apart;
  if (apart.elements > 0)
    out.update({{"elements", apart.elements},
                {"unequal", apart.unequal},
                {"apart", json_number(apart.relative())},
                {"units", json_number(apart.units)},
                {"coarser", to_string(row.coarser)}});
  if (apart.unequal > 0) out["worst"] = {{"a", json_number(apart.a)}, {"b", json_number(apart.b)}};
  if (pair == nullptr) return out;
  const auto side = [](const dump::JudgedTrace& of, std::size_t i) {
    const dump::Row& judged = of.verdict.rows[i];
    json one{{"name", judged.name},
             {"fit", bounds::to_string(judged.fit)},
             {"found", json_number(judged.found())},
             {"allowed", json_number(judged.allowed())},
             {"wrong", judged.wrong},
             {"layout", of.values[i].layout},
             {"stored", to_string(of.values[i].stored)}};
    if (judged.drift >= 0) one["drift"] = json_number(judged.drift);
    if (judged.follows) one["follows"] = true;
    if (judged.copies_differ) one["copies_differ"] = true;
    return one;
  };
  if (row.a) out["a"] = side(pair->a, *row.a);
  if (row.b) out["b"] = side(pair->b, *row.b);
  if (apart.unequal > 0) {
    const auto& of = row.turned ? pair->b : pair->a;
    out["worst"]["index"] =
        global_index(of.values[row.turned ? *row.b : *row.a].subject.shape, apart.place);
  }
  return out;
}

json json_of(const dump::Wander::OfLayer* runs) {
  if (runs == nullptr) return nullptr;
  return {{"least", json_number(runs->least)},
          {"most", json_number(runs->most)},
          {"rms", json_number(runs->rms)}};
}

void add_diagnosis(json& out, const dump::JudgedTrace& of) {
  out = json::array();
  for (const diagnosis::Hypothesis& h : of.diagnosis)
    out.push_back({{"fault", h.fault},
                   {"detail", h.detail},
                   {"axes", h.axes},
                   {"explains", h.explains},
                   {"left", json_number(h.left)},
                   {"residual", json_number(h.residual)}});
}

void add_pair(json& out, const dump::Pair& pair) {
  const auto title = [&](const std::optional<std::size_t>& row) {
    return row ? json(pair.rows[*row].title) : json();
  };
  out["first"] = title(pair.first);
  for (const bool of_b : {false, true}) {
    const dump::Row* const judged = pair.wrong(of_b);
    out[of_b ? "first_of_b" : "first_of_a"] = judged == nullptr ? json() : json(judged->title);
  }
  add_diagnosis(out["diagnosis_of_a"], pair.a);
  add_diagnosis(out["diagnosis_of_b"], pair.b);
  out["runs"] = {pair.a.wander.runs, pair.b.wander.runs};
  out["drift"] = json::array();
  for (const LayerDrift& one : layer_drifts(pair))
    out["drift"].push_back({{"id", one.id},
                            {"layer", one.layer},
                            {"a", one.a < 0 ? json() : json_number(one.a)},
                            {"b", one.b < 0 ? json() : json_number(one.b)},
                            {"runs_a", json_of(one.runs_a)},
                            {"runs_b", json_of(one.runs_b)}});
  json& logits = out["logits"] = json::array();
  for (const dump::PositionOfLogits& one : pair.logits) {
    json position{{"pass", one.pass},
                  {"row", one.row},
                  {"log_p", json_number(one.most)},
                  {"token", one.token},
                  {"kl", json_number(one.divergence)}};
    if (one.moved) position["moved"] = json_number(*one.moved);
    if (const auto share = one.explained()) position["explained"] = json_number(*share);
    logits.push_back(std::move(position));
  }
  out["tokens"] = json::array();
  for (const dump::Parting& one : pair.partings) {
    constexpr const char* kSays[] = {"near tie", "wrong", "unclear"};
    json parting{{"pass", one.pass},
                 {"row", one.row},
                 {"tokens", {one.token_a, one.token_b}},
                 {"says", kSays[static_cast<std::size_t>(one.says)]}};
    if (!std::isnan(one.margin_a)) {
      parting["margins"] = {json_number(one.margin_a), json_number(one.margin_b)};
      parting["apart"] = json_number(one.apart);
    }
    if (one.moved) parting["moved"] = json_number(*one.moved);
    out["tokens"].push_back(std::move(parting));
  }
  out["notes"] = json::array();
  for (const auto& [word, of] : {std::pair("A: ", &pair.a), std::pair("B: ", &pair.b)})
    for (const std::string& note : of->notes) out["notes"].push_back(word + note);
}

}  // namespace

std::string pair_json(const PairComparison& of) {
  const bool plain = of.request.plain;
  const auto& differences = plain ? of.plain.differences : of.pair.differences;
  const auto& rows = plain ? of.plain.rows : of.pair.rows;
  json out{{"files", {of.request.a.file, of.request.b.file}},
           {"same", of.request.same},
           {"model", !plain},
           {"verdict", of.exit_code() == 0 ? "explained" : "not explained"},
           {"sentence", sentence(of)},
           {"reproduce", command(of)},
           {"differences", json::array()},
           {"values", json::array()}};
  for (const dump::Difference& one : differences)
    out["differences"].push_back({{"of", one.of}, {"text", one.text}});
  for (const dump::PairRow& row : rows)
    out["values"].push_back(json_of(row, plain ? nullptr : &of.pair));
  if (plain)
    out["findings"] = of.plain.findings;
  else
    add_pair(out, of.pair);
  return json_text(out) + "\n";
}

}  // namespace shardproof::tools
