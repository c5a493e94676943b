#include "tools/verbs/model_listing.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "tools/text/json_text.h"
#include "tools/text/wrapped.h"
#include "weights/model/model_config.h"
#include "weights/text/model_file.h"
#include "weights/text/model_text.h"
#include "weights/text/sizes.h"
#include "weights/text/writer.h"

namespace shardproof::tools {
namespace {

/// A file's name; keys have a '.' only behind a '='.
bool is_file(const std::string& model) {
  return model.substr(0, model.find(',')).find_first_of("./") != std::string::npos;
}

nlohmann::json sizes_json(const TextSizes& sizes) {
  nlohmann::json out{{"layers", sizes.layers}};
  for (const auto& [letter, extent] : sizes.extents) out[std::string(1, letter)] = extent;
  for (const auto& [name, number] : sizes.numbers) out[name] = json_number(number);
  for (const auto& [name, truths] : sizes.flags) {
    std::string digits;
    for (const bool truth : truths) digits += truth ? '1' : '0';
    out[name] = digits;
  }
  return out;
}

}  // namespace

int print_model_listing(const std::string& model, const std::string& rounding, bool json) {
  if (is_file(model) && !rounding.empty())
    throw Error("flag_c6",
                fmt::format("--rounding needs a model of keys; the text {} has stores of "
                            "its own",
                            model));
  const ModelText text =
      is_file(model) ? load_model_text(model)
                     : parse_model_text(text_of_model(parse_model(model), NumberFormat::f32,
                                                      rounding.empty() ? "spec" : rounding));
  const std::string printed = print_model_text(text);
  const std::string hash = fmt::format("{:016x}", hash_of(text));
  nlohmann::json out{{"model", text.name}, {"hash", hash}, {"text", printed}};
  if (!text.small.empty()) out["small"] = sizes_json(sizes_of(text));
  if (json)
    fmt::print("{}\n", json_text(out));
  else
    fmt::print("# {}, hash {}\n{}", text.name, hash, printed);
  return 0;
}

int list_model_ops(bool json) {
  nlohmann::json ops = nlohmann::json::array();
  if (!json)
    fmt::print(
        "Ops of model texts, and what they mean; numbers and letters of results:\n"
        "docs/spec-model-text.md.\n\n");
  for (const ModelOpRow& row : model_ops()) {
    if (json)
      ops.push_back({{"op", row.name}, {"form", usage(row.form)}, {"means", row.means}});
    else
      fmt::print("{}\n    {}\n",
                 wrapped(fmt::format("{}{}", row.name, usage(row.form)), kWidth, "  "),
                 wrapped(std::string(row.means), kWidth - 4, "    "));
  }
  if (json) fmt::print("{}\n", json_text({{"model_ops", ops}}));
  return 0;
}

}  // namespace shardproof::tools
