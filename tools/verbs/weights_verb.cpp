#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "engine/ops/int8_weights.h"
#include "golden/verify/verify.h"
#include "tools/command/output_file.h"
#include "tools/command/verbs.h"
#include "tools/text/json_text.h"
#include "weights/base/detail/replace_file.h"
#include "weights/base/error.h"
#include "weights/base/memory.h"
#include "weights/maps/load_model.h"
#include "weights/model/registry.h"
#include "weights/storage/fold.h"
#include "weights/storage/generator.h"
#include "weights/storage/import_weights.h"
#include "weights/storage/store.h"

namespace shardproof::tools {
namespace {

struct WeightsFlags {
  std::string model = "palm-tiny";
  std::string seed = "1";
  std::string out, file, map, config;
  bool json = false;
};

void save(const Weights& weights, const std::string& path) {
  save_weights(weights, path);
  std::int64_t elements = 0;
  const std::vector<std::string> names = weights.names();
  for (const std::string& name : names) elements += element_count(weights.shape(name));
  fmt::print("{}: {} tensors, {} elements of {}{}\n", path, names.size(), elements,
             print_model(weights.config()),
             weights.stored_type() == NumberFormat::int8 ? ", int8 weights" : "");
}

int generate(const WeightsFlags& o) {
  const ModelConfig model = read_model(o.model);
  if (o.seed.find_first_of(" \t\r\n") != std::string::npos)
    throw Error("case_c0", fmt::format("--seed '{}': a value has no spaces", o.seed));
  const std::uint64_t seed = parse_case("seed=" + o.seed).seed;
  require_replaceable(o.out, "weights_write");
  require_memory(bytes_in_memory(weight_specs(model)), "the weights need about",
                 "a smaller model fits");
  const Weights weights = generate_weights(model, seed);
  save(weights, o.out);
  return 0;
}

/// Writes the weights that a map finds in a checkpoint.
int import_checkpoint(const WeightsFlags& o) {
  require_replaceable(o.out, "weights_write");
  const ImportedWeights found = import_weights({o.model, o.map, o.file, o.config});
  save(found.weights, o.out);
  if (!found.unread.empty())
    fmt::print("not read, of the checkpoint's {} tensors: {}\n", found.tensors, found.unread);
  return 0;
}

/// Throws Error("case_model", ...) if the weights are those of a model's text.
void require_keys(const Weights& weights, std::string_view what) {
  Case c;
  c.model = weights.config();
  shardproof::require_keys(c, what);
}

int quantize(const WeightsFlags& o) {
  require_not_input({"OUT", o.out}, {{"IN", o.file}});
  require_replaceable(o.out, "weights_write");
  const Weights weights = load_weights(o.file);
  if (weights.stored_type() == NumberFormat::int8)
    throw Error("weights_int8", fmt::format("{} holds int8 weights already; legal: a file of f32 "
                                            "weights, version {}",
                                            o.file, weights_format(NumberFormat::f32)));
  // The tensors before and after; in addition one matrix's shard, its codes and their assembly,
  // with another shard of a parallel block's output, or later the image of the file.
  double bytes = 0.0;
  double largest = 0.0;
  double image = 0.0;
  for (const WeightSpec& spec : weight_specs(weights.config(), NumberFormat::int8)) {
    const auto count = static_cast<double>(element_count(spec.shape));
    bytes += 8.0 * count;
    largest = std::max(largest, count);
    image += (spec.int8 ? 1.0 : 4.0) * count;
  }
  require_memory(bytes + std::max(16.0 * largest, image),
                 "the weights, their codes and the file need about",
                 "a file of a smaller model fits");
  save(int8_weights(weights), o.out);
  return 0;
}

int fold_file(const WeightsFlags& o) {
  require_not_input({"OUT", o.out}, {{"IN", o.file}});
  require_replaceable(o.out, "weights_write");
  const Weights weights = load_weights(o.file);
  require_keys(weights, "weights fold");
  // The tensors before and after.
  require_memory(2.0 * bytes_in_memory(weight_specs(weights.config(), weights.stored_type())),
                 "the weights and what they are folded to need about",
                 "a file of a smaller model fits");
  save(fold(weights), o.out);
  return 0;
}

int inspect(const WeightsFlags& o) {
  const Weights weights = load_weights(o.file);
  const int version = weights_format(weights.stored_type());
  const std::vector<WeightSpec> specs = weight_specs(weights.config(), weights.stored_type());
  std::size_t widest = 0;
  for (const WeightSpec& spec : specs) widest = std::max(widest, spec.name.size());
  nlohmann::json out{{"file", o.file},
                     {"version", version},
                     {"model", print_model(weights.config())},
                     {"tensors", nlohmann::json::array()}};
  if (!o.json) {
    fmt::print("{}: format {}, {}\n", o.file, version, print_model(weights.config()));
    fmt::print("{:<{}}  {:<5}{:<5}{:<12}{:>11}{:>11}{:>11}\n", "tensor", widest, "dims", "type",
               "shape", "min", "max", "rms");
  }
  for (const WeightSpec& spec : specs) {
    const NumberFormat type = spec.int8 && weights.stored_type() == NumberFormat::int8
                                  ? NumberFormat::int8
                                  : NumberFormat::f32;
    const std::shared_ptr<const Tensor> weight = weights.at(spec.name);
    const Tensor& t = *weight;
    double least = t.data[0], most = t.data[0], squares = 0.0;
    for (float v : t.data) {
      least = std::min(least, static_cast<double>(v));
      most = std::max(most, static_cast<double>(v));
      squares += static_cast<double>(v) * static_cast<double>(v);
    }
    const double rms = std::sqrt(squares / static_cast<double>(t.data.size()));
    if (o.json)
      out["tensors"].push_back({{"name", spec.name},
                                {"dims", spec.dims},
                                {"type", to_string(type)},
                                {"shape", t.shape},
                                {"min", least},
                                {"max", most},
                                {"rms", rms}});
    else
      fmt::print("{:<{}}  {:<5}{:<5}{:<12}{:>11.4g}{:>11.4g}{:>11.4g}\n", spec.name, widest,
                 spec.dims, to_string(type), fmt::format("{}", fmt::join(t.shape, "x")), least,
                 most, rms);
  }
  if (o.json) fmt::print("{}\n", json_text(out));
  return 0;
}

}  // namespace

void add_weights(CLI::App& app, Action& chosen) {
  auto options = std::make_shared<WeightsFlags>();
  CLI::App* verb = app.add_subcommand("weights", "Make weights files and look into them");
  verb->require_subcommand(1);
  CLI::App* make =
      verb->add_subcommand("generate", "Generate weights from a seed into an HDF5 file");
  make->add_option("--model", options->model,
                   "PRESET[,KEY=VALUE...] [palm-tiny];\nsee shardproof list models")
      ->type_name("");
  make->add_option("--seed", options->seed, "Seed [1]")->type_name("N");
  make->add_option("--out", options->out, "The file to write")->required()->type_name("FILE");
  verb->footer(
      "Example: shardproof weights generate --seed 3 --out w.h5\n"
      "         shardproof weights quantize w.h5 w8.h5\n"
      "         shardproof weights fold w.h5 w2.h5\n"
      "         shardproof weights inspect w.h5");
  make->footer("Example: shardproof weights generate --model palm-tiny,K=24 --seed 3 --out w.h5");
  make->callback([&chosen, options] { chosen = [options] { return generate(*options); }; });
  CLI::App* taken = verb->add_subcommand("import", "Read a checkpoint into a weights file");
  taken->add_option("CHECKPOINT", options->file, "*.safetensors, or a directory of them")
      ->required()
      ->type_name("");
  taken
      ->add_option("--model", options->model,
                   "FILE.model[,KEY=VALUE...], the model's text;\nsee shardproof list models")
      ->required()
      ->type_name("");
  taken
      ->add_option("--map", options->map, "FILE.map, of the text's names\n(docs/spec-model-map.md)")
      ->required()
      ->type_name("FILE");
  taken->add_option("--config", options->config, "A config.json [the checkpoint's]")
      ->type_name("FILE");
  taken->add_option("--out", options->out, "The file to write")->required()->type_name("FILE");
  taken->footer(
      "Example: shardproof weights import llama-dir --model llama.model\n"
      "             --map llama.map --out w.h5");
  taken->callback(
      [&chosen, options] { chosen = [options] { return import_checkpoint(*options); }; });
  CLI::App* codes = verb->add_subcommand("quantize", "Write the int8 weights of an f32 file");
  codes->add_option("IN", options->file, "A file of f32 weights")->required()->type_name("");
  codes->add_option("OUT", options->out, "The file of int8 weights to write")
      ->required()
      ->type_name("");
  codes->footer(
      "Codes and scales as weights=int8 makes them of the f32 weights (docs/spec.md\n"
      "section 2.4). A case with such a file runs with weights=int8.\n"
      "Example: shardproof weights quantize w.h5 w8.h5\n"
      "         shardproof verify --weights w8.h5");
  codes->callback([&chosen, options] { chosen = [options] { return quantize(*options); }; });
  CLI::App* folded = verb->add_subcommand("fold", "Write the weights of the same model in base 2");
  folded->add_option("IN", options->file, "A file of a model without softmax=base2")
      ->required()
      ->type_name("");
  folded->add_option("OUT", options->out, "The file of folded weights to write")
      ->required()
      ->type_name("");
  folded->footer(
      "Scales of scores, swish and logits go into the weights, of int8 weights into\n"
      "their scales (docs/spec.md section 2.9).\n"
      "Example: shardproof weights fold w.h5 w2.h5\n"
      "         shardproof verify --weights w2.h5");
  folded->callback([&chosen, options] { chosen = [options] { return fold_file(*options); }; });
  CLI::App* look = verb->add_subcommand("inspect", "Check a weights file and list its tensors");
  look->add_option("FILE", options->file, "The file to read")->required()->type_name("");
  look->add_flag("--json", options->json, "Print JSON (docs/json.md)");
  look->footer(
      "Example: shardproof weights inspect w.h5\n"
      "         shardproof weights inspect w.h5 --json");
  look->callback([&chosen, options] { chosen = [options] { return inspect(*options); }; });
}

}  // namespace shardproof::tools
