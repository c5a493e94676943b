#include "tools/runner/text_report.h"

#include <fmt/format.h>

#include <string_view>
#include <utility>

#include "tools/text/wrapped.h"

namespace shardproof::tools {
namespace {

// Width of the widest shipped strategy, and of a row.
constexpr std::size_t kStrategyColumn = 20;
/// Truncates a name to its column, keeping the end, which distinguishes files.
std::string in_column(const std::string& name) {
  if (name.size() <= kStrategyColumn) return name;
  return "..." + name.substr(name.size() - kStrategyColumn + 3);
}

/// Returns the non-default settings without a column: "block=serial act=bf16".
std::string beyond_columns(const Case& c) {
  std::string text;
  const auto say = [&](std::string_view key, std::string_view value, std::string_view usual) {
    if (value != usual) text += fmt::format("{}{}={}", text.empty() ? "" : " ", key, value);
  };
  say("block", to_string(c.model.block), "parallel");
  say("weights", to_string(c.numerics.weights), "f32");
  say("act", to_string(c.numerics.act), "f32");
  say("regime", to_string(c.numerics.regime), "exact");
  if (c.numerics.regime == Regime::f32) say("schedule", to_string(c.numerics.schedule), "");
  say("loop", to_string(c.numerics.loop), "none");
  say("acc", to_string(c.numerics.acc), "f32");
  say("wire", to_string(c.numerics.wire), "f32");
  if (c.decode_torus) say("decode_torus", c.decode_torus->to_string(), "");
  say("lengths", c.lengths.to_string(), "");
  say("prefix", c.prefix.to_string(), "");
  if (c.chunk != c.prompt) say("chunk", std::to_string(c.chunk), "");
  if (c.pad_heads != 0) say("pad_heads", std::to_string(c.pad_heads), "");
  if (c.pad_vocab != 0) say("pad_vocab", std::to_string(c.pad_vocab), "");
  if (const std::string sampling = print_sampling(c.sampling); !sampling.empty())
    text += text.empty() ? sampling.substr(1) : sampling;
  return text;
}

}  // namespace

TextReport::TextReport(CaseSource source, std::int64_t cases, bool quiet)
    : source_(std::move(source)), cases_(cases), quiet_(quiet) {}

std::string TextReport::begin() {
  if (quiet_) return "";
  return fmt::format("{:>4} {:<6} {:<20} {:<20} {:>3} {:>2} {:>3} {:>4} {}\n", "case", "torus",
                     "prefill", "decode", "B", "L", "gen", "vals", "verdict");
}

/// Returns the lines above a row: the model, names too long for their column, and settings without
/// a column.
std::string TextReport::head_of(const Case& c) const {
  std::string head = fmt::format("     {}\n", print_model_of_case(c.model));
  const auto [prefill, decode] = source_.phases(c);
  for (const auto& [key, name] : {std::pair{"prefill", prefill}, {"decode", decode}})
    if (name.size() > kStrategyColumn) head += fmt::format("     {}={}\n", key, name);
  if (const std::string rest = beyond_columns(c); !rest.empty())
    head += fmt::format("     {}\n", rest);
  return head;
}

std::string TextReport::row(const Case& c, const Judgement& j, std::int64_t number) const {
  const auto [prefill, decode] = source_.phases(c);
  return fmt::format("{:>4} {:<6} {:<20} {:<20} {:>3} {:>2} {:>3} {:>4} {}\n", number,
                     c.torus.to_string(), in_column(prefill), in_column(decode), c.batch, c.prompt,
                     c.gen, j.tensors, to_string(j.verdict));
}

std::string TextReport::answered(const Case& c, const CaseAnswer& answered, const Tally& tally) {
  const Judgement& j = answered.judgement;
  const bool failed = j.verdict != Verdict::equal;
  if (quiet_ && !failed) return "";
  std::string text;
  if (std::string head = head_of(c); head != head_) {
    // These lines apply to all rows until different ones follow.
    text = head;
    head_ = std::move(head);
  }
  text += row(c, j, tally.cases());
  const std::string formulas = !j.reading.empty()       ? j.reading
                               : j.field && cases_ == 1 ? j.field->to_string()
                                                        : "";
  if (!formulas.empty()) text += fmt::format("     {}\n", wrapped(formulas, kWidth - 5, "     "));
  if (!failed) return text;
  text += fmt::format("     {}\n", j.explanation());
  if (const Finding* difference = j.difference(); difference != nullptr && difference->reach)
    text += fmt::format("     {}\n     the worst on {}\n", difference->reach->extent(),
                        difference->reach->worst());
  for (std::size_t i = 1; i < j.findings.size(); ++i)
    text += fmt::format("     {}\n", j.findings[i].to_string());
  return text + fmt::format("     reproduce: {}\n", source_.command(c));
}

std::string TextReport::totals(const Ending& ending) const {
  const Tally& tally = ending.tally;
  std::string text = fmt::format("{} values, {} elements judged in {:.1f} s\n", tally.tensors,
                                 tally.elements, ending.seconds);
  for (const auto& [note, of] : tally.notes)
    text += fmt::format(
        "note{}: {}\n",
        cases_ == 1 ? ""
                    : fmt::format(" on {} of {} cases, first on {}", of.size(), cases_, of.front()),
        note);
  if (tally.of_field > 0 && cases_ > 1)
    text +=
        wrapped(fmt::format("{} cases equal for all inputs, as formulas{}; a program with another "
                            "formula passes each with probability < 2^-{} over its seed "
                            "(docs/field.md)",
                            tally.of_field,
                            tally.of_these_ids > 0
                                ? fmt::format(" ({} for their ids only)", tally.of_these_ids)
                                : "",
                            tally.weakest->exponent()),
                kWidth, "") +
        "\n";
  if (tally.drifting == 1) text += tally.drift.to_string() + "\n";
  if (tally.drifting > 1)
    text += fmt::format("{} f32 cases, the worst of each: {}\n", tally.drifting,
                        tally.drift.to_string());
  if (tally.folded == 1) text += tally.from_plain.to_string() + "\n";
  if (tally.folded > 1)
    text += wrapped(fmt::format("{} base-2 cases, the worst of each: {}", tally.folded,
                                tally.from_plain.to_string()),
                    kWidth, "") +
            "\n";
  if (tally.bounded > 0)
    text += wrapped((tally.bounded == 1 ? "" : fmt::format("{} f32 cases, ", tally.bounded)) +
                        tally.bounds.to_string(),
                    kWidth, "") +
            "\n";
  return text;
}

std::string TextReport::end(const Ending& ending) {
  std::string text;
  if (ending.coverage != nullptr) text += ending.coverage->to_string();
  for (const std::string& why : ending.skipped) text += fmt::format("not legal: {}\n", why);
  text += fmt::format("{} case{}: {}\n", cases_, cases_ == 1 ? "" : "s", ending.tally.to_string());
  text += totals(ending);
  if (const std::string missing = ending.shortfall(); !missing.empty()) text += missing + "\n";
  if (ending.coverage != nullptr && !ending.least.empty())
    text += fmt::format("the first failure, shrunk: {}\n", ending.least);
  return text;
}

std::string TextReport::interrupted(const Ending& so_far, int signal) {
  return fmt::format("interrupted by {} after {} of {} cases: {}\n", signal_name(signal),
                     so_far.tally.cases(), cases_, so_far.tally.to_string()) +
         totals(so_far);
}

}  // namespace shardproof::tools
