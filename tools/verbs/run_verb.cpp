#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <bit>
#include <charconv>
#include <nlohmann/json.hpp>
#include <numeric>
#include <optional>

#include "engine/run/case_weights.h"
#include "engine/run/inference.h"
#include "engine/run/memory.h"
#include "golden/compare/case_padding.h"
#include "golden/trace/write/trace.h"
#include "golden/verify/observers.h"
#include "golden/verify/verify.h"
#include "tools/command/case_flags.h"
#include "tools/command/command_line.h"
#include "tools/command/layer_files.h"
#include "tools/command/output_file.h"
#include "tools/command/prompt_file.h"
#include "tools/command/verbs.h"
#include "tools/runner/progress.h"
#include "tools/text/json_text.h"
#include "weights/base/detail/words.h"
#include "weights/base/error.h"
#include "weights/base/memory.h"
#include "weights/model/registry.h"
#include "weights/storage/generator.h"

namespace shardproof::tools {
namespace {

struct RunFlags {
  CaseFlags flags;
  std::optional<std::string> line;
  LayerFiles files;
  std::optional<std::string> prompt_file, prompt_ids, prefix_file, rows;
  std::optional<std::int32_t> stop;
  int threads = 0;
  bool json = false;
  bool checkpoints = false;
  std::optional<std::string> trace;
};

/// Returns the line numbers that --rows lists, in its order.
std::vector<std::int64_t> lines_of(const std::string& text, std::int64_t lines) {
  std::vector<std::int64_t> rows;
  for (const std::string_view word : split(text, ",")) {
    std::int64_t line = -1;
    const char* const end = word.data() + word.size();
    const auto [at, error] = std::from_chars(word.data(), end, line);
    if (word.empty() || error != std::errc() || at != end)
      throw Error("run_c7",
                  fmt::format("--rows {}: '{}' is not a line number; write 0-based lines of "
                              "the file with commas, 3,0,7",
                              text, word));
    if (line < 0 || line >= lines)
      throw Error("run_c7",
                  fmt::format("--rows {}: the file has no line {}, its lines are 0 to {}; the "
                              "nearest legal: {}",
                              text, line, lines - 1, line < 0 ? 0 : lines - 1));
    if (std::find(rows.begin(), rows.end(), line) != rows.end())
      throw Error("run_c7",
                  fmt::format("--rows {}: line {} is named twice; legal: each once", text, line));
    rows.push_back(line);
  }
  return rows;
}

/// Collects every checkpoint of the run, assembled from the chips' shards, without padding of its
/// dims, cut to the first `rows` rows; for passes over prefixes, to the prefixes of these rows.
class Collector : public Observer {
 public:
  Collector(std::int64_t rows, const Case& c)
      : rows_(rows),
        prefixes_(c.prefix.given() ? c.prefix.of_row(rows - 1, c.batch) + 1 : 0),
        model_(c.model),
        padding_(dim_padding(c)) {}

  void observe(const Scope& scope, const Program&, const Op* op, const ValueDecl& declared,
               const Sharded& value) override {
    const Role& m = declared.role;
    const ValueRow* const row = value_row(m, scope.rows);
    if (op == nullptr || m.kind != Role::Kind::checkpoint || row == nullptr ||
        row->kind != ValueKind::checkpoint || value.layout().is_partial() ||
        (m.last && !row->last_rows))
      return;
    std::string id = checkpoint_id(scope.pass, scope.layer, m.name, scope.rows);
    if (m.last) id = "last " + id;
    if (found_.contains(id)) return;
    const std::int64_t rows = scope.pass.starts_with("prefix.") ? prefixes_ : rows_;
    const std::size_t batch = whole_letters(declared.layout).find('B');
    if (row->integer)
      found_[id] = hex(own(assemble_int(value), declared.layout), batch, rows);
    else
      found_[id] = hex(own(assemble(value), declared.layout), batch, rows);
  }

  bool reads_partials() const override { return false; }

  nlohmann::json take() { return std::move(found_); }

 private:
  template <class T>
  Array<T> own(Array<T> tensor, const Layout& layout) const {
    const std::string letters = whole_letters(layout);
    // Merges a split head dim where padded heads are removed.
    if (const std::size_t S = letters.find('H');
        padding_.pads('H') && letters.size() < tensor.shape.size()) {
      tensor.shape[S] *= tensor.shape[S + 1];
      tensor.shape.erase(tensor.shape.begin() + static_cast<std::ptrdiff_t>(S) + 1);
    }
    if (padding_.none() || letters.size() != tensor.shape.size()) return tensor;
    Shape shape = tensor.shape;
    for (std::size_t d = 0; d < shape.size(); ++d)
      if (padding_.pads(letters[d])) shape[d] = shape_of({&letters[d], 1}, model_)[0];
    tensor.data = without_padding(tensor.data, shape, tensor.shape);
    tensor.shape = shape;
    return tensor;
  }

  /// Returns the first rows along dim `batch`; of a value without one (npos) all.
  template <class T>
  static nlohmann::json hex(const Array<T>& tensor, std::size_t batch, std::int64_t rows) {
    Shape shape = tensor.shape;
    std::int64_t each = 1, all = element_count(shape);  // elements of a row, of all rows
    if (batch < shape.size()) {
      for (std::size_t d = batch + 1; d < shape.size(); ++d) each *= shape[d];
      all = shape[batch] * each;
      shape[batch] = std::min(shape[batch], rows);
    }
    std::string bits;
    for (std::int64_t i = 0; i < std::ssize(tensor.data); ++i) {
      if (batch < shape.size() && i % all >= shape[batch] * each) continue;
      const auto word = std::bit_cast<std::uint32_t>(tensor.data[static_cast<std::size_t>(i)]);
      for (int byte = 0; byte < 4; ++byte) bits += fmt::format("{:02x}", word >> (8 * byte) & 0xFF);
    }
    return {{"shape", shape}, {"bits", bits}};
  }

  std::int64_t rows_, prefixes_;
  ModelConfig model_;
  DimPadding padding_;
  nlohmann::json found_ = nlohmann::json::object();
};

/// Shows how many passes of the run are done.
class PassCounter : public Observer {
 public:
  explicit PassCounter(std::int64_t passes) : progress_(passes, "passes") {}

  void observe(const Scope& scope, const Program&, const Op*, const ValueDecl&,
               const Sharded&) override {
    if (!pass_.empty() && scope.pass != pass_) progress_.step();
    pass_ = scope.pass;
  }
  bool reads_partials() const override { return false; }

 private:
  Progress progress_;
  std::string pass_;  // running pass
};

using Rows = std::vector<std::vector<std::int32_t>>;

/// Returns the first tokens of each row, lengths[row] of them.
Rows rows_of(const IntTensor& ids, const std::vector<std::int64_t>& lengths) {
  Rows rows;
  auto from = ids.data.begin();
  for (const std::int64_t length : lengths) {
    rows.emplace_back(from, from + length);
    from += ids.shape[1];
  }
  return rows;
}

/// Returns the tokens generated by the first `count` rows of a batch, each up to its end.
Rows rows_of(const IntTensor& generated, std::int64_t count) {
  std::vector<std::int64_t> lengths;
  for (auto from = generated.data.begin(); std::ssize(lengths) < count; from += generated.shape[1])
    lengths.push_back(std::find(from, from + generated.shape[1], kNoToken) - from);
  return rows_of(generated, lengths);
}

/// Returns the case; a layer program has the same defaults as in `verify`.
Case case_of(RunFlags& o, const std::string& line) {
  if (o.files.of_prefill() != nullptr || o.files.of_decode() != nullptr)
    return load_given_case(o.files, o.flags, line);
  name_phases(o.files, o.flags, line);
  return o.flags.parse(line);
}

/// Reads the prompt of a file, after the prefixes of another if given, and sets the case to its
/// rows. Rows added to make the batch legal consist of token 0, are as long as the longest, and are
/// never shown. `row_ids` receives the lines that --rows lists.
PromptRows read_rows(const RunFlags& o, const std::string& line, Case& c,
                     std::vector<std::int64_t>& row_ids) {
  if (o.prompt_file && o.prompt_ids)
    throw Error("run_c4", "--prompt-file and --prompt-ids are a prompt each; leave one out");
  for (const auto& [key, says] :
       {std::pair{"prompt", "prompt is a length"}, {"lengths", "lengths are the rows'"}})
    if (o.flags.has(key, line))
      throw Error("run_c2",
                  fmt::format("{}; --prompt-{} has its own", says, o.prompt_file ? "file" : "ids"));
  if (o.flags.has("prefix", line))
    throw Error("run_c2",
                fmt::format("prefix={} is a size; prefixes of the lines of --prompt-{} are the "
                            "lines of --prefix-file",
                            c.prefix.to_string(), o.prompt_file ? "file" : "ids"));
  if (o.flags.has("seed", line) && o.flags.weights() != nullptr &&
      c.sampling.sample == Sample::greedy)
    throw Error("flag_c6",
                "a seed has no effect where weights and prompt come from files, leave it out (see "
                "shardproof run --help)");
  std::optional<std::int64_t> most;
  if (o.flags.has("batch", line) && !o.rows) most = c.batch;
  const PromptText text = o.prompt_file ? PromptText::bytes : PromptText::ids;
  PromptRows prompt =
      read_prompt(o.prompt_file ? *o.prompt_file : *o.prompt_ids, text, c.model, most);
  if (o.prefix_file) {
    const PromptRows prefixes = read_prefixes(*o.prefix_file, text, c.model);
    if (prefixes.lengths.size() > prompt.lengths.size())
      throw Error("run_c8",
                  fmt::format("{} has {} prefixes for a prompt of {} lines, each of which goes on "
                              "from one; nearest legal: {}",
                              *o.prefix_file, prefixes.lengths.size(), prompt.lengths.size(),
                              prompt.lengths.size()));
    prompt.go_on_from(prefixes);
  }
  if (o.rows) {
    row_ids = lines_of(*o.rows, std::ssize(prompt.lengths));
    prompt = prompt.chosen(row_ids);
    if (o.flags.has("batch", line) && c.batch < std::ssize(row_ids))
      throw Error("run_c3", fmt::format("batch={} is less than the {} rows of --rows; the nearest "
                                        "legal: batch={}",
                                        c.batch, row_ids.size(), row_ids.size()));
  }
  c.prompt = prompt.longest();
  if (!o.flags.has("chunk", line)) c.chunk = c.prompt;
  if (!o.flags.has("batch", line)) {
    const std::int64_t unit = std::lcm(smallest_batch(c.prefill, c.torus),
                                       smallest_batch(c.decode, c.torus_of(Phase::decode)));
    c.batch = (std::ssize(prompt.lengths) + unit - 1) / unit * unit;
  }
  c.prefix = prompt.prefix(c.batch);
  if (!prompt.equal()) {
    c.lengths.cycle = prompt.lengths;
    c.lengths.cycle.resize(static_cast<std::size_t>(c.batch), c.prompt);
  }
  return prompt;
}

int run_case(RunFlags& o) {
  if (o.checkpoints && !o.json) throw Error("run_c1", "--checkpoints needs --json");
  o.flags.load();
  require_not_input({"--trace", o.trace.value_or("")},
                    {{"--prompt-file", o.prompt_file.value_or("")},
                     {"--prompt-ids", o.prompt_ids.value_or("")},
                     {"--prefix-file", o.prefix_file.value_or("")},
                     {"--program", o.files.program.value_or("")},
                     {"--program-prefill", o.files.program_prefill.value_or("")},
                     {"--program-decode", o.files.program_decode.value_or("")},
                     {"--layouts", o.files.layouts.value_or("")},
                     {"--weights", o.flags.weights_file()}});
  const std::string line = o.line.value_or("");
  Case c = case_of(o, line);
  if (c.numerics.regime == Regime::field)
    throw Error("run_c5", "regime=field makes no tokens: give it to `shardproof verify`");
  if (o.stop && (*o.stop < 0 || *o.stop >= c.model.V))
    throw Error("run_c6",
                fmt::format("--stop {}: the vocabulary has V={}, ids from 0 to {}; "
                            "nearest legal: {}",
                            *o.stop, c.model.V, c.model.V - 1, *o.stop < 0 ? 0 : c.model.V - 1));
  std::optional<PromptRows> given;
  std::vector<std::int64_t> row_ids;
  if (o.prompt_file || o.prompt_ids) given = read_rows(o, line, c, row_ids);
  if (o.prefix_file && !given)
    throw Error("run_c8",
                "--prefix-file has prefixes of the lines of --prompt-file or --prompt-ids; give "
                "one of them");
  if (o.rows && !given)
    throw Error("run_c7", "--rows names lines of --prompt-file or --prompt-ids; give one of them");
  TypedPlan typed = make_typed_plan(c);
  typed.plan.row_ids = row_ids;
  if (!row_ids.empty()) typed.plan.row_ids.resize(static_cast<std::size_t>(c.batch), -1);
  if (!typed.types) check(typed.plan);  // throws the finding
  if (typed.types)
    require_memory(cost::estimated_bytes(typed.plan, *typed.types, Replicas::shared,
                                         o.checkpoints ? cost::Holding::run_and_answer
                                         : o.trace     ? cost::Holding::traced_run
                                                       : cost::Holding::run));
  const IntTensor prompt = given ? given->padded(c.batch)
                                 : generate_prompt(c.model, c.seed, c.batch, c.prompt, c.prefix);
  const std::vector<std::int64_t> lengths =
      given ? given->lengths
            : lengths_of_rows(c.lengths, c.seed, c.batch, c.prompt, c.prefix.length);
  const std::int64_t rows = std::ssize(lengths);

  std::optional<Weights> made;
  const Weights& weights =
      o.flags.weights() != nullptr ? *o.flags.weights() : made.emplace(generated_weights(c));
  Threads threads(thread_count(o.threads));
  Collector collector(rows, c);
  std::optional<Trace> trace;
  if (o.trace) trace.emplace(typed, *o.trace, o.flags.weights() != nullptr);
  std::optional<PassCounter> progress(std::in_place, typed.plan.passes.size());
  std::vector<Observer*> watching{&*progress};
  if (trace) watching.push_back(&*trace);
  if (o.checkpoints) watching.push_back(&collector);
  Observers observers(watching);
  std::optional<Stop> stop;
  if (o.stop) stop = Stop{*o.stop, rows};
  const Rows generated = rows_of(run_inference(typed.plan, weights, prompt, threads, &observers, {},
                                               {}, nullptr, nullptr, stop),
                                 rows);
  if (trace) trace->write("complete");
  progress.reset();
  if (!o.json) {
    for (const std::vector<std::int32_t>& row : generated) fmt::print("{}\n", fmt::join(row, " "));
    return 0;
  }
  nlohmann::json out{{"case", print_case(c)},
                     {"chunk", c.chunk},
                     {"prompt", rows_of(prompt, lengths)},
                     {"generated", generated}};
  if (o.stop) out["stop"] = *o.stop;
  if (o.rows) out["rows"] = row_ids;
  if (o.prefix_file) out["prefix_of"] = given->prefix_of;
  for (const auto& [member, file] : o.files.members()) out[member] = file;
  if (o.checkpoints) out["checkpoints"] = collector.take();
  fmt::print("{}\n", json_text(out));
  return 0;
}

}  // namespace

void add_run(CLI::App& app, Action& chosen) {
  auto options = std::make_shared<RunFlags>();
  CLI::App* verb = app.add_subcommand("run", "Generate tokens on the simulated chips");
  verb->add_option("--case", options->line,
                   "A whole case line, "
                   "\"torus=4x2x3 model=...\"; case\nflags say what it leaves out")
      ->type_name("LINE");
  options->files.add_to(*verb, true);
  options->flags.add_to(*verb);
  verb->add_option("--prompt-file", options->prompt_file,
                   "Text, a row a line, bytes as token ids; at\n"
                   "most 16 MiB [a generated prompt]")
      ->type_name("FILE");
  verb->add_option("--prompt-ids", options->prompt_ids,
                   "Token ids instead, a row a line, decimal\n"
                   "with spaces between them")
      ->type_name("FILE");
  verb->add_option("--prefix-file", options->prefix_file,
                   "Prefixes that the prompt's lines go on from, a\n"
                   "prefix a line, all as long; prefilled once")
      ->type_name("FILE");
  verb->add_option("--rows", options->rows,
                   "These lines of the prompt's file alone, from\n"
                   "0 and in this order: 3,0,7")
      ->type_name("LINES");
  CLI::Option* stop =
      add_number(*verb, "--stop", options->stop, "A token id at which a row ends, printed last");
  add_number(*verb, "--threads", options->threads, "Threads; 0 for all cores [0]");
  verb->add_flag("--json", options->json, "Print JSON (docs/json.md)");
  verb->add_flag("--checkpoints", options->checkpoints,
                 "With --json: the bits of every checkpoint");
  verb->add_option("--trace", options->trace,
                   "Write every op's output to an HDF5 file,\n"
                   "chip by chip and as a whole")
      ->type_name("FILE")
      ->excludes(stop);
  verb->footer(strategies_text() +
               "Prints the generated token ids, one row a line. --seed makes weights, prompt\n"
               "and the random numbers of sampling; with a weights file not the weights. Rows\n"
               "may be of any length; rows that are not shown are added, up to a batch that\n"
               "the strategies can shard. With N lines in --prefix-file, read as the prompt's\n"
               "are, line i of the prompt's R goes on from line iN/R of it, rounded down, under\n"
               "--rows, too. Of a batch with rows added, or with lines out of order, a prefix\n"
               "may be prefilled again for rows that are not beside the others.\n"
               "Example: shardproof run --prefill wg-xyz:batch --decode ws2d:batch \\\n"
               "           --torus 2x2x2 --prompt-file prompts.txt --gen 8 --stop 10\n"
               "         shardproof run --prompt-file prompts.txt --top-p 0.9 --rows 3,0,7\n"
               "         shardproof run --prompt-file prompts.txt --prefix-file prefixes.txt\n"
               "         shardproof run --case \"torus=1x2x3 prefill=ws1d\" --seed 4\n"
               "         shardproof run --weights w.h5 --weights bf16 --torus 2x2x2\n"
               "         shardproof run --json --checkpoints --torus 1x2x3 > run.json\n"
               "         shardproof run --torus 1x2x3 --prefill wg-xyz:batch --trace t.h5\n"
               "         shardproof run --program p.txt --torus 2x2x3 --trace t.h5\n"
               "A layer program is run as it is, with the defaults of `verify`: what it yields\n"
               "is judged there, and by `compare` in the trace.");
  verb->callback([&chosen, options] { chosen = [options] { return run_case(*options); }; });
}

}  // namespace shardproof::tools
