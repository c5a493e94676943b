#include "tools/command/layer_files.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <numeric>

#include "engine/strategies/layer_file.h"

namespace shardproof::tools {
namespace {

std::string names_of(const std::vector<Strategy>& tables) {
  std::vector<std::string> names;
  for (const Strategy& table : tables) names.push_back(table.to_string());
  return fmt::format("{}", fmt::join(names, ", "));
}

/// Refuses a strategy for a phase whose layer is a program.
void refuse_named_twice(const LayerFiles& files, const CaseFlags& flags, const std::string& line) {
  if (files.program && (flags.has("prefill", line) || flags.has("decode", line)))
    throw Error("program_f4",
                fmt::format("--program {} is both prefill and decode; leave {} out of the case, "
                            "or give the file as --program-{}",
                            *files.program, flags.has("prefill", line) ? "prefill" : "decode",
                            flags.has("prefill", line) ? "decode" : "prefill"));
  for (const auto& [phase, file] :
       {std::pair{"prefill", &files.program_prefill}, {"decode", &files.program_decode}})
    if (*file && flags.has(phase, line))
      throw Error("program_f4", fmt::format("--program-{0} {1} is the {0}; leave {0} out of the "
                                            "case",
                                            phase, **file));
}

}  // namespace

void LayerFiles::add_to(CLI::App& verb, bool programs) {
  if (programs)
    for (const auto& [flag, file, text] :
         {std::tuple{"--program", &program, "A layer program of your own (docs/program.md)"},
          {"--program-prefill", &program_prefill, "The same as prefill alone"},
          {"--program-decode", &program_decode, "The same as decode alone"}})
      verb.add_option(flag, *file, text)->type_name("FILE");
  CLI::Option* tables = verb.add_option("--layouts", layouts,
                                        "Tables of layouts of your own, which --prefill\n"
                                        "and --decode may name (docs/layouts.md)");
  tables->type_name("FILE");
  if (!programs) return;
  CLI::Option* both = verb.get_option("--program");
  for (const char* other : {"--program-prefill", "--program-decode", "--layouts"})
    both->excludes(verb.get_option(other));
}

void name_phases(const LayerFiles& files, CaseFlags& flags, const std::string& line) {
  if (!files.layouts) return;
  if (files.of_prefill() != nullptr && files.of_decode() != nullptr)
    throw Error("layouts_f4", fmt::format("both phases are programs, so no table of {} is used; "
                                          "leave --layouts out",
                                          *files.layouts));
  const std::vector<Strategy> own = load_strategies(*files.layouts);
  flags.know(own);
  const auto open = [&](const char* phase, const std::string* program) {
    return program == nullptr && !flags.has(phase, line);
  };
  if (own.size() > 1) {
    const bool prefill = open("prefill", files.of_prefill());
    // decode defaults to the prefill's strategy, if that has a name.
    const bool decode = files.of_prefill() != nullptr && open("decode", files.of_decode());
    if (prefill || decode)
      throw Error("layouts_f4",
                  fmt::format("{} holds {} tables: name one by --{} ({})", *files.layouts,
                              own.size(), prefill ? "prefill" : "decode", names_of(own)));
  } else {
    if (open("prefill", files.of_prefill())) flags.set_default("prefill", own[0].to_string());
    if (open("decode", files.of_decode())) flags.set_default("decode", own[0].to_string());
  }
  const Case c = flags.parse(line);
  const auto is_own = [&](const Strategy& phase, const std::string* program) {
    return program == nullptr && std::find(own.begin(), own.end(), phase) != own.end();
  };
  if (!is_own(c.prefill, files.of_prefill()) && !is_own(c.decode, files.of_decode()))
    throw Error("layouts_f4",
                fmt::format("no table of {} is used: it holds {}; name one by --prefill or "
                            "--decode, or leave --layouts out",
                            *files.layouts, names_of(own)));
}

Case load_given_case(const LayerFiles& files, CaseFlags& flags, const std::string& line) {
  refuse_named_twice(files, flags, line);
  std::optional<Strategy> prefill, decode;  // from program files
  if (const std::string* file = files.of_prefill()) prefill = Strategy(load_layer(*file));
  if (files.program)
    decode = prefill;
  else if (files.program_decode)
    decode = Strategy(load_layer(*files.program_decode));
  const auto default_to = [&](const char* key, const std::string& value) {
    if (!flags.has(key, line)) flags.set_default(key, value);
  };
  default_to("torus", "4x2x3");
  if (flags.weights() == nullptr)
    default_to("model", fmt::format("palm-tiny,embed_scale={}", kProgramEmbedScale));
  name_phases(files, flags, line);
  const bool open_prefill = !prefill && !flags.has("prefill", line);
  // Only a prefill's program is judged, without a decode.
  const bool alone = prefill && !decode && !flags.has("decode", line);
  if (open_prefill && !files.layouts)
    throw Error("program_f5",
                fmt::format("--program-decode {} needs a prefill before it: add --prefill NAME or "
                            "--program-prefill FILE",
                            *files.program_decode));
  default_to("gen", alone ? "1" : "3");
  Case c = flags.parse(line);
  if (alone && c.gen > 1)
    throw Error("program_f5", fmt::format("gen={} has decode steps, and --program-prefill {} is "
                                          "the prefill alone: add --decode NAME or "
                                          "--program-decode FILE, or leave gen at 1",
                                          c.gen, *files.program_prefill));
  if (decode && c.gen > 1 && smallest_length(*decode, c.torus_of(Phase::decode)) > 1)
    throw Error("program_f6",
                fmt::format("{} shards L, the positions of a pass, and a decode step has one: give "
                            "it as --program-prefill",
                            *files.of_decode()));
  if (prefill) c.prefill = *prefill;
  if (decode) c.decode = *decode;
  if (!flags.has("batch", line)) {
    std::int64_t unit = smallest_batch(c.prefill, c.torus);
    if (!alone) unit = std::lcm(unit, smallest_batch(c.decode, c.torus_of(Phase::decode)));
    c.batch = (std::max<std::int64_t>(c.prefix.rows, 1) + unit - 1) / unit * unit;
  }
  if (prefill && !flags.has("prompt", line)) {
    const std::int64_t L = smallest_length(c.prefill, c.torus);
    constexpr std::int64_t kLeast = 4;  // as in a case without programs
    c.prompt = (kLeast + L - 1) / L * L;
    if (!flags.has("chunk", line)) c.chunk = c.prompt;
  }
  return c;
}

const Strategy& table_named(const std::string& name, const std::vector<Strategy>& tables,
                            const std::string& file) {
  for (const Strategy& table : tables)
    if (table.to_string() == name || (name.empty() && tables.size() == 1)) return table;
  if (name.empty())
    throw Error("layouts_f4", fmt::format("{} holds {} tables: name one ({})", file, tables.size(),
                                          names_of(tables)));
  std::vector<std::string> names;
  for (const Strategy& table : tables) names.push_back(table.to_string());
  const std::string near = nearest(name, names);
  throw Error("layouts_f4",
              fmt::format("{} holds no table '{}'{} it holds {}", file, name,
                          near.empty() ? ";" : ", did you mean " + near + "?", names_of(tables)));
}

}  // namespace shardproof::tools
