#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <nlohmann/json.hpp>

#include "golden/cases.h"
#include "golden/verify.h"
#include "tools/case_flags.h"
#include "tools/verbs.h"
#include "weights/error.h"

namespace shardproof::tools {
namespace {

struct Options {
  CaseFlags flags;
  std::string line;
  std::int64_t cases = 0;
  int threads = 0;
  bool json = false;
};

struct Totals {
  std::int64_t equal = 0, different = 0, not_judged = 0, tensors = 0, elements = 0;

  void add(const Judgement& j) {
    ++(j.verdict == Verdict::equal       ? equal
       : j.verdict == Verdict::different ? different
                                         : not_judged);
    tensors += j.tensors;
    elements += j.elements;
  }
};

/// Runs cases, several at once when there are several, and hands each judgement over in order.
class Batch {
 public:
  Batch(const std::vector<Case>& cases, const Weights* weights, int threads)
      : cases_(cases), weights_(weights), threads_(threads), judgements_(cases.size()) {}

  template <class Done>
  void run(Done&& done) {
    const bool alone = cases_.size() == 1;
    Threads pool(alone ? 1 : threads_);
    std::mutex mutex;
    std::size_t next = 0;
    pool.for_each(static_cast<std::int64_t>(cases_.size()), [&](std::int64_t i) {
      const auto at = static_cast<std::size_t>(i);
      VerifyOptions options;
      options.threads = alone ? threads_ : 1;
      options.weights = weights_;
      Judgement judgement = verify_case(cases_[at], memo_, options);
      const std::lock_guard lock(mutex);
      judgements_[at] = std::move(judgement);
      while (next < cases_.size() && judgements_[next]) {
        done(next, *judgements_[next]);
        ++next;
      }
    });
  }

 private:
  const std::vector<Case>& cases_;
  const Weights* weights_;
  int threads_;
  OracleMemo memo_;
  std::vector<std::optional<Judgement>> judgements_;
};

std::string heading() {
  return fmt::format("{:>4} {:<7} {:<15} {:<13}{:<13}{:>3} {:>2} {:>3} {:>4}  {}\n", "case",
                     "torus", "model", "prefill", "decode", "B", "L", "gen", "vals", "verdict");
}

/// A model too long for its column stands on a line of its own, so that the row still fits.
std::string row(std::size_t i, const Case& c, const Judgement& j) {
  constexpr std::size_t kModelColumn = 15;
  std::string model = print_model(c.model);
  std::string above;
  if (model.size() > kModelColumn) {
    above = fmt::format("     {}\n", model);
    model = c.model.preset + ",...";
  }
  return above + fmt::format("{:>4} {:<7} {:<15} {:<13}{:<13}{:>3} {:>2} {:>3} {:>4}  {}\n", i + 1,
                             c.torus.to_string(), model, c.prefill.to_string(),
                             c.decode.to_string(), c.batch, c.prompt, c.gen, j.tensors,
                             to_string(j.verdict));
}

nlohmann::json as_json(const Case& c, const Judgement& j) {
  nlohmann::json out{{"case", print_case(c)},
                     {"verdict", to_string(j.verdict)},
                     {"tensors", j.tensors},
                     {"elements", j.elements}};
  if (j.difference) {
    const Difference& d = *j.difference;
    out["difference"] = {{"pass", d.pass},         {"checkpoint", d.checkpoint},
                         {"step", d.step},         {"op", d.op},
                         {"chip", d.chip},         {"index", d.index},
                         {"expected", d.expected}, {"actual", d.actual}};
  } else if (j.verdict != Verdict::equal) {
    out["reason"] = j.reason;
  }
  return out;
}

/// The cases a weights file is verified on: every strategy on the standard tori its model divides.
std::vector<Case> cases_for(const CaseFlags& flags, std::vector<std::string>& skipped) {
  std::vector<Case> all;
  for (const char* torus : {"1x1x1", "2x2x2", "4x2x3", "3x2x2", "2x3x1", "1x4x2"})
    for (const Strategy& s : all_strategies()) {
      const std::string line = fmt::format("torus={} prefill={} gen=3", torus, s.to_string());
      Case c = flags.parse(line);
      try {
        require_legal(c);
        all.push_back(c);
      } catch (const Error& error) {
        skipped.push_back(fmt::format("{} on {}: {}", s.to_string(), torus, error.what()));
      }
    }
  if (all.empty())
    throw Error("verify_c1",
                "no strategy is legal for this model on any standard torus; " + skipped[0]);
  return all;
}

int verify(Options& o) {
  o.flags.load();
  const int threads = thread_count(o.threads);
  if (o.cases < 0 || o.cases > 10'000'000)
    throw Error("verify_c2", fmt::format("--cases {}: from 1 to 10000000", o.cases));
  std::vector<Case> list;
  std::vector<std::string> skipped;
  cases::Coverage coverage;
  const bool single = !o.line.empty() || (o.cases == 0 && o.flags.given());
  if (o.cases > 0) {
    if (!o.line.empty() || o.flags.given_besides("seed"))
      throw Error("verify_c3", "--cases draws its own cases: give it --seed only");
    const std::uint64_t seed = o.flags.parse().seed;
    for (std::int64_t i = 0; i < o.cases; ++i) {
      list.push_back(cases::draw(seed, static_cast<std::uint64_t>(i)));
      coverage.add(list.back());
    }
  } else if (o.line.empty() && o.flags.weights() != nullptr && !o.flags.has("torus") &&
             !o.flags.has("prefill")) {
    list = cases_for(o.flags, skipped);
  } else if (single) {
    list = {o.flags.parse(o.line)};
    require_legal(list[0]);
    require_memory(list[0]);
  } else {
    list = cases::standard_matrix();
  }

  const bool table = !o.json && o.cases == 0;
  const bool progress = o.cases > 0 && !o.json && isatty(STDERR_FILENO) != 0;
  if (table) fmt::print("{}", heading());
  const auto begin = std::chrono::steady_clock::now();
  Totals totals;
  nlohmann::json results = nlohmann::json::array();
  std::vector<std::size_t> failed;
  Batch batch(list, o.flags.weights(), threads);
  batch.run([&](std::size_t i, const Judgement& j) {
    totals.add(j);
    if (o.json) results.push_back(as_json(list[i], j));
    if (table || (!o.json && j.verdict != Verdict::equal)) {
      fmt::print("{}", row(i, list[i], j));
      if (j.verdict != Verdict::equal) fmt::print("     {}\n", j.explanation());
      std::fflush(stdout);
    }
    if (j.verdict != Verdict::equal) failed.push_back(i);
    if (progress && (i % 16 == 15 || i + 1 == list.size()))
      fmt::print(stderr, "\r{} of {} cases{}", i + 1, list.size(),
                 i + 1 == list.size() ? "\n" : "");
  });
  const double seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();

  const std::string lazy = o.cases > 0 ? coverage.shortfall() : "";
  std::string reproduce;
  if (!failed.empty()) {
    const Case& first = list[failed[0]];
    OracleMemo memo;
    const auto fails = [&](const Case& c) {
      return verify_case(c, memo).verdict != Verdict::equal;
    };
    const Case least = o.cases > 0 ? cases::shrink(first, fails) : first;
    reproduce = fmt::format("shardproof verify --case \"{}\"", print_case(least));
  }
  const bool held = failed.empty() && lazy.empty();
  if (o.json) {
    nlohmann::json out{{"cases", std::move(results)},
                       {"totals",
                        {{"equal", totals.equal},
                         {"different", totals.different},
                         {"not_judged", totals.not_judged},
                         {"tensors", totals.tensors},
                         {"elements", totals.elements},
                         {"seconds", seconds}}},
                       {"held", held}};
    if (!reproduce.empty()) out["reproduce"] = reproduce;
    if (!lazy.empty()) out["coverage"] = lazy;
    if (!skipped.empty()) out["skipped"] = skipped;
    fmt::print("{}\n", out.dump(1));
    return held ? 0 : 1;
  }
  if (o.cases > 0) fmt::print("{}", coverage.to_string());
  for (const std::string& why : skipped) fmt::print("not legal: {}\n", why);
  fmt::print("{} case{}: {} equal, {} different, {} not judged\n", list.size(),
             list.size() == 1 ? "" : "s", totals.equal, totals.different, totals.not_judged);
  fmt::print("{} tensors, {} elements judged in {:.1f} s\n", totals.tensors, totals.elements,
             seconds);
  if (!lazy.empty()) fmt::print("{}\n", lazy);
  if (!reproduce.empty()) fmt::print("reproduce: {}\n", reproduce);
  return held ? 0 : 1;
}

}  // namespace

void add_verify(CLI::App& app, Action& chosen) {
  auto options = std::make_shared<Options>();
  CLI::App* verb = app.add_subcommand("verify", "Prove layouts equal to the unsharded oracle");
  verb->add_option("--case", options->line, "A whole case line, \"torus=4x2x3 model=...\"")
      ->type_name("LINE");
  verb->add_option("--cases", options->cases, "Draw N random cases from --seed")->type_name("N");
  verb->add_option("--threads", options->threads, "Threads; 0 for all cores [0]")->type_name("N");
  verb->add_flag("--json", options->json, "Print JSON");
  options->flags.add_to(*verb);
  verb->footer(
      "Without arguments the standard matrix runs: every strategy, multihead and\n"
      "multiquery, on seven tori. A case flag runs that one case.\n"
      "Example: shardproof verify --torus 4x2x3 --prefill wg-xyz:batch\n"
      "         shardproof verify --case \"torus=4x2x3 prefill=ws1d gen=4\"\n"
      "         shardproof verify --cases 500 --seed 1");
  verb->callback([&chosen, options] { chosen = [options] { return verify(*options); }; });
}

}  // namespace shardproof::tools
