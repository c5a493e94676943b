#include "tools/plan/plan_report.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <utility>

#include "engine/cost/chip/quantity.h"
#include "engine/cost/work/efficiency.h"
#include "tools/plan/estimate_notes.h"
#include "tools/plan/plan_proof.h"
#include "tools/text/wrapped.h"
#include "weights/base/memory.h"

namespace shardproof::tools {
namespace {

using cost::Candidate;
using cost::Choice;
using cost::Measure;
using cost::Seconds;

std::string seconds(double value) {
  return value == 0.0 ? "0 s" : cost::rounded_quantity(value, Measure::seconds, 3);
}
/// Formats bytes sent, by powers of 10 as interconnect rates are.
std::string bytes(double value) {
  return value == 0.0 ? "0 B" : cost::rounded_quantity(value, Measure::bytes, 3);
}
/// Formats bytes of memory, by powers of 2 as memory is sold.
std::string memory(double value) { return show_bytes(value); }
std::string percent(double share) { return fmt::format("{:.1f}%", 100.0 * share); }

std::string phase_word(const cost::PlanRequest& request) {
  switch (request.phase) {
    case cost::PlanPhase::prefill:
      return "prefill";
    case cost::PlanPhase::decode:
      return "decode step";
    case cost::PlanPhase::both:
    case cost::PlanPhase::each:
      break;
  }
  return fmt::format("prefill and {} decode steps", request.gen);
}

/// Formats a range: "64", "8 to 256".
template <class T>
std::string span_of(std::set<T> values) {
  return values.size() == 1 ? fmt::format("{}", *values.begin())
                            : fmt::format("{} to {}", *values.begin(), *values.rbegin());
}

std::string heading(const PlanReport& report) {
  const cost::PlanRequest& r = *report.request;
  std::set<int> chips;
  for (const Torus& torus : r.tori) chips.insert(torus.chips());
  const std::set<std::int64_t> batches(r.batches.begin(), r.batches.end());
  std::string goal = r.goal == cost::Goal::latency ? "least latency" : "least cost";
  if (r.latency) goal += " with a latency of at most " + seconds(*r.latency);
  const bool prefills = r.phase != cost::PlanPhase::decode;
  return wrapped(fmt::format("{}, N = {:.4g}: {}, batch {}{}, context {}, {} chips of {}: {}",
                             print_model(r.model), report.plan->parameters, phase_word(r),
                             span_of(batches), prefills ? fmt::format(", prompt {}", r.prompt) : "",
                             r.context, span_of(chips), r.chip.name, goal),
                 kWidth, "") +
         "\n" + estimate_notes(r) + "\n";
}

double utilization(const PlanReport& report, const Candidate& one) {
  return one.flops_utilization(report.plan->parameters,
                               report.request->chip.peak(NumberFormat::bf16));
}

std::string rows_of(const Candidate& one) {
  return one.passes() == 1 ? fmt::format("{}", one.batch)
                           : fmt::format("{}x{}", one.passes(), one.pass.B);
}

std::string row(const PlanReport& report, std::size_t place, const char* mark,
                const Candidate& one) {
  return fmt::format("{:>2} {:<21}{:<9}{:<5}{:>6} {:>8} {:>8} {:>6} {:>9}\n",
                     mark[0] == 0 ? fmt::format("{}", place) : mark, one.strategy.to_string(),
                     one.torus.to_string(), to_string(one.weights), rows_of(one),
                     seconds(one.estimate), seconds(one.lower), percent(utilization(report, one)),
                     memory(one.memory.total()));
}

bool by_paper(const PlanReport& report) { return report.request->volumes == cost::Volumes::paper; }

/// Table of choices. The paper's volumes take (K-1)/K as 1 and count every token's logits, so their
/// times are not bounds ("overlap", not "at least").
std::string table_of(const PlanReport& report, std::size_t shown) {
  std::string out = fmt::format("{:>2} {:<21}{:<9}{:<5}{:>6} {:>8} {:>8} {:>6} {:>9}\n", "",
                                "strategy", "torus", "kept", "rows", "estimate",
                                by_paper(report) ? "overlap" : "at least", "MFU", "memory");
  for (std::size_t i = 0; i < shown; ++i) {
    const Choice& choice = report.plan->choices[i];
    if (choice.prefill) out += row(report, i + 1, "", *choice.prefill);
    if (choice.decode) out += row(report, i + 1, choice.prefill ? "+" : "", *choice.decode);
  }
  return out + "\n";
}

std::string line(const std::string& text) {
  return wrapped("  " + text, kWidth - 4, "    ") + "\n";
}

/// Formats the compute time of the programs and, if less, the part that every run needs.
std::string compute_of(const Seconds& s) {
  const std::string all = seconds(s.compute), needed = seconds(s.needed);
  return all == needed ? all : fmt::format("{} ({} needed)", all, needed);
}

std::string terms_of(const Candidate& one) {
  const Seconds s = one.seconds();
  return fmt::format("at full speed: compute {}, memory {}, communication {}{}; added up {}",
                     compute_of(s), seconds(s.memory), seconds(s.communication),
                     s.hops > 0.0 ? ", hops " + seconds(s.hops) : "", seconds(one.additive));
}

std::string memory_of(const Candidate& one, const cost::Chip& chip) {
  const cost::ChipMemory& m = one.memory;
  return fmt::format("memory {} of {}: weights {}{}, caches {}, live values {}", memory(m.total()),
                     memory(chip.hbm), memory(m.weights),
                     m.other_weights > 0.0
                         ? fmt::format(" and {} for the other phase", memory(m.other_weights))
                         : "",
                     memory(m.caches), memory(m.live));
}

/// Returns the bytes that a chip sends in all layers by the paper's volumes, on which the seconds
/// are based.
double sent_by_paper(const Candidate& one) {
  return static_cast<double>(one.placed.layers) * one.layer_elements * bytes_of(NumberFormat::bf16);
}

std::string sent_by(const PlanReport& report, const Candidate& one) {
  if (one.sent.empty()) return "a chip sends nothing";
  std::vector<std::string> parts;
  for (const auto& [axes, sent] : one.sent)
    parts.push_back(fmt::format("{} {}", axes, bytes(sent)));
  const std::string full = fmt::format("over {}", fmt::join(parts, ", "));
  return by_paper(report) ? fmt::format(
                                "a chip sends {} by the paper's volumes, on which the seconds "
                                "are based; by the full count {}",
                                bytes(sent_by_paper(one)), full)
                          : "a chip sends " + full;
}

std::string padded_dims(const Candidate& one, const ModelConfig& model) {
  std::vector<std::string> parts;
  if (one.placed.H != model.H)
    parts.push_back(fmt::format("heads are padded from {} to {}", model.H, one.placed.H));
  if (one.placed.V != model.V)
    parts.push_back(fmt::format("the vocabulary from {} to {}", model.V, one.placed.V));
  return fmt::format("{}", fmt::join(parts, ", "));
}

std::string details(const PlanReport& report, const Candidate& one) {
  std::string out =
      fmt::format("{} by {} on {}\n", one.pass.phase == Phase::decode ? "Decode step" : "Prefill",
                  one.strategy.to_string(), one.torus.to_string());
  out += line(terms_of(one));
  out += line(fmt::format("{:.4g} chip-seconds a token", one.chip_seconds_per_token()));
  out += line(memory_of(one, report.request->chip));
  out += line(sent_by(report, one));
  if (one.passes() > 1)
    out += line(
        fmt::format("{} passes of {} rows each, for want of memory", one.passes(), one.pass.B));
  if (const std::string padding = padded_dims(one, report.request->model); !padding.empty())
    out += line(padding + "; MFU is by the model's own N");
  return out;
}

/// Returns the term in which `b` exceeds `a` most: "communication takes 1.2 ms more".
std::string loss(const Candidate& a, const Candidate& b) {
  const Seconds x = terms_of_estimate(a.seconds()), y = terms_of_estimate(b.seconds());
  std::array<std::pair<const char*, double>, 5> terms{
      {{"compute", y.compute - x.compute},
       {"memory", y.memory - x.memory},
       {"communication", y.communication - x.communication},
       {"hops", y.hops - x.hops},
       {"the time that a pass takes beside its work", 0.0}}};
  terms[4].second = (b.estimate - a.estimate) - (y.additive() - x.additive());
  const auto most = std::max_element(
      terms.begin(), terms.end(), [](const auto& p, const auto& q) { return p.second < q.second; });
  return most->second <= 0.0 ? "no term is longer"
                             : fmt::format("{}: {} more", most->first, seconds(most->second));
}

std::string why_lost(const PlanReport& report, std::size_t shown) {
  const std::vector<Choice>& choices = report.plan->choices;
  std::string out = shown > 1 ? "Why the next lost\n" : "";
  const Choice& best = choices[0];
  for (std::size_t i = 1; i < shown; ++i) {
    const Choice& other = choices[i];
    const double lost = report.request->goal == cost::Goal::latency ? other.latency - best.latency
                                                                    : other.cost - best.cost;
    std::string text = report.request->goal == cost::Goal::latency
                           ? fmt::format("{}: {} slower", i + 1, seconds(lost))
                           : fmt::format("{}: {:.3g} chip-seconds a token more", i + 1, lost);
    if (lost == 0.0) text = fmt::format("{}: no worse; the first of equals is taken", i + 1);
    if (best.prefill && other.prefill && !(best.prefill->strategy == other.prefill->strategy))
      text += fmt::format("; prefill: {}", loss(*best.prefill, *other.prefill));
    if (best.decode && other.decode && !(best.decode->strategy == other.decode->strategy))
      text += fmt::format("; decode: {}", loss(*best.decode, *other.decode));
    if (best.main().strategy == other.main().strategy && !best.prefill == !other.prefill &&
        (best.torus() != other.torus() || best.weights() != other.weights() ||
         best.batch() != other.batch()))
      text += fmt::format("; {}", loss(best.main(), other.main()));
    out += line(text);
  }
  return out;
}

/// Names the fastest option among those that do not fit in memory, if faster.
std::string faster_if_it_fitted(const PlanReport& report) {
  const cost::LeftOut* fastest = nullptr;
  const Candidate& best = report.plan->choices[0].main();
  for (const cost::LeftOut& one : report.plan->left_out)
    if (one.memory > 0.0 && one.phase == best.pass.phase && one.batch == best.batch &&
        one.torus == best.torus && one.weights == best.weights && one.estimate < best.estimate &&
        (fastest == nullptr || one.estimate < fastest->estimate))
      fastest = &one;
  return fastest == nullptr
             ? ""
             : line(fmt::format("{} would take {}, but needs {} a chip",
                                fastest->strategy.to_string(), seconds(fastest->estimate),
                                memory(fastest->memory)));
}

/// Compares the strategies' paper volumes with what the programs send.
std::string volumes_text(const PlanReport& report) {
  if (report.volumes.empty()) return "";
  constexpr std::size_t kShown = 6;
  const Candidate& chosen = report.plan->choices[0].main();
  const cost::VolumeOf& ahead = report.volumes.front();
  std::string out = fmt::format(
      "\nElements that a chip sends in a layer, {:.0f} tokens in one pass\n"
      "  {:<22}{:>12}{:>12}\n",
      chosen.tokens(), "strategy", "the paper's", "all");
  const cost::VolumeOf* own = nullptr;
  for (std::size_t i = 0; i < report.volumes.size(); ++i) {
    const cost::VolumeOf& of = report.volumes[i];
    if (of.strategy == chosen.strategy) own = &of;
    if (i < kShown || &of == own)
      out +=
          fmt::format("  {:<22}{:>12.3g}{:>12.3g}\n", of.strategy.to_string(), of.paper, of.full);
  }
  if (own != nullptr && own->full > ahead.full)
    out += wrapped(fmt::format("The paper's volumes choose {}. With the gated FFN, the projections "
                               "and (K-1)/K, {} is ahead: {:.3g} against {:.3g} elements.",
                               own->strategy.to_string(), ahead.strategy.to_string(), ahead.full,
                               own->full),
                   kWidth, "") +
           "\n";
  return out;
}

std::string left_out_text(const PlanReport& report) {
  std::string out = "Left out\n";
  std::map<std::string, std::size_t> seen;
  for (const cost::LeftOut& one : report.plan->left_out) {
    const std::string why =
        one.memory > 0.0 ? fmt::format("it needs {} a chip", memory(one.memory)) : one.why;
    out += line(fmt::format(
        "{} of {} rows by {} on {}, {}: {}", one.phase == Phase::decode ? "decode" : "prefill",
        one.batch, one.strategy.to_string(), one.torus.to_string(), to_string(one.weights), why));
  }
  return out;
}

nlohmann::json candidate_json(const PlanReport& report, const Candidate& one) {
  const Seconds s = one.seconds();
  nlohmann::json out{{"strategy", one.strategy.to_string()},
                     {"rows", one.pass.B},
                     {"passes", one.passes()},
                     {"heads", one.placed.H},
                     {"vocabulary", one.placed.V},
                     {by_paper(report) ? "overlapped" : "lower", one.lower},
                     {"estimate", one.estimate},
                     {"additive", one.additive},
                     {"compute", s.compute},
                     {"compute_needed", s.needed},
                     {"memory_seconds", s.memory},
                     {"communication", s.communication},
                     {"hops", s.hops},
                     {"mfu", utilization(report, one)},
                     {"cost", one.chip_seconds_per_token()},
                     {"layer_elements", one.layer_elements},
                     {"memory",
                      {{"weights", one.memory.weights},
                       {"other_weights", one.memory.other_weights},
                       {"caches", one.memory.caches},
                       {"live", one.memory.live},
                       {"total", one.memory.total()}}}};
  out[by_paper(report) ? "sent_in_full" : "sent"] = one.sent;
  if (by_paper(report)) out["sent_by_paper"] = sent_by_paper(one);
  return out;
}

}  // namespace

std::string plan_text(const PlanReport& report) {
  const std::size_t shown = std::min(report.top, report.plan->met);
  const Choice& best = report.plan->choices[0];
  std::string out = heading(report) + table_of(report, shown);
  if (best.prefill) out += details(report, *best.prefill);
  if (best.decode) out += details(report, *best.decode);
  if (best.beside)
    out += line(fmt::format("beside the weights of {} for the decode", best.beside->to_string()));
  out += why_lost(report, shown);
  out += faster_if_it_fitted(report);
  out += volumes_text(report);
  out += fmt::format("\n{}\n{}\n", proof_heading(report.request->model, "torus"),
                     proof_command(best, report.request->model, report.layouts_file));
  if (report.left_out) out += "\n" + left_out_text(report);
  return out;
}

nlohmann::json plan_json(const PlanReport& report) {
  nlohmann::json out{{"model", print_model(report.request->model)},
                     {"chip", report.request->chip.name},
                     {"parameters", report.plan->parameters},
                     {"considered", report.plan->choices.size()},
                     {"choices", nlohmann::json::array()}};
  add_estimate_notes(*report.request, out);
  const std::size_t shown = std::min(report.top, report.plan->met);
  for (std::size_t i = 0; i < shown; ++i) {
    const Choice& choice = report.plan->choices[i];
    nlohmann::json one{{"torus", choice.torus().to_string()},
                       {"weights", to_string(choice.weights())},
                       {"batch", choice.batch()},
                       {"latency", choice.latency},
                       {"cost", choice.cost}};
    if (choice.prefill) one["prefill"] = candidate_json(report, *choice.prefill);
    if (choice.decode) one["decode"] = candidate_json(report, *choice.decode);
    if (choice.beside) one["beside"] = choice.beside->to_string();
    out["choices"].push_back(std::move(one));
  }
  out["proof"] = proof_command(report.plan->choices[0], report.request->model, report.layouts_file);
  if (!report.volumes.empty()) {
    out["volumes"] = nlohmann::json::array();
    for (const cost::VolumeOf& of : report.volumes)
      out["volumes"].push_back({{"strategy", of.strategy.to_string()},
                                {"paper_elements", of.paper},
                                {"elements", of.full}});
  }
  if (report.left_out) {
    out["skipped"] = nlohmann::json::array();
    for (const cost::LeftOut& one : report.plan->left_out)
      out["skipped"].push_back({{"strategy", one.strategy.to_string()},
                                {"torus", one.torus.to_string()},
                                {"weights", to_string(one.weights)},
                                {"phase", one.phase == Phase::decode ? "decode" : "prefill"},
                                {"batch", one.batch},
                                {"reason", one.why}});
  }
  return out;
}

}  // namespace shardproof::tools
