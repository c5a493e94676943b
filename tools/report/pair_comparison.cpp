#include "tools/report/pair_comparison.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <utility>

#include "golden/trace/claim/memory.h"
#include "tools/report/sentence.h"
#include "tools/runner/case_source.h"
#include "weights/text/text_model.h"

namespace shardproof::tools {
namespace {

using dump::Likeness;
using dump::Pair;

dump::Claim claim_of(const dump::Dump& dump, const ComparisonRequest& request) {
  dump::Claim claim =
      dump::read_claim(dump.attributes, request.line, request.text ? &*request.text : nullptr);
  claim.operands.insert(claim.operands.end(), request.given.begin(), request.given.end());
  return claim;
}

/// Returns whether both runs have the same weights without looking at them.
bool share_weights(const PairComparisonRequest& request, const dump::Claim& a,
                   const dump::Claim& b) {
  const Case &of_a = a.source_case, &of_b = b.source_case;
  return request.a.weights_file == request.b.weights_file && same_model(of_a.model, of_b.model) &&
         of_a.numerics.weights == of_b.numerics.weights && a.weights_of_file == b.weights_of_file &&
         (!request.a.weights_file.empty() || of_a.seed == of_b.seed);
}

std::string wrong_in(const Pair& pair, bool of_b) {
  const dump::Row* const judged = pair.wrong(of_b);
  if (judged == nullptr) return "";
  const dump::JudgedTrace& trace = of_b ? pair.b : pair.a;
  std::string out = fmt::format("{} is wrong at {}", of_b ? "B" : "A", judged->title);
  if (!trace.diagnosis.empty() && trace.diagnosis.front().explains && trace.first() == judged) {
    const diagnosis::Hypothesis& cause = trace.diagnosis.front();
    out += fmt::format(" ({}{}{})", cause.fault, cause.detail.empty() ? "" : ": ", cause.detail);
  }
  return out;
}

std::string sentence_of(const Pair& pair) {
  const std::string in_a = wrong_in(pair, false), in_b = wrong_in(pair, true);
  if (!in_a.empty() || !in_b.empty())
    return in_a + (in_a.empty() || in_b.empty() ? "" : "; ") + in_b + ".";
  if (pair.first)
    return fmt::format("{} is not the same, although both claim one defined order.",
                       pair.rows[*pair.first].title);
  const auto others = std::count_if(pair.rows.begin(), pair.rows.end(), [](const auto& row) {
    return row.likeness == Likeness::rounding && row.other_tokens;
  });
  const std::string counts =
      fmt::format("{} values have the same bits, {} are apart by rounding{}",
                  pair.count(Likeness::same), pair.count(Likeness::rounding),
                  others == 0 ? "" : fmt::format(" ({} of other tokens since a near tie)", others));
  if (pair.exit_code() == 0) return "Rounding explains all: " + counts + ".";
  const std::int64_t operands = pair.count(Likeness::operands),
                     open = pair.count(Likeness::not_judged);
  const std::string proof = pair.proves() ? "" : "; nothing is shown to be right in both";
  const auto first = pair.first_open();
  const std::string from =
      !first ? "" : fmt::format(" from {} on ({})", pair.rows[*first].title, pair.rows[*first].why);
  return fmt::format("Not explained{}: {}; of {} the operands differ, {} are not judged{}.", from,
                     counts, operands, open, proof);
}

std::string sentence_of(const dump::Plain& plain) {
  if (!plain.findings.empty()) return plain.findings.front() + ".";
  const std::int64_t same = plain.count(Likeness::same), different = plain.different();
  const std::int64_t open = std::count_if(plain.rows.begin(), plain.rows.end(),
                                          [](const dump::PairRow& row) { return row.paired(); }) -
                            same - different;
  return fmt::format(
      "Without a model only bits are compared: {} values have the same bits, {} differ{}.", same,
      different, open == 0 ? "" : fmt::format(", {} are not compared", open));
}

}  // namespace

PairComparison compare_pair(const dump::Dump& a, const dump::Dump& b, PairComparisonRequest request,
                            const Weights* given_a, const Weights* given_b) {
  PairComparison found;
  found.request = std::move(request);
  if (found.request.plain) {
    found.plain = dump::compare_plain(a, b, found.request.same);
    return found;
  }
  dump::Claim of_a = claim_of(a, found.request.a), of_b = claim_of(b, found.request.b);
  dump::require_pair(of_a, of_b);
  dump::require_memory(of_a.source_case);
  dump::require_memory(of_b.source_case);
  const auto weights_a =
      std::make_shared<const Weights>(weights_of(found.request.a, given_a, of_a));
  const auto weights_b =
      given_a == given_b && share_weights(found.request, of_a, of_b)
          ? weights_a
          : std::make_shared<const Weights>(weights_of(found.request.b, given_b, of_b));
  found.pair = dump::compare_pair({a, std::move(of_a), weights_a}, {b, std::move(of_b), weights_b},
                                  {found.request.same, found.request.runs});
  return found;
}

std::string sentence(const PairComparison& of) {
  return of.request.plain ? sentence_of(of.plain) : sentence_of(of.pair);
}

std::string command(const PairComparison& of) {
  const PairComparisonRequest& r = of.request;
  std::string out =
      fmt::format("shardproof compare {} {}", shell_word(r.a.file), shell_word(r.b.file));
  if (r.same) out += " --same";
  if (r.plain) return out + " --model none";
  if (r.a.line) out += " --case " + shell_word(*r.a.line);
  if (r.b.line && r.b.line != r.a.line) out += " --case-of-b " + shell_word(*r.b.line);
  if (!r.a.weights_file.empty()) out += " --weights " + shell_word(r.a.weights_file);
  if (r.b.weights_file != r.a.weights_file)
    out += " --weights-of-b " + shell_word(r.b.weights_file);
  for (const std::string& pattern : r.a.given) out += " --given " + shell_word(pattern);
  if (r.runs >= 0) out += fmt::format(" --runs {}", r.runs);
  return out;
}

std::string words_of(const dump::PositionOfLogits& position) {
  std::string out =
      fmt::format("{}, row {}: largest |Δ log p| {:.1e} (token {}), KL {:.1e}", position.pass,
                  position.row, position.most, position.token, position.divergence);
  if (const auto share = position.explained())
    out += fmt::format("; runs in random orders move {:.1e}: they explain {:.0f} %",
                       *position.moved, 100 * *share);
  return out;
}

std::string words_of(const dump::Parting& parting) {
  std::string out = fmt::format("{}.token, row {}: {} in A, {} in B", parting.pass, parting.row,
                                parting.token_a, parting.token_b);
  if (!std::isnan(parting.margin_a))
    out +=
        fmt::format("; A prefers its own by {:.1e}, B by {:.1e}; both logits are apart by {:.1e}",
                    parting.margin_a, parting.margin_b, parting.apart);
  if (parting.moved)
    out += fmt::format(", runs in random orders move a margin by {:.1e}", *parting.moved);
  switch (parting.says) {
    case dump::Parting::Says::near_tie:
      return out + ": a near tie: the margin is below what rounding moves";
    case dump::Parting::Says::wrong:
      return out + ": no near tie: a token is wrong by its own logits";
    case dump::Parting::Says::unclear:
      break;
  }
  return out + ": unclear, for the logits are not known to agree";
}

std::vector<LayerDrift> layer_drifts(const Pair& pair) {
  std::vector<LayerDrift> all;
  const auto add = [&](const dump::JudgedTrace& of, bool of_b) {
    for (std::size_t i = 0; i < of.values.size(); ++i) {
      const dump::Subject& s = of.values[i].subject;
      if (s.meaning != dump::Meaning::checkpoint || s.last || !s.id.ends_with(".out")) continue;
      auto found = std::find_if(all.begin(), all.end(),
                                [&](const LayerDrift& one) { return one.id == s.id; });
      if (found == all.end()) {
        all.push_back({s.id, s.layer});
        found = std::prev(all.end());
      }
      double& drift = of_b ? found->b : found->a;
      drift = std::max(drift, of.verdict.rows[i].drift);
      const auto runs = of.wander.layers.find(s.id);
      if (runs != of.wander.layers.end()) (of_b ? found->runs_b : found->runs_a) = &runs->second;
    }
  };
  add(pair.a, false);
  add(pair.b, true);
  std::erase_if(all, [](const LayerDrift& one) { return one.a < 0 && one.b < 0; });
  return all;
}

}  // namespace shardproof::tools
