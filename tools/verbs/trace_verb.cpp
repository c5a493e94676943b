#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>

#include "golden/trace/read/dump.h"
#include "tools/command/verbs.h"
#include "tools/text/json_text.h"
#include "tools/text/wrapped.h"
#include "weights/base/error.h"

namespace shardproof::tools {
namespace {

struct TraceFlags {
  std::string file;
  bool json = false;
};

std::string text_of(const dump::Attributes& attributes, std::string_view name) {
  const auto at = attributes.find(name);
  return at == attributes.end() ? "" : at->second;
}

std::string in_brackets(const Shape& shape) { return fmt::format("[{}]", fmt::join(shape, ",")); }

/// An array, or one chip's shard and the number of chips.
struct Form {
  const dump::StoredArray& array;
  std::size_t chips;  ///< 0: whole or stacked
};
Form form_of(const dump::Value& value) {
  if (value.in_shards()) return {value.chips.begin()->second, value.chips.size()};
  return {value.whole, 0};
}

nlohmann::json as_json(const std::string& name, const dump::Value& value) {
  const Form form = form_of(value);
  nlohmann::json out{{"name", name},
                     {"type", to_string(form.array.encoding)},
                     {"shape", form.array.shape},
                     {"attributes", value.attributes}};
  if (form.chips > 0) out["chips"] = form.chips;
  return out;
}

int inspect(const TraceFlags& o) {
  const dump::Dump file = dump::read_dump(o.file);
  const std::vector<std::string> names = dump::in_order(file);
  if (o.json) {
    nlohmann::json out{{"file", o.file},
                       {"attributes", file.attributes},
                       {"values", nlohmann::json::array()},
                       {"ignored", file.ignored}};
    for (const std::string& name : names)
      out["values"].push_back(as_json(name, file.values.find(name)->second));
    fmt::print("{}\n", json_text(out));
    return 0;
  }
  for (const char* name : {"case", "arithmetic", "ended"})
    if (const std::string text = text_of(file.attributes, name); !text.empty())
      fmt::print("{}\n", wrapped(fmt::format("{}: {}", name, text), kWidth, "  "));
  std::size_t whole = 0, shards = 0, same = 0, widest = 5;
  for (const auto& [name, value] : file.values) {
    if (value.attributes.contains("same_as"))
      ++same;
    else
      ++(value.in_shards() ? shards : whole);
    widest = std::max(widest, name.size());
  }
  fmt::print("{} values: {} as one array, {} as shards, {} the same as another\n", names.size(),
             whole, shards, same);
  widest = std::min<std::size_t>(widest, 40);
  if (!names.empty())
    fmt::print("\n{:<{}} {:<6} {:<24} {}\n", "value", widest, "type", "layout", "shape");
  for (const std::string& name : names) {
    const dump::Value& value = file.values.find(name)->second;
    const Form form = form_of(value);
    const std::string other = text_of(value.attributes, "same_as");
    fmt::print("{:<{}} {:<6} {:<24} {}{}\n", name, widest, to_string(form.array.encoding),
               text_of(value.attributes, "layout"),
               other.empty() ? in_brackets(form.array.shape) : "the same as " + other,
               form.chips > 0 ? fmt::format(" on {} chips", form.chips) : "");
  }
  for (const std::string& name : file.ignored) fmt::print("not read: {}\n", name);
  return 0;
}

}  // namespace

void add_trace(CLI::App& app, Action& chosen) {
  CLI::App* verb = app.add_subcommand("trace", "Look into traces");
  verb->require_subcommand(1);
  verb->footer(
      "Traces are written by `run --trace`, `verify --trace`, or anybody\n"
      "(docs/trace-format.md). `compare` judges one, and compares two.\n"
      "Example: shardproof trace inspect t.h5");
  auto options = std::make_shared<TraceFlags>();
  CLI::App* one = verb->add_subcommand("inspect", "List the values of a trace");
  one->add_option("FILE", options->file, "A trace: HDF5 or .npz (docs/trace-format.md)")
      ->required()
      ->type_name("");
  one->add_flag("--json", options->json, "Print JSON (docs/json.md)");
  one->footer("Example: shardproof trace inspect t.h5");
  one->callback([&chosen, options] { chosen = [options] { return inspect(*options); }; });
}

}  // namespace shardproof::tools
