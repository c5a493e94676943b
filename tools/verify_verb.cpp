#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <nlohmann/json.hpp>
#include <optional>

#include "golden/cases.h"
#include "golden/trace.h"
#include "golden/verify.h"
#include "tools/case_flags.h"
#include "tools/json_text.h"
#include "tools/layer_flag.h"
#include "tools/output_file.h"
#include "tools/verbs.h"
#include "weights/error.h"
#include "weights/generator.h"

namespace shardproof::tools {
namespace {

struct Options {
  CaseFlags flags;
  std::optional<std::string> line;
  std::optional<std::string> program;
  std::shared_ptr<const GivenLayer> layer;
  std::optional<std::int64_t> cases;
  int threads = 0;
  bool json = false;
  std::optional<std::string> trace;
};

struct Totals {
  std::int64_t equal = 0, different = 0, not_judged = 0, tensors = 0, elements = 0;

  std::int64_t cases() const { return equal + different + not_judged; }
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
  /// `common` goes for each case; an observer or a layer of its own only for one case alone.
  Batch(const std::vector<Case>& cases, VerifyOptions common, int threads)
      : cases_(cases), common_(std::move(common)), threads_(threads), judgements_(cases.size()) {}

  template <class Done>
  void run(Done&& done) {
    const bool alone = cases_.size() == 1;
    Threads pool(alone ? 1 : threads_);
    std::mutex mutex;
    std::size_t next = 0;
    pool.for_each(static_cast<std::int64_t>(cases_.size()), [&](std::int64_t i) {
      const auto at = static_cast<std::size_t>(i);
      VerifyOptions options = common_;
      options.threads = alone ? threads_ : 1;
      options.at_once = alone ? 1 : threads_;
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
  VerifyOptions common_;
  int threads_;
  OracleMemo memo_;
  std::vector<std::optional<Judgement>> judgements_;
};

std::string heading() {
  return fmt::format("{:>4} {:<7} {:<15} {:<13}{:<13}{:>3} {:>2} {:>3} {:>4}  {}\n", "case",
                     "torus", "model", "prefill", "decode", "B", "L", "gen", "vals", "verdict");
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

/// A model too long for its column stands on a line of its own, so that the row still fits.
/// `file` is a layer program that stands for both strategies, if it is not empty.
std::string row(std::size_t i, const Case& c, const Judgement& j, const std::string& file) {
  constexpr std::size_t kModelColumn = 15;
  ModelConfig shown = c.model;
  shown.block = parse_model(shown.preset).block;
  std::string model = print_model(shown);
  std::string above;
  if (model.size() > kModelColumn) {
    above = fmt::format("     {}\n", model);
    model = c.model.preset + ",...";
  }
  if (const std::string rest = beyond_columns(c); !rest.empty())
    above += fmt::format("     {}\n", rest);
  std::string strategies = fmt::format("{:<13}{:<13}", c.prefill.to_string(), c.decode.to_string());
  if (!file.empty()) {
    constexpr std::size_t kColumns = 25;
    const std::string end =
        file.size() > kColumns ? "..." + file.substr(file.size() - kColumns + 3) : file;
    strategies = fmt::format("{:<26}", end);
  }
  return above + fmt::format("{:>4} {:<7} {:<15} {}{:>3} {:>2} {:>3} {:>4}  {}\n", i + 1,
                             c.torus.to_string(), model, strategies, c.batch, c.prompt, c.gen,
                             j.tensors, to_string(j.verdict));
}

/// A file's name as a shell reads it back.
std::string shell_word(const std::string& text) {
  const auto plain = [](unsigned char c) {
    return std::isalnum(c) != 0 ||
           std::string_view("/._-+=:,@").find(static_cast<char>(c)) != std::string_view::npos;
  };
  if (std::all_of(text.begin(), text.end(), plain)) return text;
  std::string quoted = "'";
  for (char c : text) quoted += c == '\'' ? "'\\''" : std::string(1, c);
  return quoted + "'";
}

nlohmann::json as_json(const Case& c, const Judgement& j) {
  nlohmann::json out{{"case", print_case(c)},
                     {"verdict", to_string(j.verdict)},
                     {"tensors", j.tensors},
                     {"elements", j.elements}};
  if (j.drift)
    out["drift"] = {{"relative", j.drift->relative},
                    {"equal_tokens", j.drift->equal_tokens},
                    {"tokens", j.drift->tokens}};
  if (j.difference) {
    const Difference& d = *j.difference;
    out["difference"] = {{"pass", d.pass},         {"checkpoint", d.checkpoint},
                         {"step", d.step},         {"op", d.op},
                         {"chip", d.chip},         {"index", d.index},
                         {"expected", d.expected}, {"actual", d.actual}};
    if (!d.where.empty()) out["difference"]["where"] = d.where.substr(0, d.where.size() - 2);
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
      const Case c = flags.parse(fmt::format("torus={} prefill={}{}", torus, s.to_string(),
                                             flags.has("gen") ? "" : " gen=3"));
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

/// What is printed of a verification, as it goes on and at its end.
class Report {
 public:
  Report(const Options& options, std::int64_t cases)
      : options_(options), cases_(cases), table_(!options.json && !options.cases) {
    progress_ = !table_ && !options.json && isatty(STDERR_FILENO) != 0;
    if (table_) fmt::print("{}", heading());
  }

  void add(const Case& c, const Judgement& j) {
    const auto i = static_cast<std::size_t>(totals_.cases());
    totals_.add(j);
    if (j.drift) {
      drift_.add(*j.drift);
      ++drifting_;
    }
    const bool failed = j.verdict != Verdict::equal;
    if (failed && !first_failed_) first_failed_ = c;
    if (options_.json) {
      results_.push_back(as_json(c, j));
      if (options_.program) {
        results_.back()["case"] = print_without_strategies(c);
        results_.back()["program"] = *options_.program;
      }
    }
    if (table_ || (!options_.json && failed)) {
      fmt::print("{}", row(i, c, j, options_.program.value_or("")));
      if (failed) fmt::print("     {}\n", j.explanation());
      std::fflush(stdout);
    }
    const bool last = totals_.cases() == cases_;
    if (progress_ && (i % 16 == 15 || last))
      fmt::print(stderr, "\r{} of {} cases{}", i + 1, cases_, last ? "\n" : "");
  }

  /// Prints the totals; the exit code.
  int finish(const cases::Coverage& coverage, const std::vector<std::string>& skipped) {
    const double seconds =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - begin_).count();
    const std::string lazy = options_.cases ? coverage.shortfall() : "";
    const std::string line = reproduction();
    const bool held = !first_failed_ && lazy.empty();
    if (options_.json) {
      nlohmann::json out{{"cases", std::move(results_)},
                         {"totals",
                          {{"equal", totals_.equal},
                           {"different", totals_.different},
                           {"not_judged", totals_.not_judged},
                           {"tensors", totals_.tensors},
                           {"elements", totals_.elements},
                           {"seconds", seconds}}},
                         {"held", held}};
      if (!line.empty()) out["reproduce"] = line;
      if (!lazy.empty()) out["coverage"] = lazy;
      if (!skipped.empty()) out["skipped"] = skipped;
      fmt::print("{}\n", json_text(out));
      return held ? 0 : 1;
    }
    if (options_.cases) fmt::print("{}", coverage.to_string());
    for (const std::string& why : skipped) fmt::print("not legal: {}\n", why);
    fmt::print("{} case{}: {} equal, {} different, {} not judged\n", cases_, cases_ == 1 ? "" : "s",
               totals_.equal, totals_.different, totals_.not_judged);
    fmt::print("{} tensors, {} elements judged in {:.1f} s\n", totals_.tensors, totals_.elements,
               seconds);
    if (drifting_ == 1) fmt::print("{}\n", drift_.to_string());
    if (drifting_ > 1)
      fmt::print("{} f32 cases, the worst of each: {}\n", drifting_, drift_.to_string());
    if (!lazy.empty()) fmt::print("{}\n", lazy);
    if (!line.empty()) fmt::print("reproduce: {}\n", line);
    return held ? 0 : 1;
  }

 private:
  /// The command that shows the first failure again; of a random case, shrunk.
  std::string reproduction() const {
    if (!first_failed_) return "";
    if (options_.program)
      return fmt::format("shardproof verify --program {}{} --case \"{}\"",
                         shell_word(*options_.program),
                         options_.flags.weights_file().empty()
                             ? ""
                             : " --weights " + shell_word(options_.flags.weights_file()),
                         print_without_strategies(*first_failed_));
    OracleMemo memo;
    const auto fails = [&](const Case& c) {
      return verify_case(c, memo).verdict != Verdict::equal;
    };
    const Case least = options_.cases ? cases::shrink(*first_failed_, fails) : *first_failed_;
    const std::string file = options_.flags.weights_file();
    return fmt::format("shardproof verify {}--case \"{}\"",
                       file.empty() ? "" : fmt::format("--weights {} ", shell_word(file)),
                       print_case(least));
  }

  const Options& options_;
  std::int64_t cases_;
  bool table_, progress_;
  std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
  Totals totals_;
  Drift drift_;  // of all f32 cases
  std::int64_t drifting_ = 0;
  nlohmann::json results_ = nlohmann::json::array();
  std::optional<Case> first_failed_;
};

/// The trace of the one case that is verified, if one is asked for.
std::unique_ptr<Trace> trace_of(const Options& o, const std::vector<Case>& list) {
  if (!o.trace) return nullptr;
  if (o.cases || list.size() != 1)
    throw Error("verify_c4", "--trace is of one case: give --case LINE or a case's flags");
  const Case& c = list[0];
  return std::make_unique<Trace>(
      c, generate_prompt(c.model, c.seed, c.batch, c.prompt), *o.trace,
      Trace::Source{o.flags.weights() != nullptr, o.layer ? &o.layer->program : nullptr});
}

int verify_random(const Options& o, int threads) {
  if (*o.cases < 1 || *o.cases > 10'000'000)
    throw Error("verify_c2", fmt::format("--cases {}: from 1 to 10000000", *o.cases));
  if (o.line || o.program || o.flags.given_besides("seed"))
    throw Error("verify_c3", "--cases draws its own cases: give it --seed only");
  const std::uint64_t seed = o.flags.parse().seed;
  constexpr std::int64_t kAtOnce = 1000;
  Report report(o, *o.cases);
  cases::Coverage coverage;
  for (std::int64_t begin = 0; begin < *o.cases; begin += kAtOnce) {
    std::vector<Case> list;
    for (std::int64_t i = begin; i < std::min(begin + kAtOnce, *o.cases); ++i) {
      list.push_back(cases::draw(seed, static_cast<std::uint64_t>(i)));
      coverage.add(list.back());
    }
    Batch(list, {}, threads).run([&](std::size_t i, const Judgement& j) {
      report.add(list[i], j);
    });
  }
  return report.finish(coverage, {});
}

int verify(Options& o) {
  o.flags.load();
  require_not_input({"--trace", o.trace.value_or("")},
                    {{"--program", o.program.value_or("")}, {"--weights", o.flags.weights_file()}});
  const int threads = thread_count(o.threads);
  if (o.cases) {
    trace_of(o, {});
    return verify_random(o, threads);
  }
  std::vector<Case> list;
  std::vector<std::string> skipped;
  const Weights* weights = o.flags.weights();
  if (o.program) {
    o.layer = load_given_layer(*o.program, o.flags, o.line.value_or(""));
    list = {o.layer->c};
  } else if (!o.line && weights != nullptr && !o.flags.has("torus") && !o.flags.has("prefill")) {
    list = cases_for(o.flags, skipped);
  } else if (o.line || o.flags.given()) {
    list = {o.flags.parse(o.line.value_or(""))};
    require_legal(list[0]);
  } else {
    list = cases::standard_matrix();
  }
  const Program* layer = o.layer ? &o.layer->program : nullptr;
  if (layer != nullptr) {
    validate(list[0].model);
    Inference inference = list[0].inference();
    inference.layer = layer;
    require_legal(inference, list[0].batch, list[0].prompt);
    check(build_programs(inference), inference, list[0].batch, list[0].prompt);
  }
  for (const Case& c : list) require_memory(c, list.size() == 1 ? 1 : threads, layer);
  const std::unique_ptr<Trace> trace = trace_of(o, list);
  VerifyOptions common;
  common.weights = weights;
  common.observer = trace.get();
  common.layer = layer;
  Report report(o, static_cast<std::int64_t>(list.size()));
  Batch(list, common, threads).run([&](std::size_t i, const Judgement& j) {
    if (trace) trace->write(j.difference ? j.explanation() : "complete");
    report.add(list[i], j);
  });
  return report.finish({}, skipped);
}

}  // namespace

void add_verify(CLI::App& app, Action& chosen) {
  auto options = std::make_shared<Options>();
  CLI::App* verb = app.add_subcommand("verify", "Prove layouts equal to the unsharded oracle");
  verb->add_option("--case", options->line, "A whole case line, \"torus=4x2x3 model=...\"")
      ->type_name("LINE")
      ->check([](const std::string& line) {
        return line.find_first_not_of(' ') == std::string::npos ? "the line is empty" : "";
      });
  verb->add_option("--program", options->program, "A layer program (docs/program.md) to judge")
      ->type_name("FILE");
  verb->add_option("--cases", options->cases, "Draw N random cases from --seed")->type_name("N");
  verb->add_option("--threads", options->threads, "Threads; 0 for all cores [0]")->type_name("N");
  verb->add_flag("--json", options->json, "Print JSON");
  verb->add_option("--trace", options->trace,
                   "Write every op's output to an HDF5 file,\n"
                   "chip by chip and as a whole, up to the\n"
                   "first that is wrong; one case only")
      ->type_name("FILE");
  options->flags.add_to(*verb);
  verb->footer(
      "Without arguments the standard matrix runs: every strategy, multihead and\n"
      "multiquery, on eight tori. A case flag runs that one case.\n"
      "Example: shardproof verify --torus 4x2x3 --prefill wg-xyz:batch\n"
      "         shardproof verify --case \"torus=4x2x3 prefill=ws1d gen=4\"\n"
      "         shardproof verify --cases 500 --seed 1\n"
      "         shardproof verify --torus 1x2x3 --trace t.h5\n"
      "         shardproof verify --program p.txt --torus 2x2x3\n"
      "--program judges a layer of your own as prefill and decode; by default\n"
      "torus=4x2x3 model=palm-tiny prompt=4 gen=3 and the smallest legal batch.");
  verb->callback([&chosen, options] { chosen = [options] { return verify(*options); }; });
}

}  // namespace shardproof::tools
