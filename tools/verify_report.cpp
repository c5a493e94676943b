#include "tools/verify_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <utility>

#include "tools/crash_report.h"
#include "tools/json_text.h"
#include "weights/error.h"

namespace shardproof::tools {
namespace {

// The widest strategy that ships, and a row is 80 columns wide.
constexpr std::size_t kStrategyColumn = 20;

std::string heading() {
  return fmt::format("{:>4} {:<6} {:<20} {:<20} {:>3} {:>2} {:>3} {:>4} {}\n", "case", "torus",
                     "prefill", "decode", "B", "L", "gen", "vals", "verdict");
}

/// A name as its column shows it: of a long one the end, which tells files apart.
std::string in_column(const std::string& name) {
  if (name.size() <= kStrategyColumn) return name;
  return "..." + name.substr(name.size() - kStrategyColumn + 3);
}

std::string model_text(const Case& c) {
  ModelConfig shown = c.model;
  shown.block = parse_model(shown.preset).block;
  return print_model(shown);
}

/// What the table has no column for, where it is not the default: "block=serial act=bf16".
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
  if (c.chunk != c.prompt) say("chunk", std::to_string(c.chunk), "");
  return text;
}

std::string signal_name(int signal) {
  switch (signal) {
    case SIGINT:
      return "SIGINT";
    case SIGTERM:
      return "SIGTERM";
    case SIGHUP:
      return "SIGHUP";
    default:
      return fmt::format("signal {}", signal);
  }
}

nlohmann::json as_json(const Difference& d) {
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

void VerifyReport::Totals::add(const Judgement& j) {
  switch (j.verdict) {
    case Verdict::equal:
      ++equal;
      break;
    case Verdict::different:
      ++different;
      break;
    case Verdict::not_judged:
      ++not_judged;
      break;
    case Verdict::refused:
      ++refused;
      break;
  }
  tensors += j.tensors;
  elements += j.elements;
}

std::string VerifyReport::Totals::to_string() const {
  return fmt::format("{} equal, {} different, {} not judged, {} refused", equal, different,
                     not_judged, refused);
}

VerifyReport::VerifyReport(Options options, std::int64_t cases)
    : options_(std::move(options)), cases_(cases), progress_(cases, "cases") {
  if (!options_.json && !options_.quiet) fmt::print("{}", heading());
}

double VerifyReport::seconds() const {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin_).count();
}

/// How a row names prefill and decode: a strategy, a program's file, or nothing where there is
/// none.
std::pair<std::string, std::string> VerifyReport::phases(const Case& c) const {
  const std::string* prefill = options_.files.of_prefill();
  const std::string* decode = options_.files.of_decode();
  if (decode == nullptr && prefill != nullptr && c.gen == 1) return {*prefill, "-"};
  return {prefill != nullptr ? *prefill : c.prefill.to_string(),
          decode != nullptr ? *decode : c.decode.to_string()};
}

/// The lines above a row: the model, names too long for their column, and what has no column.
std::string VerifyReport::head_of(const Case& c) const {
  std::string head = fmt::format("     {}\n", model_text(c));
  const auto [prefill, decode] = phases(c);
  for (const auto& [key, name] : {std::pair{"prefill", prefill}, {"decode", decode}})
    if (name.size() > kStrategyColumn) head += fmt::format("     {}={}\n", key, name);
  if (const std::string rest = beyond_columns(c); !rest.empty())
    head += fmt::format("     {}\n", rest);
  return head;
}

std::string VerifyReport::row(const Case& c, const Judgement& j) const {
  const auto [prefill, decode] = phases(c);
  return fmt::format("{:>4} {:<6} {:<20} {:<20} {:>3} {:>2} {:>3} {:>4} {}\n", totals_.cases(),
                     c.torus.to_string(), in_column(prefill), in_column(decode), c.batch, c.prompt,
                     c.gen, j.tensors, to_string(j.verdict));
}

std::string VerifyReport::command(const Case& c) const {
  std::string text = "shardproof verify" + options_.files.words();
  if (!options_.weights.empty()) text += " --weights " + shell_word(options_.weights);
  return text + fmt::format(" --case \"{}\"", print_case(c));
}

nlohmann::json VerifyReport::as_json(const Case& c, const Answered& answered) const {
  const Judgement& j = answered.judgement;
  nlohmann::json out{{"case", print_case(c)},
                     {"verdict", to_string(j.verdict)},
                     {"tensors", j.tensors},
                     {"elements", j.elements},
                     {"seconds", answered.seconds}};
  const LayerFiles& files = options_.files;
  for (const auto& [member, file] : {std::pair{"layouts", &files.layouts},
                                     {"program", &files.program},
                                     {"program_prefill", &files.program_prefill},
                                     {"program_decode", &files.program_decode}})
    if (*file) out[member] = **file;
  if (j.drift)
    out["drift"] = {{"relative", j.drift->relative},
                    {"equal_tokens", j.drift->equal_tokens},
                    {"tokens", j.drift->tokens}};
  if (!j.notes.empty()) out["notes"] = j.notes;
  if (j.verdict == Verdict::equal) return out;
  if (j.difference) out["difference"] = tools::as_json(*j.difference);
  if (!j.detector.empty()) out["detector"] = j.detector;
  if (!j.reason.empty()) out["reason"] = j.reason;
  out["reproduce"] = command(c);
  return out;
}

void VerifyReport::print_row(const Case& c, const Judgement& j) {
  const bool failed = j.verdict != Verdict::equal;
  if (options_.quiet && !failed) return;
  if (std::string head = head_of(c); head != head_) {
    // Rows stand under the lines above them until others follow.
    fmt::print("{}", head);
    head_ = std::move(head);
  }
  fmt::print("{}", row(c, j));
  if (failed) {
    fmt::print("     {}\n", j.explanation());
    if (j.difference && j.difference->reach)
      fmt::print("     {}\n     the worst on {}\n", j.difference->reach->extent(),
                 j.difference->reach->worst());
    fmt::print("     reproduce: {}\n", command(c));
  }
  std::fflush(stdout);
}

void VerifyReport::add(const Case& c, const Answered& answered) {
  const std::lock_guard lock(mutex_);
  if (closed_) return;
  const Judgement& j = answered.judgement;
  totals_.add(j);
  progress_.step();
  if (j.drift) {
    drift_.add(*j.drift);
    ++drifting_;
  }
  if (j.verdict != Verdict::equal && !first_failed_) first_failed_.emplace(c, j.verdict);
  for (const std::string& note : j.notes) notes_[note].push_back(totals_.cases());
  if (options_.json) {
    results_.push_back(as_json(c, answered));
    return;
  }
  const auto hidden = progress_.hide();
  print_row(c, j);
}

nlohmann::json VerifyReport::totals_json() {
  return {{"cases", std::move(results_)},
          {"totals",
           {{"equal", totals_.equal},
            {"different", totals_.different},
            {"not_judged", totals_.not_judged},
            {"refused", totals_.refused},
            {"tensors", totals_.tensors},
            {"elements", totals_.elements},
            {"seconds", seconds()}}}};
}

void VerifyReport::print_totals() const {
  fmt::print("{} tensors, {} elements judged in {:.1f} s\n", totals_.tensors, totals_.elements,
             seconds());
  for (const auto& [note, of] : notes_)
    fmt::print("note{}: {}\n",
               cases_ == 1
                   ? ""
                   : fmt::format(" on {} of {} cases, first on {}", of.size(), cases_, of.front()),
               note);
  if (drifting_ == 1) fmt::print("{}\n", drift_.to_string());
  if (drifting_ > 1)
    fmt::print("{} f32 cases, the worst of each: {}\n", drifting_, drift_.to_string());
}

/// Of a random case that failed, the smallest that fails alike; of any other the case itself.
std::string VerifyReport::smallest_failure() const {
  if (!first_failed_) return "";
  const auto& [failed, verdict] = *first_failed_;
  if (!options_.random) return command(failed);
  OracleMemo memo;
  const auto fails = [&, wanted = verdict](const Case& c) {
    const Running running(command(c));
    try {
      return verify_case(c, memo).verdict == wanted;
    } catch (const Error&) {
      return false;
    }
  };
  return command(cases::shrink(failed, fails));
}

int VerifyReport::finish(const cases::Coverage& coverage, const std::vector<std::string>& skipped) {
  const std::string least = smallest_failure();
  const std::lock_guard lock(mutex_);
  if (closed_) return 1;
  closed_ = true;
  const auto hidden = progress_.hide();
  print_all(coverage, skipped, least);
  // While no interrupt can come between: main's own flush would be too late for one.
  std::fflush(stdout);
  return first_failed_ || !shortfall(coverage).empty() ? 1 : 0;
}

std::string VerifyReport::shortfall(const cases::Coverage& coverage) const {
  return options_.random ? coverage.shortfall() : "";
}

void VerifyReport::print_all(const cases::Coverage& coverage,
                             const std::vector<std::string>& skipped, const std::string& least) {
  const std::string lazy = shortfall(coverage);
  if (options_.json) {
    nlohmann::json out = totals_json();
    out["held"] = !first_failed_ && lazy.empty();
    if (!least.empty()) out["reproduce"] = least;
    if (!lazy.empty()) out["coverage"] = lazy;
    if (!skipped.empty()) out["skipped"] = skipped;
    fmt::print("{}\n", json_text(out));
    return;
  }
  if (options_.random) fmt::print("{}", coverage.to_string());
  for (const std::string& why : skipped) fmt::print("not legal: {}\n", why);
  fmt::print("{} case{}: {}\n", cases_, cases_ == 1 ? "" : "s", totals_.to_string());
  print_totals();
  if (!lazy.empty()) fmt::print("{}\n", lazy);
  if (options_.random && !least.empty()) fmt::print("the first failure, made small: {}\n", least);
}

void VerifyReport::interrupted(int signal) {
  const std::lock_guard lock(mutex_);
  if (closed_) {  // all is printed, but perhaps not yet written
    std::fflush(stdout);
    return;
  }
  closed_ = true;
  const auto hidden = progress_.hide();
  if (options_.json) {
    nlohmann::json out = totals_json();
    out["held"] = false;
    out["interrupted"] = signal_name(signal);
    fmt::print("{}\n", json_text(out));
  } else {
    fmt::print("interrupted by {} after {} of {} cases: {}\n", signal_name(signal), totals_.cases(),
               cases_, totals_.to_string());
    print_totals();
  }
  std::fflush(stdout);
}

}  // namespace shardproof::tools
