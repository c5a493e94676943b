#include "tools/command/chip_flags.h"

#include <fmt/format.h>

#include "tools/command/command_line.h"
#include "weights/base/error.h"
#include "weights/base/nearest.h"

namespace shardproof::tools {

void ChipFlags::add_to(CLI::App& verb, const std::string& preset) {
  name_ = preset;
  verb.add_option("--chip", name_, fmt::format("The chip, see shardproof list chips [{}]", preset))
      ->type_name("NAME");
  verb.add_option("--chips-file", file_,
                  "Chips of your own, beside those that ship\n(docs/cost.md)")
      ->type_name("FILE");
}

cost::Chip ChipFlags::chip() const {
  if (file_.empty()) return cost::find_chip(name_);
  return cost::find_chip(name_, cost::load_chips(file_));
}

NumberFormat type_of_flag(const CLI::App& verb, const std::string& flag, const std::string& word) {
  const std::vector<std::string> legal{"f32", "bf16", "int8"};
  for (const NumberFormat type : kWeightFormats)
    if (to_string(type) == word) return type;
  const std::string near = nearest(word, legal);
  throw Error("flag_c9", fmt::format("{} {}:{} legal: f32, bf16, int8 ({})", flag, word,
                                     near.empty() ? "" : fmt::format(" did you mean {}?", near),
                                     help_of(verb)));
}

}  // namespace shardproof::tools
