#include <fmt/format.h>
#include <fmt/ranges.h>

#include <bit>
#include <nlohmann/json.hpp>
#include <numeric>
#include <optional>

#include "engine/run/inference.h"
#include "golden/observers.h"
#include "golden/trace/trace.h"
#include "golden/verify.h"
#include "tools/case_flags.h"
#include "tools/command_line.h"
#include "tools/layer_files.h"
#include "tools/output_file.h"
#include "tools/prompt_file.h"
#include "tools/runner/json_text.h"
#include "tools/runner/progress.h"
#include "tools/verbs.h"
#include "weights/error.h"
#include "weights/generator.h"
#include "weights/registry.h"

namespace shardproof::tools {
namespace {

struct Options {
  CaseFlags flags;
  std::optional<std::string> line;
  LayerFiles files;
  std::optional<std::string> prompt_file, prompt_ids;
  int threads = 0;
  bool json = false;
  bool checkpoints = false;
  std::optional<std::string> trace;
};

/// Rows of token 0 below the prompt's, which keep the batch legal and are never shown.
IntTensor padded(const IntTensor& ids, std::int64_t batch) {
  IntTensor wide = ids;
  wide.shape[0] = batch;
  wide.data.resize(static_cast<std::size_t>(element_count(wide.shape)), 0);
  return wide;
}

/// Every checkpoint of the run, assembled from the chips' shards, cut to the first `rows` rows.
class Collector : public Observer {
 public:
  explicit Collector(std::int64_t rows) : rows_(rows) {}

  void observe(const Scope& scope, const Program&, const Op* op, const ValueDecl& declared,
               const Sharded& value) override {
    const Role& m = declared.role;
    const ValueRow* const row = value_row(m);
    if (op == nullptr || m.kind != Role::Kind::checkpoint || row == nullptr ||
        row->kind != ValueKind::checkpoint || value.layout().is_partial() ||
        (m.last && !row->last_rows))
      return;
    std::string id = checkpoint_id(scope.pass, scope.layer, m.name);
    if (m.last) id = "last " + id;
    if (found_.contains(id)) return;
    if (row->integer)
      found_[id] = hex(assemble_int(value));
    else
      found_[id] = hex(assemble(value));
  }

  nlohmann::json take() { return std::move(found_); }

 private:
  template <class T>
  nlohmann::json hex(const Array<T>& tensor) const {
    Shape shape = tensor.shape;
    const std::int64_t kept = element_count(shape) / shape[0] * rows_;
    shape[0] = rows_;
    std::string bits;
    for (std::int64_t i = 0; i < kept; ++i) {
      const auto word = std::bit_cast<std::uint32_t>(tensor.data[static_cast<std::size_t>(i)]);
      for (int byte = 0; byte < 4; ++byte) bits += fmt::format("{:02x}", word >> (8 * byte) & 0xFF);
    }
    return {{"shape", shape}, {"bits", bits}};
  }

  std::int64_t rows_;
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

 private:
  Progress progress_;
  std::string pass_;  // that runs
};

nlohmann::json rows_json(const IntTensor& ids, std::int64_t rows) {
  nlohmann::json out = nlohmann::json::array();
  const std::int64_t width = ids.shape[1];
  for (std::int64_t r = 0; r < rows; ++r)
    out.push_back(std::vector<std::int32_t>(ids.data.begin() + r * width,
                                            ids.data.begin() + (r + 1) * width));
  return out;
}

/// A layer program has the defaults that `verify` has for it.
Case case_of(Options& o, const std::string& line) {
  if (o.files.of_prefill() != nullptr || o.files.of_decode() != nullptr)
    return load_given_case(o.files, o.flags, line);
  name_phases(o.files, o.flags, line);
  return o.flags.parse(line);
}

int run_case(Options& o) {
  if (o.checkpoints && !o.json) throw Error("run_c1", "--checkpoints needs --json");
  o.flags.load();
  require_not_input({"--trace", o.trace.value_or("")},
                    {{"--prompt-file", o.prompt_file.value_or("")},
                     {"--prompt-ids", o.prompt_ids.value_or("")},
                     {"--program", o.files.program.value_or("")},
                     {"--program-prefill", o.files.program_prefill.value_or("")},
                     {"--program-decode", o.files.program_decode.value_or("")},
                     {"--layouts", o.files.layouts.value_or("")},
                     {"--weights", o.flags.weights_file()}});
  const std::string line = o.line.value_or("");
  Case c = case_of(o, line);
  if (c.numerics.regime == Regime::field)
    throw Error("run_c5", "regime=field makes no tokens: give it to `shardproof verify`");
  IntTensor prompt;
  const bool given = o.prompt_file || o.prompt_ids;
  if (given) {
    if (o.prompt_file && o.prompt_ids)
      throw Error("run_c4", "--prompt-file and --prompt-ids are a prompt each; leave one out");
    if (o.flags.has("prompt", line))
      throw Error("run_c2", fmt::format("prompt is a length; --prompt-{} has its own",
                                        o.prompt_file ? "file" : "ids"));
    if (o.flags.has("seed", line) && o.flags.weights() != nullptr)
      throw Error(
          "flag_c6",
          "a seed has no effect where weights and prompt come from files, leave it out (see "
          "shardproof run --help)");
    std::optional<std::int64_t> most;
    if (o.flags.has("batch", line)) most = c.batch;
    prompt = o.prompt_file ? read_prompt(*o.prompt_file, PromptText::bytes, c.model, most)
                           : read_prompt(*o.prompt_ids, PromptText::ids, c.model, most);
    c.prompt = prompt.shape[1];
    if (!o.flags.has("chunk", line)) c.chunk = c.prompt;
    if (!most) {
      const std::int64_t unit =
          std::lcm(smallest_batch(c.prefill, c.torus), smallest_batch(c.decode, c.torus));
      c.batch = (prompt.shape[0] + unit - 1) / unit * unit;
    }
  }
  const TypedPlan typed = make_typed_plan(c);
  if (!typed.types) check(typed.plan);  // throws what is wrong
  require_memory(typed);
  if (!given) prompt = generate_prompt(c.model, c.seed, c.batch, c.prompt);
  const std::int64_t rows = prompt.shape[0];

  std::optional<Weights> generated_weights;
  const Weights& weights = o.flags.weights() != nullptr
                               ? *o.flags.weights()
                               : generated_weights.emplace(generate_weights(c.model, c.seed));
  Threads threads(thread_count(o.threads));
  Collector collector(rows);
  const IntTensor ids = padded(prompt, c.batch);
  std::optional<Trace> trace;
  if (o.trace) trace.emplace(typed, *o.trace, o.flags.weights() != nullptr);
  std::optional<PassCounter> progress(std::in_place, typed.plan.passes.size());
  std::vector<Observer*> watching{&*progress};
  if (trace) watching.push_back(&*trace);
  if (o.checkpoints) watching.push_back(&collector);
  Observers observers(watching);
  const IntTensor generated = run_inference(typed.plan, weights, ids, threads, &observers);
  if (trace) trace->write("complete");
  progress.reset();
  if (!o.json) {
    for (std::int64_t r = 0; r < rows; ++r)
      fmt::print("{}\n", fmt::join(generated.data.begin() + r * c.gen,
                                   generated.data.begin() + (r + 1) * c.gen, " "));
    return 0;
  }
  nlohmann::json out{{"case", print_case(c)},
                     {"chunk", c.chunk},
                     {"prompt", rows_json(prompt, rows)},
                     {"generated", rows_json(generated, rows)}};
  for (const auto& [member, file] : o.files.members()) out[member] = file;
  if (o.checkpoints) out["checkpoints"] = collector.take();
  fmt::print("{}\n", json_text(out));
  return 0;
}

}  // namespace

void add_run(CLI::App& app, Action& chosen) {
  auto options = std::make_shared<Options>();
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
  add_number(*verb, "--threads", options->threads, "Threads; 0 for all cores [0]");
  verb->add_flag("--json", options->json, "Print JSON (docs/json.md)");
  verb->add_flag("--checkpoints", options->checkpoints,
                 "With --json: the bits of every checkpoint");
  verb->add_option("--trace", options->trace,
                   "Write every op's output to an HDF5 file,\n"
                   "chip by chip and as a whole")
      ->type_name("FILE");
  verb->footer(strategies_text() +
               "Prints the generated token ids, one row a line. --seed makes weights and\n"
               "prompt; with a weights file the prompt only. Rows are padded to a batch that\n"
               "the strategies can shard.\n"
               "Example: shardproof run --prefill wg-xyz:batch --decode ws2d:batch \\\n"
               "           --torus 2x2x2 --prompt-file prompts.txt --gen 8\n"
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
