#include <fmt/format.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "golden/corpus/corpus.h"
#include "golden/corpus/model.h"
#include "golden/corpus/not_equal.h"
#include "golden/zoo/zoo.h"
#include "tools/command/verbs.h"
#include "tools/text/json_text.h"
#include "tools/text/wrapped.h"
#include "tools/verbs/golden_zoo.h"
#include "weights/base/detail/replace_file.h"
#include "weights/base/detail/text_file.h"
#include "weights/storage/store.h"

namespace shardproof::tools {
namespace {

constexpr const char* kReleasedCorpus = "golden/v1";

struct GoldenFlags {
  std::optional<std::string> line, layouts, collectives, cases, weights;
  std::string out, folder;  // empty folder: the released corpus, as with --released
  bool json = false, quiet = false, released = false;
};

std::string cases_text(const std::string& path) {
  return read_text(path, {.unreadable = "corpus_open",
                          .no_text = "corpus_open",
                          .most = std::size_t{1} << 20,
                          .kind = "list of goldens"});
}

dump::Dump one_golden(const GoldenFlags& o) {
  if (o.layouts) return corpus::made_golden("layouts " + *o.layouts);
  if (o.collectives) return corpus::made_golden("collectives " + *o.collectives);
  if (!o.line)
    throw Error("flag_c7", "golden write needs one of --case, --layouts, --collectives, --list");
  if (!o.weights) return corpus::model_golden(parse_case(*o.line));
  const Weights weights = load_weights(*o.weights);
  return corpus::model_golden(parse_case(*o.line), &weights);
}

int write(const GoldenFlags& o) {
  if (o.weights && !o.line) throw Error("flag_c6", "--weights has an effect with --case only");
  if (o.cases) {
    std::int64_t goldens = 0, values = 0;
    corpus::write_corpus(cases_text(*o.cases), o.out,
                         [&](const corpus::Entry& entry, const corpus::CheckResult& made) {
                           fmt::print("{}: {} values\n", entry.id, made.values);
                           ++goldens;
                           values += made.values;
                         });
    fmt::print("{}: {} goldens, {} values\n", o.out, goldens, values);
    return 0;
  }
  require_replaceable(o.out, "golden_write");
  const dump::Dump golden = one_golden(o);
  corpus::save(golden, o.out);
  fmt::print("{}: {} values\n", o.out, golden.order.size());
  return 0;
}

/// A golden that this program's run does not reproduce is a failed check: exit code 1.
int write_or_say(const GoldenFlags& o) {
  try {
    return write(o);
  } catch (const corpus::NotEqual& found) {
    fmt::print("{}\n", wrapped(found.what(), kWidth, "  "));
    return 1;
  }
}

nlohmann::json as_json(const corpus::Entry& entry, const corpus::CheckResult& checked) {
  nlohmann::json out{{"id", entry.id},
                     {"golden", corpus::to_string(checked.kind)},
                     {"values", checked.values},
                     {"verdict", checked.fault.empty() ? "equal" : "different"}};
  if (!checked.fault.empty()) out["fault"] = checked.fault;
  return out;
}

/// Checks a single golden file.
int check_file(const GoldenFlags& o) {
  if (o.released)
    throw Error("flag_c6", fmt::format("--released is of a corpus, {} is a file", o.folder));
  const corpus::CheckResult checked = corpus::check(dump::read_dump(o.folder));
  if (o.json)
    fmt::print("{}\n", json_text(as_json({o.folder, ""}, checked)));
  else
    fmt::print("{}\n", wrapped(fmt::format("{}: {}", o.folder,
                                           checked.fault.empty()
                                               ? fmt::format("{} values equal", checked.values)
                                               : checked.fault),
                               kWidth, "  "));
  return checked.fault.empty() ? 0 : 1;
}

int check(GoldenFlags o) {
  if (o.folder.empty()) o.folder = kReleasedCorpus, o.released = true;
  std::error_code error;
  if (std::filesystem::is_regular_file(o.folder, error)) return check_file(o);
  if (zoo::is_zoo(o.folder)) return check_zoo_folder(o.folder, {o.json, o.quiet, o.released});
  nlohmann::json rows = nlohmann::json::array();
  corpus::CheckedCorpus found = corpus::check_corpus(
      o.folder, [&](const corpus::Entry& entry, const corpus::CheckResult& checked) {
        rows.push_back(as_json(entry, checked));
        if (o.json || (o.quiet && checked.fault.empty())) return;
        fmt::print("{:<32} {:<12} {:>6} values {}\n", entry.id, corpus::to_string(checked.kind),
                   checked.values, checked.fault.empty() ? "equal" : "different");
        if (!checked.fault.empty())
          fmt::print("{}\n", wrapped("  " + checked.fault, kWidth, "    "));
      });
  if (o.released && found.release == nullptr) found.fault = "it is not a released corpus";
  if (o.json) {
    nlohmann::json out{
        {"corpus", o.folder},     {"goldens", rows},
        {"equal", found.equal},   {"of", found.goldens},
        {"values", found.values}, {"verdict", found.exit_code() == 0 ? "equal" : "different"}};
    if (found.release != nullptr) out["version"] = found.release->version;
    if (!found.fault.empty()) out["fault"] = found.fault;
    fmt::print("{}\n", json_text(out));
    return found.exit_code();
  }
  fmt::print("{} of {} goldens equal, {} values; {}\n", found.equal, found.goldens, found.values,
             found.release != nullptr
                 ? fmt::format("released as version {}", found.release->version)
                 : "not a released corpus");
  if (!found.fault.empty()) fmt::print("{}: {}\n", o.folder, found.fault);
  return found.exit_code();
}

}  // namespace

void add_golden(CLI::App& app, Action& chosen) {
  CLI::App* verb = app.add_subcommand("golden", "Write goldens, and check the corpus of them");
  verb->require_subcommand(1);
  verb->footer(
      "A golden holds the inputs of an implementation and the results expected of it,\n"
      "for any language to read (docs/golden.md). `compare FILE --golden G.h5` judges\n"
      "by one.\n"
      "Example: shardproof golden check\n"
      "         shardproof golden write --layouts 4x2x3 --out g.h5");
  {
    auto options = std::make_shared<GoldenFlags>();
    CLI::App* one = verb->add_subcommand("write", "Write a golden, or a corpus of them");
    const std::vector<CLI::Option*> what{
        one->add_option("--case", options->line, "Every value of this case")->type_name("LINE"),
        one->add_option("--layouts", options->layouts, "The shards of every chip in every layout")
            ->type_name("TORUS"),
        one->add_option("--collectives", options->collectives,
                        "Collectives over every list of axes")
            ->type_name("TORUS"),
        one->add_option("--list", options->cases, "A corpus of the goldens that this file lists")
            ->type_name("FILE")};
    for (std::size_t i = 1; i < what.size(); ++i)
      for (std::size_t k = 0; k < i; ++k) what[i]->excludes(what[k]);
    one->add_option("--weights", options->weights, "With --case: a weights file")
        ->type_name("FILE");
    one->add_option("--out", options->out, "The golden; with --list a new folder")
        ->required()
        ->type_name("FILE");
    one->footer(
        "Each holds the unsharded model's values, and is written only if a sharded run\n"
        "of the case has every value equal.\n"
        "Example: shardproof golden write --out g.h5 \\\n"
        "           --case \"torus=2x2x2 prefill=ws2d:heads batch=8 prompt=4 gen=1\"");
    one->callback([&chosen, options] { chosen = [options] { return write_or_say(*options); }; });
  }
  auto options = std::make_shared<GoldenFlags>();
  CLI::App* two = verb->add_subcommand("check", "Make goldens anew and compare every bit");
  two->add_option("CORPUS", options->folder,
                  fmt::format("A corpus, a zoo, or one golden\n(default: {}, and --released)",
                              kReleasedCorpus))
      ->type_name("");
  two->add_flag("--released", options->released, "Fail unless it is a released corpus, unchanged");
  two->add_flag("--quiet", options->quiet, "Leave out the rows of goldens that are equal");
  two->add_flag("--json", options->json, "Print JSON (docs/json.md)");
  two->footer(
      "First the sha256 sum of every file; then each golden is made anew by the\n"
      "unsharded model, and run sharded by its own programs. Each faulty dump of a zoo\n"
      "(docs/zoo.md) is judged: first divergence and cause must be those listed.\n"
      "Exit codes: 0 all equal, 1 one is not, 2 bad input: also a file that has another\n"
      "sum, is missing, or is not listed.\n"
      "Example: shardproof golden check --released");
  two->callback([&chosen, options] { chosen = [options] { return check(*options); }; });
}

}  // namespace shardproof::tools
