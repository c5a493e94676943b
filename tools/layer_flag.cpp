#include "tools/layer_flag.h"

#include <fmt/format.h>

#include "engine/strategies/layer_file.h"
#include "weights/error.h"

namespace shardproof::tools {

std::shared_ptr<const GivenLayer> load_given_layer(const std::string& file, CaseFlags& flags,
                                                   const std::string& line) {
  const auto has = [&](const std::string& key) { return flags.has(key, line); };
  for (const char* phase : {"prefill", "decode"})
    if (has(phase))
      throw Error("program_f4", fmt::format("--program {} is prefill and decode alike; leave "
                                            "{} out of the case",
                                            file, phase));
  auto given = std::make_shared<GivenLayer>();
  given->program = load_layer(file);
  for (const auto& [key, value] : {std::pair{"torus", "4x2x3"}, {"prompt", "4"}, {"gen", "3"}})
    if (!has(key)) flags.set_default(key, value);
  if (!has("model") && flags.weights() == nullptr)
    flags.set_default("model", fmt::format("palm-tiny,embed_scale={}", kProgramEmbedScale));
  given->c = flags.parse(line);
  if (!has("batch")) given->c.batch = smallest_batch(given->program, given->c.torus);
  return given;
}

}  // namespace shardproof::tools
